"""The widgets in JupyterLab: with a kernel, saved and opened again, trusted and not.

One server serves the module from a folder of its own, so that settings and signatures of the
machine have no say. What a chapter shows is read from the notebook: no list of widgets is kept.
"""

import base64
import importlib
import inspect
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import nbformat
import numpy as np
import pytest
from nbformat import NotebookNode
from nbformat.sign import NotebookNotary
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Response, expect

from attnbook.widgets import (
    AttentionHeatmap,
    BlockDiagram,
    LossSurface,
    PositionExplorer,
    RotaryDial,
    SoftmaxTemperature,
    format_number,
)
from attnbook.widgets.temperature import softmax
from tests.browser.conftest import Faults
from tests.browser.widget_pages import diagram_says, dial_says, explorer_says, surface_says
from tools import notebooks
from tools.notebooks import ROOT, VIEW

CHAPTERS = [path for path in notebooks.every() if notebooks.is_chapter(path)]
EACH_CHAPTER = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)

SMALL = """
from attnbook.widgets import AttentionHeatmap, SoftmaxTemperature
heatmap = AttentionHeatmap([[0.25, 0.75], [1, 0]], ["zwei", "drei"], ["two", "three"])
bars = SoftmaxTemperature([1, 3], ["a", "b"], editable=True)
display(heatmap, bars)
"""
SMALL_READ = "print('python:', heatmap.query, heatmap.key, bars.temperature, bars.logits.tolist())"
SMALL_DRIVE = (
    "heatmap.query, heatmap.key, bars.temperature, bars.logits = 0, 1, 0, bars.logits[::-1]"
)

IMPORT = """
import json
from tests.browser.test_widgets_jupyter import CHAPTERS, drive, of_each_class, rebuild, told
"""
TELL = "print(json.dumps([told(widget) for widget in widgets]))"
DRIVE = "for widget in widgets:\n    drive(widget)\n" + TELL
ONE_OF_EACH = IMPORT + "display(*of_each_class([w for path in CHAPTERS for w in rebuild(path)]))"

MISSING = "widget model not found"  # on the console
NOT_FOUND = "Error displaying widget: model not found"
SAVE_STATE = "Save Widget State Automatically"

# What a view shows of the state that a reader changes, as `told` says it in Python.
SHOWN = """(view) => {
  const texts = (selector) => [...view.querySelectorAll(selector)].map((e) => e.textContent);
  const switches = [...view.querySelectorAll("button[aria-pressed]")];
  const off = switches.filter((button) => button.ariaPressed === "false");
  if (switches.length) return [off.map((button) => button.dataset.part), ...texts(".attn-readout")];
  const select = [...view.querySelectorAll("select")].at(-1);
  const values = texts(".attn-value"), mode = select ? [select.selectedIndex] : [];
  if (values.length) return [...values, ...mode, ...texts(".attn-readout")];
  if (view.querySelector("canvas")) {
    const words = [...view.querySelector(".attn-text").querySelectorAll(".attn-word")];
    const key = words.findIndex((word) => word.classList.contains("attn-at"));
    return [select.selectedIndex - 1, key, ...texts(".attn-readout b")];
  }
  const temperature = Number(view.querySelector("input[type=number]").value);
  return [temperature, Math.max(0, select?.selectedIndex ?? 0), ...texts("li b")];
}"""
# How many colours cells have, text and lines being grey: of the map that has the fewest.
COLOURS = """(canvases) => Math.min(...canvases.map((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let n = 0; n < data.length; n += 4)
    if (data[n + 3] === 255 && data[n + 2] - data[n] > 8) found.add(data.slice(n, n + 3).join());
  return found.size;
}))"""


# ---- in Python, here and in the kernels


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    """What each output that shows a widget holds, in order."""
    every = (output for cell in notebooks.code_cells(notebook) for output in cell.outputs)
    return [output.data for output in every if VIEW in output.get("data", {})]


def rebuild(path: Path) -> list[Any]:
    """The widgets of a notebook, made anew by their classes from the state stored in it."""
    notebook = notebooks.read(path)
    models = notebooks.models(notebook)
    return [rebuilt(models[data[VIEW].model_id]) for data in outputs(notebook)]


