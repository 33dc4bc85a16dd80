"""A coded task leads to the sections that it builds on, and its worked example is true."""

import math
import re
from ast import literal_eval
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, eye, tensor
from torch.nn.functional import one_hot

from attnbook.teach.submission import python
from tests.helpers.assignments import known, needed, solution
from tools import notebooks
from tools.notebooks import BOOK

SOLUTIONS = needed()
NUMBER = re.compile(r"True|False|(?<![\w.])-?(?:inf|\d+(?:\.\d+)?)")
LINK = re.compile(r"\[(?:chapter \d+, )?([^\]]+)\]\(\.\./(\w+)\.ipynb#([\w-]+)\)")
LN3 = math.log(3)


def rows(*given: Any) -> Tensor:
    return tensor(given, dtype=torch.float32)


def one(*given: Any) -> Tensor:
    """A batch of one sentence, of these rows."""
    return rows(given)


def hidden(f: Any) -> list[Any]:
    """What stands inside the tanh of an additive score, and the score."""
    given = one([1]), one([2]), rows([1], [-1]), rows([-1], [4])
    return [*(f(*given, v).atanh() for v in eye(2)), f(*given, rows(2, 1))]


def step(f: Any) -> list[Any]:
    """The new state, the weights, the context and the joined number."""
    memory, mask = one([0], [LN3], [5]), tensor([[True, True, False]])
    joined, state, weights = f(rows([2]), rows([-1]), memory, mask, torch.add, rows([2, -1]))
    return [state, weights, weights @ memory[0], joined]


def heads(f: Any) -> Any:
    same, mask = eye(8), tensor([[[True, True, False]]])
    x, memory = one([LN3] * 4 + [-LN3] * 4), one([0] * 8, [0.5] * 8, [1] * 8)
    return f(x, memory, same, same, 8 * same, same.roll(1, 1), 2, mask)


def block(f: Any) -> list[Any]:
    layers = [lambda x: 2 * x, lambda x: 3 * x, lambda x: x + 1, lambda x: x + 10]
    return [f(1, *layers, pre) for pre in (True, False)]


def loss(f: Any) -> Any:
    logits = rows([[0, LN3], [7, 8]], [[5, 5], [5, 5]])
    return f(logits, tensor([[0, 1], [0, 0]]), 1)


def cut(f: Any) -> int:
    """`most`, the only number of this example: its text's pieces are compared here."""
    said = texts("a4")["cut"].partition("*Example*")[2]
    vocabulary, *wanted = map(literal_eval, re.findall(r'`(\["[^`]+\])`', said))
    made = [f(word, vocabulary, 7) for word in ("inwards", "intone", "s", "intowards")]
    assert made == wanted
    return 7


def corrupt(f: Any) -> Any:
    chosen, u = tensor([[False, False, True, True, True]]), one(0.3, 0.85, 0.3, 0.85, 0.95)
    return f(torch.arange(11, 16)[None], chosen, u, torch.arange(21, 26)[None], 9)


def masked(f: Any) -> Any:
    logits = rows([[0, math.log(7)], [0, math.log(9)]], [[5, 5], [5, 5]])
    return f(logits, torch.zeros(2, 2).long(), tensor([[True, False], [True, True]]))


def fit(f: Any) -> list[Any]:
    table, losses = f(rows([LN3, 0], [LN3, 0]), tensor([0, 1, 1]), 2, 2)
    assert table[0].equal(table[1])
    return [losses, table[0]]


def cached(f: Any) -> Any:
    q, v, key, value = (torch.full((1, 1, 1, 4), number) for number in (1.0, 8.0, 0.0, 4.0))
    return f(q, one([[LN3, LN3, 0, 0]]), v, key, value)[0]


