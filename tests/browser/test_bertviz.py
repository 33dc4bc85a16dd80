"""bertviz's views in Chromium, on a page built from a notebook that a kernel ran."""

import gzip
import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from bertviz import head_view
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.browser.widget_pages import everywhere, serious, settle
from tests.helpers.minibook import build_book, write_mini_book
from tools import chapters, notebooks, suite

HOSTILE = "</script><img src=x onerror=document.title='hacked'>"
WORDS = "[CLS] the keys to the old cabinet are on the big table".split()
LAYERS, HEADS = 3, 12
FIRST, SECOND, MODEL = range(3)
CELLS = {
    "import torch\nfrom bertviz import head_view, model_view\n"
    "from attnbook.show.plots import bertviz_weights\n"
    f"words = {WORDS}\n"
    f"scores = torch.randn({LAYERS}, 1, {HEADS}, {len(WORDS)}, {len(WORDS)},"
    " generator=torch.Generator().manual_seed(0))\n"
    "weights = bertviz_weights((3 * scores).softmax(-1))": None,
    "head_view(weights, words)": "Attention",
    f"pair = [weights[0][:, :2, :3, :3]]\nhead_view(pair, ['a', 'b', {HOSTILE!r}], 1)": "Two",
    "model_view(weights, words)": "Model",
}