def rebuilt(model: dict[str, Any]) -> Any:
    state = {**model["state"]}
    for buffer in model.get("buffers", []):
        state[buffer["path"][0]] = base64.b64decode(buffer["data"])
    module, _, name = state["_anywidget_id"].rpartition(".")
    cls = getattr(importlib.import_module(module), name)
    given = {**state, **arrays(cls, state)}
    given.update(queries=state.get("query_tokens"), keys=state.get("key_tokens"))
    given.update(contexts=state.get("contexts") or None)
    given.update(axes=[tuple(axis) for axis in state.get("axes", [])])
    widget = cls(**{name: given[name] for name in inspect.signature(cls).parameters})
    for trait in cls.class_own_traits(sync=True):  # the reader's, which no argument sets
        if not isinstance(state[trait], bytes):
            setattr(widget, trait, state[trait])
    now = widget.get_state()
    kept = [trait for trait in state if trait[0] != "_" and trait != "layout"]
    assert {trait: now[trait] for trait in kept} == {trait: state[trait] for trait in kept}
    return widget


def arrays(cls: type, state: dict[str, Any]) -> dict[str, Any]:
    """The arrays of a stored state: a new class of widgets says here how it packs its own."""
    if cls is SoftmaxTemperature:
        shape = (*[len(state["contexts"])] * bool(state["contexts"]), len(state["labels"]))
        kind = "<f4" if len(state["logits"]) == 4 * np.prod(shape) else "<f8"
        return {"logits": np.frombuffer(state["logits"], kind).reshape(shape)}
    if cls in (BlockDiagram, PositionExplorer, RotaryDial):
        return {}
    if cls is LossSurface:
        losses, k = np.frombuffer(state["surfaces"], "<f2"), len(state["names"])
        n = round((losses.size / k) ** 0.5)
        return {"surfaces": losses.reshape(k, n, n)}
    assert cls is AttentionHeatmap, f"how {cls.__name__} packs its arrays is not said here"
    one = len(state["query_tokens"]), len(state["key_tokens"])
    every = *(len(labels) for _, labels in state["axes"]), *one

    def maps(data: bytes) -> np.ndarray | None:
        levels = np.frombuffer(data, "<u2") / 65535
        return levels.reshape(every if levels.size == np.prod(every) else one) if data else None

    return {"weights": maps(state["weights"]), "other": maps(state["other"])}


def of_each_class(widgets: list[Any]) -> list[Any]:
    """The first widget of each class."""
    return list({type(widget): widget for widget in reversed(widgets)}.values())


def told(widget: Any) -> list[Any]:
    """What a view must show: the cell and its weights, or temperature, context and bars, or the
    sliders' values and the lines below, or the part left out and its line."""
    if isinstance(widget, BlockDiagram):
        off = widget.off
        return [[off] * bool(off), diagram_says(widget.runs, off, widget.n_heads)]
    if isinstance(widget, LossSurface):
        angles = (widget.azimuth, widget.elevation)
        return [*(f"{angle:.0f}°" for angle in angles), *surface_says(widget)]
    if isinstance(widget, PositionExplorer):
        at, base = (widget.position, widget.pair), widget.base
        return [
            *map(str, at),
            f"{base:,.0f}",
            *explorer_says(*at, base, widget.max_len, widget.d_model),
        ]
    if isinstance(widget, RotaryDial):
        theta, mode = widget.theta, ["rotate", "add"].index(widget.mode)
        lines = dial_says(widget.q, widget.k, widget.i, widget.j, theta, widget.mode)
        return [str(widget.i), str(widget.j), f"{theta:.2f} rad", mode, *lines]
    if isinstance(widget, AttentionHeatmap):
        i, j = widget.query, widget.key
        read = [format_number(values[i, j]) for values in widget.shown()]
        return [i, j, *(read if min(i, j) >= 0 else [])]
    p = softmax(widget.row(), widget.temperature)
    bars = p
    if len(p) > widget.top:
        bars = p[np.argsort(-widget.row(), kind="stable")[: widget.top]]
        bars = [*bars, 1 - sum(bars)]
    return [widget.temperature, widget.context, *map(format_number, bars)]


def drive(widget: Any) -> None:
    """Another state, set from Python."""
    if isinstance(widget, AttentionHeatmap):
        widget.query = (widget.query + 1) % len(widget.query_tokens)
        widget.key = (widget.key + 1) % len(widget.key_tokens)
    elif isinstance(widget, BlockDiagram):
        every = ["", *widget.parts()]
        widget.off = every[(every.index(widget.off) + 1) % len(every)]
    elif isinstance(widget, LossSurface):
        widget.azimuth, widget.elevation = -100, (widget.elevation + 7) % 91
        widget.log = not widget.log
    elif isinstance(widget, PositionExplorer):
        widget.position = (widget.position + 1) % widget.max_len
        widget.base = 500
    elif isinstance(widget, RotaryDial):
        widget.i, widget.q = (widget.i + 1) % 65, widget.q[::-1]
        widget.mode = "rotate" if widget.mode == "add" else "add"
    else:
        widget.temperature = 0.25
        widget.context = 0


