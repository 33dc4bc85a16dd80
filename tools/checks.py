"""Checks of what every notebook of the book promises; each returns one line per problem."""

import ast
import pathlib
import re
import tomllib
from collections.abc import Iterable, Iterator

import nbformat
from nbformat import NotebookNode

from attnbook.bundles import CHART
from tools import notebooks
from tools.notebooks import BOOK, HIDES, ROOT, STILL, SVG, VIEW, asserts, code_cells, tags

LARGEST = 600_000  # bytes
PROSE = 7  # words for each line of code that is not folded
EXTRAS = {"bertviz": "", "pretrained": "attnbook.weights"}  # extra: package that needs it, if any
IGNORED = {"nbval-ignore-output", "nbval-skip"}
# nbval also obeys such comments; here exemptions must be tags, which `judged` reads.
MARKER = re.compile(r"^\s*#+\s*((?:NBVAL|PYTEST_VALIDATE)_\w+)", re.MULTILINE)
# Memory addresses and paths differ on another machine.
MACHINE = re.compile(
    r"\b0x[0-9a-f]{6,}|(?<![\w.])/(home|root|tmp|usr|Users|work)/|Traceback \(most"
)


def problems(path: pathlib.Path) -> list[str]:
    """All problems of a stored notebook."""
    nb = notebooks.read(path)
    found = [*valid(nb), *first_line(nb), *widgets(nb), *pictures(nb)]
    if notebooks.is_assignment(path):
        found += assignment(nb)
    else:
        found += [*executed(nb), *outputs(nb), *judged(nb), *claims(nb)]
    if path.stat().st_size > LARGEST:
        found.append(f"{path.stat().st_size / 1000:.0f} kB stored, {LARGEST / 1000:.0f} allowed")
    if notebooks.is_story(path):
        found += story(nb)
        other = notebooks.evidence_of(path)
        if other.is_file():
            found += links(path, nb, notebooks.read(other))
    if notebooks.is_solution(path) and path in pages(path.parents[2]):
        found.append("is on the site: a solution stands in no table of contents")
    return [f"{path.name}: {line}" for line in found]


def valid(nb: NotebookNode) -> list[str]:
    """The notebook is valid; nbformat reports only the first error."""
    try:
        nbformat.validate(nb)
    except nbformat.ValidationError as error:
        return [f"is no valid notebook: {str(error).splitlines()[0]}"]
    return []


def first_line(nb: NotebookNode) -> list[str]:
    """The first line is the neutral import, with the right extras; the site replaces it."""
    cells = code_cells(nb)
    first = cells[0].source.split("\n")[0] if cells else ""
    needs = {extra: found for extra in EXTRAS if (found := from_extra(cells, extra))}
    door = notebooks.load(ROOT / "book" / "_ext" / "attnbook_site" / "door.py")
    lines = [
        door.neutral(extras)
        for extras in door.PROBE  # `pretrained` may be named without being needed
        if {*needs} <= set(re.findall(r"\w+", extras)) <= {"pretrained", *needs}
    ]
    if first in lines:
        return []
    why = f", as it imports {', '.join(sorted(set().union(*needs.values())))}" * bool(needs)
    return [f"the first code cell does not begin with the line {lines[0]!r}{why}"]


def assignment(nb: NotebookNode) -> list[str]:
    """An assignment is stored as a reader first opens it, with outputs of its checks only."""
    found = []
    for cell in (cell for cell in nb.cells if cell.cell_type == "code"):
        ran = cell.outputs or cell.execution_count is not None
        if ran and not cell.metadata.get("nbgrader", {}).get("locked"):
            found.append(f"stores a run of the cell {cell.source[:40]!r}: clear all outputs")
    if notebooks.models(nb):
        found.append("stores widgets of a run: clear all outputs")
    if any(cell.metadata.get("claims") for cell in nb.cells):
        found.append("shows a claim: only chapters do")
    return found


def pages(root: pathlib.Path = ROOT) -> set[pathlib.Path]:
    """The notebooks that the table of contents puts on the site."""
    contents = root / "_toc.yml"
    if not contents.is_file():  # a folder of solutions outside of the book
        return set()
    names = re.findall(r"^[\s-]*(?:file|root): *(\S+)$", contents.read_text("utf-8"), re.MULTILINE)
    return {(root / name).with_suffix(".ipynb") for name in names}


