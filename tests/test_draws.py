"""One draw: the same scores and the same number give the same token wherever the book draws."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from attnbook.model.decoding import beam_search
from attnbook.model.sampling import (
    GREEDY,
    PLAIN,
    Sampling,
    draw,
    repetition_penalty,
    sample,
    uniform,
)
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import Vocabulary
from attnbook.walks import one_draw
from attnbook.web import DecodingBench, Playground
from attnbook.weights.int8 import load_int8
from tests.helpers.engine import LIVE, RULED, node
from tests.helpers.tiny_gpt import tiny_gpt

PAGE = {"temperature": "temperature", "top_k": "topK", "top_p": "topP", "min_p": "minP"}
HOWS = (
    PLAIN,
    GREEDY,
    Sampling(temperature=0.7, top_k=5),
    Sampling(temperature=1.3, top_p=0.8),
    Sampling(min_p=0.1),
    Sampling(temperature=1.5, top_k=20, top_p=0.9, min_p=0.05),
    Sampling(temperature=1e-3),
    Sampling(temperature=30.0, top_p=0.5),
)
NONE = torch.zeros(1, 0, dtype=torch.long)


def page_filters(how: Sampling) -> dict[str, float]:
    return {theirs: getattr(how, ours) for ours, theirs in PAGE.items()}


def by_hand(logits: list[float], number: float) -> int:
    """All tokens sorted, and added one after another."""
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    widths = [math.exp(logits[i] - logits[order[0]]) for i in order]
    place, end = number * math.fsum(widths), 0.0
    for i, width in zip(order, widths, strict=True):
        end += width
        if place < end:
            return i
    raise AssertionError


def rows() -> Iterator[tuple[Tensor, float]]:
    """Scores in 32 bits as a model gives them: plain, with many that are alike, with many that are
    left out, with a penalty, nearly alike, far apart, of many tokens; and numbers that fall on the
    borders of tokens that are alike."""
    chosen = torch.Generator().manual_seed(12)
    for n in range(240):
        kind, size = n % 8, 3000 if n % 24 == 7 else 11 + n
        logits = 3 * torch.randn(size, generator=chosen)
        if kind == 1:
            logits = logits.round()
        elif kind == 2:
            logits[torch.rand(size, generator=chosen) < 0.6] = -torch.inf
            logits[n // 8] = 0.5
        elif kind == 3:
            read = torch.randint(size, (1, 9), generator=chosen)
            logits = repetition_penalty(logits.round()[None], read, 1.3)[0]
        elif kind == 4:
            logits = torch.zeros(size).masked_fill(torch.arange(size) % 3 == 0, -torch.inf)
        elif kind == 5:
            logits = 1 + 1e-6 * logits
        elif kind == 6:
            logits = 1e4 * logits
        number = uniform(torch.tensor([n]), n % 5).item()
        yield logits, (n // 8) / 32 if kind == 4 else number


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_python_and_the_page_draw_the_same_tokens(how: Sampling) -> None:
    cases: list[dict[str, Any]] = []
    wanted, rare = [], 0
    for logits, number in rows():
        left = how(logits.double()[None], NONE)
        wanted.append(int(draw(left, torch.tensor([number], dtype=torch.float64))))
        assert wanted[-1] == by_hand(left[0].tolist(), number)
        rare += logits[wanted[-1]] < logits.max()
        shown = [z if z > -math.inf else None for z in logits.tolist()]
        cases.append({"logits": shown, "filters": page_filters(how), "numbers": [number]})
    told = node("samples", cases=cases)
    assert [one["drawn"][0]["id"] for one in told] == wanted
    assert rare > 60 or how in (GREEDY, Sampling(temperature=1e-3))


def test_of_many_rows_each_draws_as_all_are_sorted() -> None:
    """Whether its number falls on one of the likeliest, or among 20,000 others."""
    logits = torch.randn(9, 20_000, generator=torch.Generator().manual_seed(3)).double()
    logits *= torch.tensor([0.0, 0.01, 0.5, 1, 2, 3, 4, 5, 9])[:, None]
    numbers = uniform(torch.arange(9), 4)
    for given in (numbers, numbers * 0.01, 1 - numbers * 1e-9):
        found = draw(logits, given)
        assert found.tolist() == [
            by_hand(row, x) for row, x in zip(logits.tolist(), given.tolist(), strict=True)
        ]
        assert draw(logits[4:5], given[4:5]).equal(found[4:5])


MODEL, TOKENIZER = load_int8(tiny_gpt(), TransformerDecoder)
TEXT = "We must ask"


@torch.no_grad()
@pytest.mark.parametrize("seed", range(12))
def test_sampling_walk_playground_and_bench_draw_one_token(seed: int) -> None:
    ids = TOKENIZER.encode(TEXT)
    for how in (PLAIN, Sampling(temperature=0.8, top_k=6), Sampling(temperature=1.4, top_p=0.6)):
        filters = {name: getattr(how, name) for name in PAGE}
        logits = MODEL(torch.tensor([ids]))[:, -1]
        play = Playground(TEXT, weights=tiny_gpt(), seed=seed, **filters).answer

        left, seeds = how(logits.double(), NONE), torch.tensor([seed])
        first, later = (int(draw(left, uniform(seeds, n))) for n in (0, len(ids)))
        assert play["drawn"]["which"] == later  # a playground's numbers count the prompt, too
        wrote = MODEL.sample(torch.tensor([ids]), 1, how=how, seed=[seed])
        assert int(wrote.tokens) == first
        bench = DecodingBench(MODEL, TOKENIZER, TEXT, steps=0, seeds=0)
        logp = logits[0].double().log_softmax(-1).tolist()
        (page,) = node(
            "", LIVE, logp=logp, sizes=bench.sizes,
            cases=[{"filters": page_filters(how), "seed": seed}],
        )  # fmt: skip
        assert page["drawn"]["which"] == first
        if how.top_k:
            number = uniform(torch.tensor([seed]), 0).item()
            walk = one_draw(MODEL, TOKENIZER, TEXT, how, number=number, shown=7)
            name = TOKENIZER.decode([first]).replace(" ", "␣").replace("\n", "↵")
            assert f"The next token is [“{name}”](drawn)." in walk.steps[-1]["caption"]


def test_the_benchs_other_rules_write_what_the_package_writes() -> None:
    """Typical sampling, the repetition penalty, and beams, on a model that knows the last token."""
    vocab = Vocabulary("abcdefgh")
    chosen = torch.Generator().manual_seed(4)
    table = 2 * torch.randn(len(vocab), len(vocab), generator=chosen, dtype=torch.double)
    table[:, [vocab.pad, vocab.bos]] = -1e9  # the package never draws them

    def step(tokens: Tensor, state: None) -> tuple[Tensor, None]:
        return table[tokens[:, -1]], state

    begin, most, at, end = [3, 5, 3], 12, 0, vocab.eos
    start = torch.tensor([begin])
    cases, wanted = [], []
    for seed in range(20):
        for rule in ({"typical": 0.6}, {"typical": 0.9}, {"penalty": 1.7}, {"penalty": 4}):
            how = Sampling(
                typical=rule.get("typical", 1), repetition_penalty=rule.get("penalty", 1)
            )
            cases.append({"ids": begin, "most": most, "end": end, "seed": seed, "at": at} | rule)
            wrote = sample(step, None, start, most, vocab, how=how, seed=[seed])
            wanted.append((wrote.tokens[0].tolist(), wrote.logp.sum().item()))
    for n in range(48):
        power, beam, last = (0.0, 0.6, 1.0)[n % 3], (1, 2, 4)[n // 3 % 3], 3 + n % 8
        best = beam_search(
            step, None, torch.tensor([[last]]), most, vocab, beam=beam, length_penalty=power
        )
        cases.append({"ids": [last], "most": most, "end": end, "beam": beam, "power": power})
        row = best.tokens[0].tolist()
        wanted.append((row[: row.index(end) + 1] if end in row else row, best.scores.item()))
    shown = node("", RULED, scores=table.tolist(), cases=cases)
    for told, (row, total) in zip(shown, wanted, strict=True):
        assert told["row"] == told["heard"] == row
        assert told["sum"] == pytest.approx(total, abs=1e-4)
    assert len({tuple(row) for row, _ in wanted}) > 40
    assert sum(row[-1] == end for row, _ in wanted[80:]) > 4
    assert len({tuple(row) for row, _ in wanted[80:]}) > 8
