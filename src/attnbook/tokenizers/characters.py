"""Characters: each character of a text is a token."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from attnbook.checks import check_ids, check_whole
from attnbook.tokenizers.bytepair import END
from attnbook.vocabulary import Vocabulary

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
FILE = "vocab.json"


class Characters:
    """Each character is a token.

    Args:
        alphabet: the characters, in the order of their ids. Is U+FFFD among them, it stands for all
            others.
        special: a token that no text makes: padding, start and end. It has the last id.

    Attributes:
        vocab: the `Vocabulary`.

    Raises:
        ValueError: if a token of the alphabet is no single character, or comes twice.
    """

    def __init__(self, alphabet: Iterable[str], special: str = END):
        alphabet = tuple(alphabet)
        if strange := [c for c in alphabet if not (isinstance(c, str) and len(c) == 1)]:
            raise ValueError(f"alphabet must hold single characters, got {strange[0]!r}")
        if len(special) < 2:
            raise ValueError(f"special must be longer than a character, got {special!r}")
        self.vocab = Vocabulary((*alphabet, special), pad=special, bos=special, eos=special)
        self._ids = {c: i for i, c in enumerate(alphabet)}

    def encode(self, text: str) -> list[int]:
        """Token ids of a text.

        Raises:
            ValueError: if a character is not in the alphabet, nor U+FFFD, which would stand for it.
        """
        try:
            return [self._ids[c] for c in text]
        except KeyError as error:
            if UNKNOWN not in self._ids:
                known = f"the {len(self._ids)} characters of the alphabet"
                raise ValueError(f"text must hold {known}, got {error.args[0]!r}") from None
        unknown = self._ids[UNKNOWN]
        return [self._ids.get(c, unknown) for c in text]

    def decode(self, ids: Iterable[int] | Int[Tensor, " token"]) -> str:
        """The text of tokens, without the special one."""
        ids = torch.as_tensor(ids if isinstance(ids, Tensor) else list(ids))
        if ids.numel():
            check_ids("ids", ids, len(self.vocab), "token")
        return "".join(self.vocab.tokens[i] for i in ids.tolist() if i != self.vocab.eos)

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None = None) -> "Characters":
        """The characters of some texts, by their codes.

        Args:
            texts: read once.
            vocab_size: number of tokens: U+FFFD, the special one, and the most frequent characters.
                None: all characters, without U+FFFD unless it is there.

        Raises:
            ValueError: if `vocab_size` is below 3.
        """
        counts = Counter[str]()
        for text in texts:
            counts.update(text)
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
        """Read what `save` wrote.

        Raises:
            ValueError: if there is no such file, or as the class does.
        """
        path = Path(folder, FILE)
        if not path.is_file():
            raise ValueError(f"folder must hold {FILE}, got {folder}")
        ids: dict[str, int] = json.loads(path.read_text("utf-8"))
        *alphabet, special = sorted(ids, key=ids.__getitem__)
        return cls(alphabet, special)