def number(nb: NotebookNode, cell: NotebookNode) -> str:
    return f"code cell {code_cells(nb).index(cell) + 1}"


def executed(nb: NotebookNode) -> list[str]:
    """It ran from top to bottom, was not edited since, and folds as its cells' tags say."""
    cells, found = code_cells(nb), []
    if [c.execution_count for c in cells] != list(range(1, len(cells) + 1)):
        found.append("was not executed from top to bottom (counts are not 1..n): make run")
    if nb.metadata.get("attnbook", {}).get("code_hash") != notebooks.code_hash(nb):
        found.append("code was edited and not run again: make run")
    if changed := notebooks.fold(nb):
        found.append(f"{changed} cells are folded otherwise than their tags say: make text")
    return found


def outputs(nb: NotebookNode) -> list[str]:
    found = []
    for cell in code_cells(nb):
        if any(o.output_type == "error" for o in cell.outputs):
            found.append(f"{number(nb, cell)} stores an error")
        if any({*o.get("data", {})} == {"text/plain"} for o in cell.outputs):
            found.append(f"{number(nb, cell)} shows a bare value: print it, or give it a name")
        if match := next(filter(None, map(MACHINE.search, texts(cell.outputs))), None):
            found.append(f"{number(nb, cell)} shows {match[0]!r}, which differs on another machine")
    return found


def texts(value: object) -> Iterator[str]:
    """The strings of an output as shown; in JSON, an escape could hide the start of a line."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def widgets(nb: NotebookNode) -> list[str]:
    """Every view has its state, no stock controls are used, every copy of a source is current."""
    state, found = notebooks.models(nb), []
    missing = [view for view in notebooks.views(nb) if view not in state]
    if missing:
        found.append(f"{len(missing)} widget views have no stored state: make run")
    stock = {m["model_name"] for m in state.values() if m.get("model_module") != "anywidget"}
    if stock := stock - {"LayoutModel"}:
        found.append(f"stores stock controls, which no page draws: {', '.join(sorted(stock))}")
    if stale := notebooks.refresh(nb):
        found.append(f"copies of {', '.join(stale)} are stale: make widgets")
    return found


def judged(nb: NotebookNode) -> list[str]:
    """nbval compares every output, or the cell asserts its result."""
    found = []
    for cell in code_cells(nb):
        for marker in MARKER.findall(cell.source):
            found.append(f"{number(nb, cell)} has the comment {marker}: only tags say such things")
        if "nbval-skip" in tags(cell):
            found.append(f"{number(nb, cell)} is skipped by nbval")
        elif tags(cell) & IGNORED and not asserts(cell):
            found.append(f"{number(nb, cell)} is neither compared nor asserted")
    return found


def claims(nb: NotebookNode) -> list[str]:
    """Every claim of a cell is listed, and the cell asserts it."""
    titles, found = claim_titles(), []
    for index, cell in enumerate(nb.cells):
        for claim in cell.metadata.get("claims", []):
            if claim not in titles:
                found.append(f"cell {index} names {claim}, which book/claims.md does not list")
            if cell.cell_type != "code" or not asserts(cell):
                found.append(f"cell {index} shows {claim} and asserts nothing")
    return found


def claim_titles(path: pathlib.Path = BOOK / "claims.md") -> dict[str, str]:
    """Id -> title of the book's claims."""
    return dict(re.findall(r"^\| (C\d\d) \| (.+?) \|$", path.read_text("utf-8"), re.MULTILINE))


def claims_shown(paths: Iterable[pathlib.Path]) -> dict[str, list[str]]:
    """Claim -> where it is shown: notebook, cell, and whether that cell asserts it."""
    shown = {}
    for path in paths:
        nb = notebooks.read(path)
        for cell in code_cells(nb):
            for claim in cell.metadata.get("claims", []):
                how = "asserted" if asserts(cell) else "NOT ASSERTED"
                shown.setdefault(claim, []).append(f"{path.name}, {number(nb, cell)}, {how}")
    return shown


