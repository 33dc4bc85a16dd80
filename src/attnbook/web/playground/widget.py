"""Playground: a GPT that writes in the page, with every step of choosing the next token."""

import codecs
import textwrap
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import traitlets
from matplotlib.figure import Figure
from torch import Tensor

from attnbook import bundles
from attnbook.model import sampling
from attnbook.model.transformer import TransformerDecoder
from attnbook.text.tokenizers import BytePair
from attnbook.web._model_widget import ModelWidget, brief, give_weights, load_model
from attnbook.web._widget import WidgetError, as_list, format_number, short
from attnbook.weights.int8 import metadata

SHOWN = 10  # bars
FOLDS = ("filters", "places", "inside")


class Playground(ModelWidget):
    """A GPT that continues the reader's text, token by token.

        p = softmax(logits / t),   next = the first token at which the sum of q is above u

    with t the temperature, q the renormalised probabilities of the tokens that pass the filters,
    most likely first, and u in 0 .. 1 a random number for each position, set by the seed. Filters
    apply one after another, as in `transformers`: top-k keeps the k most likely tokens, top-p the
    fewest that hold a share p of what is left, min-p those with at least min_p times the
    probability of the most likely. The model runs in the page; a notebook stores only the answer to
    the current text. Each time the reader presses *Write*, a new seed is taken and shown. A text
    longer than the model's context is read through a window, which moves on by half when full.

    Args:
        text: the text to continue, at most 500 characters; "" begins a new text.
        weights: the model: the name of a file in the package's folder `weights`, or the path of any
            `TransformerDecoder` that `save_int8` wrote; on the site only the former works.
        temperature: 0 (greedy) or more.
        top_k: how many tokens top-k keeps; 0 turns it off.
        top_p: above 0 and at most 1; 1 turns it off.
        min_p: 0 .. 1; 0 turns it off.
        seed: determines the random numbers, which are counted from the beginning of the text,
            prompt included; `sample(..., seed=[seed])` counts from the first token that it writes,
            so it draws others.
        written: ids of the generated tokens.
        place: the token whose prediction is shown, from 1; -1: the next one.
        head: the open head, counted across all layers from 0; -1: none.
        checkpoints: files of the same model after fewer training steps, as `make gpt` stores them,
            with "step" in their metadata; the reader chooses with a slider. None: those in the
            folder of `weights` that belong to it, `gpt_step_100` and so on. Without any, there is
            no slider. Each is fetched when it is chosen.
        checkpoint: which of them writes, from 0; -1: the fully trained model.
        unfolded: what is open at first, of "filters", "places" (predictions at every position) and
            "inside" (heads and blocks).
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, all these except `weights`, `checkpoints`, `title` and `name` track the reader's
    choices; setting them changes what is shown.

    Source: Radford et al. 2019; Fan et al. 2018 (top-k), Holtzman et al. 2020 (top-p), Nguyen et
    al. 2025 (min-p).
    """

    _esm, _css = bundles.load("Playground")
    kind = TransformerDecoder

    written = traitlets.List(traitlets.Int()).tag(sync=True)
    temperature = traitlets.Float(1.0).tag(sync=True)
    top_k = traitlets.Int(0).tag(sync=True)
    top_p = traitlets.Float(1.0).tag(sync=True)
    min_p = traitlets.Float(0.0).tag(sync=True)
    seed = traitlets.Int(0).tag(sync=True)
    place = traitlets.Int(-1).tag(sync=True)
    head = traitlets.Int(-1).tag(sync=True)
    checkpoints = traitlets.List(traitlets.Dict()).tag(sync=True)
    checkpoint = traitlets.Int(0).tag(sync=True)
    unfolded = traitlets.List(traitlets.Unicode()).tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        text: str,
        *,
        weights: str | Path = "gpt",
        temperature: float | int = 1.0,
        top_k: int = 0,
        top_p: float | int = 1.0,
        min_p: float | int = 0.0,
        seed: int = 0,
        written: Any = (),
        place: int = -1,
        head: int = -1,
        checkpoints: Iterable[str | Path] | None = None,
        checkpoint: int = -1,
        unfolded: Any = (),
        title: str = "",
        name: str | None = None,
    ) -> None:
        super().__init__(
            weights,
            name=name,
            title=title,
            text=text,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            seed=seed,
            written=as_list(written, "written", "ids"),
            place=place,
            head=head,
            unfolded=as_list(unfolded, "unfolded", "names"),
        )
        files = checkpoint_files(self._path, checkpoints)
        self._files = {path.stem: path for _, path in files}
        self.checkpoints = [{"name": path.stem, "step": step} for step, path in files]
        self.checkpoint = checkpoint if checkpoint >= 0 else len(files) - 1
        give_weights(self, dict([*self._files.items()][:-1]))
        self._ask()
        shown = ("text", "written", "temperature", "top_k", "top_p", "min_p", "seed", "place")
        self.observe(self._ask, [*shown, "checkpoint"])

    @traitlets.validate(
        "temperature", "top_k", "top_p", "min_p", "seed", "place", "head", "checkpoint"
    )
    def _check_number(self, proposal: Any) -> float | int:
        trait, value = proposal["trait"].name, proposal["value"]
        config = self._model.stack.config
        least, most = {
            "temperature": (0, np.inf),
            "top_k": (0, np.inf),
            "top_p": (0, 1),
            "min_p": (0, 1),
            "seed": (0, 10**6),
            "place": (-1, np.inf),
            "head": (-1, config.n_layers * config.n_heads - 1),
            "checkpoint": (0, max(0, len(self.checkpoints) - 1)),
        }[trait]
        if not least <= value <= most or value == np.inf or (trait == "top_p" and not value):
            inside = f"{least}..{most}" if most < np.inf else f"a finite number from {least} on"
            raise WidgetError(f"{trait} must be {inside}, not {value}")
        return value

    @traitlets.validate("written")
    def _check_written(self, proposal: Any) -> list[int]:
        size = len(self._tokenizer.vocab)
        if wrong := [i for i in proposal["value"] if not 0 <= i < size]:
            raise WidgetError(f"written must be ids of tokens, 0..{size - 1}, not {wrong[0]}")
        return proposal["value"]

    @traitlets.validate("unfolded")
    def _check_unfolded(self, proposal: Any) -> list[str]:
        if wrong := [name for name in proposal["value"] if name not in FOLDS]:
            raise WidgetError(f"unfolded must be of {', '.join(FOLDS)}, not {wrong[0]!r}")
        return proposal["value"]

    def _chosen(self) -> TransformerDecoder:
        """The model of the chosen checkpoint."""
        path = self._files[self.checkpoints[self.checkpoint]["name"]]
        model, tokenizer = load_model(path, self.kind)
        same = model.stack.config == self._model.stack.config
        if not same or tokenizer.merges != self._tokenizer.merges:
            raise WidgetError(f"checkpoints must be of one model, and {path.name} is of another")
        return model

    def _ask(self, _: Any = None) -> None:
        """Store the answer that the page's own engine (`row.js`) would give."""
        tokenizer, config = self._tokenizer, self._model.stack.config
        prompt = tokenizer.encode(self.text)
        prompt = prompt if prompt or self.written else [tokenizer.vocab.bos]
        ids = [*prompt, *self.written]
        at = min(max(1, self.place), len(ids)) if self.place >= 0 else len(ids)
        start = window_start(at, config.max_len)
        with torch.no_grad():
            logits = self._chosen()(torch.tensor([ids[start:at]]))[0, -1].double()
        self.answer = {
            "ids": ids,
            "names": [token_name(tokenizer, i) for i in ids],
            "pieces": pieces(tokenizer, ids),
            "prompt": len(prompt),
            "start": start,
            "layers": config.n_layers,
            "heads": config.n_heads,
            "at": at,
            **self._outlook(logits, sampling.uniform(torch.tensor([self.seed]), at).item()),
        }

    def _outlook(self, logits: Tensor, number: float) -> dict[str, Any]:
        """The likeliest tokens, what each filter keeps, and the draw, as `outlook` in `row.js`."""
        order = logits.argsort(descending=True, stable=True)
        left = sampling.temperature(logits, self.temperature)
        p, stages = left.softmax(-1), {}
        cuts = {
            "topK": partial(sampling.top_k, k=self.top_k or len(order)),
            "topP": partial(sampling.top_p, p=self.top_p),
            "minP": partial(sampling.min_p, p=self.min_p),
        }
        for name, cut in cuts.items():
            left = cut(left)
            kept = left > -torch.inf
            stages[name] = {"count": int(kept.sum()), "mass": brief(p[kept].sum())}
        token = sampling.draw(left[None], torch.tensor([number], dtype=torch.float64))
        rank, ends = int((order == token).nonzero()), left.softmax(-1)[order].cumsum(-1)

        def named(n: int) -> dict[str, Any]:
            i = int(order[n])
            return {"which": i, "name": token_name(self._tokenizer, i), "p": brief(p[i])}

        return {
            "size": len(order),
            "best": [named(n) for n in range(min(SHOWN, len(order)))],
            "stages": stages,
            **stages["minP"],
            "number": number,
            "drawn": {
                "rank": rank,
                **named(rank),
                "from": brief(ends[rank - 1]) if rank else 0.0,
                "to": brief(ends[rank].clamp(max=1)),
            },
        }

    def content(self) -> bytes:
        return f"{self.weights} {self.text} {self.written}".encode()

    def summary(self) -> str:
        return f"{len(self.answer['ids'])} tokens"

    def draw(self, figure: Figure) -> None:
        best, count = self.answer["best"], self.answer["count"]
        text = "".join(self.answer["pieces"])
        shown = textwrap.fill(textwrap.shorten(text, 300), 72) + " …"
        figure.supxlabel(shown, fontsize=8, parse_math=False)
        axis = figure.subplots()
        colours = ["#2b6cb0" if n < count else "#b6bcc4" for n in range(len(best))]
        bars = axis.barh(range(len(best)), [one["p"] for one in best], color=colours)
        axis.bar_label(bars, [format_number(one["p"]) for one in best], padding=3, fontsize=8)
        names = [short(one["name"].replace("\n", "↵")) for one in best]
        axis.set_yticks(range(len(best)), names, fontsize=8, parse_math=False)
        axis.invert_yaxis()
        axis.set_xlim(0, 1.2 * max(one["p"] for one in best))
        axis.set_title("what could come next, and its probability", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)


