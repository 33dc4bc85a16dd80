"""MaskedWords: a BERT in the page fills in the words that the reader hides in a sentence."""

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import torch
import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.model.bert import Bert
from attnbook.model.recording import recorded
from attnbook.web._model_widget import ModelWidget, brief
from attnbook.web._widget import WidgetError, as_list, format_number, short

MASK = "[MASK]"  # written in a text, it counts as a hidden word
KEPT = 20  # how many of the most likely tokens are stored, for when the model does not run
LEVELS = 65535  # a weight is stored in 16 bits


class MaskedWords(ModelWidget):
    """A sentence whose words can be hidden, with a BERT's guesses for them and its attention.

        P(word at i) = softmax(logits_i / t)

    with i a masked position and t the temperature. The model runs in the page, on the reader's own
    sentence: a worker reads the weights, which come from a kernel or from a file on the site. For
    use without either, a notebook stores the current answer.

    Args:
        text: the sentence, at most 500 characters; a `[MASK]` in it is one hidden word.
        masks: indices of the masked words, from 0; punctuation marks count as words.
        weights: the model: the name of a file in the package's folder `weights`, or the path of any
            file that `save_int8` wrote; on the site only the former works.
        temperature: where the slider starts, above 0.
        top: how many of the most likely tokens are shown, at most 20.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `text`, `masks`, `temperature` and `top` track the reader's choices; setting them
    changes what is shown. So do `place` (which hidden piece, from 0), `into` (False: what it
    attends to; True: what attends to it), `layer` and `head` (from 0, -1 for all), which select the
    attention weights on view.

    Source: Devlin et al. 2019, section 3.1.
    """

    _esm, _css = bundles.load("MaskedWords")
    kind = Bert

    lowercase = traitlets.Bool(True).tag(sync=True)
    masks = traitlets.List(traitlets.Int()).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    top = traitlets.Int(5).tag(sync=True)
    place = traitlets.Int(0).tag(sync=True)
    into = traitlets.Bool(False).tag(sync=True)
    layer = traitlets.Int(-1).tag(sync=True)
    head = traitlets.Int(-1).tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)
    attention = traitlets.Bytes(b"").tag(sync=True)

    def __init__(
        self,
        text: str,
        masks: Any = (),
        *,
        weights: str | Path = "bert",
        temperature: float | int = 1.0,
        top: int = 5,
        title: str = "",
        name: str | None = None,
    ) -> None:
        super().__init__(
            weights,
            name=name,
            title=title,
            text=text,
            masks=as_list(masks, "masks", "numbers"),
            temperature=temperature,
            top=top,
        )
        self.lowercase = self._tokenizer.lowercase
        self._ask()
        self.observe(self._ask, ["text", "masks", "temperature"])

    @traitlets.validate("masks")
    def _check_masks(self, proposal: Any) -> list[int]:
        value, size = proposal["value"], len(self._words())
        if len(set(value)) < len(value) or not all(0 <= n < size for n in value):
            raise WidgetError(
                f"masks must be different numbers of words, 0..{size - 1}, not {value}"
            )
        return sorted(value)

    @traitlets.validate("temperature")
    def _check_temperature(self, proposal: Any) -> float:
        if not 0 < proposal["value"] < np.inf:
            raise WidgetError(f"temperature must be a number above 0, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("top")
    def _check_top(self, proposal: Any) -> int:
        if not 1 <= proposal["value"] <= KEPT:
            raise WidgetError(f"top must be 1..{KEPT}, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("layer", "head")
    def _check_chosen(self, proposal: Any) -> int:
        trait, config = proposal["trait"].name, self._model.stack.config
        size = config.n_layers if trait == "layer" else config.n_heads
        if not -1 <= proposal["value"] < size:
            raise WidgetError(f"{trait} must be -1 (all) or 0..{size - 1}, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("place")
    def _check_place(self, proposal: Any) -> int:
        if proposal["value"] < 0:
            raise WidgetError(f"place must be at least 0, not {proposal['value']}")
        return proposal["value"]

    def _words(self) -> list[str]:
        """The words of the text; a `[MASK]` in it counts as one of them."""
        first, *others = re.split(re.escape(MASK), self.text, flags=re.IGNORECASE)
        rest = [word for part in others for word in (MASK, *self._tokenizer.words(part))]
        return [*self._tokenizer.words(first), *rest]

    def _read(self) -> tuple[list[dict[str, Any]], list[int]]:
        """The words with the positions of their pieces, and the row of ids that the model reads.

        The first word that does not fit into the row and all words after it have no positions.
        """
        row, words, full = [self._tokenizer.vocab.bos], [], False
        for word in self._words():
            ids = [self._tokenizer.mask] if word == MASK else self._tokenizer.encode(word)
            full = full or len(row) + len(ids) >= self._model.stack.config.max_len
            places = [] if full else [*range(len(row), len(row) + len(ids))]
            words.append({"text": word, "known": ids != [self._tokenizer.unk], "places": places})
            row += [] if full else ids
        return words, [*row, self._tokenizer.vocab.eos]

    def _ask(self, _: Any = None) -> None:
        """Store the answer, in the format of the page's own engine (`engine/bert.js`)."""
        words, row = self._read()
        self.masks = [n for n in self.masks if n < len(words)]  # a new text may be shorter
        hidden = [n for n, word in enumerate(words) if n in self.masks or word["text"] == MASK]
        places = [place for n in hidden for place in words[n]["places"]]
        seen = torch.tensor([row])
        seen[0, places] = self._tokenizer.mask
        with torch.no_grad(), recorded(self._model) as weights:
            logits = self._model.word_logits(self._model(seen))[0, places].double()
        attention = torch.stack([each[0] for each in weights.values()]).numpy()
        names = [self._tokenizer.vocab.tokens[i] for i in row]
        with self.hold_trait_notifications():
            self.attention = np.rint(attention * LEVELS).astype("<u2").tobytes()
            self.answer = {
                "words": words,
                "row": names,
                "masks": hidden,
                "places": places,
                "shape": list(attention.shape),
                "size": len(self._tokenizer.vocab),
                "likely": [
                    {"place": place, **self._likely(p, row[place]), "name": name}
                    for place, p, name in zip(
                        places,
                        (logits / self.temperature).softmax(-1).numpy(),
                        counted([names[place] for place in places]),
                        strict=True,
                    )
                ],
            }

    def _likely(self, p: np.ndarray, hidden: int) -> dict[str, Any]:
        tokens, best = self._tokenizer.vocab.tokens, np.argsort(-p, kind="stable")[:KEPT]
        return {
            "hidden": tokens[hidden],
            "own": brief(p[hidden]),
            "rank": 1 + int((p > p[hidden]).sum()),
            "best": [{"token": tokens[i], "p": brief(p[i])} for i in best],
        }

    def content(self) -> bytes:
        return f"{self.weights} {self.text} {self.masks}".encode()

    def summary(self) -> str:
        return f"{len(self.answer['words'])} words, {len(self.answer['masks'])} hidden"

    def draw(self, figure: Figure) -> None:
        row, likely = self.answer["row"], whole_words(self.answer)[:3]
        hidden = {each["place"] for each in self.answer["likely"]}
        shown = ["[MASK]" if place in hidden else name for place, name in enumerate(row)][1:-1]
        sentence = textwrap.shorten(" ".join(shown).replace(" ##", ""), 300)
        figure.supxlabel(textwrap.fill(sentence, 72), fontsize=8, parse_math=False)
        if not likely:
            return
        for axis, each in zip(
            figure.subplots(1, len(likely), squeeze=False)[0], likely, strict=True
        ):
            best = each["best"][: self.top]
            bars = axis.barh(range(len(best)), [one["p"] for one in best], color="#2b6cb0")
            axis.bar_label(bars, [format_number(one["p"]) for one in best], padding=3, fontsize=8)
            axis.set_yticks(
                range(len(best)),
                [short(one["token"]) for one in best],
                fontsize=8,
                parse_math=False,
            )
            axis.invert_yaxis()
            axis.set_xlim(0, 1.25 * max(one["p"] for one in best))
            axis.set_title(f"instead of {short(each['name'])}", fontsize=9, parse_math=False)
            axis.spines[["top", "right"]].set_visible(False)


def whole_words(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The hidden words of an answer: pieces are joined, and their probabilities multiplied.

    Pieces are guessed independently; the first begins the word, the others start with `##`.
    """
    at, found = {each["place"]: each for each in answer["likely"]}, []
    for n in answer["masks"]:
        mine = [at[place] for place in answer["words"][n]["places"]]
        best = [{"token": "", "p": 1.0}]
        for nth, each in enumerate(mine if len(mine) > 1 else []):
            some = [
                one
                for one in each["best"]
                if one["token"].startswith("##") == (nth > 0) and one["token"][0] != "["
            ]
            best = [
                {
                    "token": word["token"] + one["token"].removeprefix("##"),
                    "p": word["p"] * one["p"],
                }
                for word in best
                for one in some
            ]
            best = sorted(best, key=lambda one: -one["p"])[:KEPT]
        whole = {"name": answer["words"][n]["text"], "best": best}
        found += [whole] if len(mine) > 1 else mine
    return found


def counted(names: list[str]) -> list[str]:
    """The names, with repetitions numbered from the second on: `["a", "b", "a (2)"]`."""
    times = [names[: n + 1].count(name) for n, name in enumerate(names)]
    return [f"{name} ({n})" if n > 1 else name for name, n in zip(names, times, strict=True)]