def pictures(nb: NotebookNode) -> list[str]:
    """Every figure has alt text."""
    found = []
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            found += [f"no alt text: {image}" for image in unnamed_images(cell.source)]
    for cell in code_cells(nb):
        data = [o.get("data", {}) for o in cell.outputs if VIEW not in o.get("data", {})]
        drawn = [
            each
            for each in data
            if CHART in each.get(SVG, "")
            or ({"image/png", SVG} & set(each) and STILL not in each.get(SVG, ""))
        ]  # a still drawing has its own description
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        if drawn and not alt.strip():
            found.append(
                f"{number(nb, cell)} draws a figure; its metadata mystnb.image.alt is empty"
            )
    return found


def unnamed_images(text: str) -> list[str]:
    """Images in Markdown that have no alt text: ![](a), <img src=a>, and figures without :alt:."""
    plain = re.sub(r"`[^`\n]+`", "", text)
    directives = re.findall(r"^(`{3,}|:{3,})\{(figure|image)\} *(\S*)\n(.*?)^\1", text, re.M | re.S)
    return [
        *re.findall(r"!\[\s*\]\([^)]*\)", plain),
        *[
            tag
            for tag in re.findall(r"<img\b[^>]*>", plain)
            if not re.search(r"alt=[\"'][^\"']", tag)
        ],
        *[target for _, _, target, body in directives if not re.search(r"^:alt: *\S", body, re.M)],
    ]


def links(path: pathlib.Path, nb: NotebookNode, evidence: NotebookNode) -> list[str]:
    """Each claim's section of the evidence has a label, a link from the story, and one back.

    A section begins with a line `(evidence-c05)=`; a section may have several labels. If two
    chapters show the same claim, one of the labels has a suffix: `(evidence-c30-bert)=`.
    """
    told, shown = prose(nb), prose(evidence)
    claimed = {claim for cell in evidence.cells for claim in cell.metadata.get("claims", [])}
    parts = re.split(r"^((?:\(evidence-c\d\d[a-z-]*\)=\n+)+)", shown, flags=re.MULTILINE)[1:]
    sections = {
        label: text
        for labels, text in zip(parts[::2], parts[1::2], strict=True)
        for label in re.findall(r"evidence-(c\d\d[a-z-]*)", labels)
    }
    labelled = {label[:3].upper() for label in sections}
    found = [f"{claim}'s evidence has no label" for claim in sorted(claimed - labelled)]
    for label, text in sections.items():
        if f"](#evidence-{label})" not in told:
            found.append(f"does not link to the evidence of {label.upper()}")
        if f"]({path.stem})" not in text:
            found.append(f"the evidence of {label.upper()} does not link back to {path.stem}")
    return found


def prose(nb: NotebookNode) -> str:
    return "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")


def story(nb: NotebookNode) -> list[str]:
    """A story also has both widgets, uses the package, and has enough prose."""
    found, state = [], notebooks.models(nb)
    shown = {notebooks.widget_class(state[view]) for view in notebooks.views(nb) if view in state}
    for want in ("Heatmap", "Temperature"):
        if not any(want in name for name in shown):
            found.append(f"no {want} widget")
    cells = code_cells(nb)
    words = sum(len(c.source.split()) for c in nb.cells if c.cell_type == "markdown")
    lines = sum(c.source.count("\n") + 1 for c in cells if not folded(c))
    if words < PROSE * lines:
        found.append(f"{words} words of prose to {lines} lines of code, under {PROSE} to 1")
    return found


def folded(cell: NotebookNode) -> bool:
    """Whether a page folds the code of a cell."""
    return bool(tags(cell) & (HIDES["source_hidden"] | {"remove-input", "remove-cell"}))


def from_extra(cells: Iterable[NotebookNode], extra: str) -> set[str]:
    """Imports of code cells that need an extra."""
    brings = {re.split(r"\W", need)[0] for need in project()["optional-dependencies"][extra]}
    names = set()
    for node in (node for cell in cells for node in ast.walk(notebooks.parse(cell.source))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    own = EXTRAS[extra]
    inside = {own for name in names if own and name.startswith(own)}
    return inside | {name.partition(".")[0] for name in names} & brings


def project() -> dict:
    """The `[project]` table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
