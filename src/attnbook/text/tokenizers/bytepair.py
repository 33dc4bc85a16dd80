"""BytePair: GPT-2's tokenizer, which works on bytes, so that no text is unknown."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import regex
from jaxtyping import Int
from torch import Tensor

from attnbook.checks import (
    check_choice,
    check_flags,
    check_text,
    check_texts,
    check_whole,
)
from attnbook.text.tokenizers.merging import Table, merges
from attnbook.text.vocabulary import Vocabulary, as_ids

END = "<|endoftext|>"
WORD = regex.compile(  # GPT-2's: an English ending, letters, digits or signs after a space, spaces
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)
DIGIT = regex.compile(  # the same, but each digit is a word
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"
)
ENDS = regex.compile(
    r"(?r)(?<=\S)(?=\s)"
)  # positions where a word certainly ends, from last to first
LONE = regex.compile(
    "[\ud800-\udc7f\udd00-\udfff]"
)  # surrogates that are not `surrogateescape` bytes
FILES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
HEADER = "#version: 0.2"

# A byte is written as its Latin-1 character if that is printable, otherwise as one from Ā on.
_SEEN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(256) if byte not in _SEEN]
LETTERS = dict(zip((*_SEEN, *_HIDDEN), map(chr, (*_SEEN, *range(256, 324))), strict=True))
BYTES = {letter: byte for byte, letter in LETTERS.items()}


class BytePair:
    """GPT-2's tokenizer: byte-pair encoding, which merges the bytes of a word into pieces.

        "Hello, tokenizers"   Hello , Ġtoken izers

    A text is split into words: an English ending such as "'s", or letters, digits or other signs,
    each with the space before them; further white space is a word of its own. A word begins as the
    bytes of its UTF-8. Of all pairs of neighbouring pieces, the pair that comes first in `merges`
    is merged, until no pair can be. Each of the 256 bytes is a token, so that no text is unknown
    and `decode_bytes` gives back every byte, unless the tokenizer is lossy.

    Tokens are written with printable characters, as in GPT-2's files: a space is Ġ, a new line Ċ.

    Args:
        merges: pairs of pieces in the order in which they were learnt.
        special: tokens that merging never produces, such as the end of a text.
        tokens: all tokens in the order of their ids. None: the bytes by their characters, the
            merged pieces, the special tokens.
        pad, bos, eos: which special tokens are padding, start and end. None: the first one.
        digits: whether each digit is a word of its own, apart from the space before it.
        lossy: whether `tokens` may lack bytes. A missing byte is dropped from every text, and its
            neighbours become neighbours.

    Attributes:
        vocab: the `Vocabulary`.
        merges: as given, a tuple of pairs.
        special: the ids of the special tokens.
        digits: as given.

    Raises:
        ValueError: if a merge occurs twice or joins pieces that are not tokens yet, if there is no
            special token or merging produces one, if `tokens` has other tokens or lacks a byte, or
            if padding, start or end is not special.

    Source: Sennrich et al. 2016, section 3.2; Radford et al. 2019, section 2.2. Single digits:
    Touvron et al. 2023, section 2.1.

    In other libraries: `GPT2Tokenizer` of `transformers`, `ByteLevelBPETokenizer` of `tokenizers`,
    `tiktoken`.
    """

    def __init__(
        self,
        merges: Iterable[tuple[str, str]],
        special: Iterable[str] = (END,),
        *,
        tokens: Iterable[str] | None = None,
        pad: str | None = None,
        bos: str | None = None,
        eos: str | None = None,
        digits: bool = False,
        lossy: bool = False,
    ):
        check_flags(digits=digits, lossy=lossy)
        check_texts(merges=merges, special=special, tokens=() if tokens is None else tokens)
        self.merges = tuple((a, b) for a, b in merges)
        special = tuple(special)
        if not special:
            raise ValueError("special must hold at least one token, got none")
        for name, token in {"pad": pad, "bos": bos, "eos": eos}.items():
            check_choice((*special, None), **{name: token})
        tokens = None if tokens is None else tuple(tokens)
        lacking = () if tokens is None else set(LETTERS.values()).difference(tokens)
        if lacking and not lossy:
            raise ValueError(f"tokens must hold every byte unless lossy, got no {min(lacking)!r}")
        made = dict.fromkeys(letter for letter in LETTERS.values() if letter not in lacking)
        for a, b in self.merges:
            if missing := [part for part in (a, b) if part not in made]:
                raise ValueError(f"merges must join tokens, got {missing[0]!r} in {a!r} {b!r}")
            made[a + b] = None
        if len(set(self.merges)) < len(self.merges):
            ((twice, _),) = Counter(self.merges).most_common(1)
            raise ValueError(f"merges must be distinct, got twice: {' '.join(twice)!r}")
        wanted = (*made, *special)
        tokens = wanted if tokens is None else tokens
        if other := set(tokens) ^ set(wanted):
            raise ValueError(f"tokens must be bytes, merged and special ones, got {min(other)!r}")
        first = special[0]
        self.vocab = Vocabulary(tokens, pad=pad or first, bos=bos or first, eos=eos or first)
        self.special = tuple(self.vocab.encode(special))
        ids = {token: i for i, token in enumerate(tokens)}
        self._byte = [ids.get(LETTERS[byte]) for byte in range(256)]
        self.digits = digits
        self._word = DIGIT if digits else WORD
        self._ranks = {
            (ids[a], ids[b]): (rank, ids[a + b]) for rank, (a, b) in enumerate(self.merges)
        }
        self._bytes = [b"" if t in special else bytes(BYTES[c] for c in t) for t in tokens]
        self._known = Table[str, list[int]](self._pieces)

    def words(self, text: str) -> list[str]:
        """The words of a text, before they become pieces; concatenated, they give the text."""
        return self._word.findall(text)

    def encode(self, text: str | bytes, *, special: bool = False) -> list[int]:
        """Token ids of a text.

        The time is linear in the text, and slightly worse in the longest word: several seconds for
        a word of a megabyte, such as one repeated letter.

        Args:
            text: a string or bytes, which need not be valid UTF-8. In a string, an invalid byte is
                written as by Python's `surrogateescape`; other lone surrogates become U+FFFD.
            special: whether special tokens written in the text are recognised, as between the
                documents of a file. Otherwise they are ordinary text, so that a user's text cannot
                contain control tokens.
        """
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogateescape")
        check_text(text=text)
        check_flags(special=special)
        if special:
            parts = split_special(text, self._names())
            ids = [self.encode(part) for part in parts]
            ids[1::2] = [self.vocab.encode([part]) for part in parts[1::2]]
            return list(chain.from_iterable(ids))
        return list(chain.from_iterable(map(self._known.__getitem__, self.words(text))))

    def encode_iterable(self, parts: Iterable[str], *, special: bool = False) -> Iterator[int]:
        """Token ids of a text that comes in parts, the same as those of the whole text.

        Args:
            parts: parts of any size, cut anywhere; they are read lazily.
            special: as for `encode`.
        """
        for part in whole_words(parts, self._names() if special else ()):
            yield from self.encode(part, special=special)

    def _names(self) -> list[str]:
        return [self.vocab.tokens[i] for i in self.special]

    def _pieces(self, word: str) -> list[int]:
        """Token ids of a word; a piece merged into the one before it is -1 in the meantime."""
        ids = [i for byte in _utf8(word) if (i := self._byte[byte]) is not None]
        after, before = list(range(1, len(ids) + 1)), list(range(-1, len(ids)))
        ids.append(-1)
        heap = [
            (*self._ranks[pair], i) for i, pair in enumerate(pairwise(ids)) if pair in self._ranks
        ]
        heapify(heap)
        while heap:
            *best, i = heappop(heap)
            j = after[i]
            if self._ranks.get((ids[i], ids[j])) != tuple(best):
                continue  # one of the two has been merged since
            ids[i], ids[j] = best[1], -1
            after[i], before[after[j]] = after[j], i
            for first, second in ((before[i], i), (i, after[i])):
                if found := self._ranks.get((ids[first], ids[second])):
                    heappush(heap, (*found, first))
        return [i for i in ids if i >= 0]

    def decode_bytes(
        self, ids: Iterable[int] | Int[Tensor, " token"], *, special: bool = False
    ) -> bytes:
        """The bytes of tokens.

        Args:
            ids: `[token]`.
            special: whether special tokens are written, too.
        """
        check_flags(special=special)
        shown = dict(zip(self.special, map(_utf8, self._names()), strict=True)) if special else {}
        return b"".join(shown.get(i, self._bytes[i]) for i in as_ids(ids, len(self.vocab)))

    def decode(self, ids: Iterable[int] | Int[Tensor, " token"], *, special: bool = False) -> str:
        """The text of tokens, decoded from `decode_bytes`; invalid UTF-8 becomes U+FFFD."""
        return self.decode_bytes(ids, special=special).decode("utf-8", "replace")

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        *,
        special: Iterable[str] = (END,),
        min_count: int = 2,
        digits: bool = False,
    ) -> "BytePair":
        """Learn merges from texts, which need not fit into memory; their distinct words must.

        The most frequent pair of neighbouring pieces is merged; between equally frequent pairs, the
        one with the smaller ids. This is repeated until there are `vocab_size` tokens.

        Args:
            texts: read once; `stream` reads a file in parts.
            vocab_size: number of tokens, including the 256 bytes and the special ones.
            special: as for the class. A special token written in a text separates two texts, and is
                not learnt from.
            min_count: rarer pairs are not merged, so that there may be fewer tokens.
            digits: as for the class.

        Raises:
            ValueError: if texts or special is one string, `min_count` is below 1, or `vocab_size`
                is too small for the bytes and special tokens.

        Source: Sennrich et al. 2016, algorithm 1.

        In other libraries: `ByteLevelBPETokenizer.train_from_iterator` of `tokenizers`, which
        learns the same merges.
        """
        check_texts(texts=texts, special=special)
        check_flags(digits=digits)
        special = tuple(special)
        check_whole(1, min_count=min_count)
        check_whole(256 + len(special), vocab_size=vocab_size)
        counts, tokens = Counter[str](), list(LETTERS.values())
        for text in texts:
            for part in split_special(text, special)[::2]:
                counts.update((DIGIT if digits else WORD).findall(part))
        ids = {token: i for i, token in enumerate(tokens)}
        words = [[ids[LETTERS[byte]] for byte in _utf8(word)] for word in counts]

        def join(a: int, b: int) -> int:
            return ids.setdefault(tokens[a] + tokens[b], len(tokens))

        learnt = []
        for (a, b), piece in merges(words, list(counts.values()), min_count, join):
            if len(tokens) + len(special) == vocab_size:
                break
            learnt.append((tokens[a], tokens[b]))
            if piece == len(tokens):  # two pairs can make the same piece
                tokens.append(tokens[a] + tokens[b])
        return cls(learnt, special, digits=digits)

    def save(self, folder: str | Path) -> None:
        """Write GPT-2's two files, `vocab.json` and `merges.txt`, in a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        ids = {token: i for i, token in enumerate(self.vocab.tokens)}
        vocab, merged = (folder / name for name in FILES[0])
        vocab.write_text(json.dumps(ids, ensure_ascii=False), "utf-8")
        lines = [HEADER, *(f"{a} {b}" for a, b in self.merges), ""]
        merged.write_text("\n".join(lines), "utf-8", newline="\n")

    @classmethod
    def load(cls, folder: str | Path, **options: Any) -> "BytePair":
        """Read GPT-2's two files from a folder: `vocab.json` and `merges.txt`, or their old names.

        Tokens that are neither bytes nor merged are special, in the order of their ids.

        Args:
            folder: as `save` writes it.
            options: `pad`, `bos`, `eos`, `digits` and `lossy`, which the files do not hold.

        Raises:
            ValueError: if a file is missing or ids are not 0, 1, .., and for the class's reasons.
        """
        for names in FILES:
            vocab, merged = (Path(folder, name) for name in names)
            if vocab.is_file() and merged.is_file():
                break
        else:
            raise ValueError(f"folder must hold {' and '.join(FILES[0])}, got {folder}")
        ids: dict[str, int] = json.loads(vocab.read_text("utf-8"))
        tokens = sorted(ids, key=ids.__getitem__)
        if [ids[token] for token in tokens] != list(range(len(ids))):
            raise ValueError(f"{vocab.name} must number its {len(ids)} tokens 0, 1, ..")
        lines = merged.read_text("utf-8").split("\n")
        pairs = [line.split() for line in lines[lines[0].startswith("#version") :] if line]
        if strange := [pair for pair in pairs if len(pair) != 2]:
            raise ValueError(f"{merged.name} must hold two pieces a line, got {strange[0]}")
        made = {*LETTERS.values(), *(a + b for a, b in pairs)}
        special = [token for token in tokens if token not in made]
        return cls([(a, b) for a, b in pairs], special, tokens=tokens, **options)


