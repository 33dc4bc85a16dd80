"""Vocabularies in small files for the tokenizer bench; `make vocabularies` writes them.

A merge is stored as two 16-bit numbers, which makes GPT-2's 1.5 MB 0.2 MB. The pages of the book
read the same files (`attnbook/web/engine/vocabularies.js`).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from attnbook.text.tokenizers import BytePair, WordPiece
from attnbook.weights.int8 import metadata

FOLDER = Path(__file__).parent
VOCABULARIES = {  # file: name to display
    "pieces_book": "this book’s GPT",
    "pieces_gpt2": "GPT-2",
    "pieces_minilm": "MiniLM",
}
MOST = 2**16


def save_vocabulary(
    path: str | Path, tokenizer: BytePair | WordPiece, more: Mapping[str, Any] | None = None
) -> None:
    """Write a tokenizer's vocabulary.

    Args:
        path: a safetensors file: "merges" `[merge 2]`, the ids of two pieces in 16 bits, or
            "tokens" `[byte]`, all tokens in UTF-8, one per line. The metadata hold "special" or
            "lowercase".
        tokenizer: a `BytePair` in its usual order, or a `WordPiece`.
        more: further metadata, of values that JSON can hold.

    Raises:
        ValueError: if a `BytePair` has its tokens in another order, splits digits, or has more than
            65,536 tokens.
    """
    tokens = tokenizer.vocab.tokens
    if isinstance(tokenizer, WordPiece):
        tensors = {"tokens": np.frombuffer("\n".join(tokens).encode(), np.uint8)}
        said: dict[str, Any] = {"lowercase": tokenizer.lowercase}
    else:
        special = [tokens[i] for i in tokenizer.special]
        usual = BytePair(tokenizer.merges, special).vocab.tokens
        if tokenizer.digits or usual != tokens or len(tokens) > MOST:
            raise ValueError(
                f"tokenizer must have at most {MOST} tokens in their usual order, and digits in"
                f" words, got {len(tokens)} tokens and digits={tokenizer.digits}"
            )
        ids = {token: i for i, token in enumerate(tokens)}
        pairs = [(ids[a], ids[b]) for a, b in tokenizer.merges]
        tensors = {"merges": np.array(pairs, np.uint16).reshape(-1, 2)}
        said = {"special": special}
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in said.items()}
    texts |= {name: json.dumps(value, ensure_ascii=False) for name, value in (more or {}).items()}
    save_file(tensors, path, texts)


def load_vocabulary(path: str | Path) -> BytePair | WordPiece:
    """Read a vocabulary that `save_vocabulary` wrote, by its path or its name in `VOCABULARIES`.

    Raises:
        ValueError: if there is no such file, or it holds no vocabulary.
    """
    path = FOLDER / f"{path}.safetensors" if str(path) in VOCABULARIES else Path(path)
    said = metadata(path)
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"path must be a safetensors file, got {path}: {error}") from None
    if "tokens" in tensors:
        words = bytes(tensors["tokens"]).decode("utf-8").split("\n")
        return WordPiece(words, lowercase=said["lowercase"])
    if "merges" not in tensors:
        raise ValueError(f"path must hold merges or tokens, got {path} with {sorted(tensors)}")
    tokens, pairs = list(BytePair([]).vocab.tokens[:256]), list[tuple[str, str]]()
    seen = set(tokens)
    for a, b in tensors["merges"].tolist():
        pairs.append((tokens[a], tokens[b]))
        made = tokens[a] + tokens[b]
        if made not in seen:  # two pairs can make the same piece
            seen.add(made)
            tokens.append(made)
    return BytePair(pairs, said["special"])
