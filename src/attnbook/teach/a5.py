"""Checks of assignment 5: what a text costs, how it is written on, and how the next token is drawn.

Each takes the student's function, tries it on numbers of a seed, and prints one line.
"""

from collections.abc import Callable
from math import log, log2
from typing import Any

import torch
from torch import Tensor

from attnbook import sampling
from attnbook.teach.a4 import whole
from attnbook.teach.judging import holds, number, numbers, right, same

Answer = Callable[..., Any]
HIDDEN = -torch.inf


def windows(answer: Answer, seed: int = 0, n: int = 30, length: int = 4) -> None:
    """Pieces of a long text, and the same pieces one place on."""
    ids = torch.arange(n) * 3 + seed + 5
    starts = torch.randperm(n - length, generator=torch.Generator().manual_seed(seed))[:3]
    reads = torch.stack([ids[s : s + length] for s in starts])
    answers = torch.stack([ids[s + 1 : s + length + 1] for s in starts])
    found = answer(ids, starts, length)
    holds(
        isinstance(found, tuple | list) and len(found) == 2,
        "windows must return two tensors: what is read, and the answers",
    )
    got = same(
        found[0],
        reads,
        "what windows reads",
        {
            "one token too many": torch.stack([ids[s : s + length + 1] for s in starts]),
            "it begins one place too late": answers,
            "the first tokens of the text are read, wherever a window starts":
                ids[:length].expand(len(starts), -1),
            "reads and answers are exchanged": answers,
            "windows are columns; they should be rows": reads.T,
            "these are places in the text; the tokens that stand there are asked for":
                starts[:, None] + torch.arange(length),
            "the windows follow each other; each begins where `starts` says":
                ids[: len(starts) * length].view(len(starts), length),
            "one token is missing": reads[:, :-1],
            "the windows are put in a row; each should be one": reads.flatten(),
        },
        axes="window token",
    )  # fmt: skip
    same(
        found[1],
        answers,
        "the answers of windows",
        {
            "the answers are what is read; they stand one place further": reads,
            "the answers are one place before; they stand one place further":
                torch.stack([ids[s - 1 : s + length - 1] if s else ids[:length] for s in starts]),
            "each window has one answer; every place should have one": answers[:, -1],
            "the answers are two places further": torch.stack(
                [torch.cat([ids, ids])[s + 2 : s + length + 2] for s in starts]
            ),
            "the last answer came round from the front": reads.roll(-1, 1),
            "1 is added to the tokens; it should be added to their places": reads + 1,
            "the answers are the window after this one; they stand one place further":
                torch.stack([torch.cat([ids, ids])[s + length : s + 2 * length] for s in starts]),
        },
        axes="window token",
    )  # fmt: skip
    right("windows", got[0].float(), seed)


def bits_per_byte(answer: Answer, seed: int = 0, text: str = "Où est la forêt?") -> None:
    """What a text costs, in a unit that does not depend on the tokens."""
    losses = numbers(seed)(9).abs() + 1
    raw, nats = len(text.encode()), losses.double().sum().item()
    got = number(
        answer(losses, text),
        nats / log(2) / raw,
        "bits_per_byte",
        {
            "these are nats: divide by ln 2": nats / raw,
            "divided by letters; some letters have two bytes": nats / log(2) / len(text),
            "divided by tokens, not by bytes": nats / log(2) / len(losses),
            "it is not divided: these are the bits of the whole text": nats / log(2),
            "multiplied by ln 2; divide by it": nats * log(2) / raw,
            "divided by 8: a byte of text is counted as eight": nats / log(2) / raw / 8,
            "divided by the words": nats / log(2) / len(text.split()),
            "divided by the tokens and by the bytes: is it a mean already?": nats
            / log(2)
            / raw
            / len(losses),
            "multiplied by 8: a byte of text is counted as an eighth": nats / log(2) / raw * 8,
            "these are digits: divide by ln 2, not by ln 10": nats / log(10) / raw,
            "the sign is wrong: losses are minus logarithms already": -nats / log(2) / raw,
            "a logarithm was taken of the losses; they are logarithms already": losses.double()
            .log2()
            .sum()
            .item()
            / raw,
            "these are bytes for a bit: divide the bits by the bytes": raw / (nats / log(2)),
            "these are the nats of the whole text": nats,
            "these are nats for a token": nats / len(losses),
            "divided by the bytes of UTF-16": nats / log(2) / len(text.encode("utf-16")),
        },
    )
    right("bits_per_byte", got, seed)


