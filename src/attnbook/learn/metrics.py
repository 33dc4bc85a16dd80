"""The quality of translations, where attention points, and how far a share can be trusted."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnbook.checks import check_range, check_shapes, check_whole
from attnbook.model.decoding import evaluating
from attnbook.model.seq2seq import Seq2Seq
from attnbook.text.number_words import NumberPair
from attnbook.text.vocabulary import Pairs


class Quality(NamedTuple):
    """Quality of a model on a batch.

    Attributes:
        exact: share of sentences translated without a single error, by greedy decoding.
        token: share of target tokens that the model finds likeliest, given all tokens before them.
        bleu: corpus BLEU of the greedy translations, 0 to 100; a morpheme counts as a word, and
            n-grams longer than every sentence are left out.
    """

    exact: float
    token: float
    bleu: float


def evaluate(model: Seq2Seq, batch: Pairs) -> Quality:
    """Translate a batch greedily and compare the translations with its targets.

    Args:
        model: a translator, which runs without dropout.
        batch: source and target token ids.

    Raises:
        ValueError: if the batch is empty.

    Source: Papineni et al. 2002 (BLEU); Post 2018 (sacrebleu, which computes it).
    """
    from sacrebleu import BLEU  # here, since its import is slow and only BLEU needs it

    if not len(batch.source):
        raise ValueError("batch must hold at least one sentence, got none")
    vocab, reference = model.decoder.vocab, batch.target[:, 1:]
    max_len = int(min(reference.shape[1] + 4, model.longest))
    tokens = model.translate(batch.source, max_len=max_len).tokens
    found, wanted = ([" ".join(vocab.decode(row)) for row in rows] for rows in (tokens, reference))
    with evaluating(model):
        forced = model(batch.source, batch.target[:, :-1]).argmax(-1)
    counts = vocab.written(reference)
    bleu = BLEU(tokenize="none", force=True, effective_order=True)
    return Quality(
        exact=sum(a == b for a, b in zip(found, wanted, strict=True)) / len(wanted),
        token=((forced == reference) & counts).sum().item() / counts.sum().item(),
        bleu=bleu.corpus_score(found, [wanted]).score,
    )


def link_offsets(
    weights: Float[Tensor, "batch target source"], pairs: Sequence[NumberPair]
) -> Int[Tensor, " link"]:
    """The distance of each linked morpheme's strongest weight from its gold word.

        offset = argmax_j weights_ij - (the word that morpheme i translates)

    0 is on the word, 1 one word too late, -1 one too early; of equal weights the first counts.

    Args:
        weights: `[batch target source]` attention weights under teacher forcing; row i belongs to
            the step that writes morpheme i.
        pairs: the number pairs of the batch, in order. The offsets of their links follow in the
            same order.

    Raises:
        ValueError: if there are not as many pairs as sentences in `weights`, or a sentence has
            fewer rows than its pair has morphemes.
    """
    check_shapes(weights=(weights, "batch target source"))
    if len(pairs) != len(weights):
        raise ValueError(
            f"pairs must be one for each of {len(weights)} sentences, got {len(pairs)}"
        )
    for number, (rows, pair) in enumerate(zip(weights, pairs, strict=True)):
        if len(rows) < len(pair.target):
            words = f"a row for each of {len(pair.target)} words of pair {number}"
            raise ValueError(f"weights must have {words}, got {len(rows)}")
    strongest = weights.argmax(-1).tolist()
    offsets = [
        row[i] - j for row, pair in zip(strongest, pairs, strict=True) for i, j in pair.links
    ]
    return torch.tensor(offsets, dtype=torch.long)


def interval(share: float, n: int) -> tuple[float, float]:
    r"""Wilson's interval, which contains the true share in 95 of 100 such samples.

        middle +- half, with middle = (p + z^2 / 2n) / (1 + z^2 / n)
        and half = z sqrt(p (1 - p) / n + z^2 / 4n^2) / (1 + z^2 / n)

    Args:
        share: p, the share observed in n independent cases.
        n: number of cases; z is 1.96.

    Returns:
        The interval's two ends, in 0 .. 1.

    Raises:
        ValueError: if share is not in 0 .. 1, or n is below 1.

    Source: Wilson 1927.

    In other libraries: `statsmodels.stats.proportion.proportion_confint(..., method="wilson")`.
    """
    check_range(0, 1, share=share)
    check_whole(1, n=n)
    z2 = 1.96**2 / n
    half = (z2 * (share * (1 - share) + z2 / 4)) ** 0.5
    return (share + z2 / 2 - half) / (1 + z2), (share + z2 / 2 + half) / (1 + z2)
