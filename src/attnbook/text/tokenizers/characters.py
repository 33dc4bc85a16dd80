"""Characters: each character of a text is a token."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from jaxtyping import Int
from torch import Tensor

from attnbook.checks import check_flags, check_text, check_texts, check_whole
from attnbook.text.tokenizers.bytepair import END, split_special
from attnbook.text.vocabulary import Vocabulary, as_ids

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
FILE = "vocab.json"


class Characters:
    """Each character is a token.

    Args:
        alphabet: the characters, in the order of their ids. U+FFFD, if it is among them, stands for
            all other characters.
        special: the one special token: padding, start and end. It has the last id.

    Attributes:
        vocab: the `Vocabulary`.
        special: the id of the special token, in a tuple.

    Raises:
        ValueError: if a token of the alphabet is not a single character, or occurs twice, or if
            special is not longer than a character.
    """

    def __init__(self, alphabet: Iterable[str], special: str = END):
        alphabet = tuple(alphabet)
        if strange := [c for c in alphabet if not (isinstance(c, str) and len(c) == 1)]:
            raise ValueError(f"alphabet must hold single characters, got {strange[0]!r}")
        if len(special) < 2:
            raise ValueError(f"special must be longer than a character, got {special!r}")
        self.vocab = Vocabulary((*alphabet, special), pad=special, bos=special, eos=special)
        self.special = (self.vocab.eos,)
        self._ids = {c: i for i, c in enumerate(alphabet)}

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Token ids of a text.

        Args:
            text: a text of any length.
            special: whether the special token is recognised in the text.

        Raises:
            ValueError: if neither a character of the text nor U+FFFD is in the alphabet.
        """
        check_text(text=text)
        check_flags(special=special)
        if special:
            first, *others = split_special(text, [self.vocab.tokens[self.vocab.eos]])[::2]
            ids = self.encode(first)
            for part in others:
                ids += [self.vocab.eos, *self.encode(part)]
            return ids
        try:
            return [self._ids[c] for c in text]
        except KeyError as error:
            if UNKNOWN not in self._ids:
                known = f"the {len(self._ids)} characters of the alphabet"
                raise ValueError(f"text must hold {known}, got {error.args[0]!r}") from None
        unknown = self._ids[UNKNOWN]
        return [self._ids.get(c, unknown) for c in text]

    def decode(self, ids: Iterable[int] | Int[Tensor, " token"], *, special: bool = False) -> str:
        """The text of tokens; `special`: whether to write the special token, too."""
        check_flags(special=special)
        hidden = () if special else self.special
        tokens = self.vocab.tokens
        return "".join(tokens[i] for i in as_ids(ids, len(tokens)) if i not in hidden)

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None = None) -> "Characters":
        """A tokenizer for the characters of the texts, in the order of their code points.

        Args:
            texts: read once. The special token is left out where a text contains it.
            vocab_size: number of tokens: U+FFFD, the special one, and the most frequent characters.
                None: all characters; U+FFFD only if a text contains it.

        Raises:
            ValueError: if texts is one string, or `vocab_size` is below 3.
        """
        check_texts(texts=texts)
        counts = Counter[str]()
        for text in texts:
            for part in split_special(text, [END])[::2]:
                counts.update(part)
        if vocab_size is None:
            return cls(sorted(counts))
        check_whole(3, vocab_size=vocab_size)
        del counts[UNKNOWN]
        often = sorted(counts, key=lambda c: (-counts[c], c))[: vocab_size - 2]
        return cls(sorted([*often, UNKNOWN]))

    def save(self, folder: str | Path) -> None:
        """Write `vocab.json`, the id of each token, in a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        ids = {token: i for i, token in enumerate(self.vocab.tokens)}
        (folder / FILE).write_text(json.dumps(ids), "utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> "Characters":
        """Read a tokenizer that `save` wrote.

        Raises:
            ValueError: if there is no such file, and for the class's reasons.
        """
        path = Path(folder, FILE)
        if not path.is_file():
            raise ValueError(f"folder must hold {FILE}, got {folder}")
        ids: dict[str, int] = json.loads(path.read_text("utf-8"))
        *alphabet, special = sorted(ids, key=ids.__getitem__)
        return cls(alphabet, special)