def checkpoint_files(
    trained: Path, others: Iterable[str | Path] | None = None
) -> list[tuple[int, Path]]:
    """The training steps and the file of each checkpoint of a model, by steps, `trained` last.

    Args:
        trained: the file of the trained model.
        others: files, or names in the folder of `trained`. None: those whose name is that of
            `trained` followed by `_step_` and a number.
    """
    if others is None:
        others = trained.parent.glob(f"{trained.stem}_step_*.safetensors")
    paths = [trained.parent / f"{x}.safetensors" if isinstance(x, str) else x for x in others]
    try:
        early = sorted((metadata(path)["step"], path) for path in paths)
    except (ValueError, KeyError) as error:
        raise WidgetError(f"checkpoints must be files that say their step: {error}") from None
    return [*early, (metadata(trained).get("steps", 0), trained)]


def window_start(n: int, most: int) -> int:
    """Where the window on the first n tokens begins, if at most `most` are read at once.

    When the window is full, its first half is dropped and the rest is read again, so that at least
    half of `most` is always in view. `windowStart` in `gpt.js` does the same.
    """
    half = max(1, most // 2)
    return half * max(0, -((most - n) // half))


def token_name(tokenizer: BytePair, i: int) -> str:
    """A token as the page shows it: bytes that are not UTF-8 as hex codes."""
    if i in tokenizer.special:
        return tokenizer.vocab.tokens[i]
    raw = tokenizer.decode_bytes([i])
    text = raw.decode("utf-8", "replace")
    broken = "\N{REPLACEMENT CHARACTER}" in text
    return "".join(f"\\x{byte:02x}" for byte in raw) if broken else text


def pieces(tokenizer: Any, ids: list[int]) -> list[str]:
    """What each token adds to the text: a character appears with the last of its bytes."""
    reader = codecs.getincrementaldecoder("utf-8")("replace")
    last = len(ids) - 1
    return [reader.decode(tokenizer.decode_bytes([i]), n == last) for n, i in enumerate(ids)]
