"""A GPT in the page's engine, run by Node, against Python: its tokens, its scores, its draws."""

import unicodedata
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy.special import softmax

from attnbook.learn.loop import train
from attnbook.model.block import Block
from attnbook.model.config import GPT_2
from attnbook.model.recording import recorded
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.number_words import number_pair
from attnbook.text.tokenizers import BytePair
from attnbook.text.vocabulary import Sequences
from attnbook.web._model_widget import FOLDER
from attnbook.web.playground.widget import window_start
from attnbook.weights.int8 import save_int8
from tests.helpers.engine import (
    MODERN,
    SENTENCES,
    SMALL,
    WORKER,
    array,
    node,
    same,
    shaken,
    written,
)
from tests.helpers.filters import FILTERS, warped

TEXTS = [
    *SENTENCES,
    "We can't afford it -- they'll pay; it's HE'S 'twas don't  we've I'm you're she'd",
    "  two  spaces\n\nand lines\t\tand tabs \n ends here   ",
    "\u00a0a\u2003b\u0085c\u200bd\ufeffe\x1cf\x1fg\x0bh\x0ci\rj\u180ek\u3000",
    "1776, 3.14 ² ½ Ⅷ ٣ 一二 $5+3=8 ~`^|<> «quoted» ¿qué? …—–",
    "Ünïcode İstanbul ΟΔΟΣ straße ﬁne e\u0301 我们 wash 貓貓。「猫」 한국어",
    "👩‍👩‍👧‍👦 ok 🥲🥲 👋🏽 🇩🇪",
    "\x00\x01\x7f<|endoftext|> \ufffd",
    "a" * 50,
    "",
]


def number(n: int) -> str:
    return " ".join(number_pair(n).target)


def tokenizer() -> BytePair:
    texts = [number(n) for n in range(100, 400)] + TEXTS[:6] * 3
    return BytePair.train(texts, 400)


def told(words: BytePair, texts: list[str], rows: Any = ()) -> Any:
    special = [words.vocab.tokens[i] for i in words.special]
    merges = [f"{a} {b}" for a, b in words.merges]
    return node("bytes", merges=merges, special=special, texts=texts, rows=rows)


def test_tokens_of_texts() -> None:
    words = tokenizer()
    assert told(words, TEXTS)["ids"] == [words.encode(text) for text in TEXTS]


def test_two_pairs_that_make_the_same_piece() -> None:
    words = BytePair([("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc"), ("abc", "d")])
    texts = ["abcd bcabc", "aabcdd"]
    assert told(words, texts)["ids"] == [words.encode(text) for text in texts]


def test_tokens_of_every_character() -> None:
    """Of those that Python's Unicode knows; newer versions call few of them otherwise."""
    words = tokenizer()
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
    known = [c for c in every if unicodedata.category(c) not in ("Cn", "Co")]
    texts = [f" a{c}1 {c}.{c}" for c in known]
    theirs = told(words, texts)["ids"]
    pairs = zip(known, theirs, map(words.encode, texts), strict=True)
    wrong = [hex(ord(c)) for c, their, our in pairs if their != our]
    assert len(known) > 140_000 and len(wrong) <= 20, wrong


def test_gpt_2s_own_tokens(asset: Any) -> None:
    words, ids = BytePair.load(asset("gpt2-bpe")), []
    texts = TEXTS + [number(n).title() for n in range(2000)]
    special = [words.vocab.tokens[i] for i in words.special]
    ours = BytePair(words.merges, special)  # in the order that the file of a model has
    ids = [ours.encode(text) for text in texts]
    assert told(ours, texts)["ids"] == ids
    assert [[ours.vocab.tokens[i] for i in row] for row in ids] == [
        [words.vocab.tokens[i] for i in words.encode(text)] for text in texts
    ]


def test_a_character_comes_with_the_last_of_its_bytes() -> None:
    words = tokenizer()
    rows = [words.encode(text) for text in TEXTS]
    broken = [words.encode("é🥲")[1:], words.encode("🥲")[:2] + words.encode("a"), [400 - 1, 64]]
    found = told(words, [], [*rows, *broken])
    assert found["decoded"][: len(rows)] == TEXTS
    assert found["decoded"] == [words.decode(row) for row in [*rows, *broken]]
    assert ["".join(parts) for parts in found["parts"]] == found["decoded"]
    cry = told(words, [], [words.encode("a🥲b")])["parts"][0]
    assert cry == ["a", "", "", "", "🥲", "b"]
    assert found["names"][words.vocab.bos] == "<|endoftext|>"
    assert found["names"][words.encode("🥲")[0]] == "\\xf0"
    assert found["names"][words.encode(" ")[0]] == " "


