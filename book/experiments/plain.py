"""Chapter 9: what makes GPT-2's way, on letters and in small, begin to learn.

`make experiments NAME=plain` trains the recipe "plain" of `modern.py` (letters, learnt positions,
GELU, LayerNorm, biases, AdamW at 0.002 along a cosine, all matrices begun at 0.02), and then the
same with one thing put back, for as many steps: `back` says which.

    nothing  as it is
    pieces   pieces of words in place of letters
    muon     Muon at 0.01 in place of AdamW
    rotary   rotary positions, and PyTorch's start of matrices, which came with them
    longer   nothing, but three times as many steps

`bits` is what a byte of the beginnings of held-out speeches needs.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from modern import CONTEXT, LESS, RATES, ROWS, SMALL, WARMUP, stream, tokenizer

from attnbook.learn import AdamW, Cosine, Muon, bits_per_byte, train
from attnbook.learn.engine import next_token_loss
from attnbook.learn.tables import Experiment
from attnbook.model import TransformerDecoder
from attnbook.text.corpus import windows
from attnbook.text.speeches import speeches

STEPS, BEGINNING, HELD_OUT = 326, 1500, 30
ROTARY: dict[str, Any] = {"positions": "rotary", "init_std": None}
BACK = ("nothing", "pieces", "muon", "rotary", "longer")
SETTINGS = [{"back": name, "seed": seed} for seed in range(2) for name in BACK]


def run(back: str, seed: int) -> Iterator[dict]:
    """Train one model and measure it."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    reads = "nothing" if back == "pieces" else "plain"
    config = replace(SMALL.model, **LESS["plain"] | (ROTARY if back == "rotary" else {}))
    model = TransformerDecoder(tokenizer(reads).vocab, config)
    lr = SMALL.optimizer.lr if back == "muon" else RATES["plain"]
    steps = 3 * STEPS if back == "longer" else STEPS
    train(
        model,
        lambda step: windows(stream(reads), CONTEXT, step, batch_size=ROWS, seed=seed),
        partial(next_token_loss, model),
        steps,
        lr=Cosine(lr, steps, round(WARMUP * steps), lr / 10),
        optimizer=(Muon if back == "muon" else AdamW)(beta2=SMALL.optimizer.beta2),
        seed=seed,
    )
    texts = [speech.text[:BEGINNING] for speech in speeches("validation")][:HELD_OUT]
    bits = bits_per_byte(model, tokenizer(reads), texts, CONTEXT)
    yield {"lr": lr, "steps": steps, "bits": round(bits, 4)}


TRIED = "0.001 0.002 0.004 0.008 with seed 0, muon 0.01"
EXPERIMENT = Experiment("plain", SETTINGS, run, ("bits",), TRIED)

if __name__ == "__main__":
    EXPERIMENT.store()
