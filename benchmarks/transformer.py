"""Training steps of `Transformer` against `torch.nn.Transformer`, and of the modern block.

make bench NAME=transformer

Both have the same sizes and parameters, the same embeddings, positions and tied output around the
blocks, the same padding and no dropout; their logits agree to 1e-5. A step is forward, backward and
Adam. Models take turns in one process on one thread, and the ratio is the median of that of pairs
of steps, in processor time, which other programs disturb less. Bar: not slower than PyTorch's.
"""

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnbook.model.block import Block
from attnbook.model.config import TINY, TransformerConfig
from attnbook.model.masks import padding_mask
from attnbook.model.positions import SinusoidalPositions
from attnbook.model.transformer import Transformer
from attnbook.text.vocabulary import Vocabulary
from benchmarks import _stored

VOCAB, EQUAL, BAR, PAIRS = Vocabulary(map(str, range(37))), 1e-5, 1.0, 31
MODERN = {
    "normalizer": "rms",
    "activation": "silu",
    "gated": True,
    "positions": "rotary",
    "n_kv_heads": 2,
    "qk_norm": True,
    "bias": False,
}
# a batch of number words, and a larger one: config, batch, source and target length
CASES = {
    "tiny": (TINY, 64, 18, 24),
    "larger": (TransformerConfig(d_model=256, n_heads=8, d_ff=1024), 4, 120, 128),
}


class Reference(nn.Module):
    """PyTorch's encoder-decoder with the embeddings, positions and parameters of ours."""

    def __init__(self, ours: Transformer, config: TransformerConfig):
        super().__init__()
        self.model = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_layers,
            config.n_layers,
            config.d_ff,
            dropout=0.0,
            batch_first=True,
            norm_first=True,
        )
        self.source, self.target = (
            nn.Embedding.from_pretrained(half.stack.embedding.weight.detach().clone(), freeze=False)
            for half in (ours.encoder, ours.decoder)
        )
        self.positions, self.scale = SinusoidalPositions(), config.d_model**0.5
        for mine, theirs in (ours.encoder, self.model.encoder), (ours.decoder, self.model.decoder):
            for block, layer in zip(mine.stack.blocks, theirs.layers, strict=True):
                cast(Block, block).load_torch(cast(Any, layer))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padding, n = ~padding_mask(source, VOCAB.pad), target.shape[1]
        states = self.model(
            self.positions(self.source(source) * self.scale),
            self.positions(self.target(target) * self.scale),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(n),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return states @ self.target.weight.T


def batch(size: int, n_source: int, n_target: int) -> tuple[Tensor, Tensor]:
    """Random words; every other source is padded in its last quarter."""
    source = torch.randint(3, len(VOCAB), (size, n_source))
    source[::2, -n_source // 4 :] = VOCAB.pad
    return source, torch.randint(3, len(VOCAB), (size, n_target + 1))


def stepper(model: nn.Module, words: tuple[Tensor, Tensor]):
    """A function that makes a training step and returns its seconds."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    source, target = words

    def step() -> float:
        start = time.process_time()
        optimizer.zero_grad()
        logits = model(source, target[:, :-1])
        cross_entropy(logits.mT, target[:, 1:], ignore_index=VOCAB.pad).backward()
        optimizer.step()
        return time.process_time() - start

    return step


def compare(ours: Callable[[], float], other: Callable[[], float]) -> list[tuple[float, float]]:
    """Milliseconds of both, in pairs of steps."""
    pairs = []
    for turn in range(PAIRS + 2):
        if turn % 2:  # alternate the order
            b, a = other(), ours()
        else:
            a, b = ours(), other()
        pairs.append((1e3 * a, 1e3 * b))
    return pairs[2:]


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.filterwarnings("ignore", message="enable_nested_tensor")  # not with norm_first
    rows, right = [], True
    print("                            ours      other   ratio   parameters of both")
    for name, (config, *sizes) in CASES.items():
        words = batch(*sizes)
        ours = Transformer(VOCAB, VOCAB, config)
        theirs = Reference(ours, config)
        d_ff = 2 * config.d_ff // 3  # SwiGLU has three matrices for two
        modern = Transformer(VOCAB, VOCAB, replace(config, d_ff=d_ff, **MODERN))
        inputs = words[0], words[1][:, :-1]
        apart = (ours(*inputs) - theirs(*inputs)).abs().max().item()
        step = stepper(ours, words)
        plain = stepper(theirs, words)
        new = stepper(modern, words)
        for other, model, turn in ("torch.nn", theirs, plain), ("modern", modern, new):
            pairs = compare(step, turn)
            triples = ((a, b, b / a) for a, b in pairs)
            a, b, ratio = (statistics.median(column) for column in zip(*triples, strict=True))
            counts = [sum(p.numel() for p in m.parameters()) for m in (ours, model)]
            print(f"{name:6} {other:14} {a:8.1f} ms {b:6.1f} ms {ratio:7.2f}", *counts)
            what = f"a training step of the Transformer, {name}"
            if model is theirs:
                right &= apart < EQUAL
                print(f"{'':21} logits differ by {apart:.0e}")
                peer = "torch.nn.Transformer"
                rows.append(_stored.against(what, "ms", pairs, peer, package="torch", bar=BAR))
            else:
                rows.append(_stored.against(what, "ms", pairs, "the book's modern block"))
    _stored.finish(__file__, rows, right=right)


if __name__ == "__main__":
    main()
