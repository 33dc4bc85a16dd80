"""Checks of assignment 4: pieces of words, masked words, pairs of texts, and heads for tasks.

Each check calls the student's function with seeded random tensors or words and prints one line.
"""

from collections.abc import Callable
from math import isnan
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, layer_norm

from attnbook.teach.a4_heads import best_span, classify, encoder_mask, tokens_of, words_of_pieces
from attnbook.teach.a4_pieces import cut
from attnbook.teach.asking import check
from attnbook.teach.judging import constant, holds, number, numbers, parts, right, same

__all__ = [
    "best_span",
    "choose",
    "classify",
    "corrupt",
    "cut",
    "embed",
    "encoder_mask",
    "masked_loss",
    "pack",
    "words_of_pieces",
]

Answer = Callable[..., Any]
CLS, SEP, MASK, PAD = 1, 2, 3, 0


def _uniform(seed: int, *sizes: int) -> Tensor:
    return torch.rand(*sizes, generator=torch.Generator().manual_seed(seed + 1000))


@check({"sizes": (1, 1)})
def choose(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (4, 30)) -> None:
    """The positions that the model must predict."""
    u, special = _uniform(seed, *sizes), _uniform(seed + 1, *sizes) < 0.3
    few = u < 0.15
    got = same(
        answer(u, special),
        few & ~special,
        "choose",
        {
            "[CLS], [SEP] and padding are chosen, too": few,
            "a number below 0.15 chooses, not one above": (u > 0.15) & ~special,
            "only special places are chosen: True in `special` means hands off": few & special,
            "a number below 0.85 chooses; it should be 0.15": (u < 0.85) & ~special,
            "a place is chosen if one of the two is true; both are needed": few | ~special,
            "True and False are exchanged": ~(few & ~special),
            "numbers above 0.85 choose; it should be those below 0.15": (u > 0.85) & ~special,
            "u is not asked: every word is chosen": ~special,
            "0.15 is 15 %; here 1.5 % are chosen": (u < 0.015) & ~special,
            "it holds numbers; it should hold True and False": (few & ~special).float(),
        },
        axes="row place",
    )
    edge = torch.tensor([[0.0, 0.15, 0.1499, 0.1501, 0.15, 0.0]])
    closed = torch.tensor([[False, False, False, False, True, True]])
    same(
        answer(edge, closed),
        (edge < 0.15) & ~closed,
        "choose, where u is 0.15,",
        {"exactly 0.15 is not below 0.15": (edge <= 0.15) & ~closed},
        axes="row place",
    )
    right("choose", got.float().sum(1), seed)


@check({"sizes": (1, 20)}, {"sizes": (2, 9)}, leaves={0: "tokens"})
def corrupt(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 40)) -> None:
    """The model's input at these positions: [MASK], another word, or the word itself."""
    tokens, chosen = tokens_of(seed, *sizes), _uniform(seed, *sizes) < 0.4
    others, u = tokens_of(seed + 1, *sizes, low=61, high=90), _uniform(seed + 2, *sizes)
    number = constant(seed, MASK, 95, 2)
    mask = torch.tensor(number)

    def made(hide: Tensor, change: Tensor) -> Tensor:
        return torch.where(chosen & hide, mask, torch.where(chosen & change, others, tokens))

    middle = (u >= 0.8) & (u < 0.9)
    got = same(
        answer(tokens, chosen, u, others, number),
        made(u < 0.8, middle),
        "corrupt",
        {
            "every chosen word becomes [MASK]; one in five should not": made(u < 2, middle),
            "words that were not chosen are changed": torch.where(
                u < 0.8, mask, torch.where(middle, others, tokens)
            ),
            "no word is replaced by another one": made(u < 0.8, u > 2),
            "two in ten become other words; one of them should stay": made(u < 0.8, u >= 0.8),
            "others and kept ones are in order, but eight in ten are changed to other words":
                made(middle, u < 0.8),
            "from 0.9 on words are replaced; there they should stay": made(u < 0.8, u >= 0.9),
            "15 % was taken once more; chosen words are chosen already":
                made(u < 0.15 * 0.8, (u >= 0.15 * 0.8) & (u < 0.15 * 0.9)),
            "the words are as before: nothing was hidden": tokens,
            "3 stands where the id `mask` should": torch.where(
                chosen & (u < 0.8), MASK, made(u < 0.8, middle)
            ),
            "words that were not chosen are changed to other words": torch.where(
                chosen & (u < 0.8), mask, torch.where(middle | (u < 0.8), others, tokens)
            ),
            "words that were not chosen are changed to other words ": torch.where(
                chosen & (u < 0.8), mask, torch.where(u < 0.9, tokens, others)
            ),
            "chosen words are left, all others are changed":
                torch.where(~chosen & (u < 0.8), mask,
                            torch.where(~chosen & middle, others, tokens)),
            "no chosen word is kept: from 0.8 on, one half is replaced, one half stays":
                made(u < 0.9, u >= 0.9),
            "the order is [MASK], other word, same word; here other words come first":
                made((u >= 0.1) & (u < 0.9), u < 0.1),
            "0 stands where the id `mask` should": torch.where(
                chosen & (u < 0.8), 0, made(u < 0.8, middle)
            ),
            "words that were not chosen became 0; they should stay":
                made(u < 0.8, middle) * chosen,
        },
        axes="row place",
    )  # fmt: skip
    edge = torch.tensor([[0.0, 0.8, 0.9]], dtype=torch.float64)
    words, instead = tokens[:1, :3], others[:1, :3]
    same(
        answer(words, torch.ones_like(words).bool(), edge, instead, number),
        torch.stack([mask, instead[0, 1], words[0, 2]])[None],
        "corrupt, where u is 0, 0.8 and 0.9,",
        {
            "exactly 0.8 gives a word of `others`, exactly 0.9 the word itself":
                torch.stack([mask, mask, instead[0, 2]])[None],
            "exactly 0.9 gives the word itself":
                torch.stack([mask, instead[0, 1], instead[0, 2]])[None],
            "exactly 0.8 gives a word of `others`": torch.stack([mask, mask, words[0, 2]])[None],
        },
        axes="row place",
    )  # fmt: skip
    right("corrupt", (got == number).sum(1).float(), seed)