def write_on(answer: Answer, seed: int = 0, vocab: int = 7, more: int = 5) -> None:
    """Greedy decoding: the likeliest token, again and again."""
    table = numbers(seed)(vocab, vocab, vocab)
    prompt = [seed % vocab, 2, 5]

    def scores(tokens: Any) -> Tensor:
        """Of the next token, by the last two."""
        a, b = [0, 0, *torch.as_tensor(tokens).long().reshape(-1).tolist()][-2:]
        return table[a, b]

    def greedy(pick: Callable[[Tensor], Tensor], seen: int = 99) -> list[int]:
        tokens = [*prompt]
        for _ in range(more):
            read = tokens[-seen:]
            tokens.append(int(pick(scores(read))))
        return tokens

    full = greedy(torch.argmax)
    wrong = {
        "the prompt is missing: return it with what was written": full[len(prompt) :],
        "the least likely token was taken": greedy(torch.argmin),
        "one token too few": full[:-1],
        "one token too many": [*full, int(scores(full).argmax())],
        "the same token was written again and again: read what you wrote before":
            [*prompt, *[full[len(prompt)]] * more],
        "only the last token was read; read all so far": greedy(torch.argmax, 1),
        "n counts the new tokens, not all": full[:more],
        "all were chosen at once; ask again after each new token":
            prompt + scores(prompt).topk(more).indices.tolist(),
    }  # fmt: skip
    got = answer(scores, [*prompt], more)
    holds(
        isinstance(got, list),
        "write_on must return a list of whole numbers"
        + (": a tensor has `.tolist()`" if isinstance(got, Tensor) else ""),
    )
    got = [whole(i, "an id of write_on") for i in got]
    cause = next((f": {words}" for words, other in wrong.items() if got == other), "")
    holds(got == full, f"write_on gives {got}, {full} is right{cause}")
    right("write_on", torch.tensor(got).float(), seed)


def warm(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 6)) -> None:
    """Probabilities at a temperature; at 0 the likeliest is certain."""
    logits = 2 * numbers(seed)(*sizes)
    t = 0.4 + seed % 3
    p = logits.softmax(-1)
    got = same(
        answer(logits, t),
        (logits / t).softmax(-1),
        "warm",
        {
            "it is multiplied by t; it should be divided": (logits * t).softmax(-1),
            "probabilities were divided; the logits should be": p / t,
            "the softmax was taken twice: t belongs on the logits": (p / t).softmax(-1),
            "t is not used": p,
            "it runs over the rows; each row is a distribution": (logits / t).softmax(0),
            "these are logits; take the softmax": logits / t,
            "t + 1 divides; it should be t": (logits / (t + 1)).softmax(-1),
            "these are logarithms of probabilities": (logits / t).log_softmax(-1),
            "probabilities have the power 1 / t, but do not sum to 1": p ** (1 / t),
            "the root of t divides; it should be t": (logits / t**0.5).softmax(-1),
        },
        axes="row token",
    )
    cold = torch.nn.functional.one_hot(logits.argmax(-1), sizes[-1]).float()
    same(
        answer(logits, 0),
        cold,
        "warm at t = 0",
        {
            "0 divided by 0: treat t = 0 apart": torch.full(sizes, torch.nan),
            "at 0 the likeliest should be certain, not all alike": torch.full(sizes, 1 / sizes[-1]),
            "at 0 it should be as cold as can be, not as it was": p,
            "at 0 the likeliest should have probability 1": torch.zeros(sizes),
            "each row has a likeliest token; here the whole batch has one": (
                logits == logits.max()
            ).float(),
            "these are the likeliest ids; probabilities are asked for": logits.argmax(-1),
        },
        axes="row token",
    )
    same(answer(logits, 1e-4), cold, "warm at t = 0.0001", axes="row token")
    right("warm", got[0], seed)


