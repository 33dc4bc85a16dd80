"""The widgets in JupyterLab: with a kernel, saved and opened again, trusted and not.

One server serves the module from a folder of its own, so that settings and signatures of the
machine have no say. What a chapter shows is read from the notebook, and what a view must show is
what the same widget shows alone on an empty page: no list of widgets is kept, nothing here is said
of a class. (What each must show there, the other modules of this folder say.)
"""

import base64
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

import anywidget
import nbformat
import pytest
import torch
import traitlets
from ipywidgets.embed import dependency_state
from nbformat import NotebookNode
from nbformat.sign import NotebookNotary
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Response, expect

from attnbook import web
from attnbook.model.transformer import TransformerDecoder
from attnbook.web.playground.widget import token_name
from attnbook.weights.int8 import load_int8
from tests.browser.conftest import Faults
from tests.browser.widget_pages import render
from tests.helpers.tiny_gpt import tiny_gpt
from tools import notebooks
from tools.notebooks import ROOT, VIEW

CHAPTERS = [path for path in notebooks.every() if notebooks.is_chapter(path)]


def classes(path: Path) -> set[str]:
    """The classes of the widgets that a notebook shows."""
    notebook = notebooks.read(path)
    models = notebooks.models(notebook)
    return {notebooks.widget_class(models[view]) for view in notebooks.views(notebook)}


SHOWN_IN = {path: classes(path) for path in CHAPTERS}
RICHEST = max(CHAPTERS, key=lambda path: len(SHOWN_IN[path]))


def covering() -> list[Path]:
    """A few notebooks that show every class: each time the one with most of what is left."""
    left = set().union(*SHOWN_IN.values())
    few: list[Path] = []
    while left:
        few.append(max(CHAPTERS, key=lambda path: len(SHOWN_IN[path] & left)))
        left -= SHOWN_IN[few[-1]]
    return few


EACH_CHAPTER = pytest.mark.parametrize(
    "chapter",
    [pytest.param(path, marks=[pytest.mark.full] * (path != RICHEST)) for path in CHAPTERS],
    ids=lambda path: path.stem,
)

SMALL = """
from attnbook.web import AttentionHeatmap, SoftmaxTemperature
heatmap = AttentionHeatmap([[0.25, 0.75], [1, 0]], ["zwei", "drei"], ["two", "three"])
bars = SoftmaxTemperature([1, 3], ["a", "b"], editable=True)
display(heatmap, bars)
"""
SMALL_READ = "print('python:', heatmap.query, heatmap.key, bars.temperature, bars.logits.tolist())"
SMALL_DRIVE = (
    "heatmap.query, heatmap.key, bars.temperature, bars.logits = 0, 1, 0, bars.logits[::-1]"
)

IMPORT = """
from tests.browser.test_widgets_jupyter import (
    CHAPTERS, of_each_class, one_of_each, own, put_back, rebuild, told)
"""
TELL = "print(told(widgets))"
DRIVE = "put_back(widgets, first)"
ONE_OF_EACH = IMPORT + "display(*one_of_each())"

MISSING = "widget model not found"  # on the console
# On the console: JupyterLab asks again and again which sessions run, and an answer older than a new
# session ends that for the page, which then has neither kernel nor widgets.
LOST = "Cannot read properties of null (reading 'kernel')"
NOT_FOUND = "Error displaying widget: model not found"
SAVE_STATE = "Save Widget State Automatically"

# All that a view says, folded or not, and what is set in it; not its buttons' names, nor what it
# last said aloud, nor what a model is there for: the pages that this is compared with have none.
SHOWN = """async (view) => {
  for (const fold of view.querySelectorAll("details")) fold.open = true;
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  for (let n = 0; n < 2; n++) await frame(); // a table is filled when it is unfolded
  const own = (e) => (e.type === "checkbox" ? e.checked : e.value);
  const set = (e) => e.getAttribute("aria-pressed") ?? own(e);
  const always = (e) => !e.closest(".attn-bench .attn-own");
  const found = [...view.querySelectorAll("input, select, [aria-pressed]")].filter(always).map(set);
  const texts = document.createTreeWalker(view, NodeFilter.SHOW_TEXT);
  const seen = { opacityProperty: true, visibilityProperty: true }; // a pointer's label is not
  for (let text; (text = texts.nextNode()); ) {
    const { data, parentElement: on } = text;
    if (!on.checkVisibility(seen) || on.closest("button, style, [aria-live]")) continue;
    if (always(on)) found.push(data);
  }
  return [...found, ...[...view.querySelectorAll(".attn-at")].map((e) => e.textContent)];
}"""
# How many colours cells have, text and lines being grey: of the map that has the fewest.
COLOURS = """(canvases) => Math.min(...canvases.map((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let n = 0; n < data.length; n += 4)
    if (data[n + 3] === 255 && data[n + 2] - data[n] > 8) found.add(data.slice(n, n + 3).join());
  return found.size;
}))"""


