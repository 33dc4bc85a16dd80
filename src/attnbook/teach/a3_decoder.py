"""Checks of assignment 3, last part: a decoder's training, and the size of its cache."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from attnbook.teach.asking import check
from attnbook.teach.judging import constant, holds, number, numbers, right, same

Answer = Callable[..., Any]


@check({"sizes": (1, 1)}, {"sizes": (1, 4)})
def shift(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 5)) -> None:
    """The decoder's input in training: the target, shifted right by one."""
    batch, n = sizes
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, 40, (batch, n), generator=generator)
    bos = constant(seed, 1, 2, 50)
    first = torch.full((batch, 1), bos)
    want = torch.cat([first, tokens[:, :-1]], 1)
    got = same(
        answer(tokens, bos),
        want,
        "shift",
        {
            "the decoder reads the word that it should guess: nothing was shifted": tokens,
            "it is shifted to the left; the start token belongs in front":
                torch.cat([tokens[:, 1:], first], 1),
            "the last word came round to the front; the start token belongs there":
                tokens.roll(1, 1),
            "one word too many: the last word is an answer, and is not read":
                torch.cat([first, tokens], 1),
            "the start token has replaced the first word; it should be put before it":
                torch.cat([first, tokens[:, 1:]], 1),
            "the first word is missing, and there is no start token": tokens[:, 1:],
            "the last word is missing, and there is no start token": tokens[:, :-1],
            "sentences were shifted, not words": torch.cat(
                [torch.full((1, n), bos), tokens[:-1]]
            ),
            "sentences were shifted, not words ": tokens.roll(1, 0),
            "the first token is 1; it should be `start`":
                torch.cat([0 * first + 1, tokens[:, :-1]], 1),
            "the first token is 0; it should be `start`": torch.cat([0 * first, tokens[:, :-1]], 1),
        },
        axes="sentence token",
    )  # fmt: skip
    right("shift", got, seed, 0)


@check({"lengths": (3,)}, {"lengths": (1, 4)})
def loss_of_words(answer: Answer, seed: int = 0, lengths: tuple[int, ...] = (2, 5, 3)) -> None:
    """The mean cross-entropy, in nats, over words that are not padding."""
    some, n, vocab, pad = numbers(seed), max(lengths), 7, constant(seed, 0, 6, 3)
    logits = some(len(lengths), n, vocab)
    generator = torch.Generator().manual_seed(seed)
    answers = torch.randint(1, vocab, (len(lengths), n), generator=generator)
    answers = (answers + pad) % vocab  # no word is `pad`
    answers[torch.arange(n) >= torch.tensor(lengths)[:, None]] = pad
    each = cross_entropy(logits.mT, answers, reduction="none").double()
    words = answers != pad
    want = each[words].mean().item()
    by_sentence = torch.stack([row[word].mean() for row, word in zip(each, words, strict=True)])
    picked = logits.gather(-1, answers[..., None])[..., 0][words].double()
    wrong_axis = -logits.log_softmax(1).gather(-1, answers[..., None])[..., 0][words].double()
    got = number(
        answer(logits, answers, pad),
        want,
        "loss_of_words",
        {
            "padding is counted": each.mean().item(),
            "words of a smaller id than `pad` are left out": each[answers > pad].mean().item(),
            "words of id 0 are left out; padding is `pad`": each[answers != 0].mean().item(),
            "padding costs nothing, but is divided by": (each * words).mean().item(),
            "it is a sum; the mean is asked for": each[words].sum().item(),
            "it is in bits; nats are asked for": want / torch.log(torch.tensor(2.0)).item(),
            "each sentence counts alike; each word should": by_sentence.mean().item(),
            "the sign is wrong: a loss is minus a logarithm": -want,
            "the softmax is missing": -picked.mean().item(),
            "the softmax was taken twice: cross_entropy takes logits": cross_entropy(
                logits.softmax(-1).mT, answers, ignore_index=pad
            ).item(),
            "the softmax runs over the places; it should run over the vocabulary": (
                wrong_axis.mean().item()
            ),
            "divided by the sentences, not by the words": each[words].sum().item() / len(lengths),
            "this is the perplexity; its logarithm is asked for": each[words].mean().exp().item(),
            "it is a probability, not its logarithm ": -(-each[words]).exp().mean().item(),
            "only padding is counted": each[~words].mean().item(),
            "it is a probability, not its logarithm": (-each[words]).exp().mean().item(),
        },
    )
    right("loss_of_words", got, seed)


@check({"sizes": (1, 4, 4, 5, 3)}, {"sizes": (7, 6, 1, 9, 50)})
def cache_bytes(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (5, 8, 2, 16, 300)) -> None:
    """The bytes of a text's KV cache."""
    layers, heads, kv_heads, d_head, n = sizes
    want = 2.0 * layers * kv_heads * d_head * n * 4
    got = number(
        answer(layers, heads, kv_heads, d_head, n),
        want,
        "cache_bytes",
        {
            "keys and values are two tensors, and a number has four bytes: twice as much": want / 2,
            "n_kv_heads is the number of heads that are kept; nothing is divided by it":
                want / kv_heads * (heads // kv_heads),
            "queries are counted, too; they are needed once ":
                want / (2 * kv_heads) * (heads + 2 * kv_heads),
            "keys have as few heads as values: n_kv_heads":
                want / (2 * kv_heads) * (heads + kv_heads),
            "these are bits; bytes are asked for": want * 8,
            "these are megabytes; bytes are asked for": want / 1e6,
            "these are megabytes; bytes are asked for ": want / 2**20,
            "d_head is missing": want / d_head,
            "all heads are counted; only those of keys and values are kept":
                want / kv_heads * heads,
            "only one layer is counted": want / layers,
            "numbers are counted; each has four bytes": want / 4,
            "scores are counted: attention looks at pairs, but keeps vectors": want * n,
            "queries are counted, too; they are needed once": want * 3 / 2,
            "only one word is counted": want / n,
        },
    )  # fmt: skip
    holds(float(got).is_integer(), "cache_bytes must be a whole number")
    right("cache_bytes", got, seed)
