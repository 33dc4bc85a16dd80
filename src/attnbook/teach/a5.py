"""Checks of assignment 5: training, the code length of a text, generation, and sampling.

Each check calls the student's function with seeded random tensors and prints one line.
"""

from collections.abc import Callable
from math import log, log2
from typing import Any

import torch
from torch import Tensor

from attnbook.teach.a1_step import OWN
from attnbook.teach.a4_heads import whole_number
from attnbook.teach.a5_draws import draw, keep_k, keep_p, warm
from attnbook.teach.a5_training import fit
from attnbook.teach.asking import check
from attnbook.teach.judging import constant, holds, number, numbers, parts, right, same

__all__ = [
    "attend_with_cache",
    "bits_per_byte",
    "draw",
    "fit",
    "keep_k",
    "keep_p",
    "praise",
    "warm",
    "windows",
    "write_on",
]

Answer = Callable[..., Any]
HIDDEN = -torch.inf
LONGEST = 1000  # the most tokens that an answer may pass to the model at once


@check({"n": 12, "length": 4}, {"n": 9, "length": 1})
def windows(answer: Answer, seed: int = 0, n: int = 30, length: int = 4) -> None:
    """Windows of a long text, and the same windows shifted by one."""
    ids = torch.arange(n) * 3 + seed + 5
    starts = torch.randperm(n - length, generator=torch.Generator().manual_seed(seed))[:3]
    if seed:  # tokens follow no rule, and windows reach both ends
        ids = ids[torch.randperm(n, generator=torch.Generator().manual_seed(seed))]
        starts[:2] = torch.tensor([n - length - 1, 0])
    reads = torch.stack([ids[s : s + length] for s in starts])
    answers = torch.stack([ids[s + 1 : s + length + 1] for s in starts])
    found = answer(ids, starts, length)
    parts(found, 2, "windows must return two tensors: what is read, and the answers")
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
    right("windows", got.float(), seed, 0)


@check({"text": "a"}, {"text": " é\n "})
def bits_per_byte(answer: Answer, seed: int = 0, text: str = "Où est la forêt?") -> None:
    """The code length of a text, in a unit that does not depend on the tokenizer."""
    losses = numbers(seed)(9 - seed % 5).abs() + 1
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


@check(
    {"vocab": 3, "more": 9}, {"vocab": 4, "more": 1}, {"vocab": 5, "more": 0}, leaves={1: "prompt"}
)
def write_on(answer: Answer, seed: int = 0, vocab: int = 7, more: int = 5) -> None:
    """Greedy decoding: the likeliest token, again and again."""
    table = numbers(seed)(vocab, vocab, vocab)
    prompt = [seed % vocab, *constant(seed, [4, 5], [1], [2, 0, 1])]

    def scores(tokens: Any) -> Tensor:
        """Scores of the next token, given all tokens so far."""
        ids = torch.as_tensor(tokens)
        if ids.numel() > LONGEST:
            raise ValueError(f"tokens must be at most {LONGEST}, got {ids.numel()}")
        *before, last = ids.long().reshape(-1).tolist()
        return table[sum((i + 1) * token for i, token in enumerate(before)) % vocab, last]

    def greedy(pick: Callable[[Tensor], Tensor], seen: int = 99) -> list[int]:
        tokens = [*prompt]
        for _ in range(more):
            read = tokens[-seen:]
            tokens.append(int(pick(scores(read))))
        return tokens

    full = greedy(torch.argmax)
    wrong = {
        "it stops at token 0, which is one like others":
            full[: full.index(0, len(prompt)) + 1] if 0 in full[len(prompt):] else [],
        "the prompt is missing: return it with what was written": full[len(prompt) :],
        "the least likely token was taken": greedy(torch.argmin),
        "one token too few": full[:-1],
        "one token too many": [*full, int(scores(full).argmax())],
        "the same token was written again and again: read what you wrote before":
            [*prompt, *[int(scores(prompt).argmax())] * more],
        "only the last token was read; read all so far": greedy(torch.argmax, 1),
        "n counts the new tokens, not all": full[:more],
        "all were chosen at once; ask again after each new token":
            prompt + scores(prompt).topk(min(more, vocab)).indices.tolist(),
        "only the last two tokens were read; read all so far": greedy(torch.argmax, 2),
    }  # fmt: skip
    got = answer(scores, [*prompt], more)
    holds(
        isinstance(got, list),
        "write_on must return a list of whole numbers"
        + (": a tensor has `.tolist()`" if isinstance(got, Tensor) else ""),
    )
    got = [whole_number(i, "an id of write_on") for i in got]
    cause = next((f": {words}" for words, other in wrong.items() if got == other), "")
    holds(got == full, f"write_on gives {got}, {full} is right{cause}")
    right("write_on", torch.tensor(got).float(), seed)


@check({"sizes": (1, 1, 0, 3)}, {"sizes": (2, 1, 1, 1)}, own=OWN)
def attend_with_cache(answer: Answer, seed: int = 0, sizes: tuple[int, ...] = (2, 3, 5, 4)) -> None:
    """One decoder step with a KV cache."""
    batch, heads, past, d = sizes
    some = numbers(seed)
    q, k, v = (some(batch, heads, 1, d) for _ in range(3))
    keys, values = some(batch, heads, past, d), some(batch, heads, past, d)
    all_keys, all_values = torch.cat([keys, k], 2), torch.cat([values, v], 2)

    def read(keys: Tensor, values: Tensor, scale: float = d**0.5) -> Tensor:
        return (q @ keys.mT / scale).softmax(-1) @ values

    found = answer(q, k, v, keys, values)
    parts(
        found, 3, "attend_with_cache must return three tensors: what was read, all keys, all values"
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
    right("attend_with_cache", got, seed, 0, 0, 0)


@check({"vocab": 9}, {"vocab": 8}, {"vocab": 7})
def praise(answer: Answer, seed: int = 0, vocab: int = 11) -> None:
    """A task as next-token prediction: the relative probability of one of two words."""
    logits = 2 * numbers(seed)(vocab)
    good, bad = constant(seed, (3, 7), (vocab - 1, 2), (0, vocab - 2), (5, 1))
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
