"""From a model's scores of the next word to a sentence, word by word: greedy and beam search."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from math import inf
from typing import Any, NamedTuple, ParamSpec, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnbook.checks import check_ids, check_range, check_shapes, check_whole
from attnbook.text.vocabulary import Vocabulary

# What a model remembers of the words so far: tensors, one row a sentence, in tuples or mappings.
State = Any
# New words and what was remembered before them, to scores of the next word and what is remembered.
Step = Callable[[Int[Tensor, "row token"], State], tuple[Float[Tensor, "row vocab"], State]]
Asked = ParamSpec("Asked")
Found = TypeVar("Found", bound=tuple[Tensor, ...])


@contextmanager
def evaluating(model: object) -> Iterator[None]:
    """No dropout and no gradients inside; afterwards each module is in the mode that it had.

    Args:
        model: a module. What is none, as a function that asks one, has no mode and stays as it is.
    """
    modules = model.modules() if isinstance(model, nn.Module) else ()
    training = [module for module in modules if module.training]
    for module in training:
        module.training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True


def in_inference_mode(search: Callable[Asked, Found]) -> Callable[Asked, Found]:
    """Run a search in `torch.inference_mode`, which is faster than `torch.no_grad`.

    Its results are copied, since training may not use a tensor of `torch.inference_mode`.

    Args:
        search: gives a named tuple of tensors.
    """

    @wraps(search)
    def run(*args: Asked.args, **options: Asked.kwargs) -> Found:
        with torch.inference_mode():
            found = search(*args, **options)
        return type(found)(*(each.clone() for each in found))

    return run


def select_rows(state: State, rows: Int[Tensor, " row"]) -> State:
    """The given rows of every tensor of a state; a row may be repeated.

    Args:
        state: a tensor `[row ...]`, None, or a tuple or mapping of such.
        rows: `[row]` which rows, in order.
    """
    if state is None:
        return None
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if isinstance(state, Mapping):
        return {key: select_rows(value, rows) for key, value in state.items()}
    if not isinstance(state, tuple | list):
        raise ValueError(f"state must hold tensors, in tuples or mappings, got {state!r}")
    picked = [select_rows(value, rows) for value in state]
    return type(state)(*picked) if hasattr(state, "_fields") else tuple(picked)


class Hypotheses(NamedTuple):
    """The best hypothesis of each sentence.

    Attributes:
        tokens: `[batch target]` what follows the beginning, up to and with the end token, padding
            after it.
        scores: `[batch]` the sum of the log-probabilities of the tokens, in nats.

    In other libraries: `sequences` and `sequences_scores` of `generate` in `transformers`.
    """

    tokens: Int[Tensor, "batch target"]
    scores: Float[Tensor, " batch"]


@in_inference_mode
def beam_search(
    step: Step,
    state: State,
    start: Int[Tensor, "batch token"],
    max_len: int,
    vocab: Vocabulary,
    *,
    beam: int = 1,
    length_penalty: float = 0.0,
    watch: Callable[[Tensor, Tensor, Tensor], None] | None = None,
) -> Hypotheses:
    """Keep the `beam` best beginnings of each sentence, lengthen each by each word, and so on.

        score(y) = sum_t log P(y_t | y before t) / length(y)^length_penalty

    Finished sentences stay in the beam and compete. Padding and the start token are never chosen.
    With a beam of 1 this is greedy decoding: at each step the likeliest word.

    Args:
        step: `step(tokens, state) -> logits, state`: reads new words `[row token]`, first `start`,
            then one at a time, and gives the scores `[row vocab]` of the next one. It must leave
            the state that it was given as it is.
        state: what `step` begins with, one row a sentence.
        start: `[batch token]` how the sentences begin: the start token, or a prompt.
        max_len: stop after this many tokens; a sentence that has no end by then stays without.
        vocab: says which tokens are padding, start and end.
        beam: number of hypotheses that are kept.
        length_penalty: 0 compares sums of log-probabilities, 1 their mean over tokens.
        watch: told of each step the sums of all lengthened beginnings, their scores, both
            `[batch hypothesis vocab]`, and which stay: `[batch beam]` places in `[hypothesis
            vocab]`, the best first.

    Raises:
        ValueError: if `start` holds no token ids, beam or max_len is below 1, beam is above the
            number of words to choose from, length_penalty is below 0, or the scores hold NaN.

    Source: Sutskever et al. 2014, section 3.2. Vaswani et al. 2017, section 6.1, divide by another
    penalty, ((5 + length) / 6)^0.6, from Wu et al. 2016, section 7.

    In other libraries: `model.generate(num_beams=...)` of `transformers`.
    """
    check_whole(1, max_len=max_len, beam=beam)
    check_ids("start", start, len(vocab))
    check_range(0, inf, length_penalty=length_penalty)
    most = len(vocab) - len(vocab.barred)
    if beam > most:
        raise ValueError(f"beam must be at most the {most} words, got {beam}")
    batch, device = len(start), start.device
    barred = torch.zeros(len(vocab), device=device)
    barred[vocab.barred] = -inf
    over = torch.full((len(vocab),), -inf, device=device)
    over[vocab.pad] = 0.0  # after its end a sentence goes on with padding, for certain
    tokens = start[:, None, :0]  # [batch hypothesis token]
    sums, lengths = torch.zeros(2, batch, 1, device=device)  # [batch hypothesis] each
    ended = torch.zeros(batch, 1, dtype=torch.bool, device=device)
    new = start
    for _ in range(max_len):
        logits, state = step(new, state)
        check_shapes(logits=(logits, "row vocab"), row=len(new), vocab=len(vocab))
        logp = logits.float().log_softmax(-1)
        if logp[:, 0].isnan().any():  # then so is the whole row
            raise ValueError(f"logits must be numbers, got NaN after {tokens.shape[-1]} tokens")
        logp = (logp + barred).view(batch, -1, len(vocab))
        logp = torch.where(ended[..., None], over, logp)
        lengths = lengths + ~ended
        total = ranked = sums[..., None] + logp  # [batch hypothesis vocab]
        if length_penalty:  # a large one may be inf
            ranked = (total / lengths[..., None] ** length_penalty).masked_fill(total == -inf, -inf)
        best = ranked.flatten(1).topk(beam, dim=-1).indices  # [batch beam]
        if watch is not None:
            watch(total, ranked, best)
        sums, word = total.flatten(1).gather(1, best), best
        if beam > 1:
            before, word = best // len(vocab), best % len(vocab)
            rows = before + lengths.shape[1] * torch.arange(batch, device=device)[:, None]
            state = select_rows(state, rows.flatten())
            lengths, ended = lengths.gather(1, before), ended.gather(1, before)
            tokens = tokens.take_along_dim(before[..., None], dim=1)
        ended = ended | (word == vocab.eos)
        tokens = torch.cat([tokens, word[..., None]], -1)
        new = word.flatten()[:, None]
        if (ended if length_penalty else ended[:, :1]).all():
            break  # without penalty nothing can overtake a best one that has ended
    return Hypotheses(tokens[:, 0], sums[:, 0])
