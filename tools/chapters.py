"""The verbs on notebooks: `python -m tools.chapters run|text|claims|widgets|check`."""

import argparse
import base64
import contextlib
import io
import os
import pathlib
import re
import sys
import threading
import time
from collections.abc import Iterator

import psutil
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

from tools import checks, notebooks
from tools.notebooks import BOOK, ROOT

CELL_SECONDS = 600


class RunError(Exception):
    """A chapter did not run to its end; the message says which cell failed and why."""


# run


def run(path: pathlib.Path) -> tuple[float, float]:
    """Execute a notebook from top to bottom in a fresh kernel and store its outputs.

    If a cell fails or the notebook is edited meanwhile, the stored notebook is not changed.

    Returns:
        Wall seconds and the peak memory of the kernel in MB.
    """
    start = time.perf_counter()
    before = path.read_bytes()
    nb, megabytes = execute(notebooks.read(path), path)
    if path.read_bytes() != before or notebooks.behind(path):
        raise RunError(f"{path.name} was edited while it ran, and is as you left it: run it again")
    notebooks.write(path, nb)
    return time.perf_counter() - start, megabytes


def execute(nb: NotebookNode, path: pathlib.Path) -> tuple[NotebookNode, float]:
    """Run a notebook; returns it with reproducible outputs, and its kernel's peak memory in MB."""
    nb.metadata.pop("widgets", None)
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        nb,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],  # otherwise each kernel logs that it listens on TCP
        resources={"metadata": {"path": str(path.parent)}},
    )
    environment = {**os.environ, "ATTNBOOK_PROGRESS": "0"}
    with client.setup_kernel(env=environment), peak_memory(kernel_process(client)) as peak:
        for index, cell in enumerate(nb.cells):
            try:
                client.execute_cell(cell, index, execution_count=client.code_cells_executed + 1)
            except Exception as error:
                raise RunError(describe(path, nb, index, error)) from error
        client.set_widgets_metadata()
    for output in (o for cell in notebooks.code_cells(nb) for o in cell.outputs):
        if "image/png" in output.get("data", {}):
            output.data["image/png"] = lighter(output.data["image/png"])
    try:
        return notebooks.settle(nb, path.stem), peak[0] / 1e6
    except ValueError as error:
        raise RunError(f"{path.name}: {error}") from error


