"""Sampling: filters on the scores of the next token, and texts drawn from what they leave.

Every filter takes logits u `[*row vocab]` and gives logits of this shape, in float32 at least: a
token that it leaves out has -inf, and softmax shares its probability among the others. None changes
its argument. Tokens that are alike stay or go together. Logits with NaN or +inf, or a row without
one finite number, are a `ValueError`.

Probabilities are added in float64, the likeliest first, by filters and by the draw, here and in
the page (`web/engine/sampling.js`): the same logits and the same number give the same token.
Apple's GPU has no float64: there, move logits or the model to the processor first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Integral
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnbook.checks import check_ids, check_mask, check_range, check_shapes, check_whole
from attnbook.model.decoding import State, Step, in_inference_mode, select_rows
from attnbook.text.vocabulary import Vocabulary

LOW = 2**32 - 1  # the lower bits of a number
# A number, a generator, or one number for each row.
Seed = int | torch.Generator | Sequence[int] | Int[Tensor, " row"]
# Sequences of token ids that end a row, or a function that says whether what it has is enough.
Stop = Sequence[Sequence[int]] | Callable[[list[int]], bool]


def _checked(logits: Tensor) -> Tensor:
    check_shapes(logits=(logits, "... vocab"))
    if not logits.shape[-1]:
        raise ValueError(f"logits must hold at least one token, got {list(logits.shape)}")
    highest = logits.amax(-1)
    if logits.is_floating_point() and highest.isfinite().all():  # NaN is higher than all
        return logits if logits.dtype == torch.float64 else logits.float()
    came = logits.dtype if highest.isfinite().all() else highest[~highest.isfinite()][0].item()
    raise ValueError(f"logits must be floats, the highest of each row finite, got {came}")


def temperature(logits: Float[Tensor, "*row vocab"], t: float | int) -> Float[Tensor, "*row vocab"]:
    """Sharper below 1, flatter above.

        P(token) = softmax(u / t)

    The highest of u is taken away first, which changes no probability: nothing overflows. At t = 0
    the likeliest token stays alone; of several that are alike the first, as `argmax` chooses.

    Args:
        logits: `[*row vocab]` u.
        t: the temperature, 0 or more.

    Source: Ackley et al. 1985.

    In other libraries: `TemperatureLogitsWarper` of `transformers`, which has no 0.
    """
    check_range(0, inf, t=t)
    logits = _checked(logits)
    if t == 0:
        best = logits.argmax(-1, keepdim=True)
        return torch.full_like(logits, -inf).scatter(-1, best, 0.0)
    below = logits - logits.amax(-1, keepdim=True)
    return below / min(max(t, 1e-30), 1e30)  # further out a float is 0 or inf


def top_k(logits: Float[Tensor, "*row vocab"], k: int) -> Float[Tensor, "*row vocab"]:
    """The k likeliest tokens, and all tokens as likely as the last of them.

    Args:
        logits: `[*row vocab]`.
        k: 1 or more; above the vocabulary, everything stays.

    Source: Fan et al. 2018.

    In other libraries: `TopKLogitsWarper` of `transformers`.
    """
    check_whole(1, k=k)
    logits = _checked(logits)
    last = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < last, -inf)


def top_p(logits: Float[Tensor, "*row vocab"], p: float | int) -> Float[Tensor, "*row vocab"]:
    """The nucleus: the fewest tokens with a sum of p, and all as likely as the last of them.

    Args:
        logits: `[*row vocab]`.
        p: 0 (the likeliest alone) .. 1 (everything).

    Source: Holtzman et al. 2020, section 3.1.

    In other libraries: `TopPLogitsWarper` of `transformers`. Of tokens that are alike at the edge
    it takes any; where the sum is p but for rounding, either may have one token more.
    """
    check_range(0, 1, p=p)
    logits = _checked(logits)
    if p == 1:  # a rounded sum may be 1 before its end
        return logits.clone()
    widths = _widths(logits)
    whole = widths.sum(-1, keepdim=True)
    others = widths < (1 - p) / widths.shape[-1] * whole  # they have less than 1 - p together
    counts = (~others).sum(-1)
    enough = int(counts.max().clamp(min=1)) if counts.numel() else 1  # of no row nothing is asked
    ranked, order = logits.topk(enough)
    last = _reaching(ranked, widths.gather(-1, order), p * whole)
    return logits.masked_fill(logits < last, -inf)


def _widths(logits: Tensor) -> Tensor:
    """exp(u - max u) in float64, the likeliest 1: of 50,000 tokens a sum in 32 bits is 1e-5 off."""
    logits = logits.double()
    return (logits - logits.amax(-1, keepdim=True)).exp_()


def min_p(logits: Float[Tensor, "*row vocab"], p: float | int) -> Float[Tensor, "*row vocab"]:
    """The tokens that have at least p times the probability of the likeliest.

    Args:
        logits: `[*row vocab]`.
        p: 0 (everything) .. 1 (the likeliest alone).

    Source: Nguyen et al. 2025.

    In other libraries: `MinPLogitsWarper` of `transformers`.
    """
    check_range(0, 1, p=p)
    logits = _checked(logits)
    return logits.masked_fill(_widths(logits) < p, -inf)


def typical(logits: Float[Tensor, "*row vocab"], p: float | int) -> Float[Tensor, "*row vocab"]:
    """The tokens whose surprise is nearest to the expected one, as few as have p together.

        distance = |-log P(token) - H|,   H = -sum P log P

    with H the entropy of the row. What is as near as the last of them stays, too.

    Args:
        logits: `[*row vocab]`.
        p: 0 (the most typical alone) .. 1 (everything).

    Source: Meister et al. 2023.

    In other libraries: `TypicalLogitsWarper` of `transformers`.
    """
    check_range(0, 1, p=p)
    logits = _checked(logits)
    if p == 1:
        return logits.clone()
    surprise = -logits.double().log_softmax(-1)
    probs = (-surprise).exp()
    entropy = (probs * surprise).nansum(-1, keepdim=True)
    distance = (surprise - entropy).abs()
    near, order = distance.sort(-1)
    last = _reaching(near, probs.gather(-1, order), p)
    return logits.masked_fill(distance > last, -inf)


def _reaching(ranked: Tensor, widths: Tensor, p: Tensor | float | int) -> Tensor:
    """The ranked token with which the sum of widths reaches p."""
    before = (widths.cumsum(-1) < p).sum(-1, keepdim=True)
    return ranked.gather(-1, before.clamp(max=ranked.shape[-1] - 1))


def repetition_penalty(
    logits: Float[Tensor, "row vocab"],
    tokens: Int[Tensor, "row token"],
    penalty: float | int,
    mask: Bool[Tensor, "row token"] | None = None,
) -> Float[Tensor, "row vocab"]:
    """Tokens that were read become less likely: a score above 0 is divided, one below multiplied.

    Args:
        logits: `[row vocab]`.
        tokens: `[row token]` what was read, prompt included.
        penalty: above 0; 1 changes nothing, below 1 repetition is rewarded.
        mask: `[row token]` True at words: padding has no penalty.

    Source: Keskar et al. 2019, section 4.1, who divide scores below 0, too.

    In other libraries: `RepetitionPenaltyLogitsProcessor` of `transformers`, which takes padding in
    front of a prompt for a token that was read.
    """
    if not 0 < penalty < inf:
        raise ValueError(f"penalty must be finite, above 0, got {penalty}")
    logits = _checked(logits)
    mask = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
    rows, vocab = check_shapes(logits=(logits, "row vocab")).values()
    check_mask(mask, tokens=(tokens, "row token"), mask=(mask, "row token"), row=rows)
    if tokens.numel():
        check_ids("tokens", tokens, vocab, "row token")
    seen = torch.zeros_like(logits).scatter_add(-1, tokens, mask.to(logits)) > 0
    return logits.where(~seen, torch.where(logits < 0, logits * penalty, logits / penalty))


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen: filters one after another, in the order of `transformers`.

    First the repetition penalty, then temperature, top-k, top-p, min-p, typical. The defaults
    change nothing: tokens come from the model's own distribution. `Sampling(temperature=0)` is
    greedy.

    Args:
        temperature, top_p, min_p, typical, repetition_penalty: as for the functions of these names.
        top_k: 0 is off.

    Raises:
        ValueError: if one is out of its range.

    In other libraries: `GenerationConfig` of `transformers`, where top_k is 50 unless set.
    """

    temperature: float | int = 1.0
    top_k: int = 0
    top_p: float | int = 1.0
    min_p: float | int = 0.0
    typical: float | int = 1.0
    repetition_penalty: float | int = 1.0

    def __post_init__(self) -> None:
        check_range(0, inf, temperature=self.temperature)
        check_whole(0, top_k=self.top_k)
        check_range(0, 1, top_p=self.top_p, min_p=self.min_p, typical=self.typical)
        if not 0 < self.repetition_penalty < inf:
            came = self.repetition_penalty
            raise ValueError(f"repetition_penalty must be finite, above 0, got {came}")

    def __call__(
        self,
        logits: Float[Tensor, "row vocab"],
        tokens: Int[Tensor, "row token"],
        mask: Bool[Tensor, "row token"] | None = None,
    ) -> Float[Tensor, "row vocab"]:
        """What the filters leave. `tokens` and `mask` as for `repetition_penalty`."""
        if self.repetition_penalty != 1:
            logits = repetition_penalty(logits, tokens, self.repetition_penalty, mask)
        if self.temperature != 1:
            logits = temperature(logits, self.temperature)
        if self.top_k:
            logits = top_k(logits, self.top_k)
        if self.top_p < 1:
            logits = top_p(logits, self.top_p)
        if self.min_p > 0:
            logits = min_p(logits, self.min_p)
        if self.typical < 1:
            logits = typical(logits, self.typical)
        return logits


