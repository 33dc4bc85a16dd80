"""Chapter 11: SmolLM2 without the heads that copy, on random tokens and on examples.

`make experiments NAME=copying` gives every head of SmolLM2 its score of induction on two rows of 40
random tokens and their repetition. Then heads are silenced: the `heads` with the largest score
(`kind` top), as many others drawn from those outside the 64 largest (random), or none. `copied` is
the share of tokens of the second time that are the likeliest, in four other such rows; `mass` is
P(negative) + P(positive) after four examples, a mean over 16 film reviews, and `none` the same
without an example. The seed draws tokens, heads and examples. Nothing is trained.
"""

import os
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

os.environ["ATTNBOOK_PROGRESS"] = "0"

import torch
from torch import Tensor

from attnbook.learn.tables import Experiment
from attnbook.model import recorded
from attnbook.model.induction import induction, silenced
from attnbook.model.prompting import Wording, next_logp
from attnbook.text.sentiment import snippets
from attnbook.weights import load_smollm2

LENGTH, ASKED = 40, 16
REVIEW = Wording("Review: {}\nSentiment:", (" negative", " positive"))


@cache
def model() -> Any:
    return load_smollm2()


def rows(seed: int, n: int) -> Tensor:
    """Random tokens, twice."""
    draw = torch.Generator().manual_seed(seed)
    once = torch.randint(1000, 40_000, (n, LENGTH), generator=draw)
    return torch.cat([once, once], 1)


@cache
def ranked(seed: int) -> list[tuple[int, int]]:
    """All heads, that with the largest score first."""
    tokens = rows(1000 + seed, 2)
    with torch.no_grad(), recorded(model()[0]) as weights:
        model()[0](tokens)
    scores = torch.stack([induction(each, tokens) for each in weights.values()])
    order = scores.flatten().argsort(descending=True).tolist()
    return [divmod(i, scores.shape[1]) for i in order]


def chosen(kind: str, heads: int, seed: int) -> list[tuple[int, int]]:
    """The heads to silence."""
    if kind == "top":
        return ranked(seed)[:heads]
    return Random(f"copying {seed}").sample(ranked(seed)[64:], heads)


def run(kind: str, heads: int, seed: int) -> Iterator[dict]:
    """SmolLM2 without some heads."""
    torch.set_num_threads(1)
    lm, tokenizer = model()
    tokens, rng = rows(seed, 4), Random(f"examples {seed}")
    pool, asked = snippets("train"), [snippet.text for snippet in snippets("test")[:ASKED]]
    some = [
        (snippet.text, label)
        for label in (0, 1)
        for snippet in rng.sample([s for s in pool if s.label == label], 2)
    ]
    rng.shuffle(some)
    words = [tokenizer.encode(word)[0] for word in REVIEW.labels]
    prompts = {
        name: [tokenizer.encode(REVIEW.ask(text, shown)) for text in asked]
        for name, shown in (("mass", some), ("none", ()))
    }
    with torch.no_grad(), silenced(lm, chosen(kind, heads, seed) if heads else []):
        said = lm(tokens[:, :-1])[:, LENGTH - 1 :].argmax(-1)
        mass = {name: next_logp(lm, ids, words) for name, ids in prompts.items()}
    copied = (said == tokens[:, LENGTH:])[:, 1:].float().mean()
    found = {name: logp.exp().sum(1).mean() for name, logp in mass.items()}
    yield {name: round(value.item(), 4) for name, value in ({"copied": copied} | found).items()}


SETTINGS: list[dict[str, Any]] = [
    {"kind": kind, "heads": heads, "seed": seed}
    for seed in range(3)
    for kind, heads in (("all", 0), *((k, n) for n in (4, 16) for k in ("top", "random")))
]
EXPERIMENT = Experiment("copying", SETTINGS, run, ("copied", "mass", "none"))

if __name__ == "__main__":
    EXPERIMENT.store()
