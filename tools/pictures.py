"""`python -m tools.pictures`: draw the road of the first page into `book/figures/road.svg`.

With `--screenshot` it also captures the first page of the built site (`make book`) for README.
"""

import argparse
import functools
import http.server
import io
import threading
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image

from attnbook import bundles
from attnbook.show.drawing import BIG, SMALL, TEXT, Box, Part, Stroke, Words, dial
from attnbook.show.lettering import text_width
from attnbook.show.picture import Picture
from tools.notebooks import ROOT

FIGURES = ROOT / "book/figures"
TITLE = "The road: what was wrong, what mends it"
STOPS = [  # chapter, its name on the road, the problem and its solution
    ("01_seq2seq", "One vector", "one network reads, another one writes"),
    ("02_attention", "Attention", "one vector forgets: look back at every word"),
    ("03_self_attention", "Self-attention", "reading in turn waits: read all at once"),
    ("04_positions", "Positions", "order is lost: each word says where it is"),
    ("05_heads", "Many heads", "one look is too few: several side by side"),
    ("06_transformer", "The Transformer", "one block of all these parts, stacked"),
    ("07_what_it_buys", "What it buys", "count the cost of a token, then race"),
    ("08_bert", "BERT", "labels are few: hide words, read both sides"),
    ("09_gpt", "GPT", "to write: guess the next word, then again"),
    ("10_sampling", "Sampling", "the likeliest text loops: draw, within limits"),
    ("11_prompting", "Prompting", "a new task needs no training: ask in words"),
]
WIDE, HIGH, STEP = 62, 30, 37  # width and height of a sketch, distance between stops
WHOLE, LEFT, TOP = 352, 100, 23  # width of the road; where words and stops begin
SIDE = 7  # of a cell
SVG = "http://www.w3.org/2000/svg"


def cell(x: float, y: float, shade: float = 0.12) -> Box:
    return Box(x - SIDE / 2, y - SIDE / 2, SIDE, SIDE, "cell", shade)


def line(*points: tuple[float, float], width: float = 1.2) -> Stroke:
    return Stroke(points, "line", width=width)


def arc(x: float, to: float, y: float, high: float = 14) -> Stroke:
    return Stroke(((x, y), (x, y - high), (to, y - high), (to, y)), "line", curved=True, width=1.2)


def sketch(*marks, role: str = "") -> Part:
    return Part(WIDE, HIGH, marks, role=role)


def one_vector() -> list[Part]:
    places = [4, 14, 24, 38, 48, 58]
    ways = [line((a + 4, 22), (b - 4, 22)) for a, b in pairwise(places)]
    words = sketch(*ways, *(cell(x, 22) for x in places))
    return [
        words,
        sketch(line((24, 18), (31, 9), (38, 18), width=2), cell(31, 7, 0.7), role="state"),
    ]


def look_back() -> list[Part]:
    shares = (0.6, 0.8, 3.5, 1.6, 0.6)
    fan = [line((7 + 12 * n, 22), (31, 9), width=share) for n, share in enumerate(shares)]
    words = [cell(7 + 12 * n, 25) for n in range(5)]
    return [sketch(*words), sketch(*fan, cell(31, 6, 0.7), role="weight")]


def all_at_once() -> list[Part]:
    places = [10, 24, 38, 52]
    ways = [line((a, 22), (b, 9), width=0.9) for a in places for b in places]
    return [sketch(*ways, role="weight"), sketch(*(cell(x, y) for x in places for y in (5, 26)))]


def clocks() -> list[Part]:
    angles = np.array([0.0, 1.0, 2.0]) * 1.1
    dials = [dial([[np.sin(a), np.cos(a)]], roles=["key"], size=17) for a in angles]
    inside = tuple((1 + 21 * n, 1, each) for n, each in enumerate(dials))
    return [Part(WIDE, HIGH, inside), sketch(*(cell(9.5 + 21 * n, 25) for n in range(3)))]


def two_looks() -> list[Part]:
    words = [cell(7 + 12 * n, 25) for n in range(5)]
    one = sketch(
        *(line((x, 22), (22, 9), width=w) for x, w in ((7, 2.5), (19, 1))),
        cell(22, 6, 0.7),
        role="query",
    )
    other = sketch(
        *(line((x, 22), (40, 9), width=w) for x, w in ((43, 1), (55, 2.5))),
        cell(40, 6, 0.7),
        role="key",
    )
    return [sketch(*words), one, other]


def blocks() -> list[Part]:
    towers = [Box(x, y, 22, 7, "cell", 0.12) for x in (6, 34) for y in (2, 11.5, 21)]
    ways = [line((28, 5.5), (34, y), width=1.6) for y in (5.5, 15, 24.5)]
    return [sketch(*towers), sketch(*ways, role="weight")]


