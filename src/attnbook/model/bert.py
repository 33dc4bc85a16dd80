"""BERT: an encoder that learns from words hidden in their sentence, and heads for other tasks."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnbook.checks import check_ids, check_range, check_shapes, check_whole
from attnbook.model.block import ACTIVATIONS, normalizer
from attnbook.model.config import TransformerConfig
from attnbook.model.transformer import TransformerEncoder
from attnbook.text.tokenizers import WordPiece
from attnbook.text.vocabulary import IGNORED, Sequences, Vocabulary, pad_batch

Head = TypeVar("Head", bound=nn.Module)


class Packed(NamedTuple):
    """A batch of texts or pairs of texts, each in one row.

    Attributes:
        tokens: `[batch token]` `[CLS] first [SEP]`, or `[CLS] first [SEP] second [SEP]`, then
            padding.
        segments: `[batch token]` 1 at the second text and the `[SEP]` after it, 0 elsewhere.

    In other libraries: `input_ids` and `token_type_ids` of `transformers`.
    """

    tokens: Int[Tensor, "batch token"]
    segments: Int[Tensor, "batch token"]


def pack(
    vocab: Vocabulary,
    first: Sequence[Sequence[int]],
    second: Sequence[Sequence[int]] | None = None,
    *,
    max_len: int,
) -> Packed:
    """Texts, or pairs of texts, in BERT's layout.

    What is too long is cut at its end, one token at a time from the longer text of a pair, or from
    the second where both are equally long.

    Args:
        vocab: the tokens' vocabulary; its start token is `[CLS]` and its end token `[SEP]`.
        first: token ids of each text, or of the first text of each pair.
        second: token ids of the second texts, as many. None: there are no pairs.
        max_len: the most tokens of a row, special tokens included.

    Raises:
        ValueError: if there is no text, `second` has another number of texts, or `max_len` leaves
            no room for a token of each text.

    Source: Devlin et al. 2019, section 3 and figure 2.

    In other libraries: `tokenizer(first, second, truncation="longest_first")` of `transformers`,
    which cuts the first of two equally long texts.
    """
    texts = 1 if second is None else 2
    check_whole(2 * texts + 1, max_len=max_len)
    if second is not None and len(second) != len(first):
        raise ValueError(f"second must hold {len(first)} texts, as first, got {len(second)}")
    rows, segments = [], []
    for a, b in zip(first, first if second is None else second, strict=True):
        a, b = list(a), [] if second is None else list(b)
        while len(a) + len(b) > max_len - texts - 1:
            (a if len(a) > len(b) else b).pop()
        end = [] if second is None else [*b, vocab.eos]
        rows.append([vocab.bos, *a, vocab.eos, *end])
        segments.append([0] * (len(a) + 2) + [1] * len(end))
    return Packed(pad_batch(rows, vocab.pad), pad_batch(segments, 0))


def mask_tokens(
    tokens: Int[Tensor, "batch token"],
    tokenizer: WordPiece,
    *,
    share: float = 0.15,
    masked: float = 0.8,
    random: float = 0.1,
    seed: int = 0,
) -> Sequences:
    """Choose words to be guessed, and hide most of them.

    Each token that is not special is chosen with the probability `share`, by itself. A chosen token
    becomes `[MASK]` with the probability `masked`, any token that is not special with the
    probability `random`, and else stays as it is.

    Args:
        tokens: `[batch token]`, left as they are.
        tokenizer: knows the special tokens, padding among them; none of them is chosen.
        share, masked, random: the probabilities above, 0 .. 1.
        seed: decides the choice, together with the shape of the tokens.

    Returns:
        The tokens that the model reads, and as targets the tokens that were chosen, `IGNORED`
        elsewhere.

    Raises:
        ValueError: if tokens are no batch of the tokenizer's ids, a probability is not in 0 .. 1,
            or `masked` and `random` add up to more than 1.

    Source: Devlin et al. 2019, section 3.1 and appendix A.1. The paper's own code chooses 15 % of
    each row, at least one token.

    In other libraries: `DataCollatorForLanguageModeling` of `transformers`.
    """
    check_ids("tokens", tokens, len(tokenizer.vocab))
    check_range(0, 1, share=share, masked=masked, random=random)
    check_range(0, round(1 - masked, 9), random=random)  # 1 - 0.8 is a little below 0.2
    generator = torch.Generator().manual_seed(seed)
    choice, kind = torch.rand(2, *tokens.shape, generator=generator).to(tokens.device)
    special = torch.tensor(tokenizer.special, device=tokens.device)
    ordinary = torch.arange(len(tokenizer.vocab), device=tokens.device)
    ordinary = ordinary[~torch.isin(ordinary, special)]
    drawn = torch.randint(len(ordinary), tokens.shape, generator=generator).to(tokens.device)
    chosen = (choice < share) & ~torch.isin(tokens, special)
    hidden = torch.where(kind < masked + random, ordinary[drawn], tokens)
    hidden = hidden.masked_fill(kind < masked, tokenizer.mask)
    return Sequences(
        torch.where(chosen, hidden, tokens), torch.where(chosen, tokens, torch.tensor(IGNORED))
    )


class WordHead(nn.Module):
    """Scores of every word, from the state of a hidden one.

        logits = E norm(f(W x + c)) + b

    with x `[d_model]` the state, W `[d_model d_model]` and c `[d_model]` the map `transform`, f the
    encoder's activation, E `[vocab_size d_model]` the encoder's embedding, and b `[vocab_size]`.

    Args:
        vocab_size: number of tokens.
        config: gives d_model, activation and norm.

    Source: Devlin et al. 2019, section 3.1, and its code, which adds the map and the norm.

    In other libraries: `BertLMPredictionHead` of `transformers`.
    """

    def __init__(self, vocab_size: int, config: TransformerConfig):
        super().__init__()
        self.transform = nn.Linear(config.d_model, config.d_model)
        self.f = ACTIVATIONS[config.activation]
        self.norm = normalizer(config)
        self.bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(
        self, states: Float[Tensor, "*batch d_model"], embedding: Float[Tensor, "vocab d_model"]
    ) -> Float[Tensor, "*batch vocab"]:
        """Logits of states."""
        return self.norm(self.f(self.transform(states))) @ embedding.T + self.bias


class Bert(TransformerEncoder):
    """BERT: an encoder of texts and pairs, with the two heads that it is pretrained with.

        H = encoder(tokens, segments)
        words: E norm(f(W H_i + c)) + b              at a masked place i, as `WordHead`
        pooled: h = tanh(W_p H_0 + b_p)              of [CLS], the first token
        next sentence: W_n h + b_n                   2 numbers: B follows A, or does not

    with H `[token d_model]`, W_p `[d_model d_model]` and W_n `[2 d_model]`. The model itself gives
    H. All matrices start with standard deviation 0.02 and biases with 0, as in the paper's code.

    Args:
        vocab: the tokens' vocabulary, `tokenizer.vocab` of a `WordPiece`.
        config: sizes and choices, as `attnbook.model.config.BERT`.

    Attributes:
        pooler, words, next_sentence: W_p, the `WordHead`, and W_n; None where a model that was
            loaded has none.

    Raises:
        ValueError: in a method, if the head that it needs is missing.

    Source: Devlin et al. 2019, section 3.

    In other libraries: `BertForPreTraining` of `transformers`; H is `last_hidden_state` of
    `BertModel`, h its `pooler_output`.
    """

    pooler: nn.Linear | None
    words: WordHead | None
    next_sentence: nn.Linear | None

    def __init__(self, vocab: Vocabulary, config: TransformerConfig):
        super().__init__(vocab, config)
        self.pooler = nn.Linear(config.d_model, config.d_model)
        self.words = WordHead(len(vocab), config)
        self.next_sentence = nn.Linear(config.d_model, 2)
        self.apply(_start)

    def layers(
        self,
        tokens: Int[Tensor, "batch token"],
        segments: Int[Tensor, "batch token"] | None = None,
    ) -> list[Float[Tensor, "batch token d_model"]]:
        """The states before the first block and after each: n_layers + 1 of them."""
        states: list[Tensor] = []

        def keep(_module: nn.Module, _inputs: object, out: Tensor) -> None:
            states.append(out)

        with ExitStack() as afterwards:
            for module in (self.stack.dropout, *self.stack.blocks):
                hook = module.register_forward_hook(keep)
                afterwards.callback(hook.remove)
            self(tokens, segments)
        return states

    def pooled(
        self, states: Float[Tensor, "batch token d_model"]
    ) -> Float[Tensor, "batch d_model"]:
        """One vector a row: tanh of a linear map of the state of [CLS]."""
        return torch.tanh(_needed(self.pooler, "a pooler")(states[:, 0]))

    def word_logits(
        self,
        states: Float[Tensor, "batch token d_model"],
        places: Bool[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "*place vocab"]:
        """Scores of every word.

        Args:
            states: `[batch token d_model]` from `forward`.
            places: `[batch token]` True where they are asked; other places cost nothing. None:
                everywhere.

        Returns:
            `[place vocab]`, places in reading order, or `[batch token vocab]`.
        """
        head = _needed(self.words, "a masked-word head")
        if places is not None:
            check_shapes(states=(states, "batch token d_model"), places=(places, "batch token"))
            _check_flags(places=places)
            states = states[places]
        return head(states, self.stack.embedding.weight)

    def next_logits(self, states: Float[Tensor, "batch token d_model"]) -> Float[Tensor, "batch 2"]:
        """Scores of 0, "the second text follows the first", and of 1, "it does not"."""
        return _needed(self.next_sentence, "a next-sentence head")(self.pooled(states))

    def word_loss(
        self, states: Float[Tensor, "batch token d_model"], targets: Int[Tensor, "batch token"]
    ) -> Float[Tensor, ""]:
        """Mean cross-entropy of the words to be guessed, in nats; 0 if there are none.

        Args:
            states: `[batch token d_model]`.
            targets: `[batch token]` from `mask_tokens`.
        """
        check_shapes(states=(states, "batch token d_model"), targets=(targets, "batch token"))
        asked = targets != IGNORED
        losses = cross_entropy(self.word_logits(states, asked), targets[asked], reduction="sum")
        return losses / asked.sum().clamp(min=1)

    def next_loss(
        self, states: Float[Tensor, "batch token d_model"], follows: Bool[Tensor, " batch"]
    ) -> Float[Tensor, ""]:
        """Mean cross-entropy of whether the second text follows the first, in nats."""
        check_shapes(states=(states, "batch token d_model"), follows=(follows, "batch"))
        _check_flags(follows=follows)
        return cross_entropy(self.next_logits(states), (~follows).long())


class _Task(nn.Module):
    """An encoder, dropout and one linear map, which starts as the encoder's do."""

    def __init__(self, bert: Bert, n_out: int):
        super().__init__()
        self.bert = bert
        self.dropout = nn.Dropout(bert.stack.config.dropout)
        self.out = nn.Linear(bert.d_model, n_out)
        _start(self.out)


