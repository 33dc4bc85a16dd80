"""Sampling: filters against those of `transformers`, draws against what they are drawn from, and
texts against a loop in plain Python."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, chisquare
from torch import Tensor

from attnbook.model.sampling import (
    GREEDY,
    PLAIN,
    Sampling,
    draw,
    min_p,
    repetition_penalty,
    row_seeds,
    sample,
    temperature,
    top_k,
    top_p,
    typical,
    uniform,
)
from attnbook.model.transformer import Transformer, TransformerDecoder
from attnbook.text.vocabulary import Vocabulary
from tests.helpers.engine import node
from tests.helpers.filters import FILTERS as PAGE
from tests.helpers.parity import SMALL, close, randomise
from tests.helpers.translator import (
    BOS,
    EOS,
    EVERY,
    GERMAN,
    LAYOUTS,
    NAMES,
    ONE,
    PAD,
    WORDS,
    prompts,
)

INF, EDGE = torch.inf, 2e-6


# ---- filters, against those of transformers


def cases(n: int = 1000) -> Iterator[tuple[Tensor, torch.Generator]]:
    """Logits of every size and sharpness; of four, one has ties and one has tokens with -inf."""
    chosen = torch.Generator().manual_seed(9)
    for i in range(n):
        rows, vocab = (int(torch.randint(a, b, (), generator=chosen)) for a, b in ((1, 5), (2, 60)))
        scale = 10 ** (2 * torch.rand((), generator=chosen) - 0.5)
        logits = scale * torch.randn(rows, vocab, generator=chosen)
        if i % 4 == 0:
            logits = logits.round()
        elif i % 4 == 1:
            logits[:, 1:] = logits[:, 1:].masked_fill(logits[:, 1:] < -scale, -INF)
        yield logits.double() if i % 3 else logits, chosen


def kept(logits: Tensor) -> Tensor:
    return logits > -INF


def number(chosen: torch.Generator, least: float = 0.0, most: float = 1.0) -> float:
    return least + (most - least) * float(torch.rand((), generator=chosen, dtype=torch.float64))


def test_temperature_is_that_of_transformers() -> None:
    for logits, chosen in cases():
        t = 10 ** number(chosen, -3, 3)
        theirs = transformers.TemperatureLogitsWarper(t)(None, logits)  # type: ignore[arg-type]
        ours = temperature(logits, t)
        assert kept(ours).equal(kept(theirs)) or logits.abs().max() / t > 1e30
        error = 4 * torch.finfo(ours.dtype).eps * theirs[kept(theirs)].abs().max()
        shift = theirs.amax(-1, keepdim=True)  # it changes no probability
        difference = (ours + shift - theirs)[kept(theirs)].abs().max()
        assert difference <= error and (ours.amax(-1) == 0).all()


def test_top_k_is_that_of_transformers() -> None:
    for logits, chosen in cases():
        k = int(torch.randint(1, 70, (), generator=chosen))
        theirs = transformers.TopKLogitsWarper(k)(None, logits)  # type: ignore[arg-type]
        assert top_k(logits, k).equal(theirs)


def test_min_p_is_that_of_transformers() -> None:
    for logits, chosen in cases():
        p = number(chosen)
        theirs = transformers.MinPLogitsWarper(p)(None, logits)  # type: ignore[arg-type]
        assert min_p(logits, p).equal(theirs)


def test_top_p_is_that_of_transformers_but_for_tokens_that_are_alike() -> None:
    """Theirs takes any of the tokens that are as likely as the last, ours takes all."""
    alike = exact = 0
    for logits, chosen in cases():
        p = number(chosen)
        theirs = transformers.TopPLogitsWarper(p)(None, logits)  # type: ignore[arg-type]
        for u, ours, other in zip(logits, top_p(logits, p), theirs, strict=True):
            sums = u.double().sort(descending=True).values.softmax(-1).cumsum(-1)
            if (sums - p).abs().min() < EDGE:  # where rounding decides
                continue
            last = u[kept(other)].min()
            assert ours.equal(u.masked_fill(u < last, -INF))
            alike += not ours.equal(other)
            exact += ours.equal(other)
    assert exact > 2000 and alike > 20


def test_typical_is_that_of_transformers() -> None:
    exact = 0
    for logits, chosen in cases():
        p = number(chosen, 0.001, 0.999)
        theirs = transformers.TypicalLogitsWarper(p)(None, logits)  # type: ignore[arg-type]
        for u, ours, other in zip(logits, typical(logits, p), theirs, strict=True):
            logp = u.double().log_softmax(-1)
            order = (-logp + (logp.exp() * logp).nansum()).abs().argsort()
            edge = (logp[order].exp().cumsum(-1) - p).abs().min() < EDGE
            assert ours.equal(other) or edge
            exact += ours.equal(other)
    assert exact > 2400


def test_the_repetition_penalty_is_that_of_transformers() -> None:
    for logits, chosen in cases():
        rows, vocab = logits.shape
        tokens = torch.randint(vocab, (rows, 7), generator=chosen)
        penalty = number(chosen, 0.3, 3.0)
        theirs = transformers.RepetitionPenaltyLogitsProcessor(penalty)
        assert repetition_penalty(logits, tokens, penalty).equal(theirs(tokens, logits))  # type: ignore[arg-type]
        mask = torch.arange(7) >= torch.randint(6, (rows, 1), generator=chosen)
        ours = repetition_penalty(logits, tokens, penalty, mask)
        for row in range(rows):  # of padding it knows nothing
            alone = theirs(tokens[row : row + 1, mask[row]], logits[row : row + 1])  # type: ignore[arg-type]
            assert ours[row].equal(alone[0])


HOWS = [
    Sampling(temperature=0.7, top_k=9),
    Sampling(temperature=1.6, top_p=0.8),
    Sampling(temperature=1.5, top_k=20, top_p=0.9, min_p=0.05),
    Sampling(repetition_penalty=1.4, typical=0.7),
    Sampling(1.3, 25, 0.95, 0.02, 0.9, 0.8),
    Sampling(0.8, 30, 0.9, 0.01, 0.8, 1.7),
    PLAIN,
]


@pytest.mark.parametrize("how", HOWS)
def test_together_they_are_the_pipeline_of_transformers(how: Sampling) -> None:
    """At each step of a text that `transformers` writes, what it draws from is ours."""
    config = transformers.GPT2Config(
        vocab_size=43, n_positions=64, n_embd=12, n_layer=2, n_head=3, bos_token_id=0
    )
    theirs = randomise(transformers.GPT2LMHeadModel(config))
    read = torch.randint(43, (5, 4))
    options = vars(how) | {"typical_p": how.typical}
    del options["typical"]
    with torch.no_grad():
        found = theirs.generate(
            read, do_sample=True, max_new_tokens=25, output_scores=True, output_logits=True,
            return_dict_in_generate=True, eos_token_id=None, pad_token_id=0, **options,
        )  # fmt: skip
    for i, (logits, scores) in enumerate(zip(found.logits, found.scores, strict=True)):
        ours = how(logits, found.sequences[:, : 4 + i])
        assert kept(ours).equal(kept(scores))
        close(ours.softmax(-1), scores.softmax(-1))
    assert len(found.logits) == 25


# ---- filters, whatever the scores

FILTERS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "top_k": lambda logits, p: top_k(logits, 1 + round(8 * p)),
    "top_p": top_p,
    "min_p": min_p,
    "typical": typical,
}
SCORES = st.lists(
    st.one_of(st.floats(-1e30, 1e30), st.floats(-9, 9), st.integers(-3, 3), st.just(-INF)),
    min_size=1,
    max_size=9,
).filter(lambda row: max(row) > -INF)
SHARE = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.25, 0.5, 1.0, 1e-30]))


def logits_of(row: list[float]) -> Tensor:
    return torch.tensor([row], dtype=torch.float64)


@pytest.mark.parametrize("name", FILTERS)
@given(SCORES, SHARE, st.randoms())
def test_a_filter_of_whatever_scores(name: str, row: list[float], p: float, mix: Any) -> None:
    logits, only = logits_of(row), FILTERS[name]
    before, left = logits.clone(), only(logits, p)
    assert logits.equal(before) and kept(left).any()
    assert left[kept(left)].equal(logits[kept(left)])  # what stays keeps its score
    order = list(range(len(row)))
    mix.shuffle(order)
    if name != "typical":  # which sums in the order of the ids: rounding decides between neighbours
        assert only(logits[:, order], p).equal(left[:, order])
        assert left[logits == logits.max()].min() > -INF  # the likeliest stay
    for u in set(row):  # tokens that are alike stay or go together
        assert len(kept(left)[logits == u].unique()) == 1
    if name in ("top_k", "min_p"):  # of what is left, the others leave less
        assert only(left, p).equal(left)


@given(SCORES, SHARE)
def test_the_nucleus_is_the_smallest_that_has_p(row: list[float], p: float) -> None:
    logits = logits_of(row)
    probs, inside = logits.softmax(-1), kept(top_p(logits, p))
    assert probs[inside].sum() >= p - 1e-12
    last = logits[inside].min()
    if p < 1:
        assert probs[logits > last].sum() < p + 1e-12


@given(SCORES, st.floats(0, 1, exclude_max=True))
def test_the_typical_are_the_fewest_that_have_p(row: list[float], p: float) -> None:
    logits = logits_of(row)
    probs, inside = logits.softmax(-1), kept(typical(logits, p))
    surprise = -logits.log_softmax(-1)
    far = (surprise - (probs * surprise).nansum()).abs().nan_to_num(INF)
    last = far[inside].max()
    assert probs[far <= last + 1e-9].sum() >= p - 1e-9
    assert probs[far < last - 1e-9].sum() < p + 1e-9


@given(SCORES, st.one_of(st.floats(1e-300, 1e300), st.sampled_from([1e-6, 1e6, 5e-324])))
def test_temperature_of_whatever_scores(row: list[float], t: float) -> None:
    for logits in (logits_of(row), logits_of(row).float()):
        found = temperature(logits, t)
        assert not found.isnan().any() and (found.amax(-1) == 0).all()
        assert (found[logits == -INF] == -INF).all()
        probs = found.softmax(-1)[0, logits[0].argsort()]
        assert (probs.diff() >= 0).all()


def test_extremes() -> None:
    logits = torch.tensor([[3.0, -INF, 3.0, 2.999, -80.0], [-1e38, 0.0, 1e38, 1.0, 2.0]])
    one = torch.tensor([[True, False, False, False, False], [False, False, True, False, False]])
    assert kept(temperature(logits, 0)).equal(one)  # of two that are alike the first
    cold = temperature(logits, 1e-6).softmax(-1)
    close(cold, torch.tensor([[0.5, 0, 0.5, 0, 0], [0, 0, 1.0, 0, 0]]))
    flat = temperature(logits[:1], 1e6).softmax(-1)
    torch.testing.assert_close(flat, torch.tensor([[0.25, 0, 0.25, 0.25, 0.25]]), atol=1e-4, rtol=0)
    both = logits == logits.amax(-1, keepdim=True)
    for alone in (top_p(logits, 0), min_p(logits, 1), top_k(logits, 1), top_p(logits, 1e-9)):
        assert kept(alone).equal(both)
    for whole in (top_p(logits, 1), min_p(logits, 0), top_k(logits, 5), top_k(logits, 10**9)):
        assert whole.equal(logits)
    assert typical(logits, 1).equal(logits) and kept(typical(logits, 0)).any(-1).all()
    for each in (PLAIN, Sampling(top_k=10**9), GREEDY, Sampling(top_p=0), Sampling(typical=0)):
        assert kept(each(logits, torch.tensor([[0], [4]]))).any(-1).all()
    for none in (top_p(logits[:0], 0.5), typical(logits[:0], 0.5), min_p(logits[:0], 0.5)):
        assert none.shape == (0, 5)
    # a sum of many rounded to 1 before its end
    many = torch.zeros(1, 100_000)
    assert kept(top_p(many, 1)).all()


def test_where_the_sum_is_exactly_p_rounding_decides() -> None:
    """.5 and .3 are a little less than .8 in 64 bits; in 32 bits the processor decides."""
    logits = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64).log()
    for u, near in ((logits, 1e-9), (logits.float(), 1e-6)):
        for p, counts in ((0.8 - near, {2}), (0.8, {2, 3}), (0.8 + near, {3})):
            theirs = transformers.TopPLogitsWarper(p)(None, u)  # type: ignore[arg-type]
            for taken in (top_p(u, p), theirs):
                assert kept(taken).sum().item() in counts
    assert kept(top_p(logits, 0.8)).sum() == 3


@pytest.mark.parametrize("only", [top_p, typical])
def test_many_tokens_are_summed_to_a_millionth(only: Callable[[Tensor, float], Tensor]) -> None:
    """A softmax in 32 bits of as many tokens as models have is off by several."""
    logits = 4 * torch.randn(8, 50_000)
    exact = logits.double().softmax(-1)
    for p in (0.9, 0.95, 0.99):
        inside = kept(only(logits, p))
        for probs, there in zip(exact, inside, strict=True):
            mass = probs[there].sum().item()
            surprise = (-probs.log() + (probs * probs.log()).sum()).abs()
            far = -probs if only is top_p else surprise
            last = probs[there][far[there].argmax()].item()
            assert p - 1e-6 < mass and mass - last < p + 1e-6


def test_a_nucleus_of_a_nucleus_is_smaller() -> None:
    """Other filters are content with what they left; top-p takes p of that again."""
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log()
    once = top_p(logits, 0.6)
    assert kept(once).sum() == 2 and kept(top_p(once, 0.6)).sum() == 1


def test_half_precision_is_summed_in_32_bits() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        logits = (2 * torch.randn(3, 500)).to(dtype)
        for name, only in FILTERS.items():
            assert only(logits, 0.7).equal(only(logits.float(), 0.7)), name


def test_the_page_leaves_what_python_leaves() -> None:
    asked, wanted, alike = [], [], 0
    for n, cut in enumerate(PAGE * 12):
        logits = 3 * torch.randn(50).double()
        logits = logits.round() if n % 4 == 0 else logits
        how = Sampling(cut["temperature"], cut["topK"], cut["topP"], cut["minP"])
        wanted.append(how(logits[None], torch.zeros(1, 0, dtype=torch.long))[0])
        asked.append({"logits": logits.tolist(), "filters": cut, "seed": n})
    for case, ours, told in zip(asked, wanted, node("samples", cases=asked), strict=True):
        left, found = set(told["order"][: told["count"]]), set(kept(ours).nonzero()[:, 0].tolist())
        assert left == found
        alike += case["filters"]["topP"] < 1 and int((ours == ours[kept(ours)].min()).sum()) > 1
        seeds = torch.tensor([case["seed"]])
        assert told["numbers"] == [uniform(seeds, n).item() for n in range(len(told["numbers"]))]
    assert alike > 5  # at the edge


# ---- draws


def ranks(logits: Tensor, how: Sampling, n: int, seed: int) -> Tensor:
    """How often each token is drawn, of n rows."""

    def step(tokens: Tensor, state: None) -> tuple[Tensor, None]:
        return logits.expand(len(tokens), -1), state

    vocab = Vocabulary(map(str, range(logits.shape[1] - 3)))
    found = sample(step, None, torch.full((1, 1), BOS), 1, vocab, n=n, how=how, seed=seed)
    return found.tokens[:, 0].bincount(minlength=logits.shape[1])


DRAWN = {
    "plain": PLAIN,
    "temperature": Sampling(temperature=0.6),
    "top-k": Sampling(top_k=7),
    "top-p": Sampling(top_p=0.8),
    "all": Sampling(1.4, 20, 0.95, 0.01, 0.9, 1.3),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_hundred_thousand_draws_are_as_the_filters_leave(name: str) -> None:
    logits, how = 1.5 * torch.randn(1, 40), DRAWN[name]
    counts = ranks(logits, how, 100_000, seed=4)
    wanted = logits.clone()
    wanted[:, [PAD, BOS]] = -INF  # they are never drawn
    probs = how(wanted, torch.tensor([[BOS]])).double().softmax(-1)[0]
    assert counts[probs == 0].sum() == 0 and (probs > 0).sum() >= 5
    wanted = 100_000 * probs[probs > 0]
    assert chisquare(counts[probs > 0], wanted).pvalue > 1e-3


def test_numbers_of_a_seed_are_even_and_know_nothing_of_each_other() -> None:
    seeds = row_seeds(1, 20_000)
    numbers = torch.stack([uniform(seeds, n) for n in range(6)])
    assert numbers.min() >= 0 and numbers.max() < 1
    place = (numbers * 8).long()
    for n in range(6):
        assert chisquare(place[n].bincount(minlength=8)).pvalue > 1e-3
    steps = [(place[a], place[b]) for a, b in ((0, 1), (1, 2), (0, 5))]
    for one, other in (*steps, (place[0, 1:], place[0, :-1])):
        pairs = (8 * one + other).bincount(minlength=64).view(8, 8)
        found: Any = chi2_contingency(pairs)
        assert found.pvalue > 1e-3
    along = (uniform(torch.arange(20_000), 0) * 8).long()  # seeds that a person would take
    assert chisquare(along.bincount(minlength=8)).pvalue > 1e-3


def test_a_draw_is_where_the_number_falls() -> None:
    """The likeliest lies first, of those that are alike the one with the lowest id."""
    logits = torch.tensor([0.25, 0.0, 0.5, 0.125, 0.125]).log().expand(7, 5)
    places = [0.0, 0.4999, 0.5001, 0.7499, 0.7501, 0.8751, 1 - 2**-53]
    numbers = torch.tensor(places, dtype=torch.float64)
    assert draw(logits, numbers).tolist() == [2, 2, 0, 0, 3, 4, 4]
    assert draw(logits[:0], numbers[:0]).shape == (0,)
    last = torch.tensor([[0.0, -INF, -INF]]).expand(7, 3)
    assert draw(last, numbers).tolist() == [0] * 7
    assert draw(last.flip(1), numbers).tolist() == [2] * 7


def test_seeds_of_rows() -> None:
    assert row_seeds(7, 3).equal(row_seeds(7, 5)[:3])
    assert len(row_seeds(7, 1000).unique()) == 1000
    assert not row_seeds(7, 3).equal(row_seeds(8, 3))
    generator = torch.Generator().manual_seed(7)
    assert row_seeds(generator, 3).equal(row_seeds(7, 3))
    assert not row_seeds(generator, 3).equal(row_seeds(7, 3))  # it has moved on
    assert row_seeds([3, 1, 2**32 + 5], 3).tolist() == [3, 1, 5]  # as in the page
    assert row_seeds(torch.tensor([3, 1]), 2).tolist() == [3, 1]


# ---- texts


def slowly(
    decoder: TransformerDecoder, prompt: Tensor, max_len: int, how: Sampling, seed: int
) -> tuple[list[int], list[float]]:
    """One text, each step from the first token on."""
    words, logp = [], []
    for n in range(max_len):
        read = torch.cat([prompt, torch.tensor(words, dtype=torch.long)])[None]
        logits = decoder(read)[:, -1].float()
        own = logits.log_softmax(-1)[0]
        logits[:, [PAD, BOS]] = -INF
        order = how(logits, read)[0].sort(descending=True, stable=True)
        sums = order.values.double().softmax(-1).cumsum(0)
        at = uniform(torch.tensor([seed]), n) * sums[-1]
        words.append(int(order.indices[(sums <= at).sum()]))
        logp.append(float(own[words[-1]]))
        if words[-1] == EOS:
            break
    return words, logp


MIXED = Sampling(1.3, 8, 0.95, 0.001, 0.98, 1.2)


@pytest.mark.parametrize("config", [*EVERY, *LAYOUTS], ids=[*NAMES, "GPT", "ALiBi", "modern 2"])
@torch.no_grad()
def test_unequal_prompts_with_a_cache_are_each_alone_without(config: Any) -> None:
    decoder: Any = randomise(TransformerDecoder(GERMAN, config)).double()  # 32 bits then agree
    for how in (PLAIN, Sampling(temperature=30.0), MIXED):
        begun = prompts()
        seeds = row_seeds(3, len(begun))
        together = decoder.sample(begun, 7, how=how, seed=3)
        alone = [
            decoder.sample(row[row != PAD][None], 7, how=how, seed=seeds[i : i + 1])
            for i, row in enumerate(begun)
        ]
        for i, row in enumerate(begun):
            words, logp = slowly(decoder, row[row != PAD], 7, how, int(seeds[i]))
            n = len(words)
            assert alone[i].tokens.tolist() == [words]
            assert together.tokens[i].tolist() == words + [PAD] * (together.tokens.shape[1] - n)
            torch.testing.assert_close(together.logp[i, :n], torch.tensor(logp), atol=1e-5, rtol=0)
            assert (together.logp[i, n:] == 0).all() and (together.drawn_logp[i, n:] == 0).all()


@pytest.mark.parametrize("config", LAYOUTS, ids=["GPT", "ALiBi", "modern"])
@torch.no_grad()
def test_greedy_is_a_beam_of_one(config: Any) -> None:
    decoder: Any = randomise(TransformerDecoder(GERMAN, config))
    begun = prompts()
    found, best = decoder.sample(begun, 7, how=GREEDY), decoder.generate(begun, 7)
    assert found.tokens.equal(best.tokens)
    close(found.logp.sum(1), best.scores)
    assert (found.drawn_logp == 0).all()
    for how in (Sampling(top_k=1), Sampling(top_p=0), Sampling(min_p=1), Sampling(1e-6)):
        assert decoder.sample(begun, 7, how=how, seed=5).tokens.equal(best.tokens)


@torch.no_grad()
def test_a_row_may_have_a_setting_of_its_own() -> None:
    decoder: Any = randomise(TransformerDecoder(GERMAN, LAYOUTS[0])).double()
    begun, hows = prompts(), [MIXED, GREEDY, PLAIN, MIXED]
    found = decoder.sample(begun, 7, how=hows, seed=3)
    for i, how in enumerate(hows):
        alone = decoder.sample(begun, 7, how=how, seed=3)
        width = min(found.tokens.shape[1], alone.tokens.shape[1])
        assert found.tokens[i, :width].equal(alone.tokens[i, :width])
        close(found.drawn_logp[i, :width], alone.drawn_logp[i, :width])
    twice = decoder.sample(begun, 7, n=2, how=[PLAIN, GREEDY] * 4, seed=3)
    assert twice.tokens[1].equal(decoder.sample(begun, 7, n=2, how=GREEDY).tokens[1])
    for few in ([], [GREEDY], [GREEDY] * 5):
        with pytest.raises(ValueError, match=f"how must be one .* of 4 rows, got {len(few)}"):
            decoder.sample(begun, 7, how=few)


@torch.no_grad()
def test_samples_of_one_prompt_need_one_pass() -> None:
    decoder: Any = randomise(TransformerDecoder(GERMAN, SMALL)).double()
    begun, seen = prompts(), Counter[int]()
    key = decoder.stack.blocks[0].attention.k
    handle = key.register_forward_hook(lambda _, args, out: seen.update([args[0].shape[:2]]))
    found = decoder.sample(begun, 4, n=3, seed=6)
    handle.remove()
    assert seen == {(4, 6): 1, (12, 1): found.tokens.shape[1] - 1}
    again = decoder.sample(begun.repeat_interleave(3, 0), 4, seed=6)
    assert found.tokens.equal(again.tokens)
    assert len(found.tokens) == 12 and len({tuple(row) for row in found.tokens.tolist()}) > 6
    one = decoder.sample(begun[1:2, 2:], 4, n=2, seed=row_seeds(6, 12)[3:5])
    width = one.tokens.shape[1]
    assert one.tokens.equal(found.tokens[3:5, :width])


@torch.no_grad()
def test_the_log_probabilities_are_the_models_own_and_the_filters() -> None:
    decoder: Any = randomise(TransformerDecoder(GERMAN, SMALL))
    begun = torch.randint(3, WORDS, (5, 4))
    how = Sampling(temperature=2.0, top_k=6, repetition_penalty=1.1)
    found = decoder.sample(begun, 6, how=how, seed=2)
    whole = torch.cat([begun, found.tokens], 1)
    logits = decoder(whole)[:, 3:-1]
    barred = logits.index_fill(-1, torch.tensor([PAD, BOS]), -INF)
    for i in range(found.tokens.shape[1]):
        drawn = how(barred[:, i], whole[:, : 4 + i]).log_softmax(-1)
        for mine, of in ((found.logp, logits[:, i].log_softmax(-1)), (found.drawn_logp, drawn)):
            there = GERMAN.written(found.tokens)[:, i]
            close(mine[there, i], of[there, found.tokens[there, i]])
    assert (found.drawn_logp > found.logp)[:, 0].any()


def spoken(*rows: str) -> Any:
    """A step that says given words, whatever it reads; letters of a row are its tokens."""
    vocab = Vocabulary("abcdefgh")
    ids = [vocab.encode(row) for row in rows]

    def step(tokens: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        logits = torch.zeros(len(tokens), len(vocab))
        for row, (said, n) in enumerate(zip(ids, at[:, 0].tolist(), strict=True)):
            logits[row, said[n] if n < len(said) else vocab.eos] = 99.0
        return logits, at + 1

    def text(stop: Any = (), max_len: int = 9) -> list[str]:
        start = torch.full((len(rows), 1), vocab.bos)
        found = sample(step, torch.zeros(len(rows), 1).long(), start, max_len, vocab, stop=stop)
        marks = {vocab.pad: "_", vocab.eos: "."}
        return ["".join(marks.get(i) or vocab.tokens[i] for i in row) for row in found[0].tolist()]

    return text, vocab.encode


def test_each_row_stops_alone() -> None:
    text, encode = spoken("abcabd", "ab", "hbdhhh")
    assert text() == ["abcabd.", "ab.____", "hbdhhh."]
    assert text(max_len=4) == ["abca", "ab._", "hbdh"]
    assert text([encode("bd")]) == ["abcabd", "ab.___", "hbd___"]
    assert text([encode("bd"), encode("abc"), encode("b")]) == ["ab", "ab", "hb"]
    assert text([encode("abcabdh"), encode("c")]) == ["abc____", "ab.____", "hbdhhh."]
    assert text([[BOS, *encode("a")]]) == text()  # which looks at what was written alone
    assert text([[0]]) == text()  # id 0 may end a text, too; here it is padding, never drawn
    assert text(lambda ids: len(ids) == 3) == ["abc", "ab.", "hbd"]
    asked = []
    text(lambda ids: bool(asked.append(ids)))
    assert encode("ab") in asked and all(0 not in ids for ids in asked)  # no padding


@torch.no_grad()
def test_one_token_for_start_end_and_padding() -> None:
    """As in GPT-2's vocabulary, or with padding and end alone, as in SmolLM2's."""
    two = Vocabulary("abcdefgh", pad="<e>", eos="<e>")
    for vocab in (ONE, two):
        decoder: Any = randomise(TransformerDecoder(vocab, SMALL)).double()
        end = vocab.eos
        begun = torch.tensor([[end, end, 2, 3], [2, 3, end, 4], [end, end, end, end]])
        mask = torch.tensor([[False, False, True, True], [True] * 4, [False] * 3 + [True]])
        found = decoder.sample(begun, 8, mask=mask, n=20, seed=1)
        rows = found.tokens.unflatten(0, (3, 20))
        seeds = row_seeds(1, 60).view(3, 20)
        for i in range(3):
            alone = decoder.sample(begun[i : i + 1, mask[i]], 8, n=20, seed=seeds[i])
            width = alone.tokens.shape[1]
            assert rows[i, :, :width].equal(alone.tokens) and (rows[i, :, width:] == end).all()
        ends = (found.tokens == end).int()
        assert (ends.diff() >= 0).all() and 0 < ends[:, -1].float().mean() < 1
        lone = vocab.bos not in (vocab.pad, vocab.eos)
        assert not lone or (found.tokens != vocab.bos).all()


@torch.no_grad()
def test_a_translator_draws_too() -> None:
    ours: Any = randomise(Transformer(GERMAN, GERMAN, SMALL))
    source = torch.randint(3, WORDS, (4, 6))
    start = torch.full((4, 1), BOS)
    state = ours.decoder.start(ours.read(source))
    found = sample(ours.decoder.step, state, start, 5, GERMAN, how=GREEDY)
    assert found.tokens.equal(ours.translate(source, 5).tokens)


def test_a_context_has_an_end_where_positions_are_learned() -> None:
    for positions, end in product(("learned", "rotary", "alibi", "sinusoidal"), (7, 8)):
        config = replace(SMALL, positions=positions, max_len=8)
        decoder: Any = randomise(TransformerDecoder(GERMAN, config))
        begun = torch.randint(3, WORDS, (2, 4)).index_fill(1, torch.tensor([0]), PAD)
        for write in (decoder.sample, decoder.generate):
            if positions != "learned" or end == 6:
                assert write(begun, end).tokens.shape[1] <= end
                continue
            says = f"must fit into 8 learned positions, got 3 \\+ {end} tokens"
            with pytest.raises(ValueError, match=says):
                write(begun, end)
    decoder = TransformerDecoder(GERMAN, replace(SMALL, positions="learned", max_len=8)).eval()
    assert decoder.sample(begun, 6, how=Sampling(), seed=3).tokens.shape[1] <= 6


def test_states_to_scores() -> None:
    for tied in (True, False):
        decoder: Any = randomise(TransformerDecoder(GERMAN, replace(SMALL, tied=tied)))
        tokens = prompts()[:1]
        close(decoder.logits(decoder.stack(tokens, causal=True)), decoder(tokens))