# ---- the lab


@dataclass
class Lab:
    address: str
    folder: Path
    context: BrowserContext
    faults: Faults = field(default_factory=Faults)

    def add(self, name: str, notebook: NotebookNode | list[str]) -> str:
        """Put a notebook there, or one of these cells."""
        if isinstance(notebook, list):
            cells = [nbformat.v4.new_code_cell(source.strip()) for source in notebook]
            notebook = nbformat.v4.new_notebook(cells=cells)
            notebook.metadata.kernelspec = notebooks.KERNEL
        notebooks.write(self.folder / "root" / name, notebook)
        return name

    def open(self, name: str) -> Page:
        page = self.context.new_page()
        self.faults.watch(page)
        page.goto(f"{self.address}/doc/tree/{name}")
        page.locator(".jp-CodeCell").first.wait_for(timeout=60_000)
        return page

    def trust(self, name: str) -> None:
        """As `jupyter trust` does."""
        notary = NotebookNotary(data_dir=str(self.folder / "data"))
        notary.sign(notebooks.read(self.folder / "root" / name))
        notary.store.close()

    def close(self) -> None:
        """Close every page and shut every kernel down, as in the evening."""
        for page in self.context.pages:
            page.close()
        for session in json.load(urlopen(f"{self.address}/api/sessions")):
            address = f"{self.address}/api/sessions/{session['id']}"
            urlopen(Request(address, method="DELETE")).close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("lab")
    (folder / "root").mkdir()
    # The debugger logs an error when a page is closed while it still asks the kernel for its state.
    disabled = {"disabledExtensions": {"@jupyterlab/debugger-extension": True}}
    (folder / "config/labconfig").mkdir(parents=True)
    (folder / "config/labconfig/page_config.json").write_text(json.dumps(disabled), "utf8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = [
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={folder / 'root'}",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.open_browser=False",
        "--ServerApp.disable_check_xsrf=True",  # `Lab.close` is no browser
        "--IdentityProvider.token=",
        "--allow-root",
        f"--LabApp.user_settings_dir={folder / 'settings'}",
        f"--LabApp.workspaces_dir={folder / 'workspaces'}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    own = {
        f"JUPYTER_{kind.upper()}_DIR": str(folder / kind) for kind in ("config", "data", "runtime")
    }
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    own |= {"IPYTHONDIR": str(folder / "ipython"), "PYTHONPATH": path}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *settings],
            stdout=log,
            stderr=log,
            cwd=ROOT,
            env={**os.environ, **own},
        )
        context = browser.new_context(viewport={"width": 1280, "height": 1600})
        # In Jupyter bertviz asks its CDN, out of reach here; its views are tested on the site.
        context.route(
            "https://cdnjs.cloudflare.com/**",
            lambda route: route.fulfill(content_type="text/javascript", body=""),
        )
        address = f"http://127.0.0.1:{port}"
        try:
            wait_for(f"{address}/api/status", server)
            yield Lab(address, folder, context)
        finally:
            context.close()
            server.terminate()
            server.wait(timeout=30)


@pytest.fixture
def lab(server: Lab) -> Iterator[Lab]:
    yield server
    shutil.rmtree(server.folder / "settings", ignore_errors=True)
    faults, server.faults = server.faults, Faults()
    server.close()
    assert not faults.errors, f"errors on the console: {faults.errors}"
    assert not faults.missing, f"missing files: {faults.missing}"


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert server.poll() is None, "JupyterLab did not start"
        try:
            urlopen(address).close()
            return
        except (URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError("JupyterLab does not answer")


def run_cell(page: Page, n: int) -> Locator:
    """Runs a cell to its end; gives its outputs."""
    cell = page.locator(".jp-CodeCell").nth(n)
    prompt = cell.locator(".jp-InputPrompt")
    before = prompt.text_content() or ""
    cell.locator(".cm-content").click()
    for _ in range(60):  # a keystroke before the session stands is lost
        page.keyboard.press("Control+Enter")
        try:
            expect(prompt).not_to_have_text(before, timeout=1000)
            break
        except AssertionError:
            continue
    expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=60_000)
    expect(cell.locator("[data-mime-type='application/vnd.jupyter.stderr']")).to_have_count(0)
    return cell.locator(".jp-OutputArea-output")


def printed(page: Page, n: int) -> Any:
    """What a cell prints as JSON when it is run."""
    return json.loads(run_cell(page, n).inner_text())