# ---- scores

CONFIGS = {
    "gpt-2": replace(GPT_2, d_model=24, n_heads=3, d_ff=20, n_layers=3, max_len=13),
    "modern": MODERN,
    "own head": replace(MODERN, tied=False, activation="relu2", gated=False, n_kv_heads=1),
    "alibi": replace(SMALL, positions="alibi", norm="post", d_ff=0),
    "waves": replace(SMALL, positions="sinusoidal", n_heads=4, n_layers=1),
    "interleaved": replace(MODERN, rotary_pairing="interleaved", n_kv_heads=3, rotary_base=50.0),
}
TEXT = "we are 7 é"
LONG = "all of it is more than fits into the row: three windows, read one after another"
WRITTEN = [300, 10, 3, 301]
QUESTIONS = [
    {"text": TEXT, "written": [], "known": []},  # each goes on from the one before
    {"text": TEXT, "written": WRITTEN[:1], "known": "last"},
    {"text": TEXT, "written": WRITTEN, "known": "last"},
    {"text": TEXT, "written": [*WRITTEN[:2], 9], "known": "last"},  # another branch
    {"text": "we act", "written": [], "known": "last"},
    {"text": "we act", "written": [], "known": "last"},  # asked again
    {"text": "", "written": [], "known": []},
    *[{"text": LONG, "written": [5], "known": known} for known in ([], *["last"] * 7)],
    {"text": LONG, "written": [5, 6], "known": "last"},
]


def inside(model: TransformerDecoder, ids: list[int]) -> tuple[torch.Tensor, ...]:
    """Lengths [layer place part] of each block's input, of what attention and network add to it;
    all weights [layer head query key]; and scores."""
    lengths = []
    for block in cast(list[Block], list(model.stack.blocks)):
        block.register_forward_pre_hook(lambda _, given: lengths.append(given[0][0].norm(dim=-1)))
        for layer in filter(None, (block.attention, block.feed_forward)):
            layer.register_forward_hook(lambda _m, _i, out: lengths.append(out[0].norm(dim=-1)))
    with torch.no_grad(), recorded(model) as weights:
        logits = model(torch.tensor([ids]))[0]
    for module in model.modules():
        module._forward_hooks.clear()
        module._forward_pre_hooks.clear()
    parts = torch.stack(lengths).unflatten(0, (model.n_layers, -1)).transpose(1, 2)
    return parts, torch.stack([each[0] for each in weights.values()]), logits


@pytest.mark.parametrize("fast", [False, True], ids=["plain", "compiled"])
@pytest.mark.parametrize("name", CONFIGS)
def test_answers(name: str, fast: bool, tmp_path: Path, compiled: Path) -> None:
    torch.manual_seed(4)
    config, words = CONFIGS[name], tokenizer()
    model = shaken(TransformerDecoder(words.vocab, config))
    file = written(
        model.state_dict(),
        tmp_path / "weights",
        config=asdict(config),
        merges=[f"{a} {b}" for a, b in words.merges],
        special=["<|endoftext|>"],
    )
    questions, last = [], []
    for question in QUESTIONS:
        row = (words.encode(question["text"]) or [words.vocab.bos]) + question["written"]
        known = question["known"] and last
        together = [a == b for a, b in zip(known, row, strict=False)]
        same_ids = min([*together, False].index(False), len(row) - 1)
        start = window_start(same_ids + 1, 13)
        last = row[: start + 13]
        questions.append({**question, "known": known, "same": same_ids, "start": start})
    answers = node(
        "answers", file=file, questions=questions, kernels=str(compiled) if fast else None
    )
    for given, answer in zip(questions, answers, strict=True):
        prompt = words.encode(given["text"]) or [words.vocab.bos]
        whole = prompt + given["written"]
        ids = whole[: given["start"] + 13]
        assert answer["ids"] == ids and answer["prompt"] == min(len(prompt), len(ids))
        assert answer["rest"] == len(whole) - len(ids)
        assert (answer["same"], answer["start"]) == (given["same"], given["start"])
        assert "".join(answer["pieces"]) == words.decode(ids)
        ours, weights, logits = inside(model, ids[answer["start"] :])
        start = answer["from"] - answer["start"]
        assert answer["from"] <= answer["same"]
        same(answer["logits"], logits[start:])
        same(answer["weights"], weights[:, :, start:])
        lengths = array(answer["lengths"])[..., : ours.shape[-1]]
        np.testing.assert_allclose(lengths, ours[:, start:], rtol=1e-4, atol=1e-4)
    n, other = len(words.encode(TEXT)), words.encode("we act")
    assert [answer["from"] for answer in answers[:4]] == [0, n, n + 1, n + 2]
    same_as_before = [a == b for a, b in zip(words.encode(TEXT), other, strict=False)].index(False)
    assert [answer["from"] for answer in answers[4:7]] == [same_as_before, len(other) - 1, 0]
    starts = [answer["start"] for answer in answers[7:]]
    assert starts == sorted(starts) and starts[:3] == [0, 6, 12] and answers[-2]["rest"] == 0
    assert answers[-1]["same"] == len(words.encode(LONG)) + 1


