"""`make exercises`: run each page and, after it, the code of its exercises' solutions.

Neither pages nor tests run solutions. Here a solution's code runs after the page's, and its output
is printed, to be compared with the solution's text.
"""

import argparse
import copy
import os
import re
import sys

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tools import notebooks
from tools.chapters import RunError, chosen, execute

SOLUTION = re.compile(r"^(`{3,})\{solution\} (\S+)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def solutions(nb: NotebookNode) -> list[tuple[str, str]]:
    """(label, code of the solution) of each exercise."""
    prose = [cell.source for cell in nb.cells if cell.cell_type == "markdown"]
    return [
        (label, code)
        for source in prose
        for _, label, body in SOLUTION.findall(source)
        for code in CODE.findall(body)
    ]


def followed(nb: NotebookNode) -> NotebookNode:
    """A chapter followed by the code of its solutions."""
    longer = copy.deepcopy(nb)
    longer.cells += [
        new_code_cell(code, metadata={"exercise": label}) for label, code in solutions(nb)
    ]
    return longer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("chapter", nargs="?")
    asked = parser.parse_args()
    os.environ |= {"MPLBACKEND": "agg", "ACCELERATE_USE_CPU": "true"}
    failed = 0
    for path in chosen(asked.chapter):
        if not solutions(nb := notebooks.read(path)):
            continue
        nb = followed(nb)
        print(path.name, flush=True)
        try:
            execute(nb, path)
        except RunError as error:
            failed += 1
            print(f"  FAILS: {error}", flush=True)
        for cell in nb.cells:
            if label := cell.metadata.get("exercise"):
                said = "".join(output.get("text", "") for output in cell.get("outputs", []))
                print(f"  {label}", *said.splitlines(), sep="\n    ", flush=True)
    print(f"{failed} chapters fail" if failed else "all solutions run")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
