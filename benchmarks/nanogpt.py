"""Training of the book's GPT by the book's loop, against a plain GPT and loop in nanoGPT's form.

make bench NAME=nanogpt

The rival is written here after nanoGPT's design (https://github.com/karpathy/nanoGPT): one matrix
for queries, keys and values, fused attention, pre-norm, a tied output, AdamW that decays matrices
alone, a clipped gradient, and a loop of five lines that checks nothing. Sizes, data, rates and
start are the same (`attnbook/learn/recipes/known.toml`), so are the losses, and runs take turns in
one process on one thread. The ratio is the median of pairs of runs, in processor time. Bar: not
slower.
"""

import math
import os
import statistics
import time
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, scaled_dot_product_attention

from attnbook.learn.engine import learn
from attnbook.learn.settings import Settings, read_settings
from attnbook.model.config import TransformerConfig
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.corpus import windows
from attnbook.text.vocabulary import Vocabulary
from benchmarks import _stored

VOCAB = Vocabulary(map(str, range(62)))  # 65 tokens with the special ones, as tiny Shakespeare has
STEPS, PAIRS, BAR, EQUAL = 40, 9, 1.0, 1e-4
SIZES = {"known recipe": {}, "wider": {"d_model": 256, "n_heads": 8, "d_ff": 1024}}


class PlainBlock(nn.Module):
    def __init__(self, config: TransformerConfig):
        super().__init__()
        d, self.n_heads = config.d_model, config.n_heads
        self.norm_1, self.norm_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.up, self.down = (
            nn.Linear(d, config.d_ff, bias=False),
            nn.Linear(config.d_ff, d, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:  # [batch n d]
        batch, n, d = x.shape
        heads = (batch, n, self.n_heads, d // self.n_heads)
        q, k, v = (
            part.view(heads).transpose(1, 2) for part in self.qkv(self.norm_1(x)).split(d, -1)
        )
        seen = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, n, d))
        return x + self.down(gelu(self.up(self.norm_2(x))))


class PlainGPT(nn.Module):
    """A decoder with nothing but its equations, and the parameters of ours."""

    def __init__(self, ours: TransformerDecoder, config: TransformerConfig):
        super().__init__()
        self.tokens = nn.Embedding(len(VOCAB), config.d_model)
        self.places = nn.Embedding(config.max_len or 0, config.d_model)
        self.blocks = nn.ModuleList([PlainBlock(config) for _ in range(config.n_layers)])
        self.norm = nn.LayerNorm(config.d_model)
        self.load_state_dict(renamed(ours.state_dict()))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


def renamed(ours: dict[str, Tensor]) -> dict[str, Tensor]:
    """The parameters of our decoder under the names of `PlainGPT`."""
    names = {
        "stack.": "",
        "positions.embedding": "places",
        "embedding": "tokens",
        "attention_norm": "norm_1",
        "feed_forward_norm": "norm_2",
        "feed_forward.": "",
        "attention.": "",
    }
    found = {}
    for name, value in ours.items():
        for old, new in names.items():
            name = name.replace(old, new)
        found[name] = value.clone()
    for name in [name for name in found if name.endswith(".q.weight")]:
        parts = [found.pop(name.replace(".q.", f".{part}.")) for part in "qkv"]
        found[name.replace(".q.", ".qkv.")] = torch.cat(parts)
    return found


def plain_learn(model: PlainGPT, ids: np.ndarray, settings: Settings) -> list[float]:
    """The plain loop: no hooks, no devices, no checks."""
    chosen, how, losses = settings.train, settings.optimizer, []
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": how.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, betas=(how.beta1, how.beta2))
    warmup, least = round(how.warmup * chosen.steps), how.end * how.lr
    for step in range(chosen.steps):
        left = (1 + math.cos(math.pi * (step - warmup) / (chosen.steps - warmup))) / 2
        lr = how.lr * (step + 1) / (warmup + 1)
        for group in optimizer.param_groups:
            group["lr"] = lr if step < warmup else least + (how.lr - least) * left
        inputs, targets = windows(
            ids, chosen.context, step, batch_size=chosen.batch, seed=chosen.seed
        )
        loss = cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def seconds(run) -> tuple[float, list[float]]:
    start = time.process_time()
    losses = run()
    return time.process_time() - start, losses


def main() -> None:
    os.environ["ATTNBOOK_PROGRESS"] = "0"  # the plain loop shows none
    torch.set_num_threads(1)
    ids = np.random.default_rng(0).integers(3, len(VOCAB), 100_000)
    rows, right = [], True
    print("              ours    plain   ratio   losses differ by")
    for name, sizes in SIZES.items():
        read = read_settings("known")
        settings = replace(
            read, model=replace(read.model, **sizes), train=replace(read.train, steps=STEPS)
        )
        torch.manual_seed(0)
        start = TransformerDecoder(VOCAB, settings.model)
        pairs, apart = [], 0.0
        for turn in range(PAIRS + 1):
            ours = TransformerDecoder(VOCAB, settings.model)
            ours.load_state_dict(start.state_dict())
            both = {
                "ours": partial(learn, ours, ids, settings),
                "plain": partial(plain_learn, PlainGPT(start, settings.model), ids, settings),
            }
            order = list(both)[:: 1 if turn % 2 else -1]
            took = {each: seconds(both[each]) for each in order}
            (a, mine), (b, theirs) = took["ours"], took["plain"]
            apart = max(apart, *(abs(x - y) for x, y in zip(mine, theirs, strict=True)))
            pairs.append((a / STEPS, b / STEPS, b / a))
        a, b, ratio = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
        right &= apart < EQUAL
        times = [(1e3 * a, 1e3 * b) for a, b, _ in pairs[1:]]
        what, peer = f"a training step of the GPT, {name}", "a plain GPT in nanoGPT's form"
        rows.append(_stored.against(what, "ms", times, peer, bar=BAR))
        print(f"{name:12} {1e3 * a:4.1f} ms {1e3 * b:5.1f} ms {ratio:7.2f}   {apart:.0e}")
    _stored.finish(__file__, rows, right=right)


if __name__ == "__main__":
    main()