def _utf8(word: str) -> bytes:
    try:
        return word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return LONE.sub("\N{REPLACEMENT CHARACTER}", word).encode("utf-8", "surrogateescape")


def split_special(text: str, special: Iterable[str]) -> list[str]:
    """Split a text at special tokens: text, token, text, ...; the longest token wins.

    Args:
        text: may contain special tokens.
        special: the tokens, at least one.
    """
    check_text(text=text)
    names = sorted(special, key=len, reverse=True)
    return regex.split(f"({'|'.join(map(regex.escape, names))})", text)


def stream(path: str | Path, size: int = 1 << 20, special: Iterable[str] = ()) -> Iterator[str]:
    """The text of a file in parts, as `whole_words` cuts them.

    Bytes that are not valid UTF-8 are decoded by `surrogateescape`, as `BytePair.encode` expects.

    Args:
        path: a UTF-8 file.
        size: number of characters to read at once.
        special: as for `whole_words`.
    """
    check_whole(1, size=size)
    with Path(path).open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        yield from whole_words(iter(lambda: file.read(size), ""), special)


def whole_words(parts: Iterable[str], special: Iterable[str] = ()) -> Iterator[str]:
    """The parts of a text, cut anew: only where a word ends before white space.

    The words of the new parts are therefore the words of the whole text. A text without white space
    is one word, and one part.

    Args:
        parts: parts of any size.
        special: tokens that are not cut, even if they contain white space.
    """
    check_texts(special=special)
    spaced = [token for token in special if regex.search(r"\s", token)]
    ahead = (
        max(map(len, spaced), default=1) - 1
    )  # lookahead that shows whether a position is inside one
    done, rest = list[str](), ""  # there is nowhere to cut in `done`
    judged = 0  # nor in `rest` before this position
    for part in parts:
        rest += part
        for place in ENDS.finditer(rest, judged, max(judged, len(rest) - ahead)):
            if not _inside(rest, place.start(), spaced):
                yield "".join((*done, rest[: place.start()]))
                done, rest, judged = [], rest[place.start() :], 0
                break
        else:
            cut = max(0, len(rest) - 2 * ahead - 1)
            done.append(rest[:cut])
            rest = rest[cut:]
            judged = max(0, len(rest) - ahead)
    if last := "".join((*done, rest)):
        yield last


def _inside(text: str, place: int, tokens: list[str]) -> bool:
    """Whether a token begins before a position in a text and ends after it."""
    return any(
        token in text[max(0, place - len(token) + 1) : place + len(token) - 1] for token in tokens
    )
