"""Small books with the real configuration and extension, and the real book, built strictly."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import yaml
from filelock import FileLock
from ipywidgets.embed import dependency_state

from attnbook.bundles import STATE
from tools import site, suite

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://github.com/someone/a-fork"
PUBLISHED = "https://someone.github.io/a-fork"


def build_book(
    source: Path, target: Path, address: str = "", published: str = "", *, fresh: bool = False
) -> subprocess.CompletedProcess[str]:
    """The strict build of the book at `source` into `target`/_build, with the addresses of a
    repository and of the published site; `fresh` reads every page."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # The environment's own jupyter-book, which calls its own node.
    env = {**os.environ, "PATH": path, "BOOK_REPOSITORY_URL": address}
    env |= {"BOOK_SITE_URL": published, "BOOK_BUTTONS": "1"}
    return subprocess.run(
        [*site.BUILD, *["--all"] * fresh, "--path-output", str(target), str(source)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
        timeout=1200,  # waits for every process of the build that writes to its output
    )


def stale(site: Path) -> bool:
    """Whether a source of the book is newer than the built site."""
    built = site / "searchindex.js"
    if not built.is_file():
        return True
    sources = [ROOT / name for name in ("_config.yml", "_toc.yml", "package-lock.json")]
    sources += [ROOT / "requirements.txt", ROOT / "tools/site.py"]
    for folder in ("book", "src/attnbook/web", "src/attnbook/weights"):
        sources += [file for file in (ROOT / folder).rglob("*") if "__pycache__" not in file.parts]
    sources += sorted((ROOT / "src/attnbook").rglob("*.py"))
    newest = max(file.stat().st_mtime for file in sources if file.is_file())
    return newest > built.stat().st_mtime


def whole_book() -> Path:
    """The book, built once for all tests, as it is published: with addresses, so that launch
    buttons and the link to the issues are there."""
    suite.SITE.mkdir(parents=True, exist_ok=True)
    html = suite.SITE / "_build/html"
    with FileLock(suite.SITE / ".lock"):  # parallel workers share it
        if stale(html):
            done = build_book(ROOT, suite.SITE, ADDRESS, PUBLISHED, fresh=True)
            assert done.returncode == 0, done.stdout[-5000:]
    return html


def notebook_of(widgets: list[Any]) -> nbformat.NotebookNode:
    """A notebook as `make run` leaves it: one cell a widget, with output and stored state."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells.append(nbformat.v4.new_markdown_cell("# Widgets\n\nA page of widgets."))
    for count, widget in enumerate(widgets, 1):
        bundle = widget._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        output = nbformat.v4.new_output("execute_result", data, execution_count=count)
        cell = nbformat.v4.new_code_cell("widget", outputs=[output], execution_count=count)
        notebook.cells.append(cell)
    state = dependency_state(widgets, drop_defaults=False)
    records = {"version_major": 2, "version_minor": 0, "state": state}
    notebook.metadata["widgets"] = {STATE: records}
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    return notebook


def write_mini_book(folder: Path, pages: dict[str, str], **settings: Any) -> None:
    """A small book with the real configuration and extension, and these settings of Sphinx; the
    first page is the root."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    extensions = config["sphinx"]["local_extensions"]
    for name, path in extensions.items():
        extensions[name] = str(ROOT / path)
    config["html"]["favicon"] = str(ROOT / config["html"]["favicon"])
    config.pop("bibtex_bibfiles", None)
    for setting in ("bibtex_reference_style", "include_patterns"):
        del config["sphinx"]["config"][setting]
    config["sphinx"]["config"].update(settings)
    folder.mkdir(parents=True, exist_ok=True)
    names = [Path(name).stem for name in pages]
    toc: dict[str, Any] = {"format": "jb-book", "root": names[0]}
    if names[1:]:
        toc["chapters"] = [{"file": name} for name in names[1:]]
    (folder / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
