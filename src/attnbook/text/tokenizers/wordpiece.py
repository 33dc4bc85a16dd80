"""WordPiece: BERT's tokenizer, which cuts rare words into pieces."""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from jaxtyping import Int
from torch import Tensor

from attnbook.checks import check_flags, check_text, check_texts, check_whole
from attnbook.text.tokenizers.merging import Table, merges
from attnbook.text.vocabulary import Vocabulary, as_ids

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MORE = "##"  # prefix of a piece that continues a word
LONGEST = 100  # characters; a longer word is unknown
IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),  # BERT's own code has 0x2B820, `tokenizers` this number
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def _clean(code: int) -> str:
    """Drop control characters, turn white space into a space, separate an ideograph."""
    c = chr(code)
    if c in "\t\n\r":
        return " "
    if c in "\0\N{REPLACEMENT CHARACTER}" or unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if c.isspace():
        return " "
    return f" {c} " if any(a <= code <= b for a, b in IDEOGRAPHS) else c


def _lower(code: int) -> str:
    """The lowercase character, or "" for an accent."""
    c = chr(code)
    return "" if unicodedata.category(c) == "Mn" else c.lower()


def _split(code: int) -> str:
    """Separate punctuation by spaces."""
    c = chr(code)
    sign = c.isascii() and c.isprintable() and not c.isalnum() and c != " "
    return f" {c} " if sign or unicodedata.category(c).startswith("P") else c


CLEAN, LOWER, SPLIT = (Table[int, str](rule) for rule in (_clean, _lower, _split))


