"""Chapter 9: what each modern change buys at equal time.

`make experiments NAME=modern` trains the recipe `small` on presidents' speeches, then without one
of its changes at a time, and without any of them ("plain"): letters for pieces of words, which
GPT-2 had already, and otherwise GPT-2's way. All have the time of `STEPS` updates of the whole
recipe: `share` is how long an update takes beside one of that, each the shortest of a dozen, in
turns on one thread. `bits` is what a byte of the beginnings of all held-out speeches needs. Without
SwiGLU the network is wider, so that it has as many parameters; without rotary positions there are
GPT-2's, learnt, and its small weights at the start: by PyTorch's start they would be ten times as
large as the embeddings that they are added to.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from attnbook.learn import AdamW, Cosine, Muon, StableDecay, bits_per_byte, train
from attnbook.learn.engine import next_token_loss
from attnbook.learn.settings import read_settings
from attnbook.learn.tables import Experiment
from attnbook.model import TransformerDecoder
from attnbook.text import BytePair, Characters
from attnbook.text.corpus import Tokenizer, join, windows
from attnbook.text.speeches import CHARACTERS, speeches

SMALL = read_settings("small")
CONTEXT, ROWS = SMALL.train.context, SMALL.train.batch
STEPS, WARMUP, TURNS, BEGINNING = 250, 0.02, 4, 4000
WIDER = {"gated": False, "d_ff": SMALL.model.d_ff * 3 // 2}
LESS: dict[str, dict[str, Any]] = {  # what the model then has
    "nothing": {},
    "rotary": {"positions": "learned", "max_len": CONTEXT, "init_std": 0.02},
    "swiglu": {"activation": "gelu_tanh"} | WIDER,
    "rms": {"normalizer": "layer"},
    "qk_norm": {"qk_norm": False},
    "no_bias": {"bias": True},
    "pieces": {},  # of words: it reads characters
    "muon": {},  # AdamW in its place
    "stable": {},  # the rate falls along half a cosine
}
PLAIN = ("rotary", "swiglu", "rms", "no_bias")
LESS["plain"] = {key: value for name in PLAIN for key, value in LESS[name].items()}
LESS["plain"] |= {"qk_norm": False}
RATES = {"muon": 0.004, "plain": 0.002}
SETTINGS = [{"without": name, "seed": seed} for seed in range(3) for name in LESS]


@cache
def tokenizer(without: str) -> Tokenizer:
    """Pieces of words, or characters."""
    if without in ("pieces", "plain"):
        return Characters(CHARACTERS)
    return BytePair.train((s.text for s in speeches("train")), SMALL.data.vocab_size)


@cache
def stream(without: str) -> Tensor:
    """All that training reads."""
    return join(tokenizer(without), (speech.text for speech in speeches("train")))


def learn(without: str, seed: int, steps: int, on_step: Any = None) -> TransformerDecoder:
    """A model after some updates."""
    torch.manual_seed(seed)
    model = TransformerDecoder(tokenizer(without).vocab, replace(SMALL.model, **LESS[without]))
    adamw, lr = without in ("muon", "plain"), RATES.get(without, SMALL.optimizer.lr)
    warmup, read = round(WARMUP * steps), stream(without)
    if without in ("stable", "plain"):
        schedule = Cosine(lr, steps, warmup, lr / 10)
    else:
        schedule = StableDecay(lr, steps, warmup, decay=steps // 2)

    train(
        model,
        lambda step: windows(read, CONTEXT, step, batch_size=ROWS, seed=seed),
        partial(next_token_loss, model),
        steps,
        lr=schedule,
        optimizer=(AdamW if adamw else Muon)(beta2=SMALL.optimizer.beta2),
        on_step=[on_step] if on_step else [],
        seed=seed,
    )
    return model


def update(without: str) -> float:
    """Seconds of the shortest of some updates."""
    times: list[float] = []
    learn(without, 0, 5, lambda run: times.append(time.perf_counter()))
    return min(b - a for a, b in pairwise(times[1:]))


def run(without: str, seed: int) -> Iterator[dict]:
    """Train one model for as long as the whole recipe takes, and measure it."""
    torch.set_num_threads(1)
    turns = [(update("nothing"), update(without)) for _ in range(TURNS)]
    whole, own = (min(column) for column in zip(*turns, strict=True))
    share = 1.0 if without == "nothing" else own / whole
    steps = round(STEPS / share)
    model = learn(without, seed, steps)
    texts = [speech.text[:BEGINNING] for speech in speeches("validation")]
    yield {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "share": round(share, 3),
        "steps": steps,
        "bits": round(bits_per_byte(model, tokenizer(without), texts, CONTEXT), 4),
    }


RATES_TRIED = "all 0.01 0.02, without Muon 0.002 0.004 0.008, plain 0.001 0.002 0.004"
EXPERIMENT = Experiment("modern", SETTINGS, run, ("bits",), RATES_TRIED)

if __name__ == "__main__":
    EXPERIMENT.store()
