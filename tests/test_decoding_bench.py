"""DecodingBench in Python and, by Node, what the page makes of its tree, against all of a row."""

import base64
import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from attnbook.model.sampling import Sampling
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.web import DecodingBench
from attnbook.weights.int8 import load_int8
from attnbook.weights.pretrained import sotu_gpt
from tests.helpers.engine import LIVE, node
from tests.helpers.tiny_gpt import CONFIG, tiny_gpt

PROMPT = "We must ask é"
MODEL, TOKENIZER = load_int8(tiny_gpt(), TransformerDecoder)
SIZE = len(TOKENIZER.vocab)
RUN = """
import { readFileSync } from "node:fs";
import { nearest, prospect, scores, unpack } from "ENGINE/../decoding_bench/tree.js";
const { tree: text, sizes, paths, cases } = JSON.parse(readFileSync(0, "utf8"));
const bytes = new Uint8Array(Buffer.from(text, "base64"));
const tree = unpack(new DataView(bytes.buffer), sizes);
const found = paths.map((path) => {
  const place = tree.get(path), all = scores(place, sizes);
  const at = path.length;
  const shown = cases.map(({ filters, seed }) => prospect(place, sizes, filters, seed, at));
  return { ids: place.ids, top: place.top, scores: [...all], shown };
});
console.log(JSON.stringify({ found, stored: [...tree.places.values()].map(({ path }) => path) }));
"""
FILTERS = [
    {"temperature": t, "topK": k, "topP": p, "minP": m}
    for t, k, p, m in (
        (1.0, 0, 1.0, 0.0),
        (0.0, 0, 1.0, 0.0),
        (0.7, 0, 1.0, 0.0),
        (1.6, 0, 1.0, 0.0),
        (1.0, 5, 1.0, 0.0),
        (1.0, 60, 1.0, 0.0),
        (1.0, 0, 0.5, 0.0),
        (1.0, 0, 0.97, 0.0),
        (1.4, 40, 0.9, 0.0),
        (1.0, 0, 1.0, 0.2),
        (2.0, 0, 1.0, 0.03),
        (1.0, 30, 0.8, 0.1),
    )
]
SEEDS = (0, 1, 2, 77, 999_999)


@cache
def bench(**options: Any) -> DecodingBench:
    return DecodingBench(MODEL, TOKENIZER, PROMPT, **{"steps": 4, **options})


@cache
def trained() -> tuple[TransformerDecoder, BytePair, DecodingBench]:
    model, tokenizer = sotu_gpt()
    return model, tokenizer, DecodingBench(model, tokenizer, "We must ask the people of")


def page(shown: DecodingBench, paths: list[list[int]], cases: Any = ()) -> Any:
    tree = base64.b64encode(shown.tree).decode()
    return node("", RUN, tree=tree, sizes=shown.sizes, paths=paths, cases=list(cases))


def logp(model: TransformerDecoder, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([ids]))[0, -1].double().log_softmax(-1)