# ---- 8 bits


def test_eight_bits_name_the_same_token(tmp_path: Path) -> None:
    """A model that has learnt the words of numbers goes on with each beginning of some."""
    texts = [number(n) + "." for n in range(100, 10_000)]
    words = BytePair.train(texts[:2000], 300)
    config = replace(MODERN, d_model=32, n_heads=4, n_kv_heads=2, d_head=8, d_ff=48, max_len=48)
    model = TransformerDecoder(words.vocab, config)
    stream = torch.tensor([i for text in texts for i in words.encode(text)])

    def batch(step: int) -> Sequences:
        chosen = torch.Generator().manual_seed(step)
        starts = torch.randint(len(stream) - 25, (32, 1), generator=chosen)
        rows = stream[starts + torch.arange(25)]
        return Sequences(rows[:, :-1], rows[:, 1:])

    def loss(given: Sequences) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(
            model(given.tokens).flatten(0, 1), given.targets.flatten()
        )

    train(model, batch, loss, 300, lr=5e-3)
    model.eval()
    save_int8(tmp_path / "weights", model, words)
    questions = [{"text": text, "written": []} for text in texts[::150]]
    hits = []
    for answer in node("answers", file=str(tmp_path / "weights"), questions=questions):
        with torch.no_grad():
            ours = model(torch.tensor([answer["ids"]]))[0]
        hits += (array(answer["logits"]).argmax(-1) == ours.argmax(-1).numpy()).tolist()
    assert len(hits) > 400 and np.mean(hits) >= 0.99


@pytest.mark.parametrize("name", ["gpt", "bert"])
def test_the_worker_multiplies_with_compiled_kernels(name: str) -> None:
    """As pages run it: one memory a model, and the scores of the engine without kernels."""
    ask = {
        "gpt": {"text": SENTENCES[0], "written": [300, 7]},
        "bert": {"text": SENTENCES[0], "masks": [2]},
    }
    given = {"file": str(FOLDER / f"{name}.safetensors"), "questions": [ask[name]]}
    told, (plain,) = node("", WORKER, **given), node("answers", **given)
    assert told["memories"] == 1
    np.testing.assert_allclose(
        told["answers"][0], array(plain["logits"]).ravel(), rtol=0, atol=1e-4
    )
    assert told["answers"][0] != plain["logits"]["data"]  # single and double precision


# ---- draws


def test_filters_leave_what_transformers_leaves() -> None:
    chosen = torch.Generator().manual_seed(5)
    cases, wanted = [], []
    for filters in FILTERS * 5:
        logits = (3 * torch.randn(50, generator=chosen)).double()
        if len(cases) % 3 == 0:
            logits = logits.round()  # many alike
        cases.append({"logits": logits.tolist(), "filters": filters, "seed": 3})
        wanted.append(warped(logits, filters))
    for case, want, found in zip(cases, wanted, node("samples", cases=cases), strict=True):
        logits, order = np.array(case["logits"]), found["order"]
        p = softmax(logits / case["filters"]["temperature"])
        assert order == np.argsort(-logits, kind="stable").tolist()
        left = order[: found["count"]]
        assert found["mass"] == pytest.approx(p[left].sum())
        q = p[left] / p[left].sum()
        if case["filters"]["topP"] == 1 or len(set(p)) == 50:  # of tokens alike it takes any
            assert set(left) == set(np.flatnonzero(want))
            np.testing.assert_allclose(q, want[left], atol=1e-9)
        ends = np.cumsum(q)
        for number, drawn in zip(found["numbers"], found["drawn"], strict=True):
            assert drawn["rank"] == np.searchsorted(ends, number, side="right")
            assert (drawn["from"], drawn["to"]) == pytest.approx(
                (ends[drawn["rank"]] - q[drawn["rank"]], ends[drawn["rank"]])
            )
        counts = [found["stages"][name]["count"] for name in ("topK", "topP", "minP")]
        assert counts == sorted(counts, reverse=True) and counts[-1] == found["count"]
