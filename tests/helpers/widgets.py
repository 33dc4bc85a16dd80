"""One of each widget, and their arguments."""

from typing import Any

import numpy as np

from attnbook.model.config import BERT
from attnbook.model.transformer import TransformerDecoder
from attnbook.show.drawing import arrow, cells, column, row
from attnbook.web import (
    AblationMap,
    AttentionHeatmap,
    AttentionPlane,
    AttentionSheet,
    CostCalculator,
    DecodingBench,
    Drawing,
    HeadChips,
    Laboratory,
    LossSurface,
    MaskedWords,
    ModelMap,
    Playground,
    PositionExplorer,
    Preset,
    PromptBench,
    Question,
    Quiz,
    RotaryDial,
    SoftmaxTemperature,
    Step,
    TokenizerBench,
    TransformerMap,
    Translator,
)
from attnbook.weights.int8 import load_int8
from tests.helpers.tiny_bert import tiny_bert
from tests.helpers.tiny_gpt import tiny_gpt

QUERIES, KEYS = ["zwei", "und", "vierzig"], ["two", "hundred", "forty", "</s>"]
ROWS = np.array([[0.7, 0.1, 0.1, 0.1], [0.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.5, 0.0]])
EYE = np.eye(3)
SOURCES = {"zweihundert": "two hundred", "vierzig": "forty"}


def run(*off: str, loss: Any, exact: Any, said: tuple[str, str]) -> dict[str, Any]:
    """A stored run of an AblationMap, made up."""
    told = [[source, out, gold] for (source, gold), out in zip(SOURCES.items(), said, strict=True)]
    steps = [0, 50, 200]
    return {"off": [*off], "steps": steps, "loss": loss, "exact": exact, "translations": told}


RUNS = [
    run(loss=[[4, 1, 0.01], [4, 2, 0.03]], exact=[1, 0.99], said=("two hundred", "forty")),
    run("mask", loss=[[4, 0.1, 0.5], [4, 0.3, 1]], exact=[0, 0.125], said=("two two two", "")),
    run("add", loss=[3.9, 3.8, 3.7], exact=[0.25], said=("hundred <i>two</i>", "fourteen")),
    run("positions", loss=[4, 2, 0], exact=[0.5, 0.5], said=("hundred two", "forty")),
]


def bowls(n: int = 5, k: int = 2) -> np.ndarray:
    """Surfaces [k, n, n], all different and asymmetric."""
    x, y = np.meshgrid(*[np.linspace(-1, 1, n)] * 2, indexing="ij")
    return np.stack([0.5 + m + (1 + m) * x**2 + 3 * y**2 + 0.3 * x - 0.2 * y for m in range(k)])


def walk(**options: Any) -> Drawing:
    """A small walk: a query, two keys, their scores."""
    body = column(
        cells([0.5, -1.25], "query", name="query", digits=2),
        row(*(cells(key, "key", name="keys") for key in ([1, 2], [-1, 0.5])), gap=30),
        cells([-2, -1.125], "weight", name="scores", digits=3),
        gap=30,
    )
    steps = [
        Step("The [query](query) asks."),
        Step("Two [keys](keys) answer.", "keys"),
        Step("The second [score](scores.1) is larger.", "scores", ask="Which score is larger?"),
    ]
    given = {"alt": "A query meets two keys", "steps": steps, **options}
    return Drawing(body, arrow("query", "keys"), arrow("keys", "scores.*", "weight"), **given)


def vectors() -> dict[str, Any]:
    """Arguments of an AttentionPlane: 4 words that ask 3 times, values of two numbers."""
    rng = np.random.default_rng(4)
    sizes = {"queries": 3, "keys": 4, "values": 4}
    given: dict[str, Any] = {what: rng.normal(size=(n, 2)) for what, n in sizes.items()}
    return {**given, "words": ["cats", "chase", "dog", "it"], "askers": ["it", "they", "cats"]}


def few_heads() -> dict[str, Any]:
    """Arguments of a HeadChips: 2 heads, 3 checkpoints."""
    maps = np.broadcast_to([[0.25, 0.75], [1, 0]], (3, 2, 2, 2))
    right = np.arange(24).reshape(3, 2, 4) / 24
    scores = {"before": [[0, 1], [0.5, 0], [1, 0]], "after": [[1, 0], [0.25, 1], [0, 0.5]]}
    return {"maps": maps, "right": right, "steps": [0, 3, 9], "losses": [3, 2, 1], "scores": scores}


def calculator(**options: Any) -> CostCalculator:
    """A CostCalculator with the required arguments."""
    sizes = {"d_model": 576, "n_layers": 6, "n_heads": 9, "n_kv_heads": 3, "size": 4}
    return CostCalculator({"six": sizes}, {"here": {"speed": 5e10, "bandwidth": 2e10}}, **options)


def each() -> list[Any]:
    return [
        AblationMap(RUNS, title="The finding"),
        AttentionHeatmap(ROWS, QUERIES, KEYS, title="The finding"),
        AttentionPlane(**vectors(), title="The finding"),
        AttentionSheet(EYE, EYE, EYE, EYE, ["a", "b", "c"], title="The finding"),
        calculator(title="The finding"),
        DecodingBench(
            *load_int8(tiny_gpt(), TransformerDecoder), "We must", steps=2, title="The finding"
        ),
        walk(title="The finding"),
        HeadChips(**few_heads(), title="The finding"),
        Laboratory(title="The finding"),
        LossSurface(bowls(), ["with", "without"], title="The finding"),
        MaskedWords("We must ask!", [1], weights=tiny_bert(), title="The finding"),
        ModelMap({"BERT": BERT}, 30522, shape="encoder", title="The finding"),
        Playground("We must", weights=tiny_gpt(), title="The finding"),
        PositionExplorer(title="The finding"),
        PromptBench(
            *load_int8(tiny_gpt(), TransformerDecoder),
            [
                Preset("we", "We must ask", candidates=(" the", " people")),
                Preset("they", "{}, we", "The cats", examples=(("It", " must"),)),
            ],
            title="The finding",
        ),
        Quiz([Question("Which?", ["a", "b"], 0, "so", {"Text": "words"})], title="The finding"),
        RotaryDial(title="The finding"),
        SoftmaxTemperature([1, 2, 3], ["a", "b", "c"], title="The finding", editable=True),
        TokenizerBench("We wash our cats", title="The finding"),
        TransformerMap({"add": walk()}, title="The finding"),
        Translator(title="The finding"),
    ]