def left(logits: torch.Tensor, filters: dict[str, Any]) -> torch.Tensor:
    """What `Sampling` leaves of a row."""
    names = {"temperature": "temperature", "topK": "top_k", "topP": "top_p", "minP": "min_p"}
    how = Sampling(**{names[name]: value for name, value in filters.items()})
    return how(logits[None], torch.zeros(1, 0, dtype=torch.long))[0]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"steps": -1}, r"steps must be 0\.\.34, not -1"),
        ({"steps": 35}, r"steps must be 0\.\.34, not 35"),
        ({"seeds": -1}, r"seeds must be 0\.\.1000, not -1"),
        ({"keep": 9}, rf"keep must be 10\.\.{SIZE}, the vocabulary's size, not 9"),
        ({"keep": SIZE + 1}, rf"keep must be 10\.\.{SIZE}, the vocabulary's size, not {SIZE + 1}"),
        ({"methods": {"odd": Sampling(typical=0.5)}}, "methods must be of temperature, .* 'odd'"),
        ({"temperature": -1}, "temperature must be a finite number from 0 on, not -1"),
        ({"temperature": np.nan}, "temperature must be a finite number from 0 on, not nan"),
        ({"top_k": -1}, "top_k must be a finite number from 0 on, not -1"),
        ({"top_p": 0.0}, r"top_p must be 0\.\.1, not 0\.0"),
        ({"min_p": 1.5}, r"min_p must be 0\.\.1, not 1\.5"),
        ({"seed": -1}, r"seed must be 0\.\.1000000, not -1"),
        ({"written": [3, SIZE]}, rf"written must be ids of tokens, 0\.\.{SIZE - 1}, not {SIZE}"),
        ({"written": [3] * 35}, "written must be 34 ids at most, not 35"),
        ({"written": "ab"}, "written must be a list of ids, not 'ab'"),
    ],
)
def test_what_it_refuses(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        DecodingBench(MODEL, TOKENIZER, PROMPT, **{"steps": 1, **options})


def test_prompts_and_models_that_are_refused() -> None:
    with pytest.raises(ValueError, match="prompt must have at most 40 tokens, not 41"):
        DecodingBench(MODEL, TOKENIZER, " peace" * 41)
    with pytest.raises(ValueError, match="Unicode text; half a character"):
        DecodingBench(MODEL, TOKENIZER, "a\ud83d")
    young = TransformerDecoder(TOKENIZER.vocab, CONFIG)
    with pytest.raises(ValueError, match="model must be in evaluation mode"):
        DecodingBench(young, TOKENIZER, PROMPT)
    with pytest.raises(ValueError, match=r"places takes .* bytes compressed, more than 60,000"):
        DecodingBench(MODEL, TOKENIZER, PROMPT, steps=30, seeds=40)


def test_an_empty_prompt_begins_a_text() -> None:
    assert DecodingBench(MODEL, TOKENIZER, "", steps=0).prompt == ["<|endoftext|>"]


def test_the_likeliest_are_the_models() -> None:
    shown = bench()
    stored = page(shown, [])["stored"]
    ids = TOKENIZER.encode(PROMPT)
    assert len(stored) == shown.sizes["nodes"] and len({tuple(path) for path in stored}) > 40
    told = page(shown, stored)["found"]
    for path, place in zip(stored, told, strict=True):
        row = logp(MODEL, [*ids, *path])
        best = row.argsort(descending=True, stable=True)[: len(place["ids"])]
        assert place["ids"] == best.tolist()
        assert place["top"] == pytest.approx(row[best].tolist(), abs=2e-5)
        assert np.all(np.diff(place["scores"]) <= 0) and len(place["scores"]) == SIZE
        assert np.exp(place["scores"]).sum() == pytest.approx(1, abs=1e-5)


def test_the_tree_has_greedy_its_neighbours_and_the_draws_of_each_method() -> None:
    """And the page draws what Python drew."""
    shown, ids = bench(), TOKENIZER.encode(PROMPT)
    stored = {tuple(path) for path in page(shown, [])["stored"]}
    path: list[int] = []
    for n in range(4):
        best = logp(MODEL, [*ids, *path]).topk(10 if n == 0 else 3).indices.tolist()
        end = MODEL.vocab.eos
        assert {(*path, i) for i in best if i != end} <= stored
        path.append(best[0])
    for method in shown.methods:
        filters = {"topK": method["top_k"], "topP": method["top_p"], "minP": method["min_p"]}
        filters["temperature"] = method["temperature"]
        for seed in range(3):
            path = []
            for _ in range(4):
                case = {"filters": filters, "seed": seed}
                (place,) = page(shown, [path], [case])["found"]
                drawn = place["shown"][0]["drawn"]
                if "which" not in drawn or drawn["which"] == MODEL.vocab.eos:
                    break  # it fell among those that are not stored
                path.append(drawn["which"])
                assert tuple(path) in stored


def of_the_page(shown: DecodingBench, paths: list[list[int]]) -> Any:
    cases = [{"filters": filters, "seed": seed} for filters in FILTERS for seed in SEEDS]
    return cases, page(shown, paths, cases)["found"]


@pytest.mark.parametrize("real", [False, True])
def test_filters_on_what_is_stored_leave_what_they_leave_of_the_whole(real: bool) -> None:
    model, tokenizer, shown = trained() if real else (MODEL, TOKENIZER, bench())
    ids = tokenizer.encode("We must ask the people of" if real else PROMPT)
    paths = page(shown, [])["stored"][::9]
    keep, wrong = shown.sizes["keep"], []
    cases, found = of_the_page(shown, paths)
    for path, place in zip(paths, found, strict=True):
        row = logp(model, [*ids, *path])
        order = row.argsort(descending=True, stable=True)
        for case, told in zip(cases, place["shown"], strict=True):
            filters, t = case["filters"], case["filters"]["temperature"]
            rest = left(row, filters)
            want, p = int((rest > -torch.inf).sum()), Sampling(temperature=t)
            p = p(row[None], torch.zeros(1, 0, dtype=torch.long))[0].softmax(-1)
            exact = not told["near"]["count"]
            if exact:
                assert told["count"] == want
            else:
                wrong.append(abs(told["count"] / want - 1))
            mass = p[order[: told["count"]]].sum().item()
            slack = 1e-5 if not told["near"]["mass"] else 4e-3
            assert told["mass"] == pytest.approx(mass, abs=slack)
            slack = 1e-5 if t in (0, 1) and want <= keep else 2e-3
            q = rest.softmax(-1)
            for n, one in enumerate(told["best"]):
                i = one["which"]
                assert i == order[n]
                assert one["model"] == pytest.approx(row[i].exp().item(), abs=1e-5)
                assert one["p"] == pytest.approx(p[i].item(), abs=1e-5 if t in (0, 1) else 2e-3)
                assert one["q"] == pytest.approx(q[i].item(), rel=0.03, abs=slack)
            bits = [-(x * x.log2()).nansum().item() for x in (row.exp(), q)]
            assert told["bits"] == pytest.approx(bits, abs=0.1 if real else 0.06)
    assert len(wrong) > 20 and np.mean(wrong) < 0.02 and max(wrong) < 0.12


def test_a_draw_falls_where_the_number_says() -> None:
    shown, ids = bench(), TOKENIZER.encode(PROMPT)
    cases, (place,) = of_the_page(shown, [[]])
    row = logp(MODEL, ids)
    order = row.argsort(descending=True, stable=True)
    for case, told in zip(cases, place["shown"], strict=True):
        if case["filters"]["temperature"] not in (0, 1):
            continue
        ends = left(row, case["filters"])[order].softmax(-1).cumsum(-1)
        drawn, number = told["drawn"], told["number"]
        assert drawn["from"] - 1e-6 <= number <= drawn["to"] + 1e-6
        if drawn["rank"] < shown.sizes["keep"]:
            assert drawn["which"] == order[drawn["rank"]]
            assert drawn["to"] == pytest.approx(ends[drawn["rank"]].item(), abs=0.02)
        else:
            assert "which" not in drawn and number > ends[shown.sizes["keep"] - 1] - 1e-6


def test_a_kernel_tells_all() -> None:
    """Then nothing is about."""
    model, tokenizer, shown = trained()
    row = logp(model, tokenizer.encode("We must ask the people of"))
    cases = [{"filters": filters, "seed": 3} for filters in FILTERS]
    found = node("", LIVE, logp=row.tolist(), sizes=shown.sizes, cases=cases)
    for case, told in zip(cases, found, strict=True):
        rest = left(row, case["filters"])
        assert not any(told["near"].values()) and told["count"] == int((rest > -torch.inf).sum())
        q = rest.softmax(-1)
        for one in [*told["best"], told["drawn"]]:
            assert one["q"] == pytest.approx(q[one["which"]].item(), abs=1e-5)
        assert told["bits"][1] == pytest.approx(-(q * q.log2()).nansum().item(), abs=1e-4)


def test_it_answers_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, sent = bench(), []
    monkeypatch.setattr(DecodingBench, "send", lambda _, *message: sent.append(message))
    ids, room = TOKENIZER.encode(PROMPT), MODEL.stack.config.max_len
    wrong: list[Any] = ["a", {}, {"ids": ids}, {"number": 1}, {"number": "1", "ids": ids}]
    wrong += [
        {"number": 1, "ids": bad} for bad in ("ab", [], [SIZE], [-1], [0.5], [3] * (room + 1))
    ]
    wrong += [{"number": 1, "encode": bad} for bad in (3, None, "a" * 501)]
    for asked in [*wrong, {"number": 1, "begin": False}]:
        shown._handle_custom_msg(asked, [])
    assert sent == []
    for asked in [{"begin": True}, {"encode": PROMPT}, {"ids": ids}, {"ids": [*ids, 4, 5]}]:
        shown._handle_custom_msg({"number": 7, **asked}, [])
    (begun,), (encoded,), *told = sent
    assert begun["number"] == 7 and begun["start"] == MODEL.vocab.bos and begun["room"] == room
    assert begun["ids"] == ids
    assert len(begun["names"]) == SIZE and begun["names"][MODEL.vocab.eos] == "<|endoftext|>"
    assert encoded == {"number": 7, "ids": ids}
    for (message, (logits,)), read in zip(told, (ids, [*ids, 4, 5]), strict=True):
        assert message == {"number": 7}
        found = torch.tensor(np.frombuffer(logits, "<f4").copy()).double().log_softmax(-1)
        assert found.numpy() == pytest.approx(logp(MODEL, read).numpy(), abs=2e-5)


def test_what_a_notebook_stores_is_small() -> None:
    shown = trained()[2]
    state = {name: value for name, value in shown.get_state().items() if name[0] != "_"}
    assert shown.bytes < 60_000 and len(state["tree"]) < 45_000
    assert len(json.dumps(state["tokens"])) < 12_000


def test_it_follows_the_browser() -> None:
    shown = DecodingBench(MODEL, TOKENIZER, PROMPT, steps=1)
    shown.set_state({"written": [7], "top_k": 3, "temperature": 0.5, "seed": 4})
    assert (shown.written, shown.top_k, shown.text) == ([7], 3, PROMPT + TOKENIZER.decode([7]))


def test_picture_draws_before_and_after() -> None:
    shown = DecodingBench(MODEL, TOKENIZER, PROMPT, steps=1, top_k=3)
    figure = Figure()
    shown.draw(figure)
    row = logp(MODEL, TOKENIZER.encode(PROMPT))
    best = row.topk(10)
    bars = [bar.get_width() for bar in figure.axes[0].patches]  # type: ignore[attr-defined]
    assert bars[:10] == pytest.approx(best.values.exp().tolist(), abs=1e-5)
    kept = best.values[:3].softmax(-1).tolist()
    assert bars[10:] == pytest.approx([*kept, *[0] * 7], abs=1e-5)
    shown.written = [MODEL.vocab.eos]
    assert shown.png() and not math.isnan(shown.top_p)
