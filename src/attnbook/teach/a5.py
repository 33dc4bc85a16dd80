"""Checks of assignment 5: what a text costs, how it is written on, and how the next token is drawn.

Each takes the student's function, tries it on numbers of a seed, and prints one line.
"""

from collections.abc import Callable
from math import log, log2
from typing import Any

import torch
from torch import Tensor

from attnbook import sampling
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
        },
    )
    right("bits_per_byte", got, seed)


def write_on(answer: Answer, seed: int = 0, vocab: int = 7, more: int = 5) -> None:
    """Greedy decoding: the likeliest token, again and again."""
    table = numbers(seed)(vocab, vocab, vocab)
    prompt = [seed % vocab, 2, 5]

    def scores(tokens: Any) -> Tensor:
        """Of the next token, by the last two."""
        a, b = (int(i) for i in torch.as_tensor(tokens).reshape(-1)[-2:])
        return table[a, b]

    def greedy(pick: Callable[[Tensor], Tensor], seen: int = 99) -> list[int]:
        tokens = [*prompt]
        for _ in range(more):
            read = tokens if seen > 1 else [tokens[0], tokens[-1]]
            tokens.append(int(pick(scores(read))))
        return tokens

    whole = greedy(torch.argmax)
    wrong = {
        "the prompt is missing: return it with what was written": whole[len(prompt) :],
        "the least likely token was taken": greedy(torch.argmin),
        "one token too few": whole[:-1],
        "one token too many": [*whole, int(scores(whole).argmax())],
        "the same token was written again and again: read what you wrote before":
            [*prompt, *[whole[len(prompt)]] * more],
        "only the last token was read; read all so far": greedy(torch.argmax, 1),
    }  # fmt: skip
    got = answer(scores, [*prompt], more)
    holds(
        isinstance(got, list) and all(isinstance(i, int) for i in got),
        "write_on must return a list of whole numbers",
    )
    cause = next((f": {words}" for words, other in wrong.items() if got == other), "")
    holds(got == whole, f"write_on gives {got}, {whole} is right{cause}")
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
        },
        axes="row token",
    )
    same(answer(logits, 1e-4), cold, "warm at t = 0.0001", axes="row token")
    right("warm", got[0], seed)


def keep_k(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (3, 7), k: int = 3) -> None:
    """Top-k: the rest can't be drawn any more."""
    logits = numbers(seed)(*sizes)
    order = logits.argsort(-1, descending=True)

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
    holds(all(isinstance(i, int) for i in found), "draw must return a whole number: the token's id")
    same(
        torch.tensor(found),
        want,
        "draw",
        {
            "the likeliest is always taken": shares.argmax().expand(len(u)),
            "it is one token too far": (want + 1).clamp(max=n - 1),
            "it is the token before": (want - 1).clamp(min=0),
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
            "the new value stands in front, the new key at the end":
                read(all_keys, torch.cat([v, values], 2)),
        },
        axes="batch head query d_head",
    )  # fmt: skip
    front = {
        "the new one stands in front; it belongs at the end": lambda: torch.cat([k, keys], 2),
        "the cache is as it was: the new one is missing": keys,
        "only the new one is kept": k,
    }
    same(found[1], all_keys, "the keys of attend_with_cache", front, axes="batch head key d_head")
    same(found[2], all_values, "the values of attend_with_cache", axes="batch head key d_head")
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
        },
    )  # fmt: skip
    right("praise", got, seed)
