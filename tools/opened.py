"""Open a downloaded notebook in JupyterLab or the classic notebook, and look at its first widget.

The environment has the program and torch. The notebook's first cell installs the package and, with
it, the code that draws widgets, so the page is reloaded, as book/troubleshooting.md tells readers.
"""

import contextlib
import os
import pathlib
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
from playwright.sync_api import Error as Failed
from playwright.sync_api import Page, expect, sync_playwright

from tools import chapters, chromium, notebooks

if TYPE_CHECKING:
    from tools.door import Elsewhere

SECONDS = 60


@dataclass(frozen=True)
class Program:
    """How to start a program, and the scripts that run cells in its page."""

    module: str
    place: str
    settings: tuple[str, ...]
    ready: str
    run: str  # runs the cells of these numbers and waits for the last
    failed: str  # a selector of a failed cell's output


PROGRAMS = {
    "jupyterlab": Program(
        module="jupyterlab",
        place="doc/tree",
        settings=(
            "--LabApp.expose_app_in_browser=True",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        ),
        ready="""() => {
          const panel = globalThis.jupyterapp?.shell.currentWidget;
          return Boolean(panel?.content?.widgets?.length && panel.sessionContext.isReady
            && panel.sessionContext.session?.kernel?.status === "idle");
        }""",
        run="""async (cells) => {
          for (const cell of cells) {
            jupyterapp.shell.currentWidget.content.activeCellIndex = cell;
            await jupyterapp.commands.execute("notebook:run-cell");
          }
        }""",
        failed="[data-mime-type='application/vnd.jupyter.error']",
    ),
    "nbclassic": Program(
        module="nbclassic",
        place="notebooks",
        settings=(),
        ready="""() => Boolean(globalThis.Jupyter?.notebook?._fully_loaded
          && Jupyter.notebook.kernel?.is_connected())""",
        run="""async (cells) => {
          const { notebook } = Jupyter;
          notebook.execute_cells(cells);
          const last = notebook.get_cell(cells.at(-1));
          const ends = (done) => last.input_prompt_number > 0 && !last.running ? done()
            : setTimeout(ends, 100, done);
          await new Promise((done) => setTimeout(ends, 100, done));
        }""",
        failed=".output_error",
    ),
}


def first_cells(nb: nbformat.NotebookNode) -> list[int]:
    """The numbers of the code cells up to the first that shows a widget; none if none does."""
    code = [n for n, cell in enumerate(nb.cells) if cell.cell_type == "code"]
    shows = [
        n for n in code if any(notebooks.VIEW in out.get("data", {}) for out in nb.cells[n].outputs)
    ]
    return [n for n in code if shows and n <= shows[0]]


@contextlib.contextmanager
def started(elsewhere: "Elsewhere", program: Program, root: pathlib.Path) -> Iterator[str]:
    """Start a server for a folder, with its own settings; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = [
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={root}",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.open_browser=False",
        "--IdentityProvider.token=",
        "--allow-root",
    ]
    kinds = ("CONFIG", "DATA", "RUNTIME")
    own = {f"JUPYTER_{kind}_DIR": str(elsewhere.folder / kind.lower()) for kind in kinds}
    own["IPYTHONDIR"] = str(elsewhere.folder / "ipython")
    command = [elsewhere.python, "-m", program.module, *settings, *program.settings]
    with (elsewhere.folder / "log").open("w") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=root, env={**elsewhere.environment, **own}
        )
    address = f"http://127.0.0.1:{port}"
    try:
        answers(f"{address}/api/status", server)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=SECONDS)


def answers(address: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers."""
    end = time.monotonic() + SECONDS
    while server.poll() is None and time.monotonic() < end:
        with contextlib.suppress(URLError, ConnectionError):
            urlopen(address).close()
            return
        time.sleep(0.1)  # between two attempts
    raise Failed("Jupyter did not start")


def look(
    elsewhere: "Elsewhere",
    name: str,
    stem: str,
    nb: nbformat.NotebookNode,
    pictures: pathlib.Path,
) -> str:
    """Run a notebook's first cells one by one in a browser; returns a summary.

    Raises:
        Failed: if a cell fails or its widget does not draw.
    """
    cells, program = first_cells(nb), PROGRAMS[name]
    if not cells:
        return "shows no widget"
    elsewhere.forget()
    root = elsewhere.folder / "root"
    root.mkdir(exist_ok=True)
    shown = nbformat.from_dict({**nb, "cells": nb.cells[: cells[-1] + 1]})
    shown.metadata.pop("widgets", None)
    for cell in notebooks.code_cells(shown):
        cell.outputs = []  # so that only new outputs are seen
    shown.metadata.kernelspec = notebooks.KERNEL
    notebooks.write(root / f"{stem}.ipynb", shown)
    with started(elsewhere, program, root) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.ensure(), args=["--no-sandbox"] * (os.geteuid() == 0)
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1600})
        page.set_default_timeout(chapters.CELL_SECONDS * 1000)
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(f"{address}/{program.place}/{stem}.ipynb")
        run(page, program, cells[:1])
        page.reload()
        run(page, program, cells)
        view = page.locator(".attn:visible").first
        try:
            expect(view).to_be_visible(timeout=SECONDS * 1000)
            view.scroll_into_view_if_needed()
        finally:
            pictures.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=pictures / f"{stem}.png")
            browser.close()
    return f"{name} draws the widget of code cell {len(cells)}: {pictures / stem}.png"


def run(page: Page, program: Program, cells: list[int]) -> None:
    """Run cells as soon as the kernel is ready."""
    page.wait_for_function(program.ready)
    page.evaluate(program.run, cells)
    if page.locator(program.failed).count():
        raise Failed(page.locator(program.failed).first.inner_text())
