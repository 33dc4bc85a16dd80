"""matplotlib's charts as SVG, with words as text and in the page's colours.

Every chart is `WIDE` inches wide: one unit of the drawing is one point, a phone shows it a little
larger, and no text is smaller than `LEAST` units.
"""

import base64
import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from IPython.core.getipython import get_ipython
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.transforms import IdentityTransform, Transform, blended_transform_factory
from PIL import Image

from attnbook import bundles

WIDE = 4.9  # inches: 353 points; a phone has 358 pixels for them
LEAST = 11  # points: the size of the smallest text
FINE = 3.0  # pixels of an image per point
MARGIN = 3  # points around titles
CIRCLE = len(Path.unit_circle())  # vertices of a circle made of curves, with control points
# Colours that have a name in `chart.css`, which gives them another value in the dark theme.
NAMED = {
    "#0072b2": "var(--chart-blue)",
    "#e69f00": "var(--chart-orange)",
    "#009e73": "var(--chart-green)",
    "#cc79a7": "var(--chart-pink)",
    "#56b4e9": "var(--chart-sky)",
    "#d55e00": "var(--chart-red)",
    "#1c68b8": "var(--attn-query)",
    "#a85918": "var(--attn-key)",
    "#1e5834": "var(--attn-value)",
    "#64062f": "var(--attn-state)",
    "#380067": "var(--attn-weight)",
    "#d9d9d9": "var(--chart-faint)",
}
ANCHORS = {"left": ("start", 0.0), "center": ("middle", 0.5), "right": ("end", 1.0)}
RAISED = str.maketrans("0123456789-\N{MINUS SIGN}", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")
POWER = re.compile(r"\$\\mathdefault\{(.*?)\}\$")  # how an axis labels its ticks


def show() -> None:
    """Let a notebook show each figure as SVG; elsewhere this does nothing."""
    shell: Any = get_ipython()
    if shell is not None:
        shell.display_formatter.ipython_display_formatter.for_type(Figure, publish)


def publish(figure: Figure) -> None:
    display({bundles.SVG: svg(figure), "text/plain": repr(figure)}, raw=True)


def svg(figure: Figure) -> str:
    """A figure as one SVG element, with colours of its own for a dark page.

    The figure is fitted first: made `WIDE` inches wide, its small text enlarged, its long titles
    broken into lines.

    Raises:
        ValueError: if something is hatched.
    """
    fit(figure)
    width, height = figure.get_size_inches() * 72
    renderer = Renderer(width, height, figure)
    before = figure.dpi
    figure.dpi = 72
    try:
        figure.draw(renderer)
    finally:
        figure.dpi = before
    whole = {
        "xmlns": "http://www.w3.org/2000/svg",
        "class": bundles.CHART,
        "viewBox": f"0 0 {at(width)} {at(height)}",
        "width": "520",
        "height": f"{520 * height / width:.0f}",
        "role": "img",
    }
    return bundles.styled(element("svg", whole, "".join(renderer.parts())))


def fit(figure: Figure) -> None:
    """Make a figure as wide as a phone, enlarge its small text, and break its long lines."""
    figure.set_size_inches(WIDE, figure.get_figheight())
    figure.patch.set_visible(False)
    for axes in figure.axes:
        if axes.patch.get_facecolor()[:3] == (1, 1, 1):
            axes.patch.set_visible(False)
    for words in figure.findobj(Text):
        words.set_fontsize(max(LEAST, words.get_fontsize()))
    for _ in range(2):  # broken lines move the axes
        figure.draw_without_rendering()
        fit_words(figure)


def fit_words(figure: Figure) -> None:
    """Break the lines of all titles and axis labels."""
    width = WIDE * 72 - 2 * MARGIN
    for words in (figure._suptitle, figure._supxlabel):  # pyright: ignore[reportAttributeAccessIssue]
        if words is not None:
            broken(words, width)
    columns = {round(axes.get_position().x0, 2) for axes in figure.axes if axes.get_title("left")}
    for axes in figure.axes:
        fit_axes(axes, width, alone=len(columns) < 2)
    if (title := figure._suptitle) is not None:  # pyright: ignore[reportAttributeAccessIssue]
        title.set(x=MARGIN / (WIDE * 72), ha="left")


def fit_axes(axes: Axes, width: float, alone: bool) -> None:
    """Break the title and both axis labels; if `alone`, the title starts at the left edge."""
    box = axes.get_position()
    left, across = box.x0 * WIDE * 72, box.width * WIDE * 72
    title = axes._left_title  # pyright: ignore[reportAttributeAccessIssue]
    if alone:
        above = blended_transform_factory(axes.figure.transFigure, axes.transAxes)  # pyright: ignore[reportAttributeAccessIssue]
        title.set_transform(above + axes.titleOffsetTrans)  # pyright: ignore[reportAttributeAccessIssue]
        title.set_x(MARGIN / (WIDE * 72))
        broken(title, width)
    else:
        broken(title, across + 4 * MARGIN)
    middle = left + across / 2
    high = axes.get_window_extent().height / axes.figure.dpi * 72
    broken(axes.yaxis.label, high + 4 * MARGIN)
    places = {round(each.get_position().x0, 2) for each in axes.figure.axes}
    within = 2 * min(middle, width + 2 * MARGIN - middle)
    broken(axes.xaxis.label, within if len(places) < 2 else min(within, across + 6 * MARGIN))


def broken(words: Text, width: float) -> None:
    """Break a text's lines at spaces where they exceed the width."""
    lines = []
    for line in words.get_text().split("\n"):
        parts, line = line.split(" "), ""
        for part in parts:
            longer = f"{line} {part}" if line else part
            if line and wide(longer, words.get_fontproperties()) > width:
                lines.append(line)
                longer = part
            line = longer
        lines.append(line)
    words.set_text("\n".join(lines))


def wide(words: str, font: FontProperties) -> float:
    return text_to_path.get_text_width_height_descent(words, font, ismath="$" in words)[0]


def at(number: float) -> str:
    return f"{number:z.1f}".removesuffix(".0")


def element(tag: str, attributes: dict[str, str], inside: str = "") -> str:
    """An element with its attributes in single quotes: JSON would escape double ones."""
    given = "".join(f" {name}='{escape(str(text))}'" for name, text in attributes.items())
    return f"<{tag}{given}>{inside}</{tag}>" if inside else f"<{tag}{given}/>"


def paint(colour: Sequence[float | int] | np.ndarray) -> tuple[str, bool]:
    """A colour in the page's CSS, and whether it has another value in the dark theme.

    Greys are mixed from the page's background and its ink.
    """
    red, green, blue = (round(255 * part) for part in colour[:3])
    name = f"#{red:02x}{green:02x}{blue:02x}"
    if name in NAMED:
        return NAMED[name], True
    if red == green == blue:
        share = round(100 * max(0, red - 0x33) / (0xFF - 0x33))
        if share in (0, 100):
            return f"var(--attn-{'page' if share else 'ink'})", True
        return f"color-mix(in srgb,var(--attn-page) {share}%,var(--attn-ink))", True
    return name, False


class Renderer(RendererBase):
    """Draws a figure as SVG elements, one unit per point.

    Args:
        width: in points.
        height: in points.
        figure: the figure, whose texts of several lines keep their alignment.
    """

    def __init__(self, width: float, height: float, figure: Figure):
        super().__init__()
        self.width, self.height = width, height
        self._drawn: list[tuple[dict[str, str], str]] = []  # (looks, way) or ({}, element)
        found: list[Any] = figure.findobj(Text)
        self._aligned = {
            line: words.get_ha() for words in found for line in words.get_text().split("\n")
        }

    def parts(self) -> list[str]:
        """The elements; successive opaque paths that look the same are merged."""
        merged: list[tuple[dict[str, str], str]] = []
        for looks, way in self._drawn:
            same = merged and looks and merged[-1][0] == looks
            if same and not any("opacity" in name for name in looks):
                merged[-1] = (looks, merged[-1][1] + way)
            else:
                merged.append((looks, way))
        return [element("path", {**looks, "d": way}) if looks else way for looks, way in merged]

    def get_canvas_width_height(self) -> tuple[float, float]:
        return self.width, self.height

    def get_image_magnification(self) -> float:
        return FINE

    def get_text_width_height_descent(
        self, s: str, prop: FontProperties, ismath: Any
    ) -> tuple[float, float, float]:
        return text_to_path.get_text_width_height_descent(s, prop, ismath)

    def draw_path(
        self, gc: GraphicsContextBase, path: Path, transform: Transform, rgbFace: Any = None
    ) -> None:
        if gc.get_hatch():
            raise ValueError("a chart of the book must have no hatch: its SVG has none")
        looks, known = {"fill": "none"}, []
        alpha = gc.get_alpha() if gc.get_forced_alpha() else None
        line: Any = gc.get_rgb() if gc.get_linewidth() else None
        for name, colour in (("fill", rgbFace), ("stroke", line)):
            share = 0 if colour is None else colour[3] if len(colour) > 3 else 1
            share = alpha if alpha is not None and share else share
            if colour is not None and share:
                looks[name], found = paint(colour)
                known.append(found)
                looks |= {f"{name}-opacity": f"{share:.2g}"} if share < 1 else {}
        if not known:
            return
        if "stroke" in looks:
            looks["stroke-width"] = f"{gc.get_linewidth():.2g}"
            start, dashes = gc.get_dashes()
            if dashes is not None:
                looks["stroke-dasharray"] = " ".join(map(at, np.ravel(dashes)))
                looks |= {"stroke-dashoffset": at(start)} if start else {}
            looks |= {"stroke-linecap": "round"} if gc.get_capstyle() == "round" else {}
        looks |= {} if all(known) else {"class": "chart-own"}
        looks |= {} if gc.get_antialiased() else {"shape-rendering": "crispEdges"}
        if way := self._way(path, transform, filled=rgbFace is not None):
            self._clipped(gc, path, transform, looks, way)

    def _way(self, path: Path, transform: Transform, filled: bool) -> str:
        """The path as SVG commands; lines are cut far outside the figure, fills are not."""
        if len(path) == CIRCLE and (round_one := self._circle(path, transform)):
            return round_one
        letters = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
        clip = None if filled else (-99, -99, self.width + 99, self.height + 99)
        simplify = path.should_simplify and not filled
        found = []
        for points, code in path.iter_segments(transform, clip=clip, simplify=simplify):
            if code == Path.CLOSEPOLY:
                found.append("Z")
                continue
            pairs = [f"{at(x)} {at(self.height - y)}" for x, y in np.reshape(points, (-1, 2))]
            found.append(letters[np.uint8(code)] + " ".join(pairs))
        return "".join(found)

    def _circle(self, path: Path, transform: Transform) -> str:
        """A circle as two arcs, or "" for any other path."""
        points = transform.transform(np.asarray(path.vertices)[:-1:3])
        x, y = (points.min(0) + points.max(0)) / 2
        spans = np.hypot(*(points - (x, y)).T)
        radius = spans.mean()
        if not radius or np.abs(spans / radius - 1).max() > 1e-3:
            return ""
        half = f"a{radius:.2f} {radius:.2f} 0 1 0"
        start = f"M{at(x - radius)} {at(self.height - y)}"
        return f"{start}{half} {2 * radius:.2f} 0{half} -{2 * radius:.2f} 0Z"

    def _clipped(
        self,
        gc: GraphicsContextBase,
        path: Path,
        transform: Transform,
        looks: dict[str, str],
        way: str,
    ) -> None:
        """Add a path; if it leaves its axes, it goes into an inner SVG that is clipped there."""
        frame = gc.get_clip_rectangle()
        box = path.get_extents(transform)
        thick = gc.get_linewidth() / 2
        if frame is None or (
            frame.x0 - 0.1 <= box.x0 - thick
            and frame.y0 - 0.1 <= box.y0 - thick
            and box.x1 + thick <= frame.x1 + 0.1
            and box.y1 + thick <= frame.y1 + 0.1
        ):
            self._drawn.append((looks, way))
            return
        window = (frame.x0, self.height - frame.y1, frame.width, frame.height)
        x, y, width, height = map(at, window)
        inner = {"x": x, "y": y, "width": width, "height": height}
        inner["viewBox"] = f"{x} {y} {width} {height}"
        self._drawn.append(({}, element("svg", inner, element("path", {**looks, "d": way}))))

    def draw_image(
        self, gc: GraphicsContextBase, x: float, y: float, im: Any, transform: Any = None
    ) -> None:
        """Add an image, which keeps its pixels; the dark theme inverts its lightness."""
        file = io.BytesIO()
        picture = Image.fromarray(np.ascontiguousarray(im[::-1]))
        picture.save(file, format="png", optimize=True)
        high, across = im.shape[0] / FINE, im.shape[1] / FINE
        values = {"class": "chart-own", "x": at(x), "y": at(self.height - y - high)}
        values |= {"width": at(across), "height": at(high), "preserveAspectRatio": "none"}
        values["href"] = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
        self._drawn.append(({}, element("image", values)))

    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        """Add a line of text, anchored by its alignment, as a page's letters are narrower."""
        if ismath and (power := POWER.fullmatch(s)):
            raised = re.sub(r"\^\{(.*?)\}", lambda found: found[1].translate(RAISED), power[1])
            s, ismath = raised.replace(r"\times", "×"), False
        if ismath:
            self._draw_math(gc, x, y, s, prop)
            return
        ha = mtext.get_ha() if mtext is not None else self._aligned.get(s, "left")
        anchor, share = ANCHORS[ha]
        along = share * wide(s, prop)
        x += along * np.cos(np.deg2rad(angle))
        y -= along * np.sin(np.deg2rad(angle))
        values = {"x": at(x), "y": at(y)}
        if angle:
            values = {"transform": f"translate({at(x)} {at(y)}) rotate({at(-angle)})"}
        values |= {"text-anchor": anchor} if anchor != "start" else {}
        size = prop.get_size_in_points()
        values |= {"font-size": at(size)} if size != LEAST else {}
        bold = prop.get_weight() in ("bold", "semibold", "heavy", 600, 700)
        values |= {"font-weight": "650"} if bold else {}
        values |= {"font-style": "italic"} if prop.get_style() == "italic" else {}
        colour: Any = gc.get_rgb()
        name, _ = paint(colour)
        if name == "var(--attn-page)":
            values["class"] = "chart-page"
        elif name != "var(--attn-ink)":
            values["style"] = f"--of:{name}"
        values |= {"opacity": f"{colour[3]:.2g}"} if len(colour) > 3 and colour[3] < 1 else {}
        self._drawn.append(({}, element("text", values, escape(s))))

    def _draw_math(
        self, gc: GraphicsContextBase, x: float, y: float, s: str, prop: FontProperties
    ) -> None:
        """Draw a formula as shapes, always horizontally."""
        points, codes = text_to_path.get_text_path(prop, s, ismath=True)
        scale = prop.get_size_in_points() / text_to_path.FONT_SCALE
        shape = Path(np.asarray(points) * scale + (x, self.height - y), np.asarray(codes))
        ink = gc.get_rgb()
        gc.set_linewidth(0)
        self.draw_path(gc, shape, IdentityTransform(), ink)
