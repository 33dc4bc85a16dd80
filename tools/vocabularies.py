"""Store the three vocabularies of the tokenizer bench: `make vocabularies`.

They are those of this book's own GPT, and of GPT-2 and MiniLM, which `attnbook.assets` fetches.
"""

from attnbook import assets
from attnbook.text.tokenizers import BytePair, WordPiece
from attnbook.weights.pretrained import sotu_gpt
from attnbook.weights.vocabularies import FOLDER, save_vocabulary


def tokenizers() -> dict[str, BytePair | WordPiece]:
    """File name -> the tokenizer whose vocabulary it holds."""
    return {
        "pieces_book": sotu_gpt()[1],
        "pieces_gpt2": BytePair.load(assets.fetch("gpt2-bpe")),
        "pieces_minilm": WordPiece.load(assets.fetch("minilm") / "vocab.txt"),
    }


SOURCES = {"pieces_gpt2": "gpt2-bpe", "pieces_minilm": "minilm"}


def said(name: str) -> dict[str, str]:
    """A vocabulary's source and licence."""
    if name not in SOURCES:
        return {}
    asset = assets.ASSETS[SOURCES[name]]
    return {"source": asset.source, "licence": asset.licence}


def main() -> None:
    for name, tokenizer in tokenizers().items():
        path = FOLDER / f"{name}.safetensors"
        save_vocabulary(path, tokenizer, said(name))
        print(path.name, path.stat().st_size, "bytes,", len(tokenizer.vocab), "tokens")


if __name__ == "__main__":
    main()