class WordPiece:
    """BERT's tokenizer: a known word is one token, others are split into known pieces.

        "Unaffordable taxes!"   un ##afford ##able taxes !

    A text is first normalised: control characters are removed and, with `lowercase`, capitals
    become lowercase and accents are removed. White space, punctuation marks and Chinese characters
    separate words. A word is split from the left, always by the longest piece in the vocabulary;
    all but its first piece begin with `##`. A word that cannot be split so, or that has more than
    100 characters, is `[UNK]`.

    Special tokens are never recognised in a text: "[MASK]" in it is three words. Insert their ids.

    Args:
        tokens: all tokens in the order of their ids: the five special ones, `[PAD]`, `[UNK]`,
            `[CLS]`, `[SEP]` and `[MASK]`, anywhere among them, and at least one more.
        lowercase: whether capitals become lowercase and accents are removed.

    Attributes:
        vocab: the `Vocabulary`, with `[PAD]`, `[CLS]` and `[SEP]` as padding, start and end.
        unk, mask: the ids of `[UNK]` and `[MASK]`.
        special: the ids of all five special tokens.

    Raises:
        ValueError: if a token occurs twice or is not a string, or a special token is missing.

    Source: Schuster and Nakajima 2012; Wu et al. 2016, section 4.1; normalised and split as in
    the code of Devlin et al. 2019.

    In other libraries: `BertWordPieceTokenizer` of `tokenizers`, `BertTokenizer` of `transformers`.
    Characters that Unicode has added since 2015 may be punctuation here and a letter there.
    """

    def __init__(self, tokens: Iterable[str], *, lowercase: bool = True):
        check_texts(tokens=tokens)
        check_flags(lowercase=lowercase)
        tokens = tuple(tokens)
        if missing := [token for token in SPECIAL if token not in tokens]:
            raise ValueError(
                f"tokens must hold {', '.join(SPECIAL)}, got none that is {missing[0]}"
            )
        if len(tokens) == len(SPECIAL):
            raise ValueError("tokens must hold more than the special ones, got those alone")
        self.vocab = Vocabulary(tokens, pad="[PAD]", bos="[CLS]", eos="[SEP]")
        self.lowercase = lowercase
        self.special = tuple(self.vocab.encode(SPECIAL))
        self.unk, self.mask = self.vocab.encode(("[UNK]", "[MASK]"))
        self._ids = {token: i for i, token in enumerate(tokens)}
        self._longest = max(map(len, tokens))
        self._known = Table[str, list[int]](self._pieces)

    def words(self, text: str) -> list[str]:
        """The normalised words of a text, before they are split into pieces."""
        return _words(text, self.lowercase)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, without special tokens except `[UNK]`."""
        return list(chain.from_iterable(map(self._known.__getitem__, self.words(text))))

    def _pieces(self, word: str) -> list[int]:
        ids, begin = [], 0
        while begin < len(word) <= LONGEST:
            prefix = MORE if begin else ""
            for end in range(min(len(word), begin + self._longest), begin, -1):
                if (i := self._ids.get(prefix + word[begin:end])) is not None:
                    break
            else:
                return [self.unk]
            ids.append(i)
            begin = end
        return ids or [self.unk]

    def decode(self, ids: Iterable[int] | Int[Tensor, " token"], *, special: bool = False) -> str:
        """The text of tokens: pieces joined to words, with spaces between the words.

        Args:
            ids: `[token]`.
            special: whether `[PAD]`, `[CLS]` and `[SEP]` are written, too.
        """
        check_flags(special=special)
        hidden = () if special else (self.vocab.pad, self.vocab.bos, self.vocab.eos)
        shown = [self.vocab.tokens[i] for i in as_ids(ids, len(self.vocab)) if i not in hidden]
        return " ".join(shown).replace(f" {MORE}", "")

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        *,
        lowercase: bool = True,
        min_count: int = 2,
    ) -> "WordPiece":
        """Learn pieces from texts.

        At first each character is a piece. The most frequent pair of neighbouring pieces is merged;
        between equally frequent pairs, the one that sorts first. This is repeated until there are
        `vocab_size` tokens.

        Args:
            texts: read once.
            vocab_size: number of tokens, including the special ones and every character.
            lowercase: as for the class.
            min_count: rarer pairs are not merged, so that there may be fewer tokens.

        Raises:
            ValueError: if texts is one string, `min_count` or `vocab_size` is below 1, the texts
                have no words, or `vocab_size` is too small for the characters and special tokens.

        Source: Sennrich et al. 2016, algorithm 1 (byte-pair encoding). Schuster and Nakajima 2012
        choose the pair that makes the texts most likely; the code that made BERT's vocabulary was
        not published.

        In other libraries: the trainer of `tokenizers` also merges the most frequent pair, but
        orders equally frequent pairs differently, so that a few pieces differ.
        """
        check_texts(texts=texts)
        check_flags(lowercase=lowercase)
        check_whole(1, vocab_size=vocab_size, min_count=min_count)
        counts = Counter(word for text in texts for word in _words(text, lowercase))
        letters = {c for word in counts for c in word}
        later = {MORE + c for word in counts for c in word[1:]}
        tokens = [*SPECIAL, *sorted(letters), *sorted(later)]
        if not counts:
            raise ValueError("texts must hold at least one word, got none")
        if vocab_size < len(tokens):
            wanted = f"at least {len(tokens)}, the characters and special tokens"
            raise ValueError(f"vocab_size must be {wanted}, got {vocab_size}")
        known = set(tokens)
        words = [[word[0], *(MORE + c for c in word[1:])] for word in counts]
        for _, token in merges(words, list(counts.values()), min_count, _join):
            if len(tokens) == vocab_size:
                break
            if token not in known:  # two pairs can make the same piece
                known.add(token)
                tokens.append(token)
        return cls(tokens, lowercase=lowercase)

    def save(self, path: str | Path) -> None:
        """Write BERT's `vocab.txt`, one token per line; it does not store `lowercase`."""
        Path(path).write_text("".join(f"{token}\n" for token in self.vocab.tokens), "utf-8")

    @classmethod
    def load(cls, path: str | Path, *, lowercase: bool = True) -> "WordPiece":
        """Read a `vocab.txt`.

        Raises:
            ValueError: as for the class.
        """
        tokens = Path(path).read_text("utf-8").removesuffix("\n").split("\n")
        return cls(tokens, lowercase=lowercase)


def _words(text: str, lowercase: bool) -> list[str]:
    check_text(text=text)
    text = text.translate(CLEAN)
    if lowercase:
        text = unicodedata.normalize("NFD", text).translate(LOWER)
    return text.translate(SPLIT).split()


def _join(a: str, b: str) -> str:
    return a + b.removeprefix(MORE)
