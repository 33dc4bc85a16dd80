"""The engine in the page, run by Node, against PyTorch: the book's modules, the same numbers."""

import unicodedata
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from attnbook.learn.loop import train
from attnbook.model.bert import Bert, mask_tokens, pack
from attnbook.model.block import Block
from attnbook.model.config import BERT
from attnbook.model.recording import recorded
from attnbook.model.transformer import Stack
from attnbook.text.number_words import number_pair
from attnbook.text.tokenizers import WordPiece
from attnbook.text.vocabulary import Sequences
from attnbook.web._model_widget import FOLDER
from attnbook.weights.int8 import load_int8, save_int8
from tests.helpers.engine import MODERN, SENTENCES, SMALL, array, node, same, shaken, written

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghij"
TOKENS = [*SPECIAL, *LETTERS, *(f"##{c}" for c in LETTERS), "ab", "##cab", "!", "貓"]


# ---- the stack, by configuration

CONFIGS = {
    "bert": replace(BERT, d_model=24, n_heads=3, d_ff=20, n_layers=3, max_len=13),
    "pre": replace(SMALL, activation="gelu_tanh", positions="learned"),
    "no norm": replace(SMALL, norm="none", activation="relu2", n_layers=1),
    "no network": replace(SMALL, d_ff=0, final_norm=False, positions="none"),
    "no residual": replace(SMALL, residual=False, norm="post", final_norm=True),
    "llama": replace(MODERN, rotary_base=100.0),
    "interleaved": replace(SMALL, positions="rotary", rotary_pairing="interleaved"),
    "alibi": replace(SMALL, positions="alibi", n_segments=3, embedding_norm=True),
}


N = 7
MASKS = {
    "all": None,
    "causal": torch.ones(N, N).tril().bool(),
    "padding": (torch.arange(N) > 0).expand(N, N),
    "any": torch.rand(N, N, generator=torch.Generator().manual_seed(1)) < 0.5,
}


@pytest.mark.parametrize("name", CONFIGS)
def test_stack(name: str, tmp_path: Path) -> None:
    config = CONFIGS[name]
    model = shaken(Stack(17, config))
    tokens = torch.randint(17, (1, N))
    segments = torch.randint(config.n_segments, (1, N)) if config.n_segments else None
    positions = torch.tensor([[0, 0, 1, 2, 3, 4, 5]])  # as after padding
    told = node(
        "stack",
        file=written(model.state_dict(), tmp_path / "weights"),
        config=asdict(config),
        tokens=tokens[0].tolist(),
        segments=None if segments is None else segments[0].tolist(),
        cases=[
            {
                "mask": "causal" if kind == "causal" else None if mask is None else mask.tolist(),
                "positions": positions[0].tolist() if kind == "padding" else None,
            }
            for kind, mask in MASKS.items()
        ],
    )
    states: list[Tensor] = []
    for module in (model.dropout, *model.blocks):
        module.register_forward_hook(lambda _m, _i, out: states.append(out))
    for (kind, mask), theirs in zip(MASKS.items(), told, strict=True):
        states.clear()
        with torch.no_grad(), recorded(model) as weights:
            out = model(
                tokens,
                mask=None if mask is None else mask[None],
                positions=positions if kind == "padding" else None,
                segments=segments,
            )
        for their, ours in zip(theirs["states"], states, strict=True):
            same(their, ours[0])
        for their, ours in zip(theirs["weights"], weights.values(), strict=True):
            same(their, ours[0])
        same(theirs["out"], out[0])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_block_with_a_memory(norm: str, tmp_path: Path) -> None:
    config = replace(SMALL, norm=norm, positions="alibi")
    block = shaken(Block(config, cross=True))
    x, memory = torch.randn(1, 5, 24), torch.randn(1, 8, 24)
    mask, memory_mask = torch.rand(1, 5, 5) < 0.6, torch.rand(1, 5, 8) < 0.6
    with torch.no_grad():
        out = block(x, memory, mask=mask, memory_mask=memory_mask)
    told = node(
        "block",
        file=written(block.state_dict(), tmp_path / "weights"),
        config=asdict(config),
        x={"data": x.flatten().tolist(), "shape": [5, 24], "positions": [0, 1, 2, 3, 4]},
        memory={"data": memory.flatten().tolist(), "shape": [8, 24]},
        mask=mask[0].tolist(),
        memoryMask=memory_mask[0].tolist(),
    )
    same(told, out[0])


# ---- words

TEXTS = [
    "We can't afford it, Mr. Speaker -- not in 1994 [MASK]!",
    "Ünïcode À LA CARTE İstanbul ΟΔΟΣ straße ﬁne Ⅷ",
    "a\u00adb\u200bc\u0000d\ufffde\u2028f\u00a0g\u3000h\ti\nj\x0bk",
    "我们 wash 貓貓。「猫」 ひらがな 한국어",
    "👩‍👩‍👧‍👦 ok 🥲 $5+3=8 ~`^|<> «quoted» ¿qué? …—–",
    "",
]


@pytest.mark.parametrize("lowercase", [True, False])
def test_words(lowercase: bool) -> None:
    tokenizer = WordPiece(TOKENS, lowercase=lowercase)
    assert node("split", texts=TEXTS, lowercase=lowercase) == list(map(tokenizer.words, TEXTS))