def lighter(png: str) -> str:
    """A base64 PNG reduced to its best 32 colours, which suffice for charts."""
    picture = Image.open(io.BytesIO(base64.b64decode(png)))
    if picture.mode == "P":  # already has few colours
        return png
    file = io.BytesIO()
    few = picture.convert("RGB").quantize(32, Image.Quantize.MAXCOVERAGE, kmeans=2)
    few.save(file, format="png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def kernel_process(client: NotebookClient) -> psutil.Process:
    assert client.km is not None and client.km.provisioner is not None
    return psutil.Process(client.km.provisioner.pid)  # type: ignore[attr-defined]


@contextlib.contextmanager
def peak_memory(process: psutil.Process) -> Iterator[list[float]]:
    """Watch the resident bytes of a process and its children; the list holds their peak."""
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            with contextlib.suppress(psutil.NoSuchProcess):
                family = [process, *process.children(recursive=True)]
                peak[0] = max(peak[0], sum(p.memory_info().rss for p in family))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def describe(path: pathlib.Path, nb: NotebookNode, index: int, error: Exception) -> str:
    """A readable message: which chapter, which cell, and the error."""
    number = sum(c.cell_type == "code" and bool(c.source.strip()) for c in nb.cells[: index + 1])
    source = "\n".join(f"    {line}" for line in nb.cells[index].source.splitlines())
    why = re.sub(r"\x1b\[[0-9;]*m", "", getattr(error, "traceback", "") or repr(error))
    what = f"{path.name}: code cell {number} failed, the stored notebook is unchanged"
    return f"{what}\n\n{source}\n\n{why}"


def chosen(chapter: str | None, book: pathlib.Path = BOOK) -> list[pathlib.Path]:
    """The notebooks that CHAPTER names: "03", a path, or None for all."""
    if chapter is None:
        return notebooks.executed(book)
    if chapter.endswith(".ipynb"):
        return [pathlib.Path(chapter).resolve()]
    found = sorted(book.glob(f"{chapter}_*.ipynb"))
    return found or sys.exit(f"no chapter book/{chapter}_*.ipynb")


def command_run(chapter: str | None) -> None:
    for path in chosen(chapter):
        if notebooks.behind(path):
            sys.exit(f"the text of {path.name} is newer than the notebook: run `make text` first")
        print(f"{path.name} ...", flush=True)
        try:
            seconds, megabytes = run(path)
        except RunError as error:
            sys.exit(str(error))
        print(f"{path.name}: {seconds:.1f} s, kernel peak {megabytes:.0f} MB", flush=True)


# text


def command_text(new: str | None) -> None:
    sync(ROOT, new)


def sync(root: pathlib.Path, new: str | None = None) -> None:
    """Synchronise notebooks and texts; the newer side of each pair wins.

    A text without a notebook is left over from a renamed or deleted chapter; only that of `new`
    becomes a notebook.
    """
    from jupytext.cli import jupytext

    book, texts = root / "book", root / ".text"
    inside = [path for path in notebooks.every(book) if path.is_relative_to(book)]
    stems = {path.relative_to(book).with_suffix("") for path in inside}
    written = {p.relative_to(texts).with_suffix("") for p in texts.rglob("*.md")}
    if new and pathlib.Path(new) not in stems | written:
        sys.exit(f"there is no .text/{new}.md to begin the chapter with")
    if new:
        stems.add(pathlib.Path(new))
    for stem in sorted(stems):
        pair = [book / f"{stem}.ipynb", texts / f"{stem}.md"]
        jupytext(["--quiet", "--sync", str(next(p for p in pair if p.exists()))])
        tidy(pair[0])
        pair[0].touch()  # jupytext writes the text last; make both equally new
        print(f"book/{stem}.ipynb and .text/{stem}.md agree")
    if left := sorted(written - stems):
        names = ", ".join(f".text/{stem}.md" for stem in left)
        sys.exit(f"no notebook for {names}: remove it, or begin a chapter: make text NEW={left[0]}")


def tidy(path: pathlib.Path) -> None:
    """Drop jupytext's metadata, and fold cells by their tags."""
    nb = notebooks.read(path)
    noted = nb.metadata.pop("jupytext", None) is not None
    if notebooks.fold(nb) or noted:
        notebooks.amend(path, nb)


# claims, widgets, check


def command_claims() -> None:
    titles, shown = checks.claim_titles(), checks.claims_shown(notebooks.every())
    width = max(map(len, titles.values()))
    for claim, title in titles.items():
        for where in shown.get(claim, ["-"]):
            print(f"{claim}  {title:<{width}}  {where}")
    print(f"{len(shown.keys() & titles.keys())} of {len(titles)} claims shown")


def command_widgets() -> None:
    for path in notebooks.every(BOOK):
        nb = notebooks.read(path)
        if stale := notebooks.refresh(nb):
            notebooks.amend(path, nb)
            print(f"{path.name}: refreshed {', '.join(stale)}")


def command_check(paths: list[str]) -> None:
    asked = [pathlib.Path(path).resolve() for path in paths] or notebooks.every()
    found = [line for path in asked for line in checks.problems(path)]
    print("\n".join(found) or f"{len(asked)} notebooks, no problem")
    sys.exit(bool(found))


VERBS = {
    "run": (command_run, "chapter"),
    "text": (command_text, "new"),
    "claims": (command_claims,),
    "widgets": (command_widgets,),
    "check": (command_check, "paths"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.chapters", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    for name, (command, *given) in VERBS.items():
        verb = verbs.add_parser(name)
        verb.set_defaults(command=command)
        for argument in given:
            verb.add_argument(argument, nargs="*" if argument.endswith("s") else "?")
    arguments = vars(parser.parse_args())
    arguments.pop("command")(**arguments)


if __name__ == "__main__":
    main()
