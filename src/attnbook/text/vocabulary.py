"""Words and their token ids, special tokens, and batches of token ids."""

from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnbook.checks import check_choice, check_ids

IGNORED = -100  # a target that the loss leaves out: cross_entropy's default `ignore_index`


class Vocabulary:
    """A map from words to token ids and back, with three special tokens: padding, start and end.

    Args:
        words: distinct words in the order of their ids; a string stands for its letters. Special
            tokens that are not among them come first: by default the ids 0, 1, 2.
        pad: the padding token, which fills up the shorter sentences of a batch.
        bos: the start token of a sentence.
        eos: the end token; the three may be the same (GPT-2's vocabulary has one for all three).

    Attributes:
        tokens: all tokens in the order of their ids.
        pad, bos, eos: the ids of the special tokens.
        barred: the ids that no model writes: padding and start, unless they end a sentence, too.

    Raises:
        ValueError: if a word occurs twice, or is not a string.

    In other libraries: `transformers` calls the ids `pad_token_id`, `bos_token_id`, `eos_token_id`.
    """

    def __init__(
        self, words: Iterable[str], *, pad: str = "<pad>", bos: str = "<s>", eos: str = "</s>"
    ):
        words = tuple(words)
        if strange := [word for word in (*words, pad, bos, eos) if not isinstance(word, str)]:
            raise ValueError(f"words must be strings, got {strange[0]!r}")
        specials = (token for token in dict.fromkeys((pad, bos, eos)) if token not in words)
        self.tokens = (*specials, *words)
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        if len(self._ids) != len(self.tokens):
            doubles = sorted(token for token, n in Counter(words).items() if n > 1)
            raise ValueError(f"words must be distinct, got twice: {doubles}")
        self.pad, self.bos, self.eos = (self._ids[token] for token in (pad, bos, eos))
        self.barred = sorted({self.pad, self.bos} - {self.eos})

    def __len__(self) -> int:
        return len(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and vars(self) == vars(other)

    def written(self, tokens: Int[Tensor, "batch token"]) -> Bool[Tensor, "batch token"]:
        """True up to and including the end token, False at the padding after it."""
        if self.pad != self.eos:
            return tokens != self.pad
        end = tokens == self.eos
        return end.cumsum(-1) - end.long() == 0

    def encode(self, words: Iterable[str]) -> list[int]:
        """Token ids of words; raises a KeyError that names a word outside the vocabulary."""
        try:
            return [self._ids[word] for word in words]
        except KeyError as error:
            raise KeyError(f"word {error.args[0]!r} is not among the {len(self)} tokens") from None

    def decode(self, ids: Iterable[int] | Int[Tensor, " token"]) -> list[str]:
        """Words of token ids, from after a start token up to the end token or padding."""
        words = []
        for place, i in enumerate(as_ids(ids, len(self))):
            if i == self.bos and place == 0:
                continue
            if i in (self.pad, self.eos):
                break
            words.append(self.tokens[i])
        return words


def as_ids(ids: Iterable[int] | Int[Tensor, " token"], vocab_size: int) -> list[int]:
    """Token ids as a list, after a check that they are in the vocabulary.

    Raises:
        ValueError: if an id is not a whole number in 0 .. vocab_size - 1.
    """
    try:
        ids = torch.as_tensor(ids if isinstance(ids, Tensor) else list(ids))
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"ids must be token ids, whole numbers, got {ids!r:.60}") from None
    if ids.numel():
        check_ids("ids", ids, vocab_size, "token")
    return ids.tolist()


def pad_batch(
    sequences: Sequence[Sequence[int]], pad: int, *, side: Literal["left", "right"] = "right"
) -> Int[Tensor, "batch token"]:
    """Stack token sequences of different lengths; shorter ones are filled up with padding.

    Args:
        sequences: one list of token ids per sentence.
        pad: id of padding, as `vocab.pad`.
        side: the side of the padding: "left" for prompts that a model continues.

    Raises:
        ValueError: if there is no sequence, an id is not a whole number, or `side` is unknown.
    """
    check_choice(("left", "right"), side=side)
    if not sequences:
        raise ValueError("sequences must hold at least one sequence, got none")
    kinds = {type(i): i for row in ([pad], *sequences) for i in row}  # few, where ids are many
    if strange := [i for kind, i in kinds.items() if not issubclass(kind, Integral)]:
        raise ValueError(f"sequences and pad must be token ids, whole numbers, got {strange[0]!r}")
    longest = max(map(len, sequences))
    filled = []
    for sequence in sequences:
        padding = [pad] * (longest - len(sequence))
        filled.append([*padding, *sequence] if side == "left" else [*sequence, *padding])
    return torch.tensor(filled, dtype=torch.long)


class Pairs(NamedTuple):
    """A batch of sentence pairs, for a model that reads one and writes the other.

    Attributes:
        source: `[batch source]` token ids, without start and end tokens.
        target: `[batch target]` token ids, from start token to end token.

    In other libraries: `input_ids` and `labels` of a sequence-to-sequence model in `transformers`.
    """

    source: Int[Tensor, "batch source"]
    target: Int[Tensor, "batch target"]


class Sequences(NamedTuple):
    """A batch of sequences with a target at each token, for a language model or a tagger.

    Attributes:
        tokens: `[batch token]` token ids.
        targets: `[batch token]` what to predict at each token, or `IGNORED`; for a language
            model the next token.

    In other libraries: `input_ids` and `labels` of `transformers`.
    """

    tokens: Int[Tensor, "batch token"]
    targets: Int[Tensor, "batch token"]