@check({"sizes": (1, 9, 4)}, {"sizes": (2, 12, 2)})
def masked_loss(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 5, 7)) -> None:
    """The mean cross-entropy at the chosen positions only."""
    batch, n, vocab = sizes
    logits, tokens = numbers(seed)(*sizes), tokens_of(seed, batch, n, low=0, high=vocab)
    chosen = _uniform(seed, batch, n) < 0.5
    each = cross_entropy(logits.mT, tokens, reduction="none").double()
    picked = logits.gather(-1, tokens[..., None])[..., 0].double()
    each_next = cross_entropy(logits[:, :-1].mT, tokens[:, 1:], reduction="none").double()
    want = each[chosen].mean().item()
    got = number(
        answer(logits, tokens, chosen),
        want,
        "masked_loss",
        {
            "all places count; only chosen ones should": each.mean().item(),
            "the places that were not chosen count": each[~chosen].mean().item(),
            "divided by all places, not by the chosen ones": (each * chosen).mean().item(),
            "it is a sum; the mean is asked for": each[chosen].sum().item(),
            "the sign is wrong: a loss is minus a logarithm": -want,
            "it is in bits; nats are asked for": want / torch.tensor(2.0).log().item(),
            "the softmax was taken twice: cross_entropy takes logits":
                cross_entropy(logits.softmax(-1)[chosen], tokens[chosen]).item(),
            "the softmax is missing": -picked[chosen].mean().item(),
            "it is a probability, not its logarithm": (-each[chosen]).exp().mean().item(),
            "it is a probability, not its logarithm ": -(-each[chosen]).exp().mean().item(),
            "this is the perplexity; its logarithm is asked for": each[chosen].mean().exp().item(),
            "other places count as token 0; they should not count":
                cross_entropy(logits.mT, tokens * chosen).item(),
            "each row counts alike; each chosen place should": torch.stack(
                [row[some].mean() for row, some in zip(each, chosen, strict=True)]
            ).mean().item(),
            "divided by the rows, not by the chosen places": each[chosen].sum().item() / batch,
            "places are shifted by one: an encoder guesses the word at the place itself":
                each_next[chosen[:, 1:]].mean().item(),
            "it is the share of right guesses":
                (logits.argmax(-1) == tokens)[chosen].double().mean().item(),
        },
    )  # fmt: skip
    none = answer(logits, tokens, torch.zeros_like(chosen))
    value = none.item() if isinstance(none, Tensor) and none.numel() == 1 else none
    holds(
        not (isinstance(value, float) and isnan(value)),
        "masked_loss is NaN where no place is chosen, 0 is right: a mean of no numbers is 0 / 0",
    )
    number(none, 0.0, "masked_loss, where no place is chosen,")
    right("masked_loss", got, seed)


