"""Time until a page's first widget is drawn, and of a redraw while dragging over a map.

make bench NAME=widgets    (needs a built site and the set-up of `make test`)
Budgets: 0.3 s from navigation to the first widget, 16 ms a redraw of 64 x 64.
"""

import json
import re
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from playwright.sync_api import Browser

from attnbook.web import AttentionHeatmap
from benchmarks import _stored
from benchmarks._chromium import chromium, serve
from tests.helpers.minibook import ROOT, build_book, notebook_of, write_mini_book

FIRST, REDRAW = 0.3, 16

# A view that is drawn at once, and not when the reader comes near.
AT_ONCE = re.compile(r'class="widget-view" data-widget="\w+">')

# Notes the time since navigation of the frame after the first widget was drawn.
FIRST_DRAWN = """new MutationObserver((_, watch) => {
    if (!document.querySelector(".widget-view[data-ready]")) return;
    watch.disconnect();
    requestAnimationFrame(() => setTimeout(() => (window.firstDrawn = performance.now())));
}).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-ready"] })"""

# The parts of a frame on the page's main thread, from the pointer's event to the painted picture.
FRAME = {
    "EventDispatch",
    "FireAnimationFrame",
    "UpdateLayoutTree",
    "Layout",
    "PrePaint",
    "Paint",
    "Layerize",
    "Commit",
}


def first_widget(browser: Browser, address: str) -> float:
    """Seconds from navigation to the first widget, with an empty cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(FIRST_DRAWN)
    page.goto(address)
    page.wait_for_function("window.firstDrawn")
    seconds = page.evaluate("window.firstDrawn") / 1000
    context.close()
    return seconds


def drag_trace(browser: Browser, address: str) -> list[dict[str, Any]]:
    """Chromium's trace of a drag over the map's cells."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(address)
    canvas = page.locator(".attnbook-widget canvas").first
    canvas.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    box = canvas.bounding_box()
    assert box
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    for step in range(120):
        part = 0.3 + 0.6 * step / 120
        page.mouse.move(box["x"] + part * box["width"], box["y"] + part * box["height"])
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    page.mouse.up()
    trace = json.loads(browser.stop_tracing())["traceEvents"]
    page.close()
    return trace


def redraws(trace: list[dict[str, Any]]) -> list[float]:
    """Milliseconds of handler and paint after each move of the pointer."""
    moves = [e for e in trace if e.get("args", {}).get("data", {}).get("type") == "pointermove"]
    thread = moves[0]["pid"], moves[0]["tid"]
    parts = sorted(
        (event["ts"], event["ts"] + event["dur"])
        for event in trace
        if event["name"] in FRAME and "dur" in event and (event["pid"], event["tid"]) == thread
    )
    times = sorted(move["ts"] for move in moves)
    costs = []
    for start, end in pairwise(times):
        spent, until = 0.0, 0.0
        for first, last in parts:  # parts may lie inside one another: each moment counts once
            if start <= first < end:
                spent += max(0.0, last - max(first, until))
                until = max(until, last)
        costs.append(spent / 1000)
    return costs


def main() -> None:
    weights = np.random.default_rng(0).dirichlet(np.full(64, 0.2), size=64)
    tokens = [f"token{i}" for i in range(64)]
    widget = AttentionHeatmap(weights, tokens, tokens, title="64 x 64")
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        page = nbformat.writes(notebook_of([widget]))
        write_mini_book(folder, {"index.md": "# Book\n", "map.ipynb": page})
        done = build_book(folder, folder)
        assert done.returncode == 0, done.stdout
        book = ROOT / "_build/html/book"
        built = {file.name: file.read_text("utf8") for file in sorted(book.glob("[0-9]*.html"))}
        chapters = [name for name, text in built.items() if AT_ONCE.search(text)]
        with serve(ROOT / "_build/html") as site:
            firsts = []
            for path in ["book/index.html", *(f"book/{name}" for name in chapters)]:
                runs = [first_widget(browser, f"{site}/{path}") for _ in range(5)]
                firsts.append(statistics.median(runs))
                shown = ", ".join(f"{run:.2f}" for run in sorted(runs))
                print(f"{path}: first widget after {statistics.median(runs):.2f} s ({shown})")
        with serve(folder / "_build/html") as mini:
            costs = redraws(drag_trace(browser, f"{mini}/map.html"))
            tenth = statistics.quantiles(costs, n=10)[8]
            print(
                f"64 x 64: a redraw while dragging takes {statistics.median(costs):.1f} ms "
                f"(one in ten above {tenth:.1f}, {len(costs)} moves)"
            )
    rows = [
        _stored.budget("a page's first widget, over pages", "s", firsts, FIRST),
        _stored.budget("a map of 64 x 64: a redraw while dragging", "ms", costs, REDRAW),
    ]
    _stored.finish(__file__, rows)


if __name__ == "__main__":
    main()
