"""Open each page like a reader who has installed nothing: `python -m tools.door [CHAPTER]`.

Builds the site, serves it on localhost, downloads each page's notebook by its button and runs them
one after another in one environment with torch and Jupyter's kernel, for each `--python`. The first
cells install everything else; each installs the package anew, from the site's wheel, or with
`--sdist` from the sdist beside it. The environment cannot see this checkout or its packages.

`--like colab` begins with Colab's versions, `--like binder` with the requirements on the branch of
the launch buttons. `--open` runs the first cells in a browser instead: `tools.opened`.
"""

import argparse
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

from tools import branch, chapters, notebooks, opened, site
from tools.environment import PINS
from tools.notebooks import ROOT

BUILT = ROOT / ".cache" / "door"
HTML = BUILT / "_build" / "html"
BUTTON = r'href="([^"]+{ending})"[^>]*\bdownload-{kind}-button'
WHEEL = re.compile(r'(?<= @ )[^"]+\.whl')
# Packages that are loaded in a Colab session; replacing one of them requires a new session.
COLAB = ["ipykernel==6.17.1", "ipython==7.34.0", "ipywidgets==7.7.1", "traitlets==5.7.1"]
COLAB += ["matplotlib==3.10.0", "numpy==2.0.2", "pillow==11.3.0"]
STOPPED = (CellExecutionError, CellTimeoutError, DeadKernelError, subprocess.CalledProcessError)
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


def offered(page: str, kind: str, ending: str) -> str:
    """The address of the file that a button of a page downloads."""
    with urlopen(page) as answer:
        button = re.search(BUTTON.format(kind=kind, ending=ending), answer.read().decode())
    assert button, f"{page} has no button for {ending}"
    return urljoin(page, button[1])


def download(page: str, sdist: bool = False) -> nbformat.NotebookNode:
    """The notebook that a page's button downloads; with `sdist`, it installs the page's sdist."""
    with urlopen(offered(page, "source", r"\.ipynb")) as answer:
        nb = nbformat.reads(answer.read().decode(), as_version=4)
    if sdist:
        first = notebooks.code_cells(nb)[0]
        first.source, found = WHEEL.subn(offered(page, "sdist", r"\.tar\.gz"), first.source)
        assert found == 1, f"{page} does not install a wheel"
    return nb


def asked_first(like: str, folder: pathlib.Path) -> list[str]:
    """What pip installs before a notebook is opened."""
    if like == "binder":
        branch.lay_out(HTML, ROOT, folder / "branch")
        return ["-r", str(folder / "branch" / "binder" / "requirements.txt")]
    (pin,) = re.findall(r"(?m)^torch==(.*)$", PINS.read_text("utf-8"))
    torch = f"torch=={os.environ.get('TORCH') or pin}"  # as `make lock` reads TORCH
    return [torch, *({"plain": ["ipykernel"], "colab": COLAB}.get(like) or [like])]


