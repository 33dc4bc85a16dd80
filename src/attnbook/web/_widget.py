"""The base class of the book's widgets: name, title, text and image fallbacks, checks."""

import base64
import hashlib
import io
import math
import re
import reprlib
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import anywidget
import numpy as np
import torch
import traitlets
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from attnbook import bundles

MAX_BYTES = 1_000_000


class WidgetError(ValueError, traitlets.TraitError):
    """A widget cannot show its input; the message names the argument and says what it must be.

    It is a TraitError, so that traitlets rolls back all traits that were set together.
    """


def format_number(x: float, digits: int = 3) -> str:
    """`x` with `digits` decimals, as the widgets write it: `f"{x:.3f}"` without negative zero.

    Exact ties round to the even digit, as everywhere in Python and in `format` of `math.js`.
    """
    return f"{x:z.{digits}f}" if math.isfinite(x) else str(x).replace("inf", "∞")


def as_array(values: object, what: str) -> np.ndarray:
    """A new float64 array of `values`: nested lists, an array, or a tensor on any device."""
    try:
        if isinstance(values, torch.Tensor):
            tensor = values.detach().cpu()
            array = (tensor.double() if tensor.is_floating_point() else tensor).numpy()
        else:
            array = np.array(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise WidgetError(f"{what} must be a full array of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        raise WidgetError(f"{what} must be a full array of numbers, not {reprlib.repr(values)}")
    return array.astype(np.float64)


def as_list(values: object, what: str, of: str) -> list[Any]:
    """The values as a list; a single string or number is refused."""
    flat = isinstance(values, str) or getattr(values, "ndim", 1) == 0
    if flat or not isinstance(values, Iterable):
        raise WidgetError(f"{what} must be a list of {of}, not {reprlib.repr(values)}")
    return list(values)


def as_tokens(tokens: Sequence[str], what: str) -> list[str]:
    """The tokens as a list, after checking that each is a string of valid Unicode."""
    kept = as_list(tokens, what, "tokens")
    wrong = [token for token in kept if not isinstance(token, str)]
    if wrong:
        raise WidgetError(f"{what} must be strings, not {type(wrong[0]).__name__}: {wrong[0]!r}")
    broken = [token for token in kept if any("\ud800" <= letter <= "\udfff" for letter in token)]
    if broken:
        raise WidgetError(f"{what} must be Unicode text; half a character in {broken[0]!r}")
    return kept


def check_size(size: int, what: str, instead: str) -> None:
    """Refuse more than `MAX_BYTES` (1 MB) of data, so that pages and notebooks stay small."""
    if size > MAX_BYTES:
        raise WidgetError(f"{what} take {size:,} bytes, more than {MAX_BYTES:,}: {instead}")


class Widget(anywidget.AnyWidget):
    """An anywidget with a heading, a stable name, and a fallback where JavaScript does not run."""

    title = traitlets.Unicode().tag(sync=True)
    name = traitlets.Unicode("widget").tag(sync=True)  # by default, derived from the content

    def __init__(self, *, name: str | None, **traits: Any) -> None:
        # Traits are checked together, in this order, so that the first error is reported.
        with self.hold_trait_notifications():
            for trait, value in traits.items():
                setattr(self, trait, value)
            if name is not None:
                self.name = name
        super().__init__()

    @traitlets.default("name")
    def _name(self) -> str:
        kind = bundles.stem(type(self).__name__).replace("_", "-")
        return f"{kind}-{hashlib.sha256(self.content()).hexdigest()[:8]}"

    @traitlets.validate("name")
    def _check_name(self, proposal: Any) -> str:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", proposal["value"]):
            raise WidgetError(
                f"name must be like 'learnt-map' (a-z, 0-9, hyphens), not {proposal['value']!r}"
            )
        return proposal["value"]

    def content(self) -> bytes:
        """Bytes that tell two widgets of a class apart; the default name is derived from them."""
        raise NotImplementedError

    def summary(self) -> str:
        """A description of the widget that does not depend on trained weights."""
        raise NotImplementedError

    def figure_size(self) -> tuple[float, float]:
        """Width and height of the picture in inches."""
        return 5.6, 4.2

    def draw(self, figure: Figure) -> None:
        """Draw the current state on an empty matplotlib figure."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.summary()}{': ' + self.title if self.title else ''})"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        png = base64.b64encode(self.png()).decode()
        return {**data, "text/plain": repr(self), "image/png": png}, metadata

    def png(self) -> bytes:
        """The current state as a small PNG, with the same bytes on every run."""
        figure = Figure(figsize=self.figure_size(), dpi=80, layout="constrained")
        canvas = FigureCanvasAgg(figure)
        if self.title:
            figure.suptitle(self.title, fontsize=10, wrap=True, parse_math=False)
        with warnings.catch_warnings(), io.BytesIO() as file:
            warnings.simplefilter("ignore")  # tokens may hold characters that the font lacks
            self.draw(figure)
            canvas.draw()
            pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
            few = pixels.quantize(32, Image.Quantize.MAXCOVERAGE, kmeans=2)
            few.save(file, format="png", optimize=True)
            return file.getvalue()


def short(token: str, limit: int = 14) -> str:
    """A token, shortened for the picture."""
    return token if len(token) <= limit else token[: limit - 1] + "…"
