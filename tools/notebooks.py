"""Notebooks as files: read, write, and make their bytes reproducible."""

import ast
import hashlib
import importlib.util
import json
import os
import pathlib
import re
from types import ModuleType

import nbformat
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from attnbook import bundles
from attnbook.bundles import STATE, STILL, SVG, VIEW
from attnbook.files import atomic

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
# `make course` moves the solutions to a folder with the same paths, which students do not see.
PRIVATE = pathlib.Path(os.environ.get("BOOK_PRIVATE") or ROOT).resolve()
SOLUTIONS = PRIVATE / "book" / "solutions"
JAVASCRIPT = "application/javascript"
BERTVIZ = re.compile(r"bertviz-[0-9a-f]{32}")
HIDES = {  # Jupyter's name -> the tags that fold a cell on a page
    "source_hidden": {"hide-input", "hide-cell"},
    "outputs_hidden": {"hide-output", "hide-cell"},
}
VOLATILE = {"ExecuteTime", "colab", "collapsed", "execution", "jupytext", "outputId", "scrolled"}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"file_extension": ".py", "name": "python", "pygments_lexer": "ipython3"}


def load(path: pathlib.Path) -> ModuleType:
    """Load a module from its file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def every(book: pathlib.Path = BOOK) -> list[pathlib.Path]:
    """All notebooks of the book: chapters, assignments and, if present, solutions."""
    private = [] if PRIVATE == ROOT or book != BOOK else SOLUTIONS.glob("*.ipynb")
    found = {*book.rglob("*.ipynb"), *private}
    return sorted(path for path in found if ".ipynb_checkpoints" not in path.parts)


def executed(book: pathlib.Path = BOOK) -> list[pathlib.Path]:
    """The notebooks that are run and keep their outputs: all except assignments."""
    return [path for path in every(book) if not is_assignment(path)]


def is_chapter(path: pathlib.Path) -> bool:
    """Whether a notebook is a page of a chapter: its story or its evidence."""
    return path.parent.name == "book" and path.name[:2].isdigit()


def is_evidence(path: pathlib.Path) -> bool:
    """Whether a notebook is the evidence of a chapter: book/03_topic_evidence.ipynb."""
    return is_chapter(path) and path.stem.endswith("_evidence")


def is_story(path: pathlib.Path) -> bool:
    """Whether a notebook is the story of a chapter: book/03_topic.ipynb."""
    return is_chapter(path) and not is_evidence(path)


def evidence_of(story: pathlib.Path) -> pathlib.Path:
    """The path of a story's evidence."""
    return story.with_name(f"{story.stem}_evidence.ipynb")


def is_assignment(path: pathlib.Path) -> bool:
    """Whether a notebook is an assignment: book/assignments/topic.ipynb."""
    return path.parts[-3:-1] == ("book", "assignments")


def is_solution(path: pathlib.Path) -> bool:
    """Whether a notebook is a solution, which gets no page: book/solutions/topic.ipynb."""
    return path.parts[-3:-1] == ("book", "solutions")