class Classifier(_Task):
    """One class for each text, or each pair of texts.

        logits = W h + b

    with h `[d_model]` the pooled vector of [CLS], W `[n_classes d_model]` and b `[n_classes]`.

    Args:
        bert: the encoder, with a pooler; it is trained along, unless its parameters are frozen.
        n_classes: number of classes.

    Raises:
        ValueError: if `n_classes` is below 1, or the encoder has no pooler.

    Source: Devlin et al. 2019, section 4.1 and figure 4 (a, b).

    In other libraries: `BertForSequenceClassification` of `transformers`.
    """

    def __init__(self, bert: Bert, n_classes: int):
        check_whole(1, n_classes=n_classes)
        _needed(bert.pooler, "a pooler")
        super().__init__(bert, n_classes)

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        segments: Int[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch class"]:
        """Scores of the classes."""
        return self.out(self.dropout(self.bert.pooled(self.bert(tokens, segments))))


class Tagger(_Task):
    """One class for each token.

        logits_i = W H_i + b

    with H_i `[d_model]` the state of token i, W `[n_tags d_model]` and b `[n_tags]`.

    Args:
        bert: the encoder; it is trained along, unless its parameters are frozen.
        n_tags: number of classes.

    Raises:
        ValueError: if `n_tags` is below 1.

    Source: Devlin et al. 2019, section 5.3 and figure 4 (d).

    In other libraries: `BertForTokenClassification` of `transformers`.
    """

    def __init__(self, bert: Bert, n_tags: int):
        check_whole(1, n_tags=n_tags)
        super().__init__(bert, n_tags)

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        segments: Int[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch token tag"]:
        """Scores of the tags; those at padding mean nothing."""
        return self.out(self.dropout(self.bert(tokens, segments)))


class SpanFinder(_Task):
    """Where an answer starts and where it ends.

        start_i = s . H_i + b,   end_i = e . H_i + c

    with H_i `[d_model]` the state of token i, and s and e `[d_model]`. A softmax over the tokens of
    a row makes probabilities of each.

    Args:
        bert: the encoder; it is trained along, unless its parameters are frozen.

    Source: Devlin et al. 2019, section 4.2 and figure 4 (c).

    In other libraries: `BertForQuestionAnswering` of `transformers`.
    """

    def __init__(self, bert: Bert):
        super().__init__(bert, 2)

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        segments: Int[Tensor, "batch token"] | None = None,
    ) -> Float[Tensor, "batch 2 token"]:
        """Scores of each token as start and as end: minus infinity at padding."""
        logits = self.out(self.dropout(self.bert(tokens, segments))).mT
        return logits.masked_fill((tokens == self.bert.vocab.pad)[:, None], -torch.inf)


def _start(module: nn.Module) -> None:
    """Random matrices and biases of 0, as BERT begins."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def _needed(head: Head | None, name: str) -> Head:
    if head is None:
        raise ValueError(f"model must have {name}, got one that was loaded without")
    return head


def _check_flags(**named: Tensor) -> None:
    for name, flags in named.items():
        if flags.dtype != torch.bool:
            raise ValueError(f"{name} must be boolean, got {flags.dtype}")