@check({"lengths": (1, 4), "n": 8}, {"lengths": (5, 1), "n": 20})
def pack(answer: Answer, seed: int = 0, lengths: tuple[int, ...] = (3, 2), n: int = 9) -> None:
    """Two texts in one row."""
    first, second = (tokens_of(seed + i, m).tolist() for i, m in enumerate(lengths))
    row, filled = [CLS, *first, SEP, *second, SEP], len(first) + len(second) + 3
    want = row + [PAD] * (n - filled)
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1) + [0] * (n - filled)
    found = answer(first, second, n)
    parts(found, 2, "pack must return two lists: tokens, and segments")
    tokens, marks = found
    for name, each in {"tokens": tokens, "segments": marks}.items():
        holds(
            isinstance(each, list),
            f"the {name} of pack must be a list of numbers (a tensor has `.tolist()`)",
        )
        holds(all(isinstance(i, int) for i in each), f"the {name} of pack must be whole numbers")

    def t(*some: Any) -> Tensor:
        return torch.tensor([*some])

    got = same(
        torch.tensor(tokens),
        t(*want),
        "the tokens of pack",
        {
            "the last [SEP] is missing": t(CLS, *first, SEP, *second, *[PAD] * (n - filled + 1)),
            "[CLS] is missing": t(*first, SEP, *second, SEP, *[PAD] * (n - filled + 1)),
            "the [SEP] between the texts is missing":
                t(CLS, *first, *second, SEP, *[PAD] * (n - filled + 1)),
            "the texts are exchanged": t(CLS, *second, SEP, *first, SEP, *[PAD] * (n - filled)),
            "padding stands in front": t(*[PAD] * (n - filled), *row),
            "the row is not filled up to its length": t(*row),
            "both texts begin with [CLS]":
                t(CLS, *first, SEP, CLS, *second, SEP, *[PAD] * (n - filled - 1)),
            "[CLS] and [SEP] are exchanged":
                t(SEP, *first, CLS, *second, CLS, *[PAD] * (n - filled)),
            "padding is [PAD], not [MASK]": t(*row, *[MASK] * (n - filled)),
            "tokens and segments are exchanged: the tokens come first": t(*segments),
            "it has n tokens of padding; with padding it should have n": t(*row, *[PAD] * n),
        },
        axes="place",
    )  # fmt: skip
    early, late = len(first) + 1, len(first) + 2
    same(
        torch.tensor(marks),
        t(*segments),
        "the segments of pack",
        {
            "the first [SEP] belongs to the first text": t(
                *[0] * early, *[1] * (len(second) + 2), *[0] * (n - filled)
            ),
            "the last [SEP] belongs to the second text": t(
                *[0] * late, *[1] * len(second), *[0] * (n - filled + 1)
            ),
            "padding has segment 0": t(*[0] * late, *[1] * (n - late)),
            "segments are numbered 0 and 1, not 1 and 2": t(
                *[1] * late, *[2] * (len(second) + 1), *[0] * (n - filled)
            ),
            "segments are exchanged": t(*[1] * late, *[0] * (len(second) + 1), *[0] * (n - filled)),
            "padding has segment 0, no third one": t(
                *[0] * late, *[1] * (len(second) + 1), *[2] * (n - filled)
            ),
            "the row is not filled up to its length": t(*[0] * late, *[1] * (len(second) + 1)),
        },
        axes="place",
    )
    right("pack", got.float(), seed)


@check({"sizes": (1, 1, 3, 1)}, {"sizes": (2, 3, 5, 2)})
def embed(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 5, 8, 4)) -> None:
    """The input of the first block: the sum of three embeddings."""
    batch, n, vocab, d = sizes
    some = numbers(seed)
    words, places, segments = some(vocab, d), some(n + 3, d), some(2, d)
    tokens = tokens_of(seed, batch, n, low=0, high=vocab)
    at = torch.arange(n)  # the last one is padding, whose segment is 0
    parts = ((at >= torch.tensor([[n // 2], [n - 2]])) & (at < n - 1)).long()[:batch]
    parts = parts if len(parts) == batch else parts[:1].expand(batch, -1)
    w, p, s = words[tokens], places[:n], segments[parts]
    late = segments[(parts.cumsum(1) > 0).long()]
    got = same(
        answer(tokens, parts, words, places, segments),
        w + p + s,
        "embed",
        {
            "the vectors of the places are missing": w + s,
            "the vectors of the segments are missing": w + p,
            "the vectors of the words are missing": (p + s).expand(batch, n, d),
            "every place has the vector of place 0": w + places[0] + s,
            "places begin at 1; they should begin at 0": w + places[1 : n + 1] + s,
            "every row has the segments of the first": w + p + segments[parts[:1]],
            "the three are averaged; they should be added": (w + p + s) / 3,
            "segments are exchanged": w + p + segments[1 - parts],
            "every token has segment 0": w + p + segments[0],
            "behind the second text, too, a token has the segment that `segments` says": w
            + p
            + late,
            "every token has segment 1": w + p + segments[1],
            "the three are multiplied; they should be added": w * p * s,
            "the vectors of the places are those at the end of the table": w + places[-n:] + s,
            "places are looked up by the segments; they are numbered 0, 1, 2, ...": w
            + places[parts]
            + s,
            "words are multiplied by the root of d_model, which this task does not ask for": w
            * d**0.5
            + p
            + s,
            "a norm was taken, which this task does not ask for": layer_norm(w + p + s, (d,)),
            "the three stand side by side; they should be added": torch.cat(
                [w, p.expand(batch, -1, -1), s], -1
            ),
        },
        axes="row place d_model",
    )
    right("embed", got, seed, 0, 0)
