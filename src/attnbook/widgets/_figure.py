"""What the book's widgets share: name, title, text and picture fallback, rounding."""

import base64
import hashlib
import io
import math
import re
import warnings
from collections.abc import Sequence
from typing import Any

import anywidget
import numpy as np
import traitlets
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Picture
from PIL import Image

MAX_BYTES = 1_000_000


def format_number(x: float, digits: int = 3) -> str:
    """`x` with `digits` decimals as the widgets write it: `f"{x:.3f}"`, and zero has no sign.

    Exact ties go to the even digit, as everywhere in Python; `format` in `math.js` is its twin.
    """
    return f"{x:z.{digits}f}" if math.isfinite(x) else str(x).replace("inf", "∞")


def as_array(values: object, what: str) -> np.ndarray:
    """A new float64 array of `values`: nested lists, an array, or a tensor of any device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()  # pyright: ignore[reportAttributeAccessIssue]
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must be a full array of numbers: {error}") from None


def as_tokens(tokens: Sequence[str], what: str) -> list[str]:
    """The tokens as a list, after a check that each is text."""
    if isinstance(tokens, str):
        raise ValueError(f"{what} must be a list of tokens, not one string: {tokens!r}")
    wrong = [token for token in tokens if not isinstance(token, str)]
    if wrong:
        raise ValueError(f"{what} must be strings, not {type(wrong[0]).__name__}: {wrong[0]!r}")
    broken = [token for token in tokens if any("\ud800" <= letter <= "\udfff" for letter in token)]
    if broken:
        raise ValueError(f"{what} must be Unicode text; half a character in {broken[0]!r}")
    return list(tokens)


class Figure(anywidget.AnyWidget):
    """An anywidget with a heading, a stable name, and a fallback where no JavaScript runs."""

    title = traitlets.Unicode().tag(sync=True)
    name = traitlets.Unicode().tag(sync=True)

    def __init__(self, *, name: str | None, content: bytes, **traits: Any) -> None:
        slug = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(self).__name__).lower()
        name = name or f"{slug}-{hashlib.sha256(content).hexdigest()[:8]}"
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            raise ValueError(f"name must be like 'learnt-map' (a-z, 0-9, hyphens), not {name!r}")
        super().__init__(name=name, **traits)

    def summary(self) -> str:
        """What the figure is made of, in words that do not depend on trained weights."""
        raise NotImplementedError

    def draw(self, picture: Picture) -> None:
        """Draws the present state on an empty matplotlib figure."""
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
        """The present state as a small picture, the same bytes on every run."""
        picture = Picture(figsize=(5.6, 4.2), dpi=80, layout="constrained")
        canvas = FigureCanvasAgg(picture)
        if self.title:
            picture.suptitle(self.title, fontsize=10, wrap=True, parse_math=False)
        with warnings.catch_warnings(), io.BytesIO() as file:
            warnings.simplefilter("ignore")  # tokens may hold characters that the font lacks
            self.draw(picture)
            canvas.draw()
            pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
            pixels.quantize(64, Image.Quantize.MAXCOVERAGE).save(file, format="png", optimize=True)
            return file.getvalue()


def short(token: str, limit: int = 14) -> str:
    """A token as the picture shows it."""
    return token if len(token) <= limit else token[: limit - 1] + "…"
