"""MaskedWords in Python: what it refuses, the answer that it stores, and the weights it sends."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attnbook.model.bert import pack
from attnbook.model.recording import recorded
from attnbook.web import MaskedWords, format_number
from attnbook.web.masked_words.widget import whole_words
from attnbook.weights.int8 import load_int8
from tests.helpers.tiny_bert import CONFIG, NAME, tiny_bert

TEXT = "We must ask the peace of 貓 cats!"


def widget(text: str = TEXT, masks: Any = (4, 1), **options: Any) -> MaskedWords:
    return MaskedWords(text, masks, weights=tiny_bert(), **options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"masks": [8, 9]}, r"masks must be different numbers of words, 0\.\.8, not \[8, 9\]"),
        ({"masks": [-1]}, r"masks must be different numbers of words, 0\.\.8, not \[-1\]"),
        ({"masks": [2, 2]}, r"masks must be different numbers of words, 0\.\.8, not \[2, 2\]"),
        ({"masks": "12"}, "masks must be a list of numbers, not '12'"),
        ({"text": "x" * 501}, "text must have at most 500 characters, not 501"),
        ({"text": "a\ud83d"}, "text must be Unicode text; half a character"),
        ({"temperature": 0}, r"temperature must be a number above 0, not 0\.0"),
        ({"temperature": np.nan}, "temperature must be a number above 0, not nan"),
        ({"top": 0}, r"top must be 1\.\.20, not 0"),
        ({"top": 21}, r"top must be 1\.\.20, not 21"),
    ],
)
def test_what_it_refuses(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        widget(**options)


def test_weights_that_are_none() -> None:
    with pytest.raises(ValueError, match="weights must name a file of save_int8, not 'nothing'"):
        MaskedWords("a", weights="nothing")
    with pytest.raises(ValueError, match=r"weights must name a file of save_int8, not .*test_"):
        MaskedWords("a", weights=Path(__file__))


def test_it_follows_the_browser_and_python() -> None:
    shown = widget()
    assert shown.masks == [1, 4]
    shown.set_state({"text": "the people", "masks": [1], "layer": 1, "head": 2, "into": True})
    assert (shown.text, shown.masks, shown.layer, shown.head) == ("the people", [1], 1, 2)
    assert [word["text"] for word in shown.answer["words"]] == ["the", "people"]
    for trait, value in {"layer": 2, "head": 3, "place": -1, "masks": [2]}.items():
        with pytest.raises(ValueError, match=f"{trait} must be"):
            setattr(shown, trait, value)
    shown.masks = []
    assert shown.answer["likely"] == [] and shown.answer["row"][1:3] == ["the", "people"]


def expected(shown: MaskedWords, temperature: float) -> tuple[list[int], torch.Tensor, np.ndarray]:
    """Hidden places, their probabilities [place token], and all weights, by the model itself."""
    model, tokenizer = load_int8(tiny_bert())
    tokens, segments = pack(tokenizer.vocab, [tokenizer.encode(shown.text)], max_len=CONFIG.max_len)
    places = [place for n in shown.masks for place in shown.answer["words"][n]["places"]]
    hidden = torch.zeros_like(tokens, dtype=torch.bool)
    hidden[0, places] = True
    with torch.no_grad(), recorded(model) as weights:
        states = model(tokens.masked_fill(hidden, tokenizer.mask), segments)
        p = (model.word_logits(states, hidden) / temperature).softmax(-1)
    return places, p, np.stack([each[0].numpy() for each in weights.values()])


def test_a_shorter_text_keeps_the_masks_that_it_has_words_for() -> None:
    shown = widget()
    shown.text = "the people"
    assert (shown.masks, shown.answer["masks"], shown.answer["places"]) == ([1], [1], [2])
    shown.text = ""
    assert (shown.masks, shown.answer["row"]) == ([], ["[CLS]", "[SEP]"])


@pytest.mark.parametrize("temperature", [1, 0.3])
def test_the_stored_answer_is_the_models(temperature: float) -> None:
    shown = widget(temperature=temperature)
    places, p, weights = expected(shown, temperature)
    answer, tokens = shown.answer, load_int8(tiny_bert())[1].vocab.tokens
    stored = np.frombuffer(shown.get_state()["attention"], "<u2").reshape(answer["shape"]) / 65535
    np.testing.assert_allclose(stored, weights, rtol=0, atol=1e-5)
    assert answer["size"] == len(tokens) and [each["place"] for each in answer["likely"]] == places
    for row, each in zip(p, answer["likely"], strict=True):
        named = {one["token"]: one["p"] for one in each["best"]}
        best = row.topk(20)
        assert list(named) == [tokens[i] for i in best.indices]
        assert list(named.values()) == pytest.approx(best.values.tolist(), abs=1e-5)
        own = row[tokens.index(each["hidden"])]
        assert each["own"] == pytest.approx(own.item(), abs=1e-5)
        assert each["rank"] == 1 + (row > own).sum()
    assert [each["name"] for each in answer["likely"]] == ["must", "peace"]


def test_pieces_unknown_words_and_words_beyond_the_row() -> None:
    shown = widget("the pots 貓 the cats " + "peace " * 30, masks=[0, 1, 3])
    words = shown.answer["words"]
    assert [word["known"] for word in words[:4]] == [True, True, False, True]
    assert [len(word["places"]) for word in words[:4]] == [1, 3, 1, 1]
    assert len(shown.answer["row"]) == CONFIG.max_len
    assert [bool(word["places"]) for word in words] == [True] * 20 + [False] * 15
    names = [each["name"] for each in shown.answer["likely"]]
    assert names == ["the", "p", "##o", "##ts", "the (2)"]


def test_a_mask_that_is_written_is_a_hidden_word() -> None:
    shown = widget("the [MASK] of [mask] people", masks=[0])
    words = shown.answer["words"]
    assert [word["text"] for word in words] == ["the", "[MASK]", "of", "[MASK]", "people"]
    assert all(word["known"] and len(word["places"]) == 1 for word in words)
    assert (shown.masks, shown.answer["masks"]) == ([0], [0, 1, 3])
    model, tokenizer = load_int8(tiny_bert())
    ids = [tokenizer.mask, tokenizer.mask, *tokenizer.encode("of"), tokenizer.mask]
    tokens, _ = pack(tokenizer.vocab, [[*ids, *tokenizer.encode("people")]], max_len=CONFIG.max_len)
    with torch.no_grad():
        p = model.word_logits(model(tokens))[0, [1, 2, 4]].softmax(-1)
    best = [tokenizer.vocab.tokens[i] for i in p.argmax(-1)]
    assert [each["best"][0]["token"] for each in shown.answer["likely"]] == best
    with pytest.raises(ValueError, match=r"masks must be different numbers of words, 0\.\.4"):
        shown.masks = [5]


def test_a_cut_word_is_answered_as_a_word() -> None:
    shown = widget("the pots", masks=[0, 1], top=20)
    pieces, (the, pots) = shown.answer["likely"], whole_words(shown.answer)
    assert (the, pots["name"]) == (pieces[0], "pots")
    begin, *more = (
        [one for one in each["best"] if one["token"].startswith("##") == (n > 0)]
        for n, each in enumerate(pieces[1:])
    )
    words = [
        (a["token"] + b["token"][2:] + c["token"][2:], a["p"] * b["p"] * c["p"])
        for a in begin
        for b in more[0]
        for c in more[1]
    ]
    words = sorted((word for word in words if word[0][0] != "["), key=lambda word: -word[1])[:20]
    assert [one["token"] for one in pots["best"]] == [word for word, _ in words] != []
    assert [one["p"] for one in pots["best"]] == pytest.approx([p for _, p in words])


def test_weights_go_to_the_page_when_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, sent = widget(), []
    monkeypatch.setattr(MaskedWords, "send", lambda _, *message: sent.append(message))
    for asked in ({"weights": "another"}, "weights", {"weights": NAME}):
        shown._handle_custom_msg(asked, [])
    assert sent == [({"weights": NAME}, [tiny_bert().read_bytes()])]


def test_a_notebook_stores_no_weights() -> None:
    state = {name: value for name, value in widget().get_state().items() if name not in ("_esm",)}
    size = sum(
        len(value if isinstance(value, bytes) else json.dumps(value)) for value in state.values()
    )
    assert size < 25_000 and state["weights"] == NAME


def test_picture_draws_the_likeliest_words() -> None:
    shown = widget(top=3)
    figure = Figure()
    shown.draw(figure)
    assert len(figure.axes) == 2
    for axis, each in zip(figure.axes, shown.answer["likely"], strict=True):
        best = each["best"][:3]
        drawn = [bar.get_width() for bar in axis.patches if isinstance(bar, Rectangle)]
        assert drawn == pytest.approx([one["p"] for one in best])
        assert [text.get_text() for text in axis.texts] == [format_number(one["p"]) for one in best]
        assert [label.get_text() for label in axis.get_yticklabels()] == [
            one["token"] for one in best
        ]
    assert "[MASK]" in figure.get_supxlabel()
    assert widget(masks=()).png() == widget(masks=()).png()
