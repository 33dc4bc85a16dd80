"""From a model's scores of the next word to a sentence: greedy decoding and beam search."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnbook.data import EOS, PAD


class Hypotheses(NamedTuple):
    """What decoding found, the best of each sentence.

    Attributes:
        tokens: `[batch target]` up to and with the end token, padding after it.
        scores: `[batch]` the sum of the log-probabilities of the tokens, in nats.
    """

    tokens: Int[Tensor, "batch target"]
    scores: Float[Tensor, " batch"]


@torch.no_grad()
def beam_search(
    next_logits: Callable[[Int[Tensor, "row token"]], Float[Tensor, "row vocab"]],
    start: Int[Tensor, "batch token"],
    max_len: int,
    *,
    beam: int = 1,
    length_penalty: float = 0.0,
) -> Hypotheses:
    """Keep the `beam` best beginnings of each sentence, lengthen each by each word, and so on.

        score(y) = sum_t log P(y_t | y before t) / length(y)^length_penalty

    Finished sentences stay in the beam and compete. Padding and the start token are never chosen.
    With a beam of 1 this is greedy decoding: at each step the likeliest word.

    Args:
        next_logits: scores of the token after each beginning `[row token]`, batch * beam rows,
            those of a sentence one after another (in the first step one row a sentence).
        start: `[batch token]` how the sentences begin: the start token.
        max_len: stop after this many tokens; a sentence that has no end by then stays without.
        beam: number of hypotheses that are kept.
        length_penalty: 0 compares sums of log-probabilities, 1 their mean over tokens.

    Raises:
        ValueError: if beam or max_len is below 1, beam is above the number of words to choose
            from, or length_penalty is below 0.

    Source: Sutskever et al. 2014, section 3.2. Vaswani et al. 2017, section 6.1, divide by another
    penalty, ((5 + length) / 6)^0.6, from Wu et al. 2016, section 7.
    """
    if beam < 1 or max_len < 1 or length_penalty < 0:
        raise ValueError(
            "beam and max_len must be at least 1 and length_penalty at least 0,"
            f" got {beam}, {max_len} and {length_penalty}"
        )
    batch, begun = start.shape
    tokens = start[:, None]
    sums, lengths = torch.zeros(2, batch, 1, device=start.device)  # [batch hypothesis] each
    for _ in range(max_len):
        logp = next_logits(tokens.flatten(0, 1)).log_softmax(-1).unflatten(0, (batch, -1))
        vocab = logp.shape[-1]
        if beam > vocab - EOS:
            raise ValueError(f"beam must be at most the {vocab - EOS} words, got {beam}")
        ended = tokens[..., -1:] == EOS
        ended |= tokens[..., -1:] == PAD
        logp[..., :EOS] = -torch.inf
        logp = logp.masked_fill(ended, -torch.inf)
        logp[..., PAD] = torch.where(ended[..., 0], 0.0, -torch.inf)
        lengths = lengths + ~ended[..., 0]
        total = sums[..., None] + logp  # [batch hypothesis vocab]
        ranked = (total / lengths[..., None] ** length_penalty).flatten(1)
        best = ranked.topk(beam, dim=-1).indices  # [batch beam]
        sums, lengths = total.flatten(1).gather(1, best), lengths.gather(1, best // vocab)
        before = tokens.take_along_dim((best // vocab)[..., None], dim=1)
        tokens = torch.cat([before, (best % vocab)[..., None]], dim=-1)
        last = tokens[..., -1] if length_penalty else tokens[:, :1, -1]
        if (last <= EOS).all():  # without penalty nothing can overtake a best one that has ended
            break
    return Hypotheses(tokens[:, 0, begun:], sums[:, 0])