def until(read: Callable[[], Any], wanted: Any) -> None:
    """Waits for `read` to give what is wanted."""
    end = time.monotonic() + 20
    while (found := read()) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    assert found == wanted


def views(page: Page, count: int) -> list[Locator]:
    expect(page.locator(".attn")).to_have_count(count, timeout=60_000)
    return page.locator(".attn").all()


def restored(lab: Lab, page: Page, count: int) -> list[Locator]:
    """The views of a notebook opened and not run.

    JupyterLab gives a model up where a new kernel answers two seconds late, as on a busy machine;
    then this loads the page again, as a reader would.
    """
    lost = page.get_by_text(NOT_FOUND)
    for _ in range(2):
        expect(page.locator(".attn").or_(lost)).to_have_count(count, timeout=60_000)
        if not lost.count():
            break
        page.reload()
    drawn = views(page, count)
    lab.faults.errors = [error for error in lab.faults.errors if MISSING not in error]
    return drawn


def shown(view: Locator) -> list[Any]:
    return view.evaluate(SHOWN)


def assert_draws(view: Locator, widget: Any) -> None:
    """That a view is drawn and carries every number of its widget."""
    view.scroll_into_view_if_needed()
    until(lambda: shown(view), told(widget))
    if isinstance(widget, (LossSurface, PositionExplorer)):
        until(lambda: view.locator("canvas").evaluate_all(COLOURS) > 0, True)
    if isinstance(widget, AttentionHeatmap):
        expect(view.locator("canvas")).to_have_count(len(widget.shown()))
        until(lambda: view.locator("canvas").evaluate_all(COLOURS) > 0, True)
        view.locator("summary").click()
        weights = [format_number(x) for values in widget.shown() for x in values.flat]
        until(lambda: view.locator("tbody td").all_text_contents(), weights)
        view.locator("summary").click()


def drag(page: Page, view: Locator) -> list[Any]:
    """Changes a view's state by pointer; gives what it shows then, which is not what it showed."""
    view.scroll_into_view_if_needed()
    before = shown(view)
    switches = view.locator("button[aria-pressed=true]")
    if switches.count():
        switches.last.click()
        until(lambda: shown(view)[:2] != before[:2], True)
        return shown(view)
    heatmap = view.locator(".attn-maps").count() > 0
    control = view.locator("canvas").first if heatmap else view.get_by_role("slider").first
    box = control.bounding_box()
    assert box
    steps = [(0.5, 0.8), (0.6, 0.85), (0.7, 0.9)] if heatmap else [(0.5, 0.5), (0.7, 0.5)]
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in steps]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point)
    page.mouse.up()
    page.mouse.move(0, 0)
    until(lambda: shown(view)[:2] != before[:2], True)
    return shown(view)


# ---- with a kernel