PLAIN = Sampling()
GREEDY = Sampling(temperature=0)


def draw(logits: Float[Tensor, "row vocab"], numbers: Float[Tensor, " row"]) -> Int[Tensor, " row"]:
    """The token on which a number falls where all lie side by side, each as wide as it is likely.

        token = the first whose sum of exp(u - max u), from the likeliest to it, is above number * S

    with S the sum of all. The likeliest lies first; of tokens that are alike the one with the
    lowest id. Sums are in float64: two machines, or this and the page, differ by its rounding
    alone.

    Args:
        logits: `[row vocab]` u; a token with -inf has no width.
        numbers: `[row]` from 0 up to 1, without 1.

    Raises:
        ValueError: if a number is outside, or there is not one for each row.
    """
    check_shapes(logits=(logits, "row vocab"), numbers=(numbers, "row"))
    if strange := [x for x in numbers.tolist() if not 0 <= x < 1]:
        raise ValueError(f"numbers must be from 0 up to 1, without 1, got {strange[0]}")
    scores = _checked(logits).cpu().double()
    rows, size = scores.shape
    places = numbers.cpu().double()[:, None] * _widths(scores).sum(-1, keepdim=True)
    drawn, waiting, n = torch.empty(rows, dtype=torch.long), torch.arange(rows), 64
    while len(waiting):  # most numbers fall on one of the likeliest: the others are not sorted
        mine = scores[waiting]
        ranked = mine.topk(min(n, size)).values
        widths = (ranked - ranked[:, :1]).exp()
        rank = (widths.cumsum(-1) <= places[waiting]).sum(-1, keepdim=True)
        far = rank[:, 0] == n
        rank = rank.minimum((widths > 0).sum(-1, keepdim=True) - 1)  # a sum may round up to all
        score = ranked.gather(-1, rank)
        alike = (rank - (ranked > score).sum(-1, keepdim=True))[:, 0]  # of lower ids
        row, token = (mine == score).nonzero(as_tuple=True)
        drawn[waiting] = token[torch.searchsorted(row, torch.arange(len(mine))) + alike]
        waiting, n = waiting[far & (n < size)], 16 * n
    return drawn.to(logits.device)