def keep_k(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 7), k: int = 3) -> None:
    """Top-k: the rest can't be drawn any more."""
    logits = numbers(seed)(*sizes)
    order = logits.argsort(-1, descending=True)
    best = logits.topk(k).values

    def kept(which: Tensor) -> Tensor:
        return torch.full_like(logits, HIDDEN).scatter(-1, which, logits.gather(-1, which))

    got = same(
        answer(logits, k),
        kept(order[:, :k]),
        "keep_k",
        {
            "the least likely are kept": kept(order[:, -k:]),
            "one too few is kept": kept(order[:, : k - 1]),
            "one too many is kept": kept(order[:, : k + 1]),
            "what is left out gets 0, which is a logit like others: it needs minus infinity":
                kept(order[:, :k]).masked_fill(kept(order[:, :k]).isinf(), 0),
            "the first k tokens are kept, not the likeliest":
                kept(torch.arange(k).expand(sizes[0], -1)),
            "the likeliest are left out; all others should be": kept(order[:, k:]),
            "only the likeliest one is kept": kept(order[:, :1]),
            "the rows share one limit; each has its own":
                logits.masked_fill(logits < best[:, -1:].min(), HIDDEN),
            "the k likeliest of the whole batch are kept; each row has its own":
                logits.masked_fill(logits < logits.flatten().topk(k).values[-1], HIDDEN),
            "the k likeliest rows of each token are kept; tokens are columns":
                logits.masked_fill(logits < logits.topk(min(k, sizes[0]), 0).values[-1:], HIDDEN),
            "a large negative number stands where minus infinity should":
                logits.masked_fill(logits < best[:, -1:], -1e9),
            "tokens are sorted; each should keep its place":
                torch.cat([best, torch.full_like(logits[:, k:], HIDDEN)], -1),
            "nothing is left out": logits,
            "these are ids; logits are asked for": order[:, :k],
            "these are True and False; logits are asked for": logits >= best[:, -1:],
            "1 stands where the logit should":
                torch.where(logits >= best[:, -1:], 1.0, HIDDEN),
            "these are probabilities; logits are asked for": kept(order[:, :k]).softmax(-1),
            "only the k numbers are returned; all tokens should keep their place":
                logits.gather(-1, order[:, :k]),
        },
        axes="row token",
    )  # fmt: skip
    right("keep_k", got[0].clamp(min=-99), seed)


def keep_p(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (4, 9), p: float = 0.7) -> None:
    """Top-p: the fewest tokens that have the probability p together."""
    logits = 2 * numbers(seed)(*sizes)
    want = sampling.top_p(logits, p)
    shares, order = logits.softmax(-1).sort(-1, descending=True)
    sums = shares.cumsum(-1)

    def kept(left: Tensor) -> Tensor:
        keep = torch.zeros_like(left).scatter(-1, order, left)
        return logits.masked_fill(~keep, HIDDEN)

    up, rising = logits.softmax(-1).sort(-1)
    tail = torch.zeros_like(up, dtype=torch.bool).scatter(-1, rising, up.cumsum(-1) <= p)

    def kept_up(left: Tensor) -> Tensor:
        return logits.masked_fill(~torch.zeros_like(left).scatter(-1, rising, left), HIDDEN)

    got = same(
        answer(logits, p),
        want,
        "keep_p",
        {
            "the token that passes p is left out: those that stay must reach p": kept(sums <= p),
            "the unlikely tokens are kept": logits.masked_fill(~tail, HIDDEN),
            "tokens are kept whose own probability is above p":
                logits.masked_fill(logits.softmax(-1) < p, HIDDEN),
            "tokens are kept whose own probability is above 1 - p":
                logits.masked_fill(logits.softmax(-1) < 1 - p, HIDDEN),
            "the sum runs in the order of the ids; begin with the likeliest":
                logits.masked_fill(logits.softmax(-1).cumsum(-1) - logits.softmax(-1) >= p, HIDDEN),
            "the mask was not brought back to the order of the ids":
                logits.masked_fill(~(sums - shares < p), HIDDEN),
            "one token too many stays":
                kept(torch.cat([torch.ones(sizes[0], 1, dtype=torch.bool),
                                (sums - shares < p)[:, :-1]], -1)),
            "what is left out gets 0; it needs minus infinity":
                want.masked_fill(want.isinf(), 0),
            "a large negative number stands where minus infinity should":
                want.masked_fill(want.isinf(), -1e9),
            "these are probabilities; logits are asked for": want.softmax(-1),
            "these are probabilities; logits are asked for ": logits.softmax(-1).where(
                ~want.isinf(), torch.tensor(HIDDEN)
            ),
            "what should stay is left out": kept(sums > p),
            "what should stay is left out ": kept(sums >= p),
            "what should stay is left out  ": logits.masked_fill(~want.isinf(), HIDDEN),
            "the unlikely tokens are kept; begin with the likeliest":
                kept_up(up.cumsum(-1) - up < p),
            "the tokens that reach 1 - p are kept; it should be p": kept(sums - shares < 1 - p),
            "the token that passes p is left out: those that stay must reach p ":
                kept((sums < p) | (torch.arange(sizes[1]) == 0)),
            "the limit is a share of the largest probability (min-p); add probabilities up":
                logits.masked_fill(logits.softmax(-1) < p * shares[:, :1], HIDDEN),
            "logits are added up; take the softmax first":
                kept(logits.sort(-1, descending=True).values.cumsum(-1) <= p),
            "tokens are sorted; each should keep its place":
                logits.gather(-1, order).masked_fill(sums - shares >= p, HIDDEN),
            "the mask was brought back the wrong way: use scatter, or gather with order.argsort()":
                logits.masked_fill(~(sums - shares < p).gather(-1, order), HIDDEN),
            "nothing is left out": logits,
        },
        axes="row token",
    )  # fmt: skip
    right("keep_p", got[0].clamp(min=-99), seed)


