"""The walk through a row of self-attention: worked out again, number by number."""

from math import exp, sqrt
from typing import Any

import pytest
import torch

from attnbook.walks import attention_row
from attnbook.web import Drawing
from tests.helpers.walks import drawn, told

TOKENS, D, D_K, D_V = ["ox", "sees", "it", "and", "runs"], 4, 2, 3


def given(seed: int = 0, **sizes: int) -> dict[str, Any]:
    """Random vectors and matrices, all sizes different."""
    n, d, d_k, d_v = ({"n": 5, "d": D, "d_k": D_K, "d_v": D_V} | sizes).values()
    torch.manual_seed(seed)
    w = {"w_q": torch.randn(d, d_k), "w_k": torch.randn(d, d_k), "w_v": torch.randn(d, d_v)}
    return {"x": torch.randn(n, d), **w, "tokens": TOKENS[:n]}


def times(row: list[float], matrix: list[list[float]]) -> list[float]:
    return [dot(row, list(column)) for column in zip(*matrix, strict=True)]


def dot(a: list[float], b: list[float]) -> float:
    return sum(one * two for one, two in zip(a, b, strict=True))


@pytest.mark.parametrize("asks", [0, 2, -1])
def test_every_number_by_hand(asks: int) -> None:
    inputs = given()
    walk = attention_row(**inputs, asks=asks)
    x, w_q, w_k, w_v = (inputs[name].tolist() for name in ("x", "w_q", "w_k", "w_v"))
    query = times(x[asks], w_q)
    keys, values = [times(one, w_k) for one in x], [times(one, w_v) for one in x]
    scores = [dot(query, key) for key in keys]
    powers = [exp(score / sqrt(D_K)) for score in scores]
    weights = [power / sum(powers) for power in powers]
    out = [dot(weights, column) for column in map(list, zip(*values, strict=True))]
    wanted = {
        "x": [x[asks]],
        "query": [query],
        "keys": keys,
        "scores": [[score] for score in scores],
        "scaled": [[score / sqrt(D_K)] for score in scores],
        "weights": [[weight] for weight in weights],
        "values": values,
        "out": [out],
    }
    for name, numbers in wanted.items():
        assert torch.allclose(drawn(walk, name), torch.tensor(numbers), atol=1e-5), name


def test_against_torch() -> None:
    inputs = given(1)
    q, k, v = (inputs["x"] @ inputs[name] for name in ("w_q", "w_k", "w_v"))
    wanted = torch.nn.functional.scaled_dot_product_attention(q[3:4], k, v)
    out = drawn(attention_row(**inputs, asks=3), "out")
    assert torch.allclose(out, wanted, atol=1e-5)


def test_a_line_for_each_word_in_their_order() -> None:
    walk = attention_row(**given())
    heights = [[place.y for place in walk.picture.find(name)] for name in ("keys", "values")]
    assert heights[0] == sorted(heights[0]) and len(heights[0]) == len(TOKENS)
    assert heights[0] == heights[1]
    assert all(token in walk.alt for token in TOKENS)


def test_the_captions_say_what_is_drawn() -> None:
    walk = attention_row(**given(2), asks=1, outputs=["ox", "ant", "bee"])
    weights, out = drawn(walk, "weights")[:, 0], drawn(walk, "out")[0]
    best = int(weights.argmax())
    said = told(walk)
    assert f"“{TOKENS[best]}” gets [{weights[best]:.2f}](weights.{best})" in said
    assert f"“{TOKENS[1]}” means {['ox', 'ant', 'bee'][int(out.argmax())]}." in said
    assert "-" not in said  # a minus is no hyphen
    assert " + … = [" in said and "…" not in told(attention_row(**given(n=2)))  # two terms are all
    score = drawn(walk, "scores")[best, 0]
    assert f"[{score:z.1f}](scores.{best})".replace("-", "−") in said


def test_what_the_softmax_gives_waits_for_the_question() -> None:
    walk = attention_row(**given())
    (asked,) = [n for n, step in enumerate(walk.steps) if step["ask"]]
    shown = [part for step in walk.steps[:asked] for part in step["parts"]]
    assert not {"scores", "scaled", "weights", "out"} & set(shown)
    assert len(attention_row(**given(), outputs=["a", "b", "c"]).steps) == len(walk.steps) + 1


@pytest.mark.parametrize("n", [2, 5])
def test_all_alike_or_very_large_it_is_drawn(n: int) -> None:
    inputs = given(n=n)
    for x in (torch.zeros_like(inputs["x"]), 30 * inputs["x"]):
        assert isinstance(attention_row(**{**inputs, "x": x}), Drawing)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tokens": TOKENS[:4]}, "x must be"),
        ({"w_k": torch.zeros(D, 3)}, "w_k must be"),
        ({"w_v": torch.zeros(3, D_V)}, "w_v must be"),
        ({"asks": 5}, "asks must"),
        ({"asks": -6}, "asks must"),
        ({"outputs": ["a", "b"]}, "outputs must be 3 texts"),
        ({"x": torch.zeros(1, D), "tokens": ["ox"]}, "tokens must"),
        ({"x": torch.zeros(7, D), "tokens": [*"abcdefg"]}, "tokens must"),
        ({"w_v": torch.zeros(D, 6)}, "body must be at most"),
    ],
)
def test_what_does_not_fit(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        attention_row(**{**given(), **changes})
