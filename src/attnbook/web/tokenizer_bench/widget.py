"""TokenizerBench: byte pairs learnt from a text, and a text split by three vocabularies."""

from functools import cache
from typing import Any

import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.source import source
from attnbook.text.tokenizers import (
    BytePair,
    WordPiece,
    by_longest,
    by_rank,
    joined,
    learn_merges,
)
from attnbook.text.tokenizers.bytepair import LETTERS
from attnbook.web._model_widget import give_weights
from attnbook.web._widget import Widget, WidgetError, as_tokens, short
from attnbook.weights.vocabularies import FOLDER, VOCABULARIES, load_vocabulary

LONGEST, READ = 2_000, 200_000  # most characters: of the initial text; that a page reads
VIEWS = ("learn", "cut")
BYTES = {letter: byte for byte, letter in LETTERS.items()}
SHOWN = 8  # fewest merges in the picture, or half its words


class TokenizerBench(Widget):
    """A text from which merges are learnt, one by one, and which three vocabularies split.

    The first half learns: each byte starts as a piece, and the most frequent pair of neighbouring
    pieces becomes one piece, again and again. Words are kept apart, as in GPT-2, or not. The second
    half splits a word step by step: with this book's and GPT-2's byte pairs (of all neighbouring
    pairs, the one learnt first is merged) and with MiniLM's WordPiece (the longest piece, from the
    left). Below, the package's code for these algorithms is shown.

    The page computes all this in a worker, on up to 200,000 characters of the reader's own text. It
    fetches the vocabularies, 0.4 MB, when the second half is opened; a notebook stores none.

    Args:
        text: the initial text, at most 2,000 characters.
        view: "learn" or "cut", the half that is open.
        apart: whether words are kept apart in learning.
        merges: how many merges have been made, 0 to 1,000.
        word: index of the word that is split step by step; white space separates words.
        step: which step of this split is shown, from 0.
        unfolded: whether the code is unfolded.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, all these except `title` and `name` track the reader's choices; setting them
    changes what is shown.

    Source: Sennrich et al. 2016; Radford et al. 2019 (bytes); Wu et al. 2016 (WordPiece).
    """

    _esm, _css = bundles.load("TokenizerBench")

    text = traitlets.Unicode().tag(sync=True)
    view = traitlets.Unicode("learn").tag(sync=True)
    apart = traitlets.Bool(True).tag(sync=True)
    merges = traitlets.Int(0).tag(sync=True)
    word = traitlets.Int(0).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    unfolded = traitlets.Bool(False).tag(sync=True)
    weights = traitlets.List(traitlets.Unicode()).tag(sync=True)
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    code = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        text: str,
        *,
        view: str = "learn",
        apart: bool = True,
        merges: int = 0,
        word: int = 0,
        step: int = 0,
        unfolded: bool = False,
        title: str = "",
        name: str | None = None,
    ) -> None:
        if isinstance(text, str) and len(text) > LONGEST:
            raise WidgetError(f"text must have at most {LONGEST} characters, not {len(text)}")
        super().__init__(
            name=name,
            title=title,
            text=text,
            view=view,
            apart=apart,
            merges=merges,
            word=word,
            step=step,
            unfolded=unfolded,
            weights=list(VOCABULARIES),
            labels=list(VOCABULARIES.values()),
            code={each.__name__: source(each) for each in CODE},
        )
        give_weights(self, {each: FOLDER / f"{each}.safetensors" for each in VOCABULARIES})

    @traitlets.validate("text")
    def _check_text(self, proposal: Any) -> str:
        (value,) = as_tokens([proposal["value"]], "text")
        if len(value) > READ:
            raise WidgetError(f"text must have at most {READ} characters, not {len(value)}")
        return value

    @traitlets.validate("view")
    def _check_view(self, proposal: Any) -> str:
        if proposal["value"] not in VIEWS:
            raise WidgetError(f"view must be {' or '.join(VIEWS)}, not {proposal['value']!r}")
        return proposal["value"]

    @traitlets.validate("merges", "word", "step")
    def _check_number(self, proposal: Any) -> int:
        trait, value = proposal["trait"].name, proposal["value"]
        most = {"merges": 1_000}.get(trait, READ)
        if not 0 <= value <= most:
            raise WidgetError(f"{trait} must be 0..{most}, not {value}")
        return value

    def content(self) -> bytes:
        return f"{self.text} {self.view}".encode()

    def summary(self) -> str:
        return f"{len(self.text)} characters, {self.view}"

    def draw(self, figure: Figure) -> None:
        figure.text(0.02, 0.97, "\n".join(self._lines()), va="top", fontsize=9, parse_math=False)

    def _lines(self) -> list[str]:
        """The picture's lines: the first merges, or how each vocabulary splits the first words."""
        text = self.text[:LONGEST]
        if self.view == "cut":
            head = " ".join(text.split()[: 2 * SHOWN])
            return [
                f"{label}:  {' | '.join(pieces(name, head))}"[:110]
                for name, label in VOCABULARIES.items()
            ]
        words = BytePair([]).words(text) if self.apart else [text]
        letters = ["".join(LETTERS[byte] for byte in word.encode()) for word in words]
        learnt = learn_merges(letters, min(max(self.merges, SHOWN), 3 * SHOWN))
        return ["The first merges:", *(f"{readable(a)} + {readable(b)}" for a, b in learnt)]


CODE = (learn_merges, joined, by_rank, by_longest)


@cache
def _vocabulary(name: str) -> BytePair | WordPiece:
    return load_vocabulary(name)


def pieces(name: str, text: str) -> list[str]:
    """The pieces of a text in one of the vocabularies, in readable form."""
    tokenizer = _vocabulary(name)
    tokens = [tokenizer.vocab.tokens[i] for i in tokenizer.encode(text)]
    return tokens if isinstance(tokenizer, WordPiece) else [short(readable(t)) for t in tokens]


def readable(piece: str) -> str:
    """A byte-level piece as text: a space is ␣, and bytes that are not UTF-8 are hex codes."""
    raw = bytes(BYTES[letter] for letter in piece)
    text = raw.decode("utf-8", "replace")
    broken = "\N{REPLACEMENT CHARACTER}" in text
    return (
        "".join(f"\\x{b:02x}" for b in raw) if broken else text.replace(" ", "␣").replace("\n", "↵")
    )
