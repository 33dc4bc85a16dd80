"""Open each chapter as a reader does who has installed nothing: `python -m tools.door [CHAPTER]`.

Builds the site, serves it on localhost, downloads each chapter by the button of its page and runs
them one after another in one environment with torch and Jupyter's kernel. The first cells install
everything else; each installs the package anew. The environment cannot see this checkout or its
packages.
"""

import contextlib
import functools
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from urllib.parse import urljoin
from urllib.request import urlopen

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from tools import chapters, notebooks, site
from tools.environment import PINS
from tools.notebooks import ROOT

BUILT = ROOT / ".cache" / "door"
BUTTON = re.compile(r'href="([^"]+\.ipynb)"[^>]*\bdownload-source-button')
ASK = """import importlib.metadata, json, attnbook, torch
origin = importlib.metadata.distribution("attnbook").read_text("direct_url.json")
json.dumps([attnbook.__file__, json.loads(origin)["url"], torch.__version__])"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *said: object) -> None:
        pass


@contextlib.contextmanager
def served(folder: pathlib.Path) -> Iterator[str]:
    """Serve a folder on localhost; yields its address."""
    folder.mkdir(parents=True, exist_ok=True)
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def build(address: str) -> None:
    """Build the whole site for this address."""
    environment = {**os.environ, "BOOK_SITE_URL": address, "BOOK_REPOSITORY_URL": ""}
    command = [*site.BUILD, "--path-output", str(BUILT), "."]
    if subprocess.run(command, cwd=ROOT, env=environment).returncode:
        sys.exit("the site has problems: see the warnings above")


def download(page: str) -> nbformat.NotebookNode:
    """The notebook behind the download button of a page."""
    with urlopen(page) as answer:
        button = BUTTON.search(answer.read().decode())
    assert button, f"{page} has no download button"
    with urlopen(urljoin(page, button[1])) as answer:
        return nbformat.reads(answer.read().decode(), as_version=4)


class Elsewhere:
    """An environment with torch and Jupyter's kernel, outside of this checkout."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.python = folder, str(folder / "venv" / "bin" / "python")
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        own = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
        self.environment = {name: value for name, value in os.environ.items() if name not in own}
        outside = [p for p in os.environ["PATH"].split(os.pathsep) if str(ROOT) not in p]
        self.environment["PATH"] = os.pathsep.join([str(folder / "venv" / "bin"), *outside])
        (pin,) = re.findall(r"(?m)^torch==(.*)$", PINS.read_text("utf-8"))
        torch = f"torch=={os.environ.get('TORCH') or pin}"  # as `make lock` reads TORCH
        self.call("pip", "install", "-qq", torch, "ipykernel")
        launch = [self.python, "-m", "ipykernel_launcher", "--log-level=ERROR"]
        spec = {"argv": [*launch, "-f", "{connection_file}"], "display_name": "Clean"}
        kernel = folder / "kernels" / "clean" / "kernel.json"
        kernel.parent.mkdir(parents=True)
        kernel.write_text(json.dumps(spec), "utf-8")

    def call(self, module: str, *said: str) -> None:
        command = [self.python, "-m", module, *said]
        subprocess.run(
            command, cwd=self.folder, env=self.environment, check=True, stdout=subprocess.DEVNULL
        )

    def run(self, nb: nbformat.NotebookNode) -> list[str]:
        """Run a notebook without attnbook installed; returns its file, its origin, torch's version.

        Raises:
            CellExecutionError: if a cell fails.
        """
        self.call("pip", "uninstall", "-qq", "--yes", "attnbook")
        nb.cells.append(nbformat.v4.new_code_cell(ASK))
        os.environ["JUPYTER_PATH"] = str(self.folder)  # where kernels are looked for
        place = {"metadata": {"path": str(self.folder)}}
        client = NotebookClient(
            nb, kernel_name="clean", timeout=chapters.CELL_SECONDS, resources=place
        )
        with client.setup_kernel(env={**self.environment, "ATTNBOOK_PROGRESS": "0"}):
            for index, cell in enumerate(nb.cells):
                client.execute_cell(cell, index)
        answer = nb.cells[-1].outputs[0]["data"]["text/plain"]
        return json.loads(answer.strip("'"))


def main() -> None:
    asked = sys.argv[1] if len(sys.argv) > 1 else None
    paths = [path for path in chapters.chosen(asked) if notebooks.is_chapter(path)]
    failed = []
    with served(BUILT / "_build" / "html") as address, tempfile.TemporaryDirectory() as folder:
        build(address)
        elsewhere = Elsewhere(pathlib.Path(folder))
        given = [(path.stem, download(f"{address}/book/{path.stem}.html")) for path in paths]
        # Those that need least first: they must not profit from what others have installed.
        for name, nb in sorted(given, key=lambda each: "attnbook[" in str(each[1].cells)):
            start = time.perf_counter()
            try:
                file, origin, torch = elsewhere.run(nb)
            except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
                failed.append(name)
                print(f"{name}: FAILED\n{error}", flush=True)
                continue
            assert pathlib.Path(file).is_relative_to(folder), f"{name} imported {file}"
            assert origin.startswith(f"{address}/"), f"{name} installed {origin}"
            seconds = time.perf_counter() - start
            wheel = origin.rpartition("/")[2]
            print(f"{name}: {seconds:.0f} s, with {wheel} and torch {torch}", flush=True)
    print(f"{len(given) - len(failed)} of {len(given)} chapters run with what they install")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
