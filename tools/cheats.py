"""`make cheats`: replace a claim's model by a cheat; the claim's own asserts must fail.

`tests/cheats/<chapter>.toml` lists the cheats of a chapter, at least two for each claim:

    [[cheat]]
    claim = "C08"
    cheat = "the diagonal"
    find = "offsets = link_offsets("   # occurs exactly once in the chapter's code
    replace = "..."

A chapter's cells run one after another. Before a cell that a cheat changes, the process forks: the
parent continues as a reader would, the child runs the changed cell and those after it, until an
assert fails in a cell with the claim's id. Cells of other claims run without their asserts. If
there is another error or none, the cheat was not detected. (`fork` does not exist on Windows and
does not work with GPUs, so everything runs on the CPU.)
"""

import argparse
import ast
import contextlib
import os
import pathlib
import signal
import sys
import tomllib
import traceback

from nbformat import NotebookNode

from tools import notebooks
from tools.chapters import chosen
from tools.notebooks import ROOT

LISTS = ROOT / "tests" / "cheats"
PATIENCE = 1200  # seconds for a cheat, or a chapter without its cheats
KEYS = {"claim", "cheat", "find", "replace"}


def read(chapter: pathlib.Path, lists: pathlib.Path = LISTS) -> list[dict[str, str]]:
    """The cheats listed for a chapter."""
    path = lists / f"{chapter.stem}.toml"
    cheats = tomllib.loads(path.read_text("utf-8"))["cheat"] if path.is_file() else []
    names = [(cheat.get("claim"), cheat.get("cheat")) for cheat in cheats]
    for cheat, name in zip(cheats, names, strict=True):
        if set(cheat) != KEYS or names.count(name) > 1:
            sys.exit(f"{path.name}: a cheat has {sorted(KEYS)}, its name to itself: {cheat}")
    return cheats


def places(cheats: list[dict[str, str]], nb: NotebookNode) -> tuple[dict, list[str]]:
    """Cell -> the cheats that change it, and errors about cheats that fit no cell."""
    cells, found, wrong = notebooks.code_cells(nb), {}, []
    for cheat in cheats:
        holding = [i for i, cell in enumerate(cells) if cheat["find"] in cell.source]
        count = sum(cell.source.count(cheat["find"]) for cell in cells)
        bearing = cells_of(cheat["claim"], cells)
        if count != 1:
            wrong.append(f"{name(cheat)}: DOES NOT FIT: its text stands {count} times")
        elif not bearing or bearing[-1] < holding[0]:
            wrong.append(f"{name(cheat)}: DOES NOT FIT: no cell of the claim from there on")
        else:
            found.setdefault(holding[0], []).append(cheat)
    return found, wrong


def cells_of(claim: str, cells: list[NotebookNode]) -> list[int]:
    """The indices of the cells with a claim's id."""
    return [i for i, cell in enumerate(cells) if claim in cell.metadata.get("claims", [])]


def name(cheat: dict[str, str]) -> str:
    return f"{cheat['claim']}, {cheat['cheat']}"


class Without(ast.NodeTransformer):
    """Removes the asserts from a cell."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return ast.copy_location(ast.Pass(), node)


def attempt(shell, cells: list[NotebookNode], first: int, cheat: dict[str, str]) -> str:
    """Run a cheat from the cell that it changes; returns which assert fails, or what is wrong."""
    bearing = cells_of(cheat["claim"], cells)
    for i in range(first, bearing[-1] + 1):
        source = cells[i].source
        if i == first:
            source = source.replace(cheat["find"], cheat["replace"])
        shell.ast_transformers[:] = [] if i in bearing else [Without()]
        error = run(shell, source)
        if isinstance(error, AssertionError):
            frame = traceback.extract_tb(error.__traceback__)[-1]
            if "ipython-input" in frame.filename:  # an assert of the chapter, not one of a library
                return f"seen in code cell {i + 1}: {frame.line}"
        if error:
            return f"STOPS: {error!r} in code cell {i + 1}"
    return "NOT SEEN"


def run(shell, source: str) -> BaseException | None:
    """Run a cell without output; returns its error, if there is one."""
    with (
        open(os.devnull, "w") as nothing,
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
    ):
        result = shell.run_cell(source, store_history=False)
    return result.error_before_exec or result.error_in_exec


def split(task) -> str:
    """The text that a function returns in a fork of this process, which then ends."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        signal.alarm(PATIENCE)  # ends the child, which then returns nothing
        try:
            said = task()
        except BaseException as error:
            said = f"STOPS: {error!r}"
        os.write(writing, said.encode()[:4096])
        os._exit(0)
    os.close(writing)
    left = signal.alarm(0)  # pause this process's own alarm meanwhile
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    os.waitpid(child, 0)
    signal.alarm(left)
    return said or f"STOPS: the process died, or took {PATIENCE} s"


def judge(chapter: pathlib.Path, lists: pathlib.Path = LISTS) -> int:
    """Run a chapter with each of its cheats and print results; returns how many went undetected."""
    from IPython.core.interactiveshell import InteractiveShell

    cheats = read(chapter, lists)
    nb = notebooks.read(chapter)
    cells = notebooks.code_cells(nb)
    found, wrong = places(cheats, nb)
    for line in wrong:
        print(line, flush=True)
    os.chdir(chapter.parent)
    shell = InteractiveShell.instance()
    shell.showtraceback = lambda *_, **__: None  # type: ignore[method-assign]
    unseen = len(wrong)
    claims = {cheat["claim"] for cheat in cheats}
    last = max((i for claim in claims for i in cells_of(claim, cells)), default=-1)
    for i in range(last + 1):  # without the cheat, the asserts must hold
        for cheat in found.get(i, []):
            said = split(lambda i=i, cheat=cheat: attempt(shell, cells, i, cheat))
            unseen += not said.startswith("seen")
            print(f"{name(cheat)}: {said}", flush=True)
        if (error := run(shell, cells[i].source)) is not None:
            print(f"{chapter.name}: code cell {i + 1} fails without a cheat: {error!r}", flush=True)
            return unseen + 1
    return unseen


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("chapter", nargs="?")
    parser.add_argument("--lists", type=pathlib.Path, default=LISTS)
    asked = parser.parse_args()
    # One thread: a forked process has no other threads. Figures are not shown on a screen.
    os.environ |= {"ATTNBOOK_PROGRESS": "0", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    os.environ["ACCELERATE_USE_CPU"] = "true"
    unseen = 0
    for chapter in filter(notebooks.is_chapter, chosen(asked.chapter)):
        said = split(lambda chapter=chapter: str(judge(chapter, asked.lists)))
        if not said.isdecimal():
            print(f"{chapter.name}: {said}", flush=True)
        unseen += int(said) if said.isdecimal() else 1
    print("every cheat is seen" if not unseen else f"{unseen} are not seen")
    sys.exit(bool(unseen))


if __name__ == "__main__":
    main()