def weights() -> np.ndarray:
    """[layer head query key], computed as the notebook does."""
    import torch

    shape = (LAYERS, 1, HEADS, len(WORDS), len(WORDS))
    scores = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    return (3 * scores).softmax(-1).numpy()[:, 0]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three views, each below a screen of text, as `make run` stores them."""
    nb = new_notebook(metadata={"kernelspec": dict(notebooks.KERNEL)})
    nb.cells.append(new_markdown_cell("# Views"))
    for source, heading in CELLS.items():
        if heading:
            room = '<div style="height: 2000px"></div>'
            nb.cells.append(new_markdown_cell(f"## {heading}\n\n{room}"))
        nb.cells.append(new_code_cell(source))
    path = tmp_path_factory.mktemp("bertviz") / "views.ipynb"
    notebooks.write(path, nb)
    chapters.run(path)
    return path


@pytest.fixture(scope="module")
def path(notebook: Path) -> Path:
    text = notebook.read_text("utf8")
    write_mini_book(notebook.parent, {"index.md": "# Mini book\n", notebook.name: text})
    done = build_book(notebook.parent, notebook.parent)
    assert done.returncode == 0, done.stdout[-5000:]
    return notebook.parent / "_build/html/views.html"


def host(page: Page, n: int) -> Locator:
    return page.locator(".bertviz-view").nth(n)


def drawn(page: Page, n: int) -> Locator:
    """The view, scrolled to and drawn."""
    host(page, n).scroll_into_view_if_needed()
    page.wait_for_function(
        "n => 'ready' in document.querySelectorAll('.bertviz-view')[n].dataset", arg=n
    )
    return host(page, n)


def fetched(page: Page) -> list[str]:
    names = "[...document.scripts].map((s) => s.src).filter((src) => src.includes('/bertviz/'))"
    return [name.rpartition("/")[2] for name in page.evaluate(names)]


def opacities(lines: Locator, shape: tuple[int, ...]) -> np.ndarray:
    found = lines.evaluate_all("(all) => all.map((l) => +l.getAttribute('stroke-opacity'))")
    return np.array(found).reshape(shape)


def seen(view: Locator) -> int:
    """How many lines of a head view are shown."""
    return view.locator("#attention line").evaluate_all(
        "(all) => all.filter((line) => getComputedStyle(line).visibility == 'visible').length"
    )


def squares(view: Locator) -> Locator:
    return view.get_by_role("checkbox")


@everywhere
def test_nothing_is_fetched_before_one_scrolls_there(
    open_page: Callable[..., Page], where: dict[str, Any]
) -> None:
    page = open_page(**where)
    settle(page, 3)  # in which they would be seen to be near
    assert fetched(page) == []
    assert page.evaluate("typeof d3 + typeof jQuery") == "undefinedundefined"
    places = [host(page, n).bounding_box() for n in range(3)]
    for n, place in enumerate(places):
        view = drawn(page, n)
        after = view.bounding_box()
        assert place and after and after["height"] == pytest.approx(place["height"], abs=1)
        assert len(fetched(page)) == 3 + n  # two libraries once, and each view's weights
    assert page.title() != "hacked"


def test_weight_of_the_page(path: Path) -> None:
    sizes = {
        file.name: len(gzip.compress(file.read_bytes()))
        for file in (path.parent / "_static/bertviz").iterdir()
    }
    assert len(sizes) == 5
    assert sum(sizes.values()) < 250_000  # what a page may fetch beyond its first 300 kB
    assert "bertviz" not in path.with_name("index.html").read_text("utf8")
    text = path.read_text("utf8")
    assert len(text) < 100_000
    assert "cdnjs" not in text and "require" not in text


def test_head_view_shows_the_weights(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = drawn(page, FIRST)
    lines, n = view.locator("#attention line"), len(WORDS)
    truth, shape = weights(), (HEADS, n, n)
    assert opacities(lines, shape) == pytest.approx(truth[0] / HEADS, abs=5e-4)
    view.get_by_label("Layer:").select_option("2")
    assert opacities(lines, shape) == pytest.approx(truth[2] / HEADS, abs=5e-4)
    squares(view).nth(4).dblclick()
    assert [s.get_attribute("aria-checked") for s in squares(view).all()] == [
        "true" if i == 4 else "false" for i in range(HEADS)
    ]
    squares(view).nth(7).click()
    picked = np.zeros(shape)
    picked[[4, 7]] = truth[2][[4, 7]] / 2
    assert opacities(lines, shape) == pytest.approx(picked, abs=5e-4)
    assert seen(view) == HEADS * n * n
    view.locator("#left text").nth(5).hover()
    assert seen(view) == HEADS * n
    boxes = view.locator("#right .attentionBoxes g").nth(7).locator("rect")
    shown = boxes.evaluate_all("(all) => all.map((rect) => +rect.style.opacity)")
    assert shown == pytest.approx(truth[2][7][5], abs=5e-4)
    page.mouse.move(0, 0)
    assert seen(view) == HEADS * n * n


def test_model_view_shows_the_weights(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view, n = drawn(page, MODEL), len(WORDS)
    shape = (LAYERS, HEADS, n, n)
    assert opacities(view.locator("line"), shape) == pytest.approx(weights(), abs=5e-4)
    head = view.get_by_role("button", name="Layer 1, head 8", exact=True)
    head.click()
    assert head.get_attribute("aria-pressed") == "true"
    assert view.get_by_text("Layer 1, Head 8").is_visible()
    detail = view.locator("g.detail line")
    assert opacities(detail, (n, n)) == pytest.approx(weights()[1, 8], abs=5e-4)
    head.click()
    assert head.get_attribute("aria-pressed") == "false"
    assert view.locator(".detail").count() == 0


def test_keys(open_page: Callable[..., Page]) -> None:
    """One stop of the Tab key a view, arrows within."""
    page = open_page()
    view = drawn(page, MODEL)
    view.get_by_role("button").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    stops = view.locator("[tabindex='0']")
    assert stops.count() == 1 and stops.get_attribute("aria-label") == "Layer 1, head 1"
    page.keyboard.press("Enter")
    assert view.get_by_text("Layer 1, Head 1").is_visible()
    view = drawn(page, FIRST)
    view.get_by_label("Layer:").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")  # there is none
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    checked = [square.get_attribute("aria-checked") for square in squares(view).all()]
    assert checked == ["true", "false", *["true"] * (HEADS - 2)]


def test_two_views_and_a_heading_of_the_same_name(open_page: Callable[..., Page]) -> None:
    page = open_page()
    first, second = drawn(page, FIRST), drawn(page, SECOND)
    squares(second).first.click()
    assert squares(first).first.get_attribute("aria-checked") == "true"
    second.get_by_label("Attention:").select_option("Sentence A -> Sentence B")
    assert second.locator("#attention line").count() == 2 * 1 * 2
    assert first.locator("#attention line").count() == HEADS * len(WORDS) ** 2
    assert second.locator("#right text").all_text_contents() == ["b", HOSTILE]
    assert page.evaluate("document.querySelectorAll('#attention').length") == 1
    assert page.evaluate("document.getElementById('attention').localName") == "section"


def picture(view: Locator) -> np.ndarray:
    """[y x channel], 0 to 255"""
    return np.asarray(Image.open(io.BytesIO(view.screenshot())).convert("RGB")).astype(int)


@everywhere
def test_colours_and_width(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    """On the page's own ground, with text and lines that stand out, and nothing cut off."""
    page = open_page(**where)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)")
    first, model = drawn(page, FIRST), drawn(page, MODEL)
    first.locator("#left text").nth(5).hover()
    for view in (first, model):
        pixels = picture(view)
        away = np.abs(pixels - np.array(ground, int)).max(-1)
        assert (away < 12).mean() > 0.5
        assert (away > 150).mean() > 0.005
        dark = where["theme"] == "dark"
        opposite = pixels.min(-1) > 230 if dark else pixels.max(-1) < 25
        assert opposite.mean() < 0.05
    model.get_by_role("button", name="Layer 1, head 3", exact=True).click()
    frame = np.array(picture(model.locator("rect.detail"))[3:-3, 3:-3])
    away = np.abs(frame - np.array(ground, int)).max(-1)
    assert np.median(away) < 60 and (away > 150).mean() > 0.005
    assert model.locator("text.detail").count() == 1
    ink = first.evaluate("(e) => getComputedStyle(e).color")
    for words in (first.locator("text"), model.locator("text")):
        fills = words.evaluate_all("(all) => all.map((text) => getComputedStyle(text).fill)")
        assert set(fills) == {ink}
    assert page.evaluate("document.documentElement.scrollWidth") <= where["width"]
    overflow = "(e) => e.scrollWidth - e.clientWidth"
    assert first.locator("#vis").evaluate(overflow) == 0
    assert (model.locator("#vis").evaluate(overflow) > 0) == (where["width"] < 600)
    second = drawn(page, SECOND)
    for vis, last in (
        (second.locator("#vis"), second.locator("#right text").last),  # longer than a phone is wide
        (model.locator("#vis"), model.get_by_label(f"Layer 0, head {HEADS - 1}", exact=True)),
    ):
        vis.evaluate("(e) => { e.scrollLeft = e.scrollWidth; }")
        box, room = last.bounding_box(), vis.bounding_box()
        assert box and room and room["x"] + room["width"] <= where["width"]
        assert box["x"] + box["width"] <= room["x"] + room["width"] + 1
    for tapped in (first.get_by_label("Layer:"), second.get_by_label("Attention:")):
        box = tapped.bounding_box()
        assert box and box["height"] >= 32


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
def test_accessible(open_page: Callable[..., Page], theme: str, width: int) -> None:
    page = open_page(theme=theme, width=width)
    for n in range(3):
        drawn(page, n)
    host(page, MODEL).get_by_role("button").nth(5).click()
    assert serious(page) == []
    names = [host(page, n).get_attribute("aria-label") or "" for n in range(3)]
    assert names[MODEL] == (
        f"bertviz’s model view of {LAYERS} layers with {HEADS} heads each, for: {' '.join(WORDS)}"
    )
    assert names[SECOND].startswith(
        "bertviz’s head view of 1 layer with 2 heads, for: a b </script"
    )


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_without_javascript_a_text(open_page: Callable[..., Page], scheme: str) -> None:
    page = open_page(scheme=scheme, javascript=False, width=390)
    for n in range(3):
        text = host(page, n).locator("p")
        assert "view of" in text.inner_text() and "script" in text.inner_text()
        box = text.bounding_box()
        assert box and box["height"] > 20 and box["x"] + box["width"] <= 390


