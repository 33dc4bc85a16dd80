"""Translator: the book's trained number-word translators, applied to the reader's own number."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.model.config import TINY
from attnbook.model.recording import recorded
from attnbook.text.number_words import MAX_DIGITS, number_pair
from attnbook.text.vocabulary import pad_batch
from attnbook.web._model_widget import give_weights
from attnbook.web._widget import Widget, WidgetError, as_tokens
from attnbook.weights.int8 import metadata
from attnbook.weights.translators import FOLDER, TRANSLATORS, translator

LABELS = {
    "one_vector": "one vector",
    "additive": "additive attention",
    "dot": "dot-product attention",
    "one_head": "one head",
    "four_heads": "four heads",
    "transformer": "Transformer",
}
LONGEST = 100  # characters that a reader may type
WRITTEN = 32  # words of a translation, end included
STAGES = 6  # of the walk, at most
BLOCKS = TINY.n_layers
PARTS = ("cross", "encoder", "decoder")  # with an attention layer in each block


class Translator(Widget):
    """A number, its translation by one or two trained models, their maps, and one word's walk.

    The reader types a number or its English words. The models run in the page, which fetches their
    weights, 20 to 90 kB each, when the widget comes near the view; errors in a translation are
    marked. A notebook stores the answer to `number`, but no weights.

    Args:
        models: one or two of `attnbook.weights.translators.TRANSLATORS`: "one_vector",
            "additive", "dot", "one_head", "four_heads", "transformer".
        number: the number that is translated first, 0 to 999,999,999,999.
        stage: 0 if the walk is closed, else the step at which it is open, from 1.
        at: which German word the walk is about, from 0; -1: the first one until the reader chooses.
        which: index of the model that the walk shows; a model without attention has no walk.
        head: which head the walk shows, from 0.
        guess: whether the share of correct translations for a number's length, next to a model's
            answer, is hidden until the reader has seen a number of that length.
        attention: which attention layer of a Transformer is drawn: 0 and 1 are cross-attention in
            the decoder's blocks 1 and 2; 2 and 3 self-attention in the encoder's; 4 and 5
            self-attention in the decoder's. The walk shows cross-attention in the same block.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `text`, `stage`, `at`, `which`, `head`, `attention` track the reader's choices.

    Raises:
        ValueError: if the models are not one or two different ones of these, or the number or
            another argument is out of range.
    """

    _esm, _css = bundles.load("Translator")

    weights = traitlets.List(traitlets.Unicode()).tag(sync=True)
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    exact = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    trained = traitlets.Int(9).tag(sync=True)
    text = traitlets.Unicode().tag(sync=True)
    stage = traitlets.Int(0).tag(sync=True)
    at = traitlets.Int(-1).tag(sync=True)
    which = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(0).tag(sync=True)
    guess = traitlets.Bool(False).tag(sync=True)
    attention = traitlets.Int(1).tag(sync=True)
    answers = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        models: Sequence[str] = ("one_vector", "additive"),
        number: int = 42,
        *,
        stage: int = 0,
        at: int = -1,
        which: int | None = None,
        head: int = 0,
        guess: bool = False,
        attention: int = 1,
        title: str = "",
        name: str | None = None,
    ) -> None:
        weights = as_tokens(models, "models")
        try:
            number_pair(number)
        except ValueError as error:
            raise WidgetError(str(error)) from None
        attends = [i for i, each in enumerate(weights) if each != "one_vector"]
        super().__init__(
            name=name,
            title=title,
            weights=weights,
            text=str(int(number)),
            stage=stage,
            at=at,
            which=which if which is not None else attends[0] if attends else 0,
            head=head,
            guess=guess,
            attention=attention,
        )
        said = [metadata(FOLDER / f"{each}.safetensors") for each in self.weights]
        self.labels = [LABELS[each] for each in self.weights]
        self.exact = [list(each["exact"].values()) for each in said]
        self.trained = said[0]["digits"]
        self._ask()
        self.observe(self._ask, ["text", "attention"])
        give_weights(self, {each: FOLDER / f"{each}.safetensors" for each in self.weights})

    @traitlets.validate("weights")
    def _check_weights(self, proposal: Any) -> list[str]:
        value = proposal["value"]
        if not 1 <= len(value) <= 2 or len(set(value)) < len(value) or set(value) - {*TRANSLATORS}:
            raise WidgetError(
                f"models must be one or two different ones of {', '.join(TRANSLATORS)}, not {value}"
            )
        return value

    @traitlets.validate("text")
    def _check_text(self, proposal: Any) -> str:
        (value,) = as_tokens([proposal["value"]], "text")
        if len(value) > LONGEST:
            raise WidgetError(f"text must have at most {LONGEST} characters, not {len(value)}")
        return value

    @traitlets.validate("stage", "at", "which", "head", "attention")
    def _check_chosen(self, proposal: Any) -> int:
        trait, value = proposal["trait"].name, proposal["value"]
        low = -1 if trait == "at" else 0
        most = {
            "stage": STAGES,
            "at": WRITTEN - 1,
            "which": len(self.weights) - 1,
            "head": 3,
            "attention": len(PARTS) * BLOCKS - 1,
        }[trait]
        if not low <= value <= most:
            raise WidgetError(f"{trait} must be {low}..{most}, not {value}")
        return value

    def _ask(self, _: Any = None) -> None:
        """Store the answers to a number in digits; the page itself answers any other text."""
        if not (self.text.isascii() and self.text.isdigit() and len(self.text) <= MAX_DIGITS):
            return
        number = int(self.text)
        told = [answer(name, number, self.attention) for name in self.weights]
        self.answers = {"number": number, "models": told}

    def content(self) -> bytes:
        return f"{self.weights} {self.text}".encode()

    def summary(self) -> str:
        return f"{', '.join(self.weights)}: {self.text}"

    def figure_size(self) -> tuple[float, float]:
        return 5.6, 3.4

    def draw(self, figure: Figure) -> None:
        pair, told = number_pair(self.answers["number"]), self.answers["models"]
        figure.supxlabel(textwrap.fill(" ".join(pair.source), 72), fontsize=8)
        for axis, label, each in zip(
            figure.subplots(1, len(told), squeeze=False)[0], self.labels, told, strict=True
        ):
            axis.set_title(label, fontsize=9)
            if not each["maps"]:
                axis.text(0.5, 0.5, textwrap.fill(" ".join(each["written"]), 24), ha="center")
                axis.set_axis_off()
                continue
            axis.imshow(np.mean(each["maps"], 0), cmap="Blues", vmin=0, vmax=1, aspect="auto")
            shape, ticks = np.shape(each["maps"][0]), axes(each, pair.source)
            rows, columns = [names[:n] for names, n in zip(ticks, shape, strict=True)]
            axis.set_yticks(range(len(rows)), rows, fontsize=7)
            axis.set_xticks(range(len(columns)), columns, fontsize=7, rotation=90)


def axes(told: dict[str, Any], source: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The row and column labels of an answer's maps: words written and read."""
    written, part = told["written"], PARTS[told.get("attention", 0) // BLOCKS]
    rows = source if part == "encoder" else [*written, "(end)"]
    return rows, ["(start)", *written] if part == "decoder" else source


def answer(name: str, number: int, attention: int = 1) -> dict[str, Any]:
    """What a translator writes, and each head's weights `[word written, word read]`.

    Of a Transformer, they are those of one attention layer, `attention`, as for `Translator`.
    """
    model = translator(name)
    source, vocab = model.encoder.vocab, model.decoder.vocab
    read = pad_batch([source.encode(number_pair(number).source)], source.pad)
    tokens = model.translate(read, max_len=WRITTEN).tokens[0].tolist()
    maps: list[Any] = []
    if name != "one_vector":
        with torch.no_grad(), recorded(model) as weights:
            model(read, torch.tensor([[vocab.bos, *tokens[:-1]]]))
        found = next(iter(weights.values()))
        if name == "transformer":
            part, block = PARTS[attention // BLOCKS], attention % BLOCKS
            stack, kind = ("decoder", "cross") if part == "cross" else (part, "attention")
            found = weights[f"{stack}.stack.blocks.{block}.{kind}"]
        rows = found[0] if found.ndim == 4 else found
        maps = [[[round(w, 3) for w in row] for row in head] for head in rows.tolist()]
    own = {"attention": attention} if name == "transformer" else {}
    return {"written": vocab.decode(tokens), "maps": maps, **own}
