"""How good translations are: exact match, token accuracy, BLEU; where attention points; and what a
computation costs: operations and memory."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from sacrebleu import BLEU
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from attnbook.data import PAD, Batch, NumberPair, Vocabulary
from attnbook.seq2seq import Seq2Seq
from attnbook.transformer import Transformer


class Scores(NamedTuple):
    """Quality of a model on a batch.

    Attributes:
        exact: share of sentences translated without a single error, by greedy decoding.
        token: share of target tokens that are the likeliest one when all before them are given.
        bleu: corpus BLEU of the greedy translations, 0 to 100; a morpheme counts as a word, and
            n-grams longer than every sentence are left out.
    """

    exact: float
    token: float
    bleu: float


@torch.no_grad()
def evaluate(model: Seq2Seq | Transformer, batch: Batch, vocab: Vocabulary) -> Scores:
    """Translate a batch greedily and compare with its targets.

    Args:
        model: in evaluation mode.
        batch: source and target token ids.
        vocab: of the target language.

    Source: Papineni et al. 2002 (BLEU); Post 2018 (sacrebleu, which computes it).
    """
    reference = batch.target[:, 1:]
    tokens = model.translate(batch.source, max_len=reference.shape[1] + 4).tokens
    found, wanted = ([" ".join(vocab.decode(row)) for row in rows] for rows in (tokens, reference))
    forced = model(batch.source, batch.target[:, :-1])[0].argmax(-1)
    counts = reference != PAD
    bleu = BLEU(tokenize="none", force=True, effective_order=True)
    return Scores(
        exact=sum(a == b for a, b in zip(found, wanted, strict=True)) / len(wanted),
        token=((forced == reference) & counts).sum().item() / counts.sum().item(),
        bleu=bleu.corpus_score(found, [wanted]).score,
    )


def link_offsets(
    weights: Float[Tensor, "batch target source"], pairs: Sequence[NumberPair]
) -> Int[Tensor, " link"]:
    """How far from its gold word the strongest weight of each linked morpheme stands.

        offset = argmax_j weights_ij - (the word that morpheme i translates)

    0 is on the word, 1 one word late, -1 one early; of equal weights the first counts.

    Args:
        weights: `[batch target source]` attention weights with the correct morphemes fed in; row i
            belongs to the step that writes morpheme i.
        pairs: the numbers of the batch, in order. Their links are joined, one number after another.

    Raises:
        ValueError: if there are not as many pairs as sentences in `weights`.
    """
    if len(pairs) != len(weights):
        raise ValueError(
            f"pairs must be one for each of {len(weights)} sentences, got {len(pairs)}"
        )
    strongest = weights.argmax(-1).tolist()
    offsets = [
        row[i] - j for row, pair in zip(strongest, pairs, strict=True) for i, j in pair.links
    ]
    return torch.tensor(offsets, dtype=torch.long)


def operations(loss: Callable[[], Float[Tensor, ""]]) -> int:
    """Multiplications and additions in the matrix products of a training step.

    Counted while the loss is computed and its gradients, so that they hold for any model. Fused
    attention is counted as the same attention without fusing, with masked scores: PyTorch's
    counter does not see it on a CPU. Softmax, norms and other work on single numbers are left out.

    Args:
        loss: computes the loss of a batch; gradients are added to its parameters.
    """
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        loss().backward()
    return counter.get_total_flops()


def most_bytes(run: Callable[[], object]) -> int:
    """The most memory in bytes that a computation on the CPU holds at once.

    What was there before does not count: weights and inputs made outside of `run`. Every call of
    PyTorch's allocator counts, so that what a fused kernel takes for itself does too. The objects
    that remember the steps for the backward pass are no tensors and do not count: they matter where
    steps are many and small, as in a recurrent network.

    Args:
        run: is called once. Many small steps take long: the profiler notes each.
    """
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        run()
    assert found.profiler and found.profiler.kineto_results
    events: list[Any] = found.profiler.kineto_results.events()
    events = [event for event in events if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()  # negative when memory is given back
        most = max(most, held)
    return most
