"""GPT-1's fine-tuning: a task becomes rows of tokens, and a decoder answers at their last one."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnbook.checks import check_ids, check_range, check_shapes, check_whole
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.vocabulary import Vocabulary, pad_batch

MARKS = ("<start>", "<delimiter>", "<extract>")


def with_marks(gpt: TransformerDecoder) -> TransformerDecoder:
    """A copy of a language model that has three more tokens: `MARKS`.

    Their vectors are random, with the mean and the standard deviation of all others; what the model
    says of a text without them stays in the same proportions.

    Args:
        gpt: the model, which is left as it is.

    Raises:
        ValueError: if it has a token of that name.

    Source: Radford et al. 2018, section 3.3.

    In other libraries: `add_special_tokens` and `resize_token_embeddings` of `transformers`.
    """
    new, old = deepcopy(gpt), gpt.vocab
    special = (old.tokens[i] for i in (old.pad, old.bos, old.eos))
    names = dict(zip(("pad", "bos", "eos"), special, strict=True))
    new.vocab = Vocabulary((*old.tokens, *MARKS), **names)
    new.stack.embedding = nn.Embedding.from_pretrained(
        _lengthened(gpt.stack.embedding.weight), freeze=False
    )
    if new.head is not None:
        new.head.weight = nn.Parameter(_lengthened(new.head.weight))
        new.head.out_features = len(new.vocab)
    return new


def _lengthened(matrix: Tensor) -> Tensor:
    matrix = matrix.detach()
    rows = torch.randn_like(matrix[:1].expand(len(MARKS), -1))
    return torch.cat([matrix, matrix.mean(0) + matrix.std(0) * rows])


def lay_out(
    vocab: Vocabulary,
    first: Sequence[Sequence[int]],
    second: Sequence[Sequence[int]] | None = None,
    *,
    max_len: int,
) -> Int[Tensor, "batch token"]:
    """One row for each text (classification), or each pair of texts (entailment).

        <start> text <extract>
        <start> premise <delimiter> hypothesis <extract>

    and padding. What is too long is cut at its end, one token at a time from the longer text of a
    pair, or from the second where both are equally long.

    Args:
        vocab: the vocabulary of a model that `with_marks` made.
        first: token ids of each text, or of the first text of each pair.
        second: token ids of the second texts, as many. None: there are no pairs.
        max_len: the most tokens of a row, marks included.

    Raises:
        ValueError: if there is no text, `second` has another number of texts, `max_len` leaves no
            room for a token of each text, or the vocabulary lacks the marks.

    Source: Radford et al. 2018, section 3.3 and figure 1.
    """
    start, delimiter, extract = _marks(vocab)
    texts = 1 if second is None else 2
    check_whole(2 * texts + 1, max_len=max_len)
    if second is not None and len(second) != len(first):
        raise ValueError(f"second must hold {len(first)} texts, as first, got {len(second)}")
    rows = []
    for a, b in zip(first, first if second is None else second, strict=True):
        a, b = list(a), [] if second is None else [delimiter, *b]
        while len(a) + len(b) > max_len - 2:
            (a if len(a) >= len(b) else b).pop()
        rows.append([start, *a, *b, extract])
    return pad_batch(rows, vocab.pad)


def both_ways(
    vocab: Vocabulary,
    first: Sequence[Sequence[int]],
    second: Sequence[Sequence[int]],
    *,
    max_len: int,
) -> Int[Tensor, "batch order token"]:
    """Two rows for each pair of texts, in either order: for `Similarity`.

    Args and raises: as for `lay_out`.
    """
    if len(first) != len(second):
        n = f"{len(first)} and {len(second)}"
        raise ValueError(f"first and second must be equally many, got {n}")
    rows = lay_out(vocab, [*first, *second], [*second, *first], max_len=max_len)
    return torch.stack(rows.chunk(2), 1)


def options(
    vocab: Vocabulary,
    contexts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[Sequence[int]]],
    *,
    max_len: int,
) -> Int[Tensor, "batch option token"]:
    """A row for each possible answer to each context: for `MultipleChoice`.

    Args:
        vocab, max_len: as for `lay_out`.
        contexts: token ids of each context, with its question.
        answers: token ids of each answer to each context, equally many for all.

    Raises:
        ValueError: if contexts have unequally many answers or none, or as `lay_out` does.
    """
    counts = sorted({len(some) for some in answers})
    if len(answers) != len(contexts) or len(counts) != 1 or not counts[0]:
        wanted = f"as many answers, 1 or more, to each of {len(contexts)} contexts"
        raise ValueError(f"answers must hold {wanted}, got {[len(some) for some in answers]}")
    first = [context for context in contexts for _ in range(counts[0])]
    rows = lay_out(vocab, first, [a for some in answers for a in some], max_len=max_len)
    return rows.unflatten(0, (len(contexts), counts[0]))


def _marks(vocab: Vocabulary) -> list[int]:
    try:
        return vocab.encode(MARKS)
    except KeyError as error:
        raise ValueError(
            f"vocab must have the tokens {' '.join(MARKS)}, as with_marks gives, got {error}"
        ) from None


class _Task(nn.Module):
    """A language model, dropout, and one linear map of the state at `<extract>`."""

    shape = "batch token"

    def __init__(self, gpt: TransformerDecoder, n_out: int):
        super().__init__()
        self.gpt, self.extract = gpt, _marks(gpt.vocab)[2]
        self.dropout = nn.Dropout(gpt.stack.config.dropout)
        self.out = nn.Linear(gpt.d_model, n_out)
        nn.init.normal_(self.out.weight, std=0.02)
        nn.init.zeros_(self.out.bias)

    def forward(self, tokens: Int[Tensor, "batch *row token"]) -> Float[Tensor, "batch answer"]:
        """Scores of the answers."""
        return self._answers(*self._read(tokens))

    def loss(
        self,
        tokens: Int[Tensor, "batch *row token"],
        answers: Int[Tensor, " batch"],
        *,
        auxiliary: float | int = 0.5,
    ) -> Float[Tensor, ""]:
        """What fine-tuning makes small, in nats.

            L = mean of -log P(answer) + lambda mean of -log P(token | tokens before it)

        The second mean is over all tokens of the rows but the first, up to `<extract>`: the model
        stays a language model.

        Args:
            tokens: as for `forward`.
            answers: `[batch]` the right ones.
            auxiliary: lambda.

        Raises:
            ValueError: if answers are not one of those that are scored for each of the batch, or
                `auxiliary` is negative or not finite.

        Source: Radford et al. 2018, equation 5, which has sums.
        """
        check_range(0, torch.inf, auxiliary=auxiliary)
        states, ends = self._read(tokens)
        scores = self._answers(states, ends)
        check_ids("answers", answers, scores.shape[1], "batch")
        check_shapes(answers=(answers, "batch"), batch=len(tokens))
        loss = cross_entropy(scores, answers)
        if auxiliary:
            places = torch.arange(tokens.shape[-1] - 1, device=tokens.device) < ends[..., None]
            words = self.gpt.logits(states[..., :-1, :][places])
            loss = loss + auxiliary * cross_entropy(words, tokens[..., 1:][places])
        return loss

    def _read(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """States of all tokens, and where each row has its `<extract>`."""
        check_ids("tokens", tokens, len(self.gpt.vocab), self.shape)
        found = (tokens == self.extract).long()
        if (found.sum(-1) != 1).any():
            raise ValueError("tokens must hold <extract> once in each row, got other rows")
        states = self.gpt.stack(tokens.flatten(0, -2), causal=True)
        return states.unflatten(0, tokens.shape[:-1]), found.argmax(-1)

    def _answers(self, states: Tensor, ends: Tensor) -> Tensor:
        """Scores from states `[batch *row token d_model]` and ends `[batch *row]`."""
        place = ends[..., None, None].expand(*ends.shape, 1, states.shape[-1])
        return self._scores(states.gather(-2, place)[..., 0, :])

    def _scores(self, h: Tensor) -> Tensor:
        """Scores from the states at `<extract>`, `[batch *row d_model]`."""
        return self.out(self.dropout(h))


class Classifier(_Task):
    """One class for each text, or each pair of texts.

        logits = W h + b

    with h `[d_model]` the state at `<extract>`, the only one that has read the whole row, W
    `[n_classes d_model]` and b `[n_classes]`. Its rows come from `lay_out`.

    Args:
        gpt: a model that `with_marks` made; it is trained along.
        n_classes: number of classes.

    Raises:
        ValueError: if `n_classes` is below 1 or the model lacks the marks; when called, if a row
            has not one `<extract>`.

    Source: Radford et al. 2018, equation 3, which has no b; their code has one.

    In other libraries: `GPT2ForSequenceClassification` of `transformers`, without b.
    """

    def __init__(self, gpt: TransformerDecoder, n_classes: int):
        check_whole(1, n_classes=n_classes)
        super().__init__(gpt, n_classes)


class Similarity(Classifier):
    """One class for each pair of texts, whichever comes first.

        logits = W (h_1 + h_2) + b

    with h_1 and h_2 `[d_model]` the states at `<extract>` of the two orders. Its rows come from
    `both_ways`.

    Args and raises: as for `Classifier`.

    Source: Radford et al. 2018, section 3.3 and figure 1.
    """

    shape = "batch order token"

    def _scores(self, h: Tensor) -> Tensor:
        return super()._scores(h.sum(1))


class MultipleChoice(_Task):
    """A score for each possible answer: a softmax over them makes probabilities.

        logit_k = w . h_k + b

    with h_k `[d_model]` the state at `<extract>` of the row of answer k, and w `[d_model]`. Its
    rows come from `options`.

    Args:
        gpt: a model that `with_marks` made; it is trained along.

    Raises:
        ValueError: as for `Classifier`.

    Source: Radford et al. 2018, section 3.3 and figure 1.

    In other libraries: `GPT2DoubleHeadsModel` of `transformers`.
    """

    shape = "batch option token"

    def __init__(self, gpt: TransformerDecoder):
        super().__init__(gpt, 1)

    def _scores(self, h: Tensor) -> Tensor:
        return super()._scores(h)[..., 0]