class Elsewhere:
    """An environment outside of this checkout, with torch and a program that opens notebooks."""

    def __init__(self, folder: pathlib.Path, python: str = sys.executable, like: str = "plain"):
        self.folder, self.python = folder, str(folder / "venv" / "bin" / "python")
        subprocess.run([python, "-m", "venv", str(folder / "venv")], check=True)
        own = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
        self.environment = {name: value for name, value in os.environ.items() if name not in own}
        outside = [p for p in os.environ["PATH"].split(os.pathsep) if str(ROOT) not in p]
        self.environment["PATH"] = os.pathsep.join([str(folder / "venv" / "bin"), *outside])
        self.environment["ATTNBOOK_PROGRESS"] = "0"
        self.call("pip", "install", "-qq", *asked_first(like, folder))
        self.had = self.versions()
        launch = [self.python, "-m", "ipykernel_launcher", "--log-level=ERROR"]
        spec = {"argv": [*launch, "-f", "{connection_file}"], "display_name": "Clean"}
        kernel = folder / "kernels" / "clean" / "kernel.json"
        kernel.parent.mkdir(parents=True)
        kernel.write_text(json.dumps(spec), "utf-8")

    def call(self, module: str, *said: str) -> str:
        """The output of running a module, which must succeed."""
        command = [self.python, "-m", module, *said]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, check=True, stdout=subprocess.PIPE
        )
        return done.stdout.decode()

    def versions(self) -> dict[str, str]:
        listed = json.loads(self.call("pip", "list", "--format=json") or "[]")
        return {each["name"]: each["version"] for each in listed}

    def forget(self) -> None:
        """Uninstall the package if the environment began without it."""
        if "attnbook" not in self.had:
            self.call("pip", "uninstall", "-qq", "--yes", "attnbook")

    def changed(self) -> dict[str, str | None]:
        """Packages whose version has changed: a kernel that had loaded one must restart."""
        now = self.versions()
        return {name: now.get(name) for name, old in self.had.items() if now.get(name) != old}

    def run(self, nb: nbformat.NotebookNode) -> tuple[list[str], float]:
        """Run a notebook; returns facts about the package, and the kernel's peak memory in MB.

        The facts are the package's file, its origin and torch's version.

        Raises:
            CellExecutionError: if a cell fails.
        """
        self.forget()
        nb.cells.append(nbformat.v4.new_code_cell(ASK))
        os.environ["JUPYTER_PATH"] = str(self.folder)  # where kernels are searched
        place = {"metadata": {"path": str(self.folder)}}
        client = NotebookClient(
            nb, kernel_name="clean", timeout=chapters.CELL_SECONDS, resources=place
        )
        # The first context starts the kernel that the second watches.
        with (
            client.setup_kernel(env=self.environment),
            chapters.peak_memory(chapters.kernel_process(client)) as peak,
        ):
            for index, cell in enumerate(nb.cells):
                client.execute_cell(cell, index)
        answer = nb.cells[-1].outputs[0]["data"]["text/plain"]
        return json.loads(answer.strip("'")), peak[0] / 1e6


def tried(elsewhere: Elsewhere, nb: nbformat.NotebookNode, address: str) -> str:
    """Run a page's notebook and check where its package came from; returns a summary."""
    (file, origin, torch), peak = elsewhere.run(nb)
    assert pathlib.Path(file).is_relative_to(elsewhere.folder), f"it imported {file}"
    assert origin.startswith(f"{address}/"), f"it installed {origin}"
    assert elsewhere.changed() == {}, f"it replaced {elsewhere.changed()}"
    return f"with {origin.rpartition('/')[2]} and torch {torch}, peak {peak:.0f} MB"


def visit(python: str, asked: argparse.Namespace, names: list[str], address: str) -> int:
    """Try pages in a new environment of a Python and print each result; returns how many passed."""
    pages = [(name, download(f"{address}/book/{name}.html", asked.sdist)) for name in names]
    # Those that need least first: they must not benefit from what others have installed.
    pages.sort(key=lambda each: "attnbook[" in str(each[1].cells))
    went = 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            elsewhere = Elsewhere(pathlib.Path(folder), python, asked.open or asked.like)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{python}: no environment\n{error}", flush=True)
            return 0
        for name, nb in pages:
            start = time.perf_counter()
            try:
                if asked.open:
                    said = opened.look(elsewhere, asked.open, name, nb, BUILT / asked.open)
                else:
                    said = tried(elsewhere, nb, address)
            except (*STOPPED, AssertionError, opened.Failed) as error:
                print(f"{name}, {python}: FAILED\n{error}", flush=True)
                continue
            went += 1
            seconds = time.perf_counter() - start
            print(f"{name}, {python}: {seconds:.0f} s, {said}", flush=True)
    return went


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("chapter", nargs="?", help="02, a notebook, or all")
    parser.add_argument("--python", action="append", default=[], help="one of several Pythons")
    parser.add_argument("--sdist", action="store_true", help="install the sdist, not the wheel")
    parser.add_argument("--like", choices=["plain", "colab", "binder"], default="plain")
    parser.add_argument("--open", choices=list(opened.PROGRAMS), help="in a browser")
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    names = [path.stem for path in chapters.chosen(asked.chapter) if notebooks.is_chapter(path)]
    pythons = asked.python or [sys.executable]
    with served(HTML) as address:
        build(address)
        went = sum(visit(python, asked, names, address) for python in pythons)
    wanted = len(names) * len(pythons)
    print(f"{went} of {wanted} pages run with what they install")
    sys.exit(went != wanted)


if __name__ == "__main__":
    main()