def test_both_ways_between_browser_and_kernel(lab: Lab) -> None:
    page = lab.open(lab.add("small.ipynb", [SMALL, SMALL_READ, SMALL_DRIVE]))
    run_cell(page, 0)
    heatmap, bars = views(page, 2)
    heatmap.locator(".attn-maps").focus()
    for key in ("ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    expect(heatmap.locator(".attn-heard")).to_have_text("query drei, key two, weight 1.000")
    bars.get_by_role("spinbutton").fill("0.5")
    bars.get_by_role("slider", name="Logit of a").focus()
    page.keyboard.press("End")
    expect(bars.locator("li b").first).to_have_text("0.998")
    # no link to a state here: a kernel's notebook has no page to come back to
    assert page.get_by_role("button", name="Copy link").count() == 0

    until(lambda: run_cell(page, 1).inner_text().strip(), "python: 1 0 0.5 [6.0, 3.0]")
    run_cell(page, 2)
    expect(heatmap.locator(".attn-readout")).to_have_text("query zwei → key three · weight 0.750")
    expect(bars.locator("li .attn-logit").first).to_have_text("3.000")
    expect(bars.locator("li b").first).to_have_text("0.000")


@EACH_CHAPTER
def test_chapter_with_a_kernel(lab: Lab, chapter: Path) -> None:
    """Rebuilt in the kernel, not run: that would train the chapter's models for a minute."""
    show = f"{IMPORT}every = rebuild(CHAPTERS[{CHAPTERS.index(chapter)}])\n"
    show += "widgets = of_each_class(every)\ndisplay(*every)"
    page = lab.open(lab.add(f"live_{chapter.name}", [show, TELL, DRIVE]))
    run_cell(page, 0)
    every = rebuild(chapter)
    assert every
    drawn = views(page, len(every))
    for view, widget in zip(drawn, every, strict=True):
        assert_draws(view, widget)

    both = [drawn[every.index(widget)] for widget in of_each_class(every)]
    dragged = [drag(page, view) for view in both]
    until(lambda: printed(page, 1), dragged)  # the last change may reach the kernel after the cell
    driven = printed(page, 2)
    assert all(new != old for new, old in zip(driven, dragged, strict=True))
    for view, state in zip(both, driven, strict=True):
        until(lambda view=view: shown(view), state)


# ---- saved and opened again


def save(page: Page) -> None:
    def saved(answer: Response) -> bool:
        return answer.request.method == "PUT" and "/api/contents/" in answer.url

    with page.expect_response(saved) as answer:
        page.keyboard.press("Control+s")
    assert answer.value.ok


def test_saved_and_opened_again(lab: Lab) -> None:
    """JupyterLab saves no widget state unless told to: without, a view lives with its kernel."""
    name = lab.add("saved.ipynb", [ONE_OF_EACH])
    page = lab.open(name)
    run_cell(page, 0)
    count = page.locator(".attn").count()
    assert count
    dragged = [drag(page, view) for view in views(page, count)]
    save(page)
    assert stored(lab, name) == {}
    stateless = lab.add("stateless.ipynb", notebooks.read(lab.folder / "root" / name))

    page.reload()
    assert_shown(lab, page, dragged)  # by the kernel
    page.get_by_role("menuitem", name="Settings").click()
    page.get_by_text(SAVE_STATE).click()
    until(lambda: is_switched_on(page), True)
    save(page)
    assert stored(lab, name)

    lab.close()
    assert_shown(lab, lab.open(name), dragged)  # by the notebook
    assert not lab.faults.errors
    page = lab.open(stateless)
    lost = page.get_by_text(NOT_FOUND)
    expect(lost).to_have_count(count, timeout=60_000)
    assert page.locator(".attn").count() == 0
    assert all(MISSING in error for error in lab.faults.errors)
    lab.faults.clear()


def is_switched_on(page: Page) -> bool:
    page.get_by_role("menuitem", name="Settings").click()
    on = page.locator(".lm-mod-toggled", has_text=SAVE_STATE).count() == 1
    page.keyboard.press("Escape")
    return on


def stored(lab: Lab, name: str) -> dict[str, Any]:
    return notebooks.models(notebooks.read(lab.folder / "root" / name))


def assert_shown(lab: Lab, page: Page, states: list[list[Any]]) -> None:
    for view, state in zip(restored(lab, page, len(states)), states, strict=True):
        until(lambda view=view: shown(view), state)


# ---- chapters as they are stored


@EACH_CHAPTER
def test_trusted_chapter_draws_without_running(lab: Lab, chapter: Path) -> None:
    lab.trust(lab.add(f"trusted_{chapter.name}", notebooks.read(chapter)))
    page = lab.open(f"trusted_{chapter.name}")
    every = rebuild(chapter)
    for view, widget in zip(restored(lab, page, len(every)), every, strict=True):
        assert_draws(view, widget)


@EACH_CHAPTER
def test_untrusted_chapter_shows_pictures_until_it_is_trusted(lab: Lab, chapter: Path) -> None:
    notebook = notebooks.read(chapter)
    data = outputs(notebook)
    texts = [  # JupyterLab shows them only where there is no picture
        nbformat.v4.new_output("display_data", {VIEW: each[VIEW], "text/plain": each["text/plain"]})
        for each in data
    ]
    notebook.cells.append(nbformat.v4.new_code_cell("texts", outputs=texts, execution_count=1))
    page = lab.open(lab.add(f"untrusted_{chapter.name}", notebook))
    pictures = {"".join(each["image/png"].split()) for each in data}
    images = page.locator(".jp-RenderedImage img")
    seen = "(images) => images.map((e) => e.naturalWidth > 99 && e.src.split(',')[1])"
    until(lambda: pictures - set(images.evaluate_all(seen)), set())
    text = page.locator(".jp-CodeCell").last.locator(".jp-RenderedText")
    expect(text).to_have_text([each["text/plain"] for each in data])
    assert page.locator(".attn, .jupyter-widgets").count() == 0
    expect(page.get_by_text("Error displaying widget")).to_have_count(0)

    page.keyboard.press("Control+Shift+c")
    page.locator(".lm-CommandPalette-input").fill("Trust Notebook")
    page.keyboard.press("Enter")
    page.locator(".jp-Dialog").get_by_role("button", name="Trust").click()
    restored(lab, page, 2 * len(data))
    expect(text).to_have_count(0)