def test_words_of_every_character() -> None:
    """Of those that Python's Unicode knows; newer versions call few of them otherwise."""
    tokenizer = WordPiece(TOKENS)
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
    known = [c for c in every if unicodedata.category(c) not in ("Cn", "Co")]
    texts = [f"a{c}b" for c in known]
    theirs = node("split", texts=texts, lowercase=True)
    pairs = zip(known, theirs, map(tokenizer.words, texts), strict=True)
    wrong = [hex(ord(c)) for c, their, our in pairs if their != our]
    assert len(known) > 140_000 and len(wrong) <= 20, wrong


# ---- a masked-word model


@pytest.fixture(scope="module")
def bert() -> tuple[Bert, WordPiece]:
    torch.manual_seed(3)
    tokenizer = WordPiece(TOKENS)
    return shaken(Bert(tokenizer.vocab, CONFIGS["bert"])), tokenizer


QUESTIONS = [
    {"text": "Ab! xyz jabcab 貓", "masks": [1]},
    {"text": "Ab! xyz jabcab 貓", "masks": [4, 3, 9]},
    {"text": "", "masks": [0]},
    {"text": "a b c d e f abcabcab g h i j", "masks": [0, 9]},  # no room for i and j
]


@pytest.mark.parametrize("fast", [False, True], ids=["plain", "compiled"])
def test_answers(bert: tuple[Bert, WordPiece], fast: bool, tmp_path: Path, compiled: Path) -> None:
    model, tokenizer = bert
    file = written(
        model.state_dict(),
        tmp_path / "weights",
        config=asdict(CONFIGS["bert"]),
        tokens=TOKENS,
        lowercase=True,
    )
    answers = node(
        "answers", file=file, questions=QUESTIONS, kernels=str(compiled) if fast else None
    )
    first, two, nothing, long = answers
    assert [word["text"] for word in first["words"]] == ["ab", "!", "xyz", "jabcab", "貓"]
    assert [word["known"] for word in first["words"]] == [True, True, False, True, True]
    assert [word["places"] for word in first["words"]] == [[1], [2], [3], [4, 5, 6, 7], [8]]
    assert [two["places"], nothing["places"]] == [[4, 5, 6, 7, 8], []]  # as the text has them
    assert [word["places"] for word in long["words"]][6:] == [[7, 8, 9], [10], [11], [], []]
    assert long["places"] == [1]
    for told in answers:
        kept = " ".join(word["text"] for word in told["words"] if word["places"])
        tokens, segments = pack(tokenizer.vocab, [tokenizer.encode(kept)], max_len=13)
        assert told["row"] == [tokenizer.vocab.tokens[i] for i in tokens[0]]
        places = torch.zeros_like(tokens, dtype=torch.bool)
        places[0, told["places"]] = True
        with torch.no_grad(), recorded(model) as weights:
            states = model(tokens.masked_fill(places, tokenizer.mask), segments)
            logits = model.word_logits(states)[0, told["places"]]
        same(told["logits"], logits)
        same(told["attention"], torch.stack([w[0] for w in weights.values()]))


# ---- 8 bits


def test_eight_bits_name_the_same_word(tmp_path: Path) -> None:
    """A model that has learnt the words of numbers: of each, one word is hidden and asked."""
    texts = [" ".join(number_pair(n).target) for n in range(100, 10_000)]
    tokenizer = WordPiece.train(texts[:2000], 120)
    config = replace(CONFIGS["bert"], d_model=32, n_heads=4, d_ff=48, n_layers=2, max_len=16)
    model = Bert(tokenizer.vocab, config)
    rows, _ = pack(tokenizer.vocab, [tokenizer.encode(text) for text in texts], max_len=16)

    def batch(step: int) -> Sequences:
        chosen = torch.Generator().manual_seed(step)
        drawn = rows[torch.randint(len(rows), (64,), generator=chosen)]
        return mask_tokens(drawn, tokenizer, seed=step)

    def loss(given: Sequences) -> Tensor:
        return model.word_loss(model(given.tokens), given.targets)

    train(model, batch, loss, 300, lr=5e-3)
    model.eval()
    save_int8(tmp_path / "weights", model, tokenizer)
    questions = [{"text": text, "masks": [len(text) % 3]} for text in texts[::20]]
    same_word = []
    for told in node("answers", file=str(tmp_path / "weights"), questions=questions):
        ids = torch.tensor([tokenizer.vocab.encode(told["row"])])
        ids[0, told["places"]] = tokenizer.mask
        with torch.no_grad():
            ours = model.word_logits(model(ids))[0, told["places"]]
        same_word += (array(told["logits"]).argmax(-1) == ours.argmax(-1).numpy()).tolist()
    assert len(same_word) > 400 and np.mean(same_word) >= 0.99


def test_the_books_own_model_says_the_same_in_the_page(compiled: Path) -> None:
    """Each word of some sentences hidden in turn, and asked of Python and of the page."""
    file = FOLDER / "bert.safetensors"
    model, tokenizer = load_int8(file)
    counts = [len(tokenizer.words(text)) for text in SENTENCES]
    questions = [
        {"text": text, "masks": [n]}
        for text, count in zip(SENTENCES, counts, strict=True)
        for n in range(count)
    ]
    for told in node("answers", file=str(file), questions=questions, kernels=str(compiled)):
        ids = torch.tensor([tokenizer.vocab.encode(told["row"])])
        ids[0, told["places"]] = tokenizer.mask
        with torch.no_grad():
            same(told["logits"], model.word_logits(model(ids))[0, told["places"]])