# What others log on a busy machine. JupyterLab asks the kernel for a thread of its own for messages
# of widgets, and complains where a page is closed before the kernel has answered; anywidget does
# where a model is not there within two seconds. A model that never comes has no view, and tests
# wait for each.
BUSY = (
    "Canceled future for create_subshell_request message before replies were done",
    "[anywidget] Failed to initialize model.",
)


# ---- in Python, here and in the kernels


def outputs(notebook: NotebookNode) -> list[NotebookNode]:
    """What each output that shows a widget holds, in order."""
    every = (output for cell in notebooks.code_cells(notebook) for output in cell.outputs)
    return [output.data for output in every if VIEW in output.get("data", {})]


def rebuild(path: Path) -> list[Any]:
    """The widgets of a notebook, made anew from the state stored in it."""
    notebook = notebooks.read(path)
    models = notebooks.models(notebook)
    return [rebuilt(models[data[VIEW].model_id]) for data in outputs(notebook)]


def rebuilt(model: dict[str, Any]) -> Any:
    """Of a class of its own, which has the stored sources and traits and checks nothing. What the
    notebook is older than has the value that it has where nobody gives one."""
    known = getattr(web, notebooks.widget_class(model)).class_own_traits(sync=True)
    younger = {name: known[name].default() for name in known.keys() - model["state"].keys()}
    state = {**own(younger), **model["state"]}
    for buffer in model.get("buffers", []):
        state[buffer["path"][0]] = base64.b64decode(buffer["data"])
    traits = {name: traitlets.Any(state[name]).tag(sync=True) for name in own(state)}
    sources = {name: state[name] for name in ("_esm", "_css")}
    return type(notebooks.widget_class(model), (anywidget.AnyWidget,), {**sources, **traits})()


def own(state: dict[str, Any]) -> dict[str, Any]:
    """The part of a state that a class of the book adds to a widget's, without the sources."""
    return {name: value for name, value in state.items() if name[0] != "_" and name != "layout"}


def of_each_class(widgets: list[Any]) -> list[Any]:
    """The first widget of each class."""
    return list({type(widget).__name__: widget for widget in reversed(widgets)}.values())


def one_of_each() -> list[Any]:
    """The first widget of each class that the chapters show."""
    return of_each_class([widget for path in covering() for widget in rebuild(path)])


def told(widgets: list[Any]) -> str:
    """The models of widgets as a notebook stores them."""
    models = dependency_state(widgets, drop_defaults=False)
    return json.dumps([models[widget.model_id] for widget in widgets])


def put_back(widgets: list[Any], states: list[dict[str, Any]]) -> None:
    """Another state, set from Python: the first.

    JupyterLab drops what a kernel says of a trait before it has heard the kernel's echo of its own
    last word. The echo comes from another thread, on a busy machine later: so this says all again.
    """
    for widget, state in zip(widgets, states, strict=True):
        while widget._property_lock:  # by the thread that hears the page
            time.sleep(0.01)  # between two looks
        with widget.hold_trait_notifications():
            for trait, value in state.items():
                setattr(widget, trait, value)
        widget.send_state(list(state))


# ---- the lab


@dataclass
class Lab:
    address: str
    folder: Path
    context: BrowserContext
    faults: Faults = field(default_factory=lambda: Faults(BUSY))

    def add(self, name: str, notebook: NotebookNode | list[str]) -> str:
        """Put a notebook there, or one of these cells."""
        if isinstance(notebook, list):
            cells = [nbformat.v4.new_code_cell(source.strip()) for source in notebook]
            notebook = nbformat.v4.new_notebook(cells=cells)
            notebook.metadata.kernelspec = notebooks.KERNEL
        notebooks.write(self.folder / "root" / name, notebook)
        return name

    def open(self, name: str) -> Page:
        """As a reader does: where the kernel is lost, the page is loaded again."""
        page = self.context.new_page()
        self.faults.watch(page)
        page.goto(f"{self.address}/doc/tree/{name}")
        named = page.locator(".jp-Toolbar-kernelName").filter(has_not_text="No Kernel")
        idle = page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        for _ in range(3):
            page.locator(".jp-CodeCell").first.wait_for(timeout=180_000)
            until(lambda: self.lost() or named.count() * idle.count() > 0, True)
            if not self.lost():
                break
            self.faults.errors = [error for error in self.faults.errors if LOST not in error]
            page.reload()
        return page

    def lost(self) -> bool:
        return any(LOST in error for error in self.faults.errors)

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
        context.set_default_timeout(180_000)
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
    faults, server.faults = server.faults, Faults(BUSY)
    server.close()
    assert not faults.errors, f"errors on the console: {faults.errors}"
    assert not faults.missing, f"missing files: {faults.missing}"