def uniform(seeds: Int[Tensor, " row"], n: int) -> Float[Tensor, " row"]:
    """The n-th number of each seed, from 0 up to 1, the same on every machine and in the page.

        state = seed + (n + 1) * 0x6D2B79F5
        mixed = (state ^ state >> 15) * (state | 1)
        mixed = mixed ^ mixed + (mixed ^ mixed >> 7) * (mixed | 61)
        number = (mixed ^ mixed >> 14) / 2^32

    with whole numbers of 32 bits: what is above is left out. `uniform` in `random.js` is the same.

    Source: the generator mulberry32, a counter whose bits are mixed.
    """
    state = seeds + (n + 1) * 0x6D2B79F5 & LOW
    mixed = (state ^ state >> 15) * (1 | state) & LOW
    mixed = mixed + (mixed ^ mixed >> 7) * (61 | mixed) & LOW ^ mixed
    return (mixed ^ mixed >> 14).double() / 2**32


def row_seeds(seed: Seed, rows: int) -> Int[Tensor, " row"]:
    """A seed for each row, so that what a row draws does not depend on the others.

    `row_seeds(7, 5)[2:3]` makes a row alone draw what row 2 of five draws with the seed 7.

    Args:
        seed: a number or a generator, which gives each row another seed; or one seed for each row.
        rows: how many.

    Raises:
        ValueError: if a seed is no whole number of at least 0, or their number is not `rows`.
    """
    if isinstance(seed, Tensor | Sequence) and not isinstance(seed, str):
        seeds = torch.as_tensor(seed).cpu()
        check_shapes(seed=(seeds, "row"), row=rows)
        for each in seeds.tolist():
            check_whole(0, seed=each)
        return seeds & LOW
    if not isinstance(seed, torch.Generator):
        check_whole(0, seed=seed)
        seed = torch.Generator().manual_seed(int(seed))
    return torch.randint(LOW + 1, (rows,), generator=seed, device=seed.device).cpu()