def test_in_print(open_page: Callable[..., Page]) -> None:
    """What was drawn is there to its right edge, what was not has its text."""
    page = open_page(width=390)
    model = drawn(page, MODEL)
    page.emulate_media(media="print")
    box = model.locator("svg").bounding_box()
    assert box and box["width"] <= 390
    assert host(page, SECOND).locator("p").is_visible()


def test_a_script_that_does_not_arrive(open_page: Callable[..., Page], faults) -> None:
    page = open_page()
    page.route("**/d3-*.js", lambda route: route.abort())
    note = drawn(page, FIRST).get_by_role("status")
    expect(note).to_contain_text("d3-5.7.0.js, did not arrive")
    assert host(page, FIRST).get_by_text("head view of 3 layers").is_visible()
    note.get_by_role("button", name="Try again").click()
    expect(note.get_by_role("button", name="Try again")).to_be_enabled()  # in vain
    page.unroute_all()
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(host(page, FIRST).locator("#attention line").first).to_be_attached()
    expect(note).to_have_count(0)
    faults.clear()


def test_a_view_in_one_piece_is_told(tmp_path: Path) -> None:
    """It would fetch its scripts from the CDN."""
    import torch

    view = head_view([torch.full((1, 1, 2, 2), 0.5)], ["a", "b"], html_action="return")
    assert view
    nb = new_notebook(metadata={"kernelspec": dict(notebooks.KERNEL)})
    output = new_output("display_data", {"text/html": view.data})
    nb.cells = [new_markdown_cell("# Views"), new_code_cell("view", outputs=[output])]
    write_mini_book(tmp_path, {"index.md": "# Mini book\n", "views.ipynb": nbformat.writes(nb)})
    done = build_book(tmp_path, tmp_path)
    assert done.returncode != 0
    assert "has no script of its own: show it without `html_action`" in done.stdout