def costs() -> list[Part]:
    axes = sketch(line((8, 2), (8, 27), (56, 27)), line((8, 25), (54, 14), width=1.6))
    square = [(8 + 4.6 * n, 26 - 0.24 * n**2) for n in range(11)]
    return [axes, sketch(line(*square, width=2), role="weight")]


def both_sides() -> list[Part]:
    words = [cell(x, 24) for x in (7, 19, 43, 55)]
    arcs = [arc(x, 31, 19) for x in (7, 19, 43, 55)]
    return [sketch(*words), sketch(*arcs, cell(31, 24, 0.7), role="weight")]


def from_the_left() -> list[Part]:
    words = [cell(7 + 12 * n, 24) for n in range(4)]
    arcs = [arc(7 + 12 * n, 55, 19) for n in range(4)]
    return [sketch(*words), sketch(*arcs, cell(55, 24, 0.7), role="weight")]


def draw_one() -> list[Part]:
    heights = (24, 16, 11, 6, 3)
    bars = [Box(4 + 12 * n, 28 - h, 7, h, "cell", 0.12) for n, h in enumerate(heights) if n != 2]
    return [sketch(*bars), sketch(Box(28, 17, 7, 11, "cell", 0.7), role="weight")]


def ask() -> list[Part]:
    given = [Box(2, y, width, 6, "cell", 0.12) for y, width in ((3, 58), (12, 44), (21, 24))]
    return [sketch(*given), sketch(Box(30, 21, 22, 6, "cell", 0.7), role="value")]


SKETCHES = [one_vector, look_back, all_at_once, clocks, two_looks, blocks, costs, both_sides]
SKETCHES += [from_the_left, draw_one, ask]


def road() -> str:
    """The road as a stand-alone SVG whose stops link to their chapters."""
    inside: list = [Words(0, 0.65 * BIG, TITLE, BIG, "heading", "start")]
    inside.append(line((10, TOP + 15), (10, TOP + 15 + STEP * (len(STOPS) - 1)), width=3))
    for n, ((_, name, mends), draw) in enumerate(zip(STOPS, SKETCHES, strict=True)):
        marks = (
            Box(0, 5, 20, 20, "number", None),
            Words(10, 15, str(n + 1), TEXT, "strong"),
            *((28, 0, part) for part in draw()),
            Words(LEFT, 8, name, TEXT, "heading", "start"),
            Words(LEFT, 23, mends, SMALL, "", "start"),
        )
        assert LEFT + text_width(mends, SMALL) < WHOLE, mends
        inside.append((0, TOP + STEP * n, Part(WHOLE, HIGH, marks, name=f"stop-{n}")))
    height = TOP + STEP * (len(STOPS) - 1) + HIGH
    picture = Picture(Part(WHOLE, height, tuple(inside)))
    alt = "The road: " + "; ".join(f"{n}. {s[1]}, {s[2]}" for n, s in enumerate(STOPS, 1)) + "."
    number = ".draw-picture .draw-number { rx: 10px; fill: var(--attn-page); stroke-width: 1.5; }\n"
    ET.register_namespace("", SVG)
    root = ET.fromstring(picture.svg(alt, bundles.still() + number))
    root.set("role", "group")  # links inside role="img" are not accessible
    for n, (chapter, _, _) in enumerate(STOPS):
        (group,) = root.iterfind(f".//*[@data-part='stop-{n}']")
        group.tag = f"{{{SVG}}}a"
        group.attrib = {"href": f"{chapter}.html"}
        for words in group.iterfind(f"{{{SVG}}}text"):
            words.tail = " "  # otherwise a screen reader joins the words
    return ET.tostring(root, encoding="unicode") + "\n"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


def screenshot(site: Path, file: Path) -> None:
    """Capture the top of the first page."""
    from playwright.sync_api import sync_playwright

    from tools import chromium

    handler = functools.partial(QuietHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.ensure())
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"http://127.0.0.1:{server.server_port}/book/index.html")
        page.wait_for_function("!document.querySelector('.widget-view:not([data-ready])')")
        page.evaluate("document.fonts.ready")
        page.wait_for_timeout(500)  # for the theme's script and its shadows
        shot = Image.open(io.BytesIO(page.screenshot()))
        browser.close()
    server.shutdown()
    few = shot.convert("RGB").quantize(96, Image.Quantize.MAXCOVERAGE, kmeans=2)
    few.save(file, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--screenshot", action="store_true", help="photograph the built site, too")
    options = parser.parse_args()
    (FIGURES / "road.svg").write_text(road(), encoding="utf-8")
    if options.screenshot:
        screenshot(ROOT / "_build/html", FIGURES / "screenshot.png")


if __name__ == "__main__":
    main()