# The numbers of an example, in its order, and what the solution's function makes of the first ones.
EXAMPLES: list[tuple[str, str, str, Callable[[Any], Any]]] = [
    ("a1", "last_states", "5 7 8 9 7", lambda f: f(one([5], [7], [8], [9]), tensor([2]))),
    (
        "a1", "dot_scores", "1 2 0 1 3 4 5 0 11 5 4 0",
        lambda f: f(one([1, 2], [0, 1]), one([3, 4], [5, 0])),
    ),
    (
        "a1", "general_scores", "1 2 4 5 0 1 3 0 29",
        lambda f: f(one([1, 2]), one([4, 5]), rows([0, 1], [3, 0])),
    ),
    ("a1", "additive_scores", "1 2 1 -1 -1 4 2 1 1 2 2.49", hidden),
    (
        "a1", "attention_weights", "0 3 9 0.25 0.75 0 0 0 0",
        lambda f: [f(one([0, LN3, 9]), one([may, may, 0]).bool()) for may in (1, 0)],
    ),
    (
        "a1", "context", "0.25 0.75 4 0 8 4 7 3",
        lambda f: f(one([0.25, 0.75]), one([4, 0], [8, 4])),
    ),
    ("a1", "decoder_step", "2 -1 2 -1 0 3 5 5 1 0.25 0.75 0 0.824 0.570", step),
    (
        "a1", "attention_error", "0 2 1 1 0 1 1 0 0.333",
        lambda f: f(eye(3)[[0, 2, 1, 1]], tensor([0, 1, 1, 0]), rows(1, 1, 1, 0).bool()),
    ),
    (
        "a2", "project", "3 1 1 -1 0 1 2 0 1 2 5 -1 4 1",
        lambda f: f(one([1, 2]), rows([3], [1]), rows([1], [-1]), rows([0, 1], [2, 0])),
    ),
    (
        "a2", "scaled_scores", "1 1 1 1 1 2 3 2 4",
        lambda f: f(one([1, 1, 1, 1]), one([1, 2, 3, 2])),
    ),
    ("a2", "causal_mask", "2 True False True True", lambda f: f(2)),
    (
        "a2", "decoder_mask", "3 True False False True True False True True False",
        lambda f: f(tensor([2]), 3),
    ),
    (
        "a2", "self_attention", "1 2 1 1 1 1 3 0 0 0 4 4 7",
        lambda f: f(
            one([1], [2]), one(1, 1, 1, 1), one(LN3, 0, 0, 0), one(4), one([1, 0], [1, 1]).bool()
        ),
    ),
    (
        "a2", "influences", "3 True True False False True True False False True",
        lambda f: f(lambda x: x + torch.cat([x[1:], 0 * x[:1]]), eye(3)),
    ),
    (
        "a2", "position_vectors", "100 4 -0.506 0.862 0.841 0.540",
        lambda f: f(tensor([[100]]), 4),
    ),
    (
        "a2", "rotate", "4 1 0 0 2 2 2 1 -0.416 0.909 -1.683 1.081",
        lambda f: f(one([1, 0, 0, 2]), 2, 4),
    ),
    ("a2", "distance_bias", "3 4 0 -inf -inf -4 0 -inf -8 -4 0", lambda f: f(3, 4)),
    (
        "a3", "split_heads", "1 2 3 4 5 6 7 8 1 2 5 6 3 4 7 8",
        lambda f: f(one([1, 2, 3, 4], [5, 6, 7, 8]), 2),
    ),
    (
        "a3", "join_heads", "1 2 3 4 5 6 7 8 1 2 5 6 3 4 7 8",
        lambda f: f(one([[1, 2], [3, 4]], [[5, 6], [7, 8]])),
    ),
    ("a3", "multi_head", "4 4 3 4 3 8 0 8 0.5 8 1 8 4 3 4 1 1 3 3 3 3 1 1 1", heads),
    (
        "a3", "normalize", "1 3 3 2 4 1 0 0 2",
        lambda f: f(one([1, 3]), rows(2, 4), rows(1, 0), 3),
    ),
    (
        "a3", "feed_forward", "1 2 -3 1 1 4 5 -20 -8",
        lambda f: f(one([1]), one(2, -3), rows(1, 1), rows([4], [5]), rows(-20)),
    ),
    ("a3", "block", "1 10 1 50 26", block),
    ("a3", "shift", "7 9 2 5 5 7 9", lambda f: f(tensor([[7, 9, 2]]), 5)),
    ("a3", "loss_of_words", "0 3 0 5 5 0 1 4 1 2 1 2 0.924", loss),
    ("a3", "cache_bytes", "6 2 3 10 960", lambda f: f(2, 6, 2, 3, 10)),
    ("a4", "cut", "7", cut),
    (
        "a4", "choose", "0.12 0.5 0.05 0.9 True False False False",
        lambda f: f(one(0.12, 0.5, 0.05, 0.9), one(0, 0, 1, 0).bool()),
    ),
    (
        "a4", "corrupt",
        "11 12 13 14 15 21 22 23 24 25 0.3 0.85 0.3 0.85 0.95 9 11 12 9 24 15", corrupt,
    ),
    ("a4", "masked_loss", "0 7 0 9 5 5 0 1 8 1 2 1 2 1.155", masked),
    (
        "a4", "pack", "7 8 9 8 1 7 8 2 9 2 0 0 0 0 0 0 1 1 0 0",
        lambda f: f([7, 8], [9], 8),
    ),
    (
        "a4", "embed", "10 20 30 1 3 5 9 100 200 2 1 0 0 1 0 131 223 115",
        lambda f: f(
            tensor([[2, 1, 0]]), tensor([[0, 1, 0]]),
            rows([10], [20], [30]), rows([1], [3], [5], [9]), rows([100], [200]),
        ),
    ),
    (
        "a4", "encoder_mask", "6 4 6 8 6 False True False True",
        lambda f: f(tensor([[6, 4, 6, 8]]), 6).expand(1, 4, 4).unique(dim=1),
    ),
    (
        "a4", "classify", "1 2 4 0 3 1 -1 2 10 20 15 23",
        lambda f: f(one([1, 2], [4, 0]), rows([3, 1], [-1, 2]), rows(10, 20)),
    ),
    (
        "a4", "best_span", "4 5 3 0 1 6 1 3 8 9 2 2 3",
        lambda f: f(rows(4, 5, 3, 0, 1), rows(6, 1, 3, 8, 9), 2),
    ),
    (
        "a4", "words_of_pieces", "1 5 7 3 4 6 0 1 1 5 4 6",
        lambda f: f(rows([1, 5], [7, 3], [4, 6]), tensor([0, 0, 1])),
    ),
    (
        "a5", "windows", "7 3 9 5 4 2 0 2 9 5 7 3 5 4 3 9",
        lambda f: f(tensor([7, 3, 9, 5, 4]), tensor([2, 0]), 2),
    ),
    ("a5", "fit", "3 0 0 1 1 2 1.386 0.512 -0.052 1.151", fit),
    ("a5", "bits_per_byte", "4 16 2", lambda f: f(rows(4, 16).log(), "né")),
    (
        "a5", "write_on", "1 2 3 1 2 3 6 12",
        lambda f: f(lambda ids: one_hot(tensor(sum(ids)), 13), [1, 2], 3),
    ),
    (
        "a5", "warm", "1 0.5 0 0 3 0.25 0.75 0.1 0.9 0 1",
        lambda f: [f(rows([0, LN3]), degree) for degree in (1, 0.5, 0)],
    ),
    ("a5", "keep_k", "1 4 2 3 2 -inf 4 -inf 3", lambda f: f(rows([1, 4, 2, 3]), 2)),
    (
        "a5", "keep_p", "0 1 2 0.2 0.5 0.3 0.6 1 2",
        lambda f: f(rows([0.2, 0.5, 0.3]).log(), 0.6)[0].isfinite().nonzero(),
    ),
    (
        "a5", "draw", "0.25 0.5 0.25 0.9 0.25 0.1 2 1 0",
        lambda f: f(rows(0.25, 0.5, 0.25).double(), rows(0.9, 0.25, 0.1).double()),
    ),
    ("a5", "attend_with_cache", "0 0 0 0 4 4 4 4 1 1 1 1 3 3 0 0 8 8 8 8 7 7 7 7", cached),
    ("a5", "praise", "6 2 100 0.75", lambda f: f(rows(100, 2, 6).log(), 2, 1)),
]  # fmt: skip
NAMES = sorted({name for name, *_ in EXAMPLES})