def draw(answer: Answer, seed: int = 0, n: int = 6) -> None:
    """The token on whose piece of 0 .. 1 a number falls."""
    shares = (2 * numbers(seed)(n)).softmax(-1).double()
    sums = shares.cumsum(-1)
    u = [*(sums[:-1] - 0.3 * shares[:-1]).tolist(), *(sums[:-1] + 0.3 * shares[1:]).tolist(), 0.0]
    want = torch.tensor([int((sums <= x).sum()) for x in u])
    best, ranks = shares.sort(descending=True)
    by_rank = torch.tensor([int(ranks[int((best.cumsum(-1) <= x).sum())]) for x in u])
    back = shares.flip(0).cumsum(-1)
    backwards = torch.tensor([n - 1 - min(int((back <= x).sum()), n - 1) for x in u])
    found = [answer(shares, x) for x in u]
    found = [whole(i, "the id that draw returns") for i in found]
    same(
        torch.tensor(found),
        want,
        "draw",
        {
            "the likeliest is always taken": shares.argmax().expand(len(u)),
            "it is one token too far": (want + 1).clamp(max=n - 1),
            "it is the token before": (want - 1).clamp(min=0),
            "it is one token too far ": want + 1,
            "it is the token before ": want - 1,
            "it counts the borders above u; count those at or below it":
                torch.tensor([int((sums > x).sum()) for x in u]),
            "it is a rank among the sorted probabilities, not an id":
                torch.tensor([int((best.cumsum(-1) <= x).sum()) for x in u]),
            "a softmax was taken of what are probabilities already":
                torch.tensor([int((shares.softmax(-1).cumsum(-1) <= x).sum()) for x in u]),
            "probabilities are compared with u; their sums should be":
                torch.tensor([int((shares <= x).sum()) for x in u]),
            "it is the border next to u; take the piece on which u falls":
                torch.tensor([int((sums - x).abs().argmin()) for x in u]),
            "pieces lie in the order of the probabilities; take that of the ids": by_rank,
            "pieces begin at the last token; begin at the first": backwards,
            "u is counted in tokens: all tokens are as likely":
                torch.tensor([int(x * n) for x in u]),
            "it is the token whose probability is next to u":
                torch.tensor([int((shares - x).abs().argmin()) for x in u]),
        },
        axes="draw",
    )  # fmt: skip
    right("draw", torch.tensor(found).float(), seed)


