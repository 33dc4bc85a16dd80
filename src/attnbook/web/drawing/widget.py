"""Drawing: a picture of named parts, still or as a step-by-step walk."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure

from attnbook import bundles
from attnbook.show.drawing import WIDTH, Arrow, Part, column, heading
from attnbook.show.picture import Picture
from attnbook.show.plots import INK, ROLES
from attnbook.web._widget import Widget, WidgetError, as_list, check_size

STAGE = 400  # units: visible at once on a phone, with caption and controls below
MARKED = re.compile(r"\[[^\[\]]+\]\(([\w.*-]+)\)")  # [words](part)


@dataclass(frozen=True)
class Step:
    """One step of a walk through a drawing.

    Attributes:
        caption: what happens here, in plain words. `[the scores](scores)` marks words that refer to
            a part: they take its colour and highlight it.
        parts: names of the parts that appear at this step. A part that no step names is visible
            from the start; an arrow appears with the later of its ends.
        ask: a question shown first: caption and parts wait until the reader presses "Show".
    """

    caption: str
    parts: str | Sequence[str] = ()
    ask: str = ""


class Drawing(Widget):
    """A drawing with real text, in the page's colours; with steps, a walk through it.

    The drawing keeps its scale and scrolls behind a window, so that the parts of the current step
    are visible. New parts appear, and a copy of an arrow's start flies to its new end.

    Args:
        body: the part that contains all others, from `attnbook.show.drawing`.
        arrows: made by `attnbook.show.drawing.arrow`.
        alt: a description of the drawing, for readers who cannot see it.
        steps: the steps of a walk; without steps, the drawing is still.
        window: largest visible height, in units; the width is 360.
        title: the heading; it states the finding.
        name: a short slug, for links and for the widget's copies on other pages.

    With a kernel, `step`, counted from 1, tracks the reader's choice; setting it changes what is
    shown.

    Raises:
        ValueError: if the drawing is too wide, an arrow, a step or a caption refers to an unknown
            part, or the parts of a step are taller than the window.
    """

    _esm, _css = bundles.load("Drawing")

    svg = traitlets.Unicode().tag(sync=True)
    window = traitlets.Int(STAGE).tag(sync=True)
    steps = traitlets.List(traitlets.Dict()).tag(sync=True)
    step = traitlets.Int(1).tag(sync=True)

    def __init__(
        self,
        body: Part,
        *arrows: Arrow,
        alt: str,
        steps: Any = (),
        window: int = STAGE,
        title: str = "",
        name: str | None = None,
    ) -> None:
        self.picture = Picture(body, *arrows)
        self.body, self.arrows, self.alt = body, arrows, alt
        if len(alt.split()) < 3:
            raise WidgetError(f"alt must say what one sees, not {alt!r}")
        super().__init__(
            name=name,
            title=title,
            svg=self.picture.svg(alt),
            window=window,
            steps=[_stored(step) for step in as_list(steps, "steps", "Step(...)")],
        )

    @traitlets.validate("svg")
    def _check_svg(self, proposal: Any) -> str:
        check_size(len(proposal["value"].encode()), "the drawing", "draw fewer cells")
        return proposal["value"]

    @traitlets.validate("window")
    def _check_window(self, proposal: Any) -> int:
        if not 100 <= proposal["value"] <= 1000:
            raise WidgetError(f"window must be 100..1000 units high, not {proposal['value']}")
        return proposal["value"]

    @traitlets.validate("steps")
    def _check_steps(self, proposal: Any) -> list[dict[str, Any]]:
        for n, each in enumerate(proposal["value"], 1):
            try:
                for reference in MARKED.findall(each["caption"]):
                    self.picture.find(reference)
                shown = [place for part in each["parts"] for place in self.picture.find(part)]
            except ValueError as problem:
                raise WidgetError(f"step {n}: {problem}") from None
            top = min((place.y for place in shown), default=0)
            bottom = max((place.y + place.part.height for place in shown), default=0)
            if bottom - top > self.window:
                raise WidgetError(
                    f"step {n} shows parts that are {bottom - top:.0f} high together; the window"
                    f" must be at least that, not {self.window}"
                )
        return proposal["value"]

    @traitlets.validate("step")
    def _check_step(self, proposal: Any) -> int:
        if not 1 <= proposal["value"] <= max(1, len(self.steps)):
            raise WidgetError(f"step must be 1..{len(self.steps)}, not {proposal['value']}")
        return proposal["value"]

    def values(self, name: str) -> np.ndarray:
        """The numbers shown by the part of this name."""
        return self.picture.values(name)

    def content(self) -> bytes:
        return json.dumps([self.svg, self.steps]).encode()

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict] | None:
        """A still drawing is stored as an SVG picture, not as a widget: it needs no script."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None or self.steps:
            return bundle
        whole = column(heading(self.title), self.body, gap=12) if self.title else self.body
        svg = bundles.styled(Picture(whole, *self.arrows).svg(self.alt, bundles.still()))
        forms = ("image/png", "text/plain")  # for programs without SVG
        return {bundles.SVG: svg, **{form: bundle[0][form] for form in forms}}, {}

    def summary(self) -> str:
        walk = f", {len(self.steps)} steps" if self.steps else ""
        return f"{self.alt}{walk}"

    def figure_size(self) -> tuple[float, float]:
        width = 4.5  # one pixel per unit
        return width, width * self.picture.height / WIDTH + 0.5 * bool(self.title)

    def draw(self, figure: Figure) -> None:
        """Draw everything, as after the last step."""
        axes = figure.subplots()
        self.picture.draw(axes, ROLES, INK)


def _stored(step: Any) -> dict[str, Any]:
    if not isinstance(step, Step):
        raise WidgetError(f"steps must be a list of Step(...), not of {step!r:.60}")
    parts = step.parts.split() if isinstance(step.parts, str) else list(step.parts)
    return {"caption": step.caption, "parts": parts, "ask": step.ask}