@pytest.fixture
def alone(browser: Browser) -> Iterator[Callable[[Any], list[Any]]]:
    """What a widget shows on an empty page."""
    page = browser.new_page(viewport={"width": 1280, "height": 1600})

    def show(widget: Any) -> list[Any]:
        page.goto("about:blank")
        render(page, widget)
        return shown(page.locator(".attn"))

    yield show
    page.close()


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        assert server.poll() is None, "JupyterLab did not start"
        try:
            urlopen(address).close()
            return
        except (URLError, ConnectionError):
            time.sleep(0.1)  # between two looks
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
    expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=180_000)
    for wrong in ("stderr", "error"):
        expect(cell.locator(f"[data-mime-type='application/vnd.jupyter.{wrong}']")).to_have_count(0)
    return cell.locator(".jp-OutputArea-output")


def printed(page: Page, n: int) -> Any:
    """What a cell prints as JSON when it is run."""
    return json.loads(run_cell(page, n).inner_text())


def until(read: Callable[[], Any], wanted: Any) -> None:
    """Waits for `read` to give what is wanted."""
    end = time.monotonic() + 180
    while (found := read()) != wanted and time.monotonic() < end:
        time.sleep(0.05)  # between two looks
    assert found == wanted


def views(page: Page, count: int) -> list[Locator]:
    expect(page.locator(".attn")).to_have_count(count, timeout=180_000)
    return page.locator(".attn").all()


def restored(lab: Lab, page: Page, count: int) -> list[Locator]:
    """The views of a notebook opened and not run.

    JupyterLab gives a model up where a new kernel answers two seconds late, as on a busy machine;
    then this loads the page again, as a reader would.
    """
    lost = page.get_by_text(NOT_FOUND)
    for _ in range(2):
        expect(page.locator(".attn").or_(lost)).to_have_count(count, timeout=180_000)
        if not lost.count():
            break
        page.reload()
    drawn = views(page, count)
    lab.faults.errors = [error for error in lab.faults.errors if MISSING not in error]
    return drawn


def shown(view: Locator) -> list[Any]:
    return view.evaluate(SHOWN)


def assert_draws(view: Locator, what: list[Any]) -> None:
    """That a view is drawn and says what it must."""
    view.scroll_into_view_if_needed()
    until(lambda: shown(view), what)
    until(lambda: view.locator("canvas").evaluate_all(COLOURS) > 0, True)


def drag(page: Page, view: Locator) -> list[Any]:
    """Changes a view's state by pointer; gives what it shows then, which is not what it showed."""
    view.scroll_into_view_if_needed()
    before = shown(view)
    handle = view.locator(":is(canvas, input[type=range]):not(:disabled):visible")
    if not handle.count():
        button = "button[aria-pressed={}]:not(.attn-next):not(:disabled)"
        handle, others = (view.locator(button.format(is_)) for is_ in ("true", "false"))
        if handle.count() and others.count():  # of a choice the pressed one changes nothing
            handle = others
    if not handle.count():  # a playground, to whom a rebuilt widget sends no model
        return before
    handle.first.scroll_into_view_if_needed()  # a view may be taller than the window
    box = handle.first.bounding_box()
    assert box
    right = "(e) => e.type === 'range' && (e.value - e.min) / (e.max - e.min) > 0.5"
    way = (0.5, 0.4, 0.2) if handle.first.evaluate(right) else (0.5, 0.6, 0.7)
    points = [(box["x"] + x * box["width"], box["y"] + 0.8 * box["height"]) for x in way]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point)
    page.mouse.up()
    page.mouse.move(0, 0)
    until(lambda: shown(view) != before, True)
    until(lambda: view.evaluate("(view) => view.getAnimations({ subtree: true }).length"), 0)
    until(lambda: "asking the model" in view.inner_text().lower(), False)  # or missing it
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