def attend_with_cache(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 5, 4)) -> None:
    """One step of a decoder that remembers the keys and values of all places before."""
    batch, heads, past, d = sizes
    some = numbers(seed)
    q, k, v = (some(batch, heads, 1, d) for _ in range(3))
    keys, values = some(batch, heads, past, d), some(batch, heads, past, d)
    all_keys, all_values = torch.cat([keys, k], 2), torch.cat([values, v], 2)

    def read(keys: Tensor, values: Tensor, scale: float = d**0.5) -> Tensor:
        return (q @ keys.mT / scale).softmax(-1) @ values

    found = answer(q, k, v, keys, values)
    holds(
        isinstance(found, tuple | list) and len(found) == 3,
        "attend_with_cache must return three tensors: what was read, all keys, all values",
    )
    got = same(
        found[0],
        read(all_keys, all_values),
        "what attend_with_cache reads",
        {
            "the new place does not see itself: its key and value belong to the others":
                read(keys, values),
            "it sees only itself: the cache is not used": v,
            "scores are not divided by the root of d": read(all_keys, all_values, 1.0),
            "scores are divided by d, not by its root": read(all_keys, all_values, float(d)),
            "keys were taken for values": read(all_keys, all_keys),
            "the softmax is missing": (q @ all_keys.mT / d**0.5) @ all_values,
            "the softmax runs over the queries; it should run over all places":
                all_values.sum(2, keepdim=True),
            "scores are divided by the root of d_model, not of d_head":
                read(all_keys, all_values, (heads * d) ** 0.5),
            "scores are divided by the root of the number of places, not of d_head":
                read(all_keys, all_values, (past + 1) ** 0.5),
            "the new key stands in front, the new value at the end":
                read(torch.cat([k, keys], 2), all_values),
            "the new key was put to the values":
                read(all_keys, torch.cat([values, k], 2)),
            "these are the weights; multiply them by the values":
                (q @ all_keys.mT / d**0.5).softmax(-1),
            "the axis of the new place is missing": read(all_keys, all_values)[:, :, 0],
            "the new value stands in front, the new key at the end":
                read(all_keys, torch.cat([v, values], 2)),
        },
        axes="batch head query d_head",
    )  # fmt: skip
    front = {
        "the new one stands in front; it belongs at the end": lambda: torch.cat([k, keys], 2),
        "the cache is as it was: the new one is missing": keys,
        "only the new one is kept": k,
        "keys and values are exchanged: the keys come first": all_values,
    }
    same(found[1], all_keys, "the keys of attend_with_cache", front, axes="batch head key d_head")
    front = {
        "the new one stands in front; it belongs at the end": torch.cat([v, values], 2),
        "the cache is as it was: the new one is missing": values,
        "only the new one is kept": v,
        "the new key was put to the values": torch.cat([values, k], 2),
        "these are the keys": all_keys,
    }
    same(
        found[2], all_values, "the values of attend_with_cache", front, axes="batch head key d_head"
    )
    right("attend_with_cache", got[0, 0, 0], seed)


def praise(answer: Answer, seed: int = 0, vocab: int = 11) -> None:
    """A task as the next token: the share of one word between two."""
    logits = 2 * numbers(seed)(vocab)
    good, bad = 3, 7 + seed % 3
    p = logits.double().softmax(-1)
    want = (p[good] / (p[good] + p[bad])).item()
    got = number(
        answer(logits, good, bad),
        want,
        "praise",
        {
            "this is the share among all tokens; compare the two words alone": p[good].item(),
            "the two words are exchanged": 1 - want,
            "this is a difference of probabilities": (p[good] - p[bad]).item(),
            "this is a ratio; divide by the sum of both": (p[good] / p[bad]).item(),
            "logits were divided; take probabilities first":
                (logits[good] / (logits[good] + logits[bad])).item(),
            "this is the difference of the logits": (logits[good] - logits[bad]).item(),
            "it is yes or no; a share is asked for": float(want > 0.5),
            "this is a logarithm": log2(want),
            "this is a logarithm ": log(want),
            "this is a logarithm, among all tokens": log(p[good].item()),
            "this is the probability of both words together": (p[good] + p[bad]).item(),
            "this is a logit; a probability is asked for": logits[good].item(),
            "the other word is not asked: this is a sigmoid of one logit":
                logits[good].sigmoid().item(),
            "the softmax was taken twice": (p[good] - p[bad]).sigmoid().item(),
            "sigmoids were divided; take a softmax of the two logits":
                (logits[good].sigmoid() / logits[[good, bad]].sigmoid().sum()).item(),
            "this is an id; a probability is asked for": float(good if want > 0.5 else bad),
            "this is 1 minus the other word's share among all tokens": 1 - p[bad].item(),
        },
    )  # fmt: skip
    right("praise", got, seed)
