"""Checks of assignment 3: heads, norms, a block, and the training of a decoder.

Each check calls the student's function with seeded random tensors and prints one line.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm

from attnbook.teach.a3_decoder import cache_bytes, loss_of_words, shift
from attnbook.teach.a3_heads import OWN, multi_head
from attnbook.teach.asking import check
from attnbook.teach.judging import constant, numbers, right, same

__all__ = [
    "block",
    "cache_bytes",
    "feed_forward",
    "join_heads",
    "loss_of_words",
    "multi_head",
    "normalize",
    "shift",
    "split_heads",
]

Answer = Callable[..., Any]


@check({"sizes": (1, 1, 1, 3)}, {"sizes": (2, 1, 3, 1)}, own=OWN)
def split_heads(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 5, 3, 4)) -> None:
    """The components of a vector, split into heads."""
    batch, n, heads, d = sizes
    x = numbers(seed)(batch, n, heads * d)
    apart = x.view(batch, n, heads, d)
    got = same(
        answer(x, heads),
        apart.transpose(1, 2),
        "split_heads",
        {
            "words are mixed: first view as [batch token head d_head], then exchange two axes":
                x.reshape(batch, heads, n, d),
            "a head takes every n-th number; it should take numbers that stand side by side":
                x.view(batch, n, d, heads).permute(0, 3, 1, 2),
            "heads come after tokens: exchange these two axes": apart,
            "every head has the numbers of the first":
                apart[:, :, :1].expand(-1, -1, heads, -1).transpose(1, 2),
            "heads stand in reverse order": apart.flip(2).transpose(1, 2),
            "the axes of tokens and numbers are exchanged": apart.permute(0, 2, 3, 1),
        },
        axes="batch head token d_head",
    )  # fmt: skip
    right("split_heads", got, seed, 0, 1, 0)


@check({"sizes": (1, 1, 1, 3)}, {"sizes": (2, 3, 1, 1)}, own=OWN)
def join_heads(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 5, 4)) -> None:
    """The outputs of the heads, concatenated into one vector."""
    batch, heads, n, d = sizes
    x = numbers(seed)(batch, heads, n, d)
    want = torch.cat(x.unbind(1), dim=-1)
    got = same(
        answer(x),
        want,
        "join_heads",
        {
            "words are mixed: exchange the axes of heads and tokens before you flatten":
                x.reshape(batch, n, heads * d),
            "numbers of all heads take turns; those of a head should stand side by side":
                x.permute(0, 2, 3, 1).reshape(batch, n, heads * d),
            "heads are added up; they should stand side by side": x.sum(1),
            "heads are averaged; they should stand side by side": x.mean(1),
            "heads stand in reverse order": torch.cat(x.flip(1).unbind(1), dim=-1),
            "heads are put one below the other, as more words": torch.cat(x.unbind(1), dim=1),
        },
        axes="batch token d_model",
    )  # fmt: skip
    right("join_heads", got, seed, 0, 0, slice(4))


@check({"sizes": (1, 1, 3)}, {"sizes": (2, 2, 4)}, own=OWN)
def normalize(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 5)) -> None:
    """Layer norm, for each vector separately."""
    batch, n, d = sizes
    some = numbers(seed)
    x, gain, bias, eps = 3 * some(batch, n, d) + 2, some(d), some(d), constant(seed, 0.1, 2.0, 0.5)
    off = x - x.mean(-1, keepdim=True)
    var = off.square().mean(-1, keepdim=True)

    def after(y: Tensor) -> Tensor:
        return y * gain + bias

    got = same(
        answer(x, gain, bias, eps),
        layer_norm(x, (d,), gain, bias, eps),
        "normalize",
        {
            "the variance is divided by d - 1; it should be divided by d (correction=0)":
                after(off / (x.var(-1, keepdim=True) + eps).sqrt()),
            "eps is added to the root; it should be added below the root":
                after(off / (var.sqrt() + eps)),
            "eps is missing": after(off / var.sqrt()),
            "eps is not used: it is always 0.1": after(off / (var + 0.1).sqrt()),
            "it divides by the variance, not by its root": after(off / (var + eps)),
            "it is divided by the deviation plus eps, and the deviation by d - 1: use "
            "correction=0, and eps below the root": after(off / (x.std(-1, keepdim=True) + eps)),
            "the variance is the mean of the squares of x; take the mean of x away before":
                after(off / (x.square().mean(-1, keepdim=True) + eps).sqrt()),
            "the mean is not taken away: that is RMSNorm":
                after(x / (x.square().mean(-1, keepdim=True) + eps).sqrt()),
            "it is multiplied by the root; it should be divided": after(off * (var + eps).sqrt()),
            "the bias is missing": off / (var + eps).sqrt() * gain,
            "the gain is missing": off / (var + eps).sqrt() + bias,
            "it runs over all words of the batch; each word's vector is treated by itself":
                after((x - x.mean((0, 1))) / (x.var((0, 1), correction=0) + eps).sqrt()),
            "it runs over all numbers of a sentence; each word's vector is treated by itself":
                after((x - x.mean((1, 2), keepdim=True))
                      / (x.var((1, 2), keepdim=True, correction=0) + eps).sqrt()),
            "the mean is not taken away": after(x / (var + eps).sqrt()),
            "it runs over the words of a sentence; each word's vector is a norm's own business":
                after((x - x.mean(1, keepdim=True))
                      / (x.var(1, keepdim=True, correction=0) + eps).sqrt()),
            "it runs over the whole batch":
                after((x - x.mean()) / (x.var(correction=0) + eps).sqrt()),
            "gain and bias are missing": off / (var + eps).sqrt(),
            "gain and bias are exchanged": off / (var + eps).sqrt() * bias + gain,
            "the bias is added before the gain": (off / (var + eps).sqrt() + bias) * gain,
        },
        axes="batch token d",
    )  # fmt: skip
    right("normalize", got, seed, 0, 0)


@check({"sizes": (1, 1, 3, 1)}, {"sizes": (2, 3, 1, 2)}, own=OWN)
def feed_forward(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 4, 7)) -> None:
    """Two matrices with a ReLU between them, for each word separately."""
    batch, n, d, hidden = sizes
    some = numbers(seed)
    x, w1, b1, w2, b2 = some(batch, n, d), some(d, hidden), some(hidden), some(hidden, d), some(d)
    got = same(
        answer(x, w1, b1, w2, b2),
        (x @ w1 + b1).relu() @ w2 + b2,
        "feed_forward",
        {
            "the ReLU is missing: two matrices without it are one": (x @ w1 + b1) @ w2 + b2,
            "the ReLU stands at the end; it belongs between the matrices":
                ((x @ w1 + b1) @ w2 + b2).relu(),
            "there is a second ReLU at the end": ((x @ w1 + b1).relu() @ w2 + b2).relu(),
            "the first bias is missing": (x @ w1).relu() @ w2 + b2,
            "both biases are missing": (x @ w1).relu() @ w2,
            "a GELU stands where the ReLU should": gelu(x @ w1 + b1) @ w2 + b2,
            "a tanh stands where the ReLU should": (x @ w1 + b1).tanh() @ w2 + b2,
            "a sigmoid stands where the ReLU should": (x @ w1 + b1).sigmoid() @ w2 + b2,
            "the ReLU is taken of x; it belongs between the matrices":
                (x.relu() @ w1 + b1) @ w2 + b2,
            "the ReLU keeps what is negative": (-(x @ w1 + b1)).relu() @ w2 + b2,
            "the second matrix is missing": (x @ w1 + b1).relu(),
            "the second bias is missing": (x @ w1 + b1).relu() @ w2,
            "the first bias is added behind the ReLU": ((x @ w1).relu() + b1) @ w2 + b2,
            "x is added; that is the block's business": x + (x @ w1 + b1).relu() @ w2 + b2,
        },
        axes="batch token d_model",
    )  # fmt: skip
    same(
        answer(20 * x, w1, b1, w2, b2),
        (20 * x @ w1 + b1).relu() @ w2 + b2,
        "feed_forward of large numbers",
        {"a ReLU has no upper end": (20 * x @ w1 + b1).clamp(0, 6) @ w2 + b2},
        axes="batch token d_model",
    )
    right("feed_forward", got, seed, 0, 0)


@check({"sizes": (1, 1, 3)}, {"sizes": (2, 4, 2)}, own=OWN)
def block(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 4)) -> None:
    """Two sublayers with norms and residual connections, in "pre" and in "post" order."""
    some, d = numbers(seed), sizes[-1]
    x, m1, m2 = some(*sizes), some(d, d), some(d, d)
    attend: Callable[[Tensor], Tensor] = lambda x: (x.cumsum(1) @ m1).tanh()  # noqa: E731
    feed: Callable[[Tensor], Tensor] = lambda x: (x @ m2).relu()  # noqa: E731
    norm_a: Callable[[Tensor], Tensor] = lambda x: layer_norm(x, (d,))  # noqa: E731
    norm_f: Callable[[Tensor], Tensor] = lambda x: 2 * layer_norm(x, (d,)) + 1  # noqa: E731
    middle = x + attend(norm_a(x))
    post = norm_a(x + attend(x))
    bare = x + attend(x)
    got = same(
        answer(x, attend, feed, norm_a, norm_f, True),
        middle + feed(norm_f(middle)),
        "block",
        {
            "norms stand behind the sums (post-norm); they should stand before the layers":
                norm_f(post + feed(post)),
            "norms are missing": (x + attend(x)) + feed(x + attend(x)),
            "norms stand behind the layers, before the sums; they should stand before the layers":
                x + norm_a(attend(x)) + norm_f(feed(x + norm_a(attend(x)))),
            "the residuals are missing: nothing is added": feed(norm_f(attend(norm_a(x)))),
            "there is one residual around both layers; each has its own":
                x + feed(norm_f(attend(norm_a(x)))),
            "norm_a stands before both layers; norm_f belongs before the second":
                middle + feed(norm_a(middle)),
            "the second norm is missing": middle + feed(middle),
            "the network is missing": middle,
            "x is added twice": x + middle + feed(norm_f(middle)),
            "there is a third norm at the end": norm_f(middle + feed(norm_f(middle))),
            "the second sum is of a normed vector; what stands between should be added":
                norm_f(middle) + feed(norm_f(middle)),
            "x is not added to what attention gives": attend(norm_a(x))
                + feed(norm_f(attend(norm_a(x)))),
            "what came from attention is not added to what the network gives":
                feed(norm_f(middle)),
            "the sum is of normed vectors; x itself should be added":
                norm_a(x) + attend(norm_a(x))
                + feed(norm_f(norm_a(x) + attend(norm_a(x)))),
            "both layers read x; the second should read what the first has made":
                x + attend(norm_a(x)) + feed(norm_f(x)),
            "x is added at the end again; what stands between should be added":
                x + feed(norm_f(middle)),
            "the network comes before attention":
                (x + feed(norm_f(x))) + attend(norm_a(x + feed(norm_f(x)))),
            "the norms are exchanged":
                (x + attend(norm_f(x))) + feed(norm_a(x + attend(norm_f(x)))),
        },
        axes="batch token d_model",
    )  # fmt: skip
    same(
        answer(x, attend, feed, norm_a, norm_f, False),
        norm_f(post + feed(post)),
        "block, where `pre` is False,",
        {
            "`pre` is not read: the norms stand before the layers": middle + feed(norm_f(middle)),
            "norms stand behind the layers, before the sums; they should be taken of the sums":
                x + norm_a(attend(x)) + norm_f(feed(x + norm_a(attend(x)))),
            "norms are missing": bare + feed(bare),
            "the first norm is missing": norm_f(bare + feed(bare)),
            "the last norm is missing": post + feed(post),
            "the norms are exchanged": norm_a(norm_f(bare) + feed(norm_f(bare))),
            "norm_a is taken of both sums; norm_f belongs behind the second":
                norm_a(post + feed(post)),
            "norms stand before the layers, too; they should be taken of the sums alone":
                norm_f(norm_a(middle) + feed(norm_f(norm_a(middle)))),
            "what came in is not added": norm_f(feed(norm_a(attend(x)))),
            "the second sum is of what came in first; what stands between should be added":
                norm_f(x + feed(post)),
            "the second sum is of what was there before the norm": norm_f(bare + feed(post)),
            "the network is missing": post,
        },
        axes="batch token d_model",
    )  # fmt: skip
    right("block", got, seed, 0, 0)
