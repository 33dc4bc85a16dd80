"""The widgets with a kernel: in JupyterLab, on anywidget's own model."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import nbformat
import pytest
from playwright.sync_api import Browser, Page, expect

SHOW = """
from attnbook.widgets import AttentionHeatmap, SoftmaxTemperature
heatmap = AttentionHeatmap([[0.25, 0.75], [1, 0]], ["zwei", "drei"], ["two", "three"])
bars = SoftmaxTemperature([1, 3], ["a", "b"], editable=True)
display(heatmap, bars)
"""
READ = "print('python:', heatmap.query, heatmap.key, bars.temperature, bars.logits.tolist())"
DRIVE = "heatmap.query, heatmap.key, bars.temperature, bars.logits = 0, 1, 0, bars.logits[::-1]"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a notebook in a running JupyterLab."""
    folder = tmp_path_factory.mktemp("lab")
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source.strip()) for source in (SHOW, READ, DRIVE)]
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    (folder / "widgets.ipynb").write_text(nbformat.writes(notebook))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = f"http://127.0.0.1:{port}"
    settings = [
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={folder}",
        "--ServerApp.ip=127.0.0.1",
        "--IdentityProvider.token=",
        "--ServerApp.open_browser=False",
        "--allow-root",
        f"--LabApp.user_settings_dir={folder / 'settings'}",
        f"--LabApp.workspaces_dir={folder / 'workspaces'}",
    ]
    log = (folder / "log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *settings],
        stdout=log,
        stderr=log,
        cwd=Path(__file__).parents[2],
    )
    try:
        wait_for(f"{root}/api/status", server)
        yield f"{root}/doc/tree/widgets.ipynb"
    finally:
        server.terminate()
        server.wait(timeout=30)
        log.close()


def wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert server.poll() is None, "JupyterLab did not start"
        try:
            urlopen(address).close()
            return
        except (URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError("JupyterLab does not answer")


def run_cell(page: Page, n: int) -> None:
    cell = page.locator(".jp-CodeCell").nth(n)
    prompt = cell.locator(".jp-InputPrompt")
    while prompt.text_content() == "[ ]:":  # a keystroke before the session stands is lost
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(1000)
    expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=60_000)


def test_both_ways_between_browser_and_kernel(browser: Browser, notebook: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 1600})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(notebook)
    page.locator(".jp-CodeCell").nth(2).wait_for(timeout=60_000)
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(timeout=60_000)
    run_cell(page, 0)
    heatmap, bars = page.locator(".attn").nth(0), page.locator(".attn").nth(1)
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

    run_cell(page, 1)
    printed = page.locator(".jp-CodeCell").nth(1).locator(".jp-OutputArea-output")
    expect(printed).to_have_text("python: 1 0 0.5 [6.0, 3.0]")
    run_cell(page, 2)
    expect(heatmap.locator(".attn-readout")).to_have_text("query zwei → key three · weight 0.750")
    expect(bars.locator("li .attn-logit").first).to_have_text("3.000")
    expect(bars.locator("li b").first).to_have_text("0.000")
    assert not errors
    page.close()
