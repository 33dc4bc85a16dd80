"""How good translations are: exact match, token accuracy, BLEU."""

from typing import NamedTuple

import torch
from sacrebleu import BLEU

from attnbook.data import PAD, Batch, Vocabulary
from attnbook.seq2seq import Seq2Seq


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
def evaluate(model: Seq2Seq, batch: Batch, vocab: Vocabulary) -> Scores:
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