@cache
def functions(name: str) -> dict[str, Any]:
    """What the cells of a solution define."""
    found: dict[str, Any] = {}
    cells = solution(SOLUTIONS / f"{name}.ipynb")
    answers = [cells[each] for task in known(name).tasks for each in task.answers if each in cells]
    for source in (*known(name).given.values(), *answers):
        exec(python(source), found)
    return found


@cache
def texts(name: str) -> dict[str, str]:
    """The texts of an assignment's coded tasks, by the names of their functions."""
    found, text = {}, ""
    for cell in notebooks.read(SOLUTIONS / f"{name}.ipynb").cells:
        said = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "markdown":
            text = cell.source
        elif said.get("solution"):
            found[said["grade_id"].removeprefix(f"{name}-").replace("-", "_")] = text
    return found


@cache
def headings(stem: str) -> list[str]:
    cells = notebooks.read(BOOK / f"{stem}.ipynb").cells
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.findall(r"(?m)^##{1,2} (.+)$", prose)


def flat(made: Any) -> list[float]:
    if isinstance(made, list | tuple):
        return [number for each in made for number in flat(each)]
    return torch.as_tensor(made).double().flatten().tolist()


def value(number: str) -> float:
    return float(number == "True" if number in ("True", "False") else number)


@pytest.mark.parametrize(
    ("name", "task", "numbers", "compute"), EXAMPLES, ids=[f"{row[0]}-{row[1]}" for row in EXAMPLES]
)
def test_an_example_is_true(name, task, numbers, compute):
    said = re.findall(r"(?m)^\*Example\*: (.+)$", texts(name)[task])
    assert len(said) == 1
    plain = said[0].replace("\N{MINUS SIGN}", "-").replace("\N{INFINITY}", "inf")
    shown = NUMBER.findall(plain)
    assert shown == numbers.split()
    made = flat(compute(functions(name)[task]))
    for number, wanted in zip(shown[-len(made) :], made, strict=True):
        digits = number.partition(".")[2]
        off = 10.0 ** -len(digits) / 2 if digits else 0  # a whole number is exact
        assert value(number) == wanted or abs(value(number) - wanted) <= off + 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_each_coded_task_has_an_example_and_leads_to_sections(name):
    assert list(texts(name)) == [task for each, task, *_ in EXAMPLES if each == name]
    for text in texts(name).values():
        links = LINK.findall(text)
        assert links and len(links) == text.count("](../")
        for title, stem, anchor in links:
            assert title in headings(stem)
            assert anchor == re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