def read(path: pathlib.Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def write(path: pathlib.Path, nb: NotebookNode) -> None:
    """Replace a notebook atomically: an interruption leaves the old one."""
    nbformat.validate(nb)
    with atomic(path) as partial:
        partial.write_text(nbformat.writes(nb).rstrip("\n") + "\n", encoding="utf-8")


def amend(path: pathlib.Path, nb: NotebookNode) -> None:
    """Write a generated change with the old file times, so that an edited text stays newer."""
    stat = path.stat()
    write(path, nb)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def text_of(path: pathlib.Path, root: pathlib.Path = ROOT) -> pathlib.Path:
    """The text that jupytext pairs with a notebook."""
    book = root / "book"
    inside = path.relative_to(book) if path.is_relative_to(book) else pathlib.Path(path.name)
    return (root / ".text" / inside).with_suffix(".md")


def behind(path: pathlib.Path, root: pathlib.Path = ROOT) -> bool:
    """Whether a notebook's text is newer, so that writing the notebook would lose an edit."""
    text = text_of(path, root)
    return text.exists() and text.stat().st_mtime_ns > path.stat().st_mtime_ns


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    """The cells that an execution counts."""
    return [c for c in nb.cells if c.cell_type == "code" and c.source.strip()]


def code_hash(nb: NotebookNode) -> str:
    """A hash of the code, which `run` stores to detect later edits."""
    return digest(json.dumps([c.source for c in code_cells(nb)]))


def tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def asserts(cell: NotebookNode) -> bool:
    """Whether a cell has an assert statement, or calls an assert function."""
    return any(
        isinstance(n, ast.Assert) or (isinstance(n, ast.Call) and "assert" in ast.unparse(n.func))
        for n in ast.walk(parse(cell.source))
    )


def parse(source: str) -> ast.Module:
    """The syntax tree of a cell, its magics turned into calls."""
    return ast.parse(TransformerManager().transform_cell(source))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


# Widgets in a notebook: the models' states in its metadata, the views in its outputs.


def models(nb: NotebookNode) -> dict:
    """The stored state of each widget model, by id."""
    return nb.metadata.get("widgets", {}).get(STATE, {}).get("state", {})


def views(nb: NotebookNode) -> list[str]:
    """The ids of the models that outputs show, each once, in order."""
    outputs = (o.get("data", {}) for c in code_cells(nb) for o in c.outputs)
    return list(dict.fromkeys(data[VIEW]["model_id"] for data in outputs if VIEW in data))


def widget_class(model: dict) -> str:
    """The Python class of an anywidget model, empty for others."""
    return model["state"].get("_anywidget_id", "").rpartition(".")[2]


def refresh(nb: NotebookNode) -> list[str]:
    """Bring stored copies of widget sources up to date; returns the classes that were stale."""
    known, stale = set(bundles.classes()), []
    for model in models(nb).values():
        name = widget_class(model)
        if name in known:
            current = bundles.stored(name)
            if any(model["state"].get(key) != text for key, text in current.items()):
                model["state"].update(current)
                stale.append(name)
    for data in (o.get("data", {}) for cell in code_cells(nb) for o in cell.outputs):
        svg = data.get(SVG, "")
        if STILL in svg:
            data[SVG] = bundles.styled(svg)
            stale += ["still drawings"] * (data[SVG] != svg)
    return list(dict.fromkeys(stale))


# Make the results of an execution reproducible.


def settle(nb: NotebookNode, stem: str) -> NotebookNode:
    """The executed notebook without anything that differs between runs."""
    nb = settle_models(nb, stem)
    nb = settle_bertviz(nb, stem)
    refresh(nb)  # a kernel sends more source than a notebook stores
    settle_cells(nb)
    fold(nb)
    nb.metadata = {k: v for k, v in nb.metadata.items() if k not in VOLATILE}
    nb.metadata.update(kernelspec=KERNEL, language_info=LANGUAGE)
    nb.metadata["attnbook"] = {"code_hash": code_hash(nb)}
    nb.nbformat, nb.nbformat_minor = 4, 5
    return nb


def settle_cells(nb: NotebookNode) -> None:
    """Derive each cell's id from its content, and drop editors' metadata."""
    taken = set()
    for cell in nb.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k not in VOLATILE}
        salt = 0
        while (name := digest(f"{cell.cell_type} {salt} {cell.source}")[:8]) in taken:
            salt += 1
        taken.add(name)
        cell.id = name


def fold(nb: NotebookNode) -> int:
    """In Jupyter and Colab, fold the cells that a page folds; returns how many cells changed."""
    changed = 0
    for cell in nb.cells:
        before = dict(cell.metadata)
        hidden = {name: True for name, by in HIDES.items() if tags(cell) & by}
        wanted = {"jupyter": hidden, "cellView": "form" if "source_hidden" in hidden else ""}
        for name, value in wanted.items():
            cell.metadata.pop(name, None)
            if value:
                cell.metadata[name] = value
        changed += cell.metadata != before
    return changed


def settle_models(nb: NotebookNode, stem: str) -> NotebookNode:
    """Name each widget model by chapter and name, and drop the models that no view needs."""
    state, labels = models(nb), {}

    def reach(model_id: str, label: str) -> None:
        if model_id in labels or model_id not in state:
            return
        labels[model_id] = label
        for trait, value in sorted(state[model_id]["state"].items()):
            for child in references(value):
                reach(child, f"{label}-{trait}")

    for number, view in enumerate(views(nb), start=1):
        reach(view, state.get(view, {}).get("state", {}).get("name") or f"widget-{number}")
    twice = {label for label in labels.values() if list(labels.values()).count(label) > 1}
    if twice:
        raise ValueError(f"two widgets share the name {', '.join(sorted(twice))}")
    if not labels:
        nb.metadata.pop("widgets", None)
        return nb
    for model_id in set(state) - set(labels):
        del state[model_id]
    for model in state.values():
        if model["model_name"] == "LayoutModel":  # nearly all of its fifty settings are None
            model["state"] = {k: v for k, v in model["state"].items() if v is not None}
    text = json.dumps(nb)
    for model_id, label in labels.items():
        text = text.replace(model_id, digest(f"{stem}/{label}"))
    return nbformat.reads(text, as_version=4)


def settle_bertviz(nb: NotebookNode, stem: str) -> NotebookNode:
    """Name bertviz's views by their order, and drop the copy of the weights in a comment."""
    for output in (o for c in code_cells(nb) for o in c.outputs):
        data = output.get("data", {})
        if BERTVIZ.search(data.get(JAVASCRIPT, "")):
            data[JAVASCRIPT] = re.sub(r" // HACK: .*", "", data[JAVASCRIPT])
    text = json.dumps(nb)
    for number, name in enumerate(dict.fromkeys(BERTVIZ.findall(text)), start=1):
        text = text.replace(name, f"bertviz-{digest(f'{stem}/bertviz-{number}')}")
    return nbformat.reads(text, as_version=4)


def references(value: object) -> list[str]:
    """The ids of the models that a trait refers to."""
    if isinstance(value, str):
        prefix = "IPY_MODEL_"
        return [value.removeprefix(prefix)] if value.startswith(prefix) else []
    if isinstance(value, dict):
        value = list(value.values())
    return [r for v in value for r in references(v)] if isinstance(value, list) else []