MASKED = """
from attnbook.web import MaskedWords
from tests.helpers.tiny_bert import tiny_bert
words = MaskedWords("Ask the cats", [1], weights=tiny_bert())
display(words)
"""


def test_weights_come_from_the_kernel_and_are_not_stored(lab: Lab) -> None:
    name = lab.add("masked.ipynb", [MASKED, "print('python:', words.masks, words.answer['row'])"])
    page = lab.open(name)
    run_cell(page, 0)
    (view,) = views(page, 1)
    view.scroll_into_view_if_needed()
    view.locator("textarea:enabled").wait_for()
    view.get_by_role("button", name="cats").click()
    expect(view.locator(".attn-place")).to_have_count(2)
    shown = "python: [1, 2] ['[CLS]', 'ask', 'the', 'cats', '[SEP]']"
    until(lambda: run_cell(page, 1).inner_text().strip(), shown)
    page.get_by_role("menuitem", name="Settings").click()
    page.get_by_text(SAVE_STATE).click()
    until(lambda: is_switched_on(page), True)
    save(page)
    models = stored(lab, name).values()
    buffers = [part["data"] for model in models for part in model.get("buffers", [])]
    assert [len(data) for data in buffers] == [4 * 2 * 3 * 5 * 5 * 2 // 3]  # attention, in base64
    bars = view.locator(".attn-label, .attn-likely b").all_inner_texts()

    lab.close()
    (again,) = restored(lab, lab.open(name), 1)
    again.scroll_into_view_if_needed()
    again.get_by_text("No kernel answers. Run the cell").wait_for()
    assert again.locator(".attn-label, .attn-likely b").all_inner_texts() == bars


PLAYGROUND = """
from attnbook.web import Playground
from tests.helpers.tiny_gpt import tiny_gpt
play = Playground("We must ask the", weights=tiny_gpt(), unfolded=["filters"])
drawn = play.answer["drawn"]["which"]
display(play)
"""
PLAYGROUND_READ = "print('python:', play.written == [drawn], play.text, len(play.answer['ids']))"


def test_a_playground_writes_with_the_weights_of_its_kernel(lab: Lab) -> None:
    drive = "play.temperature, play.text = 0, 'Peace'"
    page = lab.open(lab.add("play.ipynb", [PLAYGROUND, PLAYGROUND_READ, drive]))
    run_cell(page, 0)
    (view,) = views(page, 1)
    view.scroll_into_view_if_needed()
    view.locator("textarea:enabled").wait_for()
    tokens = view.locator(".attn-tok:not(.attn-next)")
    before = tokens.count()
    view.get_by_role("button", name="Step", exact=True).click()
    expect(tokens).to_have_count(before + 1)
    shown = f"python: True We must ask the {before + 1}"
    until(lambda: run_cell(page, 1).inner_text().strip(), shown)
    run_cell(page, 2)
    expect(view.locator("textarea")).to_have_value("Peace")
    expect(view.get_by_role("slider", name="temperature")).to_have_attribute(
        "aria-valuetext", "0.00"
    )
    expect(view.locator(".attn-drawn b")).to_have_text("1.000")
    expect(view.get_by_text("No kernel answers")).to_have_count(0)


BENCH = """
from attnbook.weights.int8 import load_int8
from attnbook.model.transformer import TransformerDecoder
from attnbook.web import DecodingBench
from tests.helpers.tiny_gpt import tiny_gpt
bench = DecodingBench(*load_int8(tiny_gpt(), TransformerDecoder), "We must ask", steps=0)
display(bench)
"""
BENCH_READ = """
p = bench._logp(bench.written).exp()
print('python:', len(bench.written), f"{p.max():.3f}", bench.seed)
"""


def test_a_bench_asks_its_kernel_where_nothing_is_stored(lab: Lab) -> None:
    page = lab.open(lab.add("bench.ipynb", [BENCH, BENCH_READ, "bench.written = [5, 6, 7]"]))
    run_cell(page, 0)
    (view,) = views(page, 1)
    take = view.get_by_role("button", name="Take it")
    for n in (1, 2):  # whatever the number falls on: the kernel knows its name
        take.click()
        expect(view.locator(".attn-tok:not(.attn-next)")).to_have_count(n + tokens_of_bench())
        expect(view.locator(".attn-take").first).to_be_visible()
    best = view.locator(".attn-take b").first.inner_text()
    until(lambda: run_cell(page, 1).inner_text().strip(), f"python: 2 {best} 0")
    run_cell(page, 2)
    expect(view.locator(".attn-tok:not(.attn-next)")).to_have_count(3 + tokens_of_bench())
    expect(view.locator(".attn-take").first).to_be_visible()
    expect(view.locator(".attn-unstored")).to_have_count(0)
    expect(view.get_by_text("no kernel is there")).to_have_count(0)
    # The reader's own beginning, which the kernel goes on with.
    model, tokenizer = load_int8(tiny_gpt(), TransformerDecoder)
    ids = tokenizer.encode("The people")
    view.get_by_role("button", name="greedy").click()
    view.get_by_label("Your beginning").fill("The people")
    view.get_by_role("button", name="Begin with this").click()
    expect(view.locator(".attn-tok:not(.attn-next)")).to_have_count(len(ids))
    view.get_by_role("button", name="Write", exact=True).click()
    expect(view.locator(".attn-beyond")).to_contain_text(re.compile("ends here|no more tokens"))
    while len(ids) < model.stack.config.max_len and ids[-1] != model.vocab.eos:
        with torch.no_grad():
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    names = [token_name(tokenizer, i) for i in ids]
    chips = ["·" if name.startswith("\\x") else name.replace("\n", "↵") for name in names]
    expect(view.locator(".attn-tok:not(.attn-next)")).to_have_text(chips)
    until(lambda: run_cell(page, 1).inner_text().split()[:2], ["python:", "3"])  # the prompt's own


def tokens_of_bench() -> int:
    return len(load_int8(tiny_gpt(), TransformerDecoder)[1].encode("We must ask"))


@pytest.mark.parametrize(
    "chapter",
    [None, *(pytest.param(path, marks=pytest.mark.full, id=path.stem) for path in CHAPTERS)],
)
def test_widgets_with_a_kernel(
    lab: Lab, chapter: Path | None, alone: Callable[[Any], list]
) -> None:
    """One of each class, or all of a chapter. They are rebuilt in the kernel, and no chapter is
    run: that would train its models for a minute."""
    made = f"rebuild(CHAPTERS[{CHAPTERS.index(chapter)}])" if chapter else "one_of_each()"
    show = f"{IMPORT}every = {made}\nwidgets = of_each_class(every)\ndisplay(*every)\n"
    show += "first = [own(widget.get_state()) for widget in widgets]"
    page = lab.open(
        lab.add(f"live_{chapter.stem if chapter else 'all'}.ipynb", [show, TELL, DRIVE])
    )
    run_cell(page, 0)
    every = rebuild(chapter) if chapter else one_of_each()
    assert every
    drawn = views(page, len(every))
    for view, widget in zip(drawn, every, strict=True):
        assert_draws(view, alone(widget))

    one_each = [drawn[every.index(widget)] for widget in of_each_class(every)]
    before = list(map(shown, one_each))
    dragged = [drag(page, view) for view in one_each]
    until(lambda: [alone(rebuilt(model)) for model in printed(page, 1)], dragged)

    def put_back_and_look() -> list[Any]:
        """A message of the page that comes late is the last word: so Python says it again."""
        run_cell(page, 2)
        return list(map(shown, one_each))

    until(put_back_and_look, before)


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
    count = len(one_of_each())
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
    expect(lost).to_have_count(count, timeout=180_000)
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


@pytest.mark.full  # the next test trusts it later
@EACH_CHAPTER
def test_trusted_chapter_draws_without_running(
    lab: Lab, chapter: Path, alone: Callable[[Any], list]
) -> None:
    lab.trust(lab.add(f"trusted_{chapter.name}", notebooks.read(chapter)))
    page = lab.open(f"trusted_{chapter.name}")
    every = rebuild(chapter)
    for view, widget in zip(restored(lab, page, len(every)), every, strict=True):
        assert_draws(view, alone(widget))


@EACH_CHAPTER
def test_untrusted_chapter_shows_pictures_until_it_is_trusted(
    lab: Lab, chapter: Path, alone: Callable[[Any], list]
) -> None:
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

    page.get_by_role("menuitem", name="View").click()
    page.get_by_text("Activate Command Palette").click()
    page.locator(".lm-CommandPalette-input").fill("Trust Notebook")
    first = page.locator(".lm-CommandPalette-item.lm-mod-active")
    expect(first).to_have_text(re.compile("^Trust Notebook"))
    page.keyboard.press("Enter")
    page.locator(".jp-Dialog").get_by_role("button", name="Trust").click()
    drawn = restored(lab, page, 2 * len(data))[: len(data)]
    expect(text).to_have_count(0)
    for view, widget in zip(drawn, rebuild(chapter), strict=True):
        assert_draws(view, alone(widget))