# In the notebook: as bertviz made it, and the same each time.


def test_the_notebook_works_elsewhere(notebook: Path) -> None:
    outputs = [
        o.get("data", {}) for c in notebooks.read(notebook).cells for o in c.get("outputs", [])
    ]
    scripts = [
        data["application/javascript"] for data in outputs if "application/javascript" in data
    ]
    assert len(scripts) == 3
    for script in scripts:
        assert "https://cdnjs.cloudflare.com/ajax/libs/d3/" in script
        assert script.count('"root_div_id"') == 1
    loaders = [data for data in outputs if "require.min.js" in data.get("text/html", "")]
    assert len(loaders) == 3


def test_run_twice_gives_the_same_bytes(notebook: Path) -> None:
    before = notebook.read_bytes()
    chapters.run(notebook)
    assert notebook.read_bytes() == before


def test_nbval_compares_the_weights(notebook: Path, tmp_path: Path) -> None:
    """Names and the comment may differ, a weight may not: here one of the second view's."""
    nb = notebooks.read(notebook)
    scripts = [
        output.data
        for cell in nb.cells
        for output in cell.get("outputs", [])
        if "application/javascript" in output.get("data", {})
    ]
    text, weight = scripts[SECOND]["application/javascript"], '"attn": [[[[0.'
    assert weight in text
    scripts[SECOND]["application/javascript"] = text.replace(weight, f"{weight}9", 1)
    notebooks.write(tmp_path / "views.ipynb", nb)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *suite.NBVAL]
    done = subprocess.run([*command, "views.ipynb"], capture_output=True, text=True, cwd=tmp_path)
    verdicts = re.findall(r"^(PASSED|FAILED) views.ipynb::Cell (\d)", done.stdout, re.MULTILINE)
    assert sorted(verdicts, key=lambda verdict: verdict[1]) == [
        ("PASSED", "0"),
        ("PASSED", "1"),
        ("FAILED", "2"),
        ("PASSED", "3"),
    ], done.stdout
