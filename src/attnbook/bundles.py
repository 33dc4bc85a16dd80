"""The code that pages run, bundled by `tools/bundle.mjs`, and the form in which notebooks store it.

Standard library only, since the book is built without PyTorch.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).parent / "web" / "bundles"
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
# MIME type and class of a drawing without steps; the classes of a chart, which its cell describes.
SVG, STILL, CHART = "image/svg+xml", "draw-still", "draw-still draw-chart"
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
RULE = re.compile(r"@[^{]+\{(?:[^{}]+\{[^{}]*\})*\}|[^{}]+\{[^{}]*\}")
VALUE = re.compile(r"(--[\w-]+):[^;{}]*(?:;|(?=\}))")


def classes() -> list[str]:
    """Names of the widget classes that have sources: `["AttentionHeatmap", ...]`."""
    return sorted(file.stem for file in FOLDER.glob("widgets/*.css"))


def stem(name: str) -> str:
    """The folder of widget class `name`: `attention_heatmap`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def load(name: str) -> tuple[str, str]:
    """ES module and stylesheet of widget class `name`."""
    return _text(f"widgets/{name}.js"), _text(f"widgets/{name}.css")


def stored(name: str) -> dict[str, str]:
    """What a notebook stores of widget class `name` with each state: its address and sources.

    The model's worker is left out, like its weights: a kernel that sends these sends it, too.
    """
    esm, css = load(name)
    if (FOLDER / f"widgets/{name}.stored.js").is_file():
        esm = _text(f"widgets/{name}.stored.js")
    return {"_anywidget_id": f"attnbook.web.{stem(name)}.widget.{name}", "_esm": esm, "_css": css}


def still(svg: str = "") -> str:
    """The stylesheet of a stand-alone drawing: the rules and colours that `svg` needs, or all."""
    sheet, drawn = _text("still.css"), STYLE.sub("", svg)
    if not svg:
        return sheet
    own = {*re.findall(r"(?:draw|chart)-[a-z]+", drawn)}
    rules = [rule for rule in RULE.findall(sheet)
             if {*re.findall(r"\.((?:draw|chart)-[a-z]+)", rule)} <= own]  # fmt: skip
    needed = "".join(rules)
    for _ in range(2):  # a colour may refer to others
        used = {*re.findall(r"var\((--[\w-]+)", needed + drawn)}
        unused = {name for name in VALUE.findall(needed) if name not in used}
        needed = VALUE.sub(lambda value, no=unused: "" if value[1] in no else value[0], needed)
    return re.sub(r"[^{}]+\{\}", "", needed).strip()


def styled(svg: str) -> str:
    """A stand-alone drawing, with its stylesheet replaced by the rules that it needs."""
    sheet = f"<style>{still(svg)}</style>"
    return re.sub(r"^(<svg[^>]*>)", lambda start: start[1] + sheet, STYLE.sub("", svg, count=1))


def _text(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