class Samples(NamedTuple):
    """What was drawn.

    Attributes:
        tokens: `[row token]` what follows the beginning, up to and with what ended it, padding
            after it.
        logp: `[row token]` the log-probability of each token by the model alone, without filters,
            in nats; 0 at the padding.
        drawn_logp: `[row token]` the same by what the filters left, from which it was drawn.

    In other libraries: `sequences`, and what `compute_transition_scores` gives, in `transformers`.
    """

    tokens: Int[Tensor, "row token"]
    logp: Float[Tensor, "row token"]
    drawn_logp: Float[Tensor, "row token"]


@in_inference_mode
def sample(
    step: Step,
    state: State,
    start: Int[Tensor, "batch token"],
    max_len: int,
    vocab: Vocabulary,
    *,
    n: int = 1,
    mask: Bool[Tensor, "batch token"] | None = None,
    how: Sampling | Sequence[Sampling] = PLAIN,
    seed: Seed = 0,
    stop: Stop = (),
) -> Samples:
    """Draw the next token, read it, draw the next, and so on; each row until it has ended.

        token_t ~ softmax(how(u_t))

    with u_t `[row vocab]` the scores of a model that has read all tokens before t. Padding and the
    start token are never drawn, as in `beam_search`. One pass over the beginning serves all its
    samples. A row draws the same in any batch, but for the rounding of its scores.

    Args:
        step: `step(tokens, state) -> logits, state`, as for `beam_search`; where there is a mask,
            `start` is read by `step(start, state, mask)`.
        state: what `step` begins with, one row a sentence.
        start: `[batch token]` how the sentences begin: the start token, or a prompt.
        max_len: stop after this many tokens; a sentence that has no end by then stays without.
        vocab: says which tokens are padding, start and end.
        n: samples of each beginning. They stand side by side: there are batch * n rows.
        mask: `[batch token]` True at words.
        how: filters and temperature, for all rows, or one for each.
        seed: decides the numbers that choose, as for `row_seeds`.
        stop: sequences of token ids that end a row, as the end token does; or a function that says
            whether the ids written so far are enough. Both see what was written alone.

    Raises:
        ValueError: if `start` holds no token ids, max_len or n is below 1, `how` has not one for
            each row, a stop is empty, or the scores are not numbers.

    In other libraries: `model.generate(do_sample=True)` of `transformers`.
    """
    check_whole(1, max_len=max_len, n=n)
    check_ids("start", start, len(vocab))
    seeds = row_seeds(seed, n * len(start))
    choose = how if isinstance(how, Sampling) else _by_row(how, n * len(start))
    enough = stop if callable(stop) else _ends_in(stop, len(vocab))
    barred = torch.tensor(vocab.barred, device=start.device).long()
    logits, state = step(start, state) if mask is None else step(start, state, mask)  # type: ignore
    if n > 1:
        each = torch.arange(len(start), device=start.device).repeat_interleave(n)
        logits, state, start, mask = (
            select_rows(one, each) for one in (logits, state, start, mask)
        )
    read, found = start, []
    ended = torch.zeros(len(start), dtype=torch.bool, device=start.device)
    for i in range(max_len):
        if i:
            logits, state = step(read[:, -1:], state)
        check_shapes(logits=(logits, "row vocab"), row=len(start), vocab=len(vocab))
        own = logits.double()  # as the page has them
        whole = own.logsumexp(-1, keepdim=True)
        if not whole.isfinite().all():
            raise ValueError(f"logits must be numbers, got NaN after {i} tokens")
        left = choose(own.index_fill(-1, barred, -inf), read, mask)
        token = draw(left, uniform(seeds, i)).masked_fill(ended, vocab.pad)
        sums = ((own, whole), (left, left.logsumexp(-1, keepdim=True)))
        both = torch.cat([u.gather(1, token[:, None]) - total for u, total in sums], 1)
        found.append(both.float().masked_fill(ended[:, None], 0.0))
        read = torch.cat([read, token[:, None]], 1)
        if mask is not None:
            mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)
        written = read[:, start.shape[1] :]
        ended = ended | (token == vocab.eos)
        if stop:
            rows = zip(ended.tolist(), written.tolist(), strict=True)
            ended = torch.tensor([e or enough(row) for e, row in rows], device=ended.device)
        if ended.all():
            break
    return Samples(written, *torch.stack(found, -1).unbind(1))


def _by_row(
    how: Sequence[Sampling], rows: int
) -> Callable[[Tensor, Tensor, Tensor | None], Tensor]:
    """Each row's own choice: rows of one choice go through its filters together."""
    if len(how) != rows:
        raise ValueError(
            f"how must be one Sampling, or one for each of {rows} rows, got {len(how)}"
        )
    alike = {one: [i for i, each in enumerate(how) if each == one] for one in how}

    def choose(logits: Tensor, tokens: Tensor, mask: Tensor | None) -> Tensor:
        left = torch.empty_like(logits)
        for one, i in alike.items():
            left[i] = one(logits[i], tokens[i], None if mask is None else mask[i])
        return left

    return choose


def _ends_in(stop: Sequence[Sequence[int]], size: int) -> Callable[[list[int]], bool]:
    """Whether a row ends in one of the sequences."""
    for end in stop:
        ids = end if isinstance(end, Sequence) else ()
        if not ids or not all(isinstance(i, Integral) and 0 <= i < size for i in ids):
            raise ValueError(f"stop must hold sequences of ids in 0..{size - 1}, got {end!r}")
    ends = [list(end) for end in stop]
    return lambda row: any(row[-len(end) :] == end for end in ends)
