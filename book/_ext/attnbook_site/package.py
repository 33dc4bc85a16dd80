"""What the package offers, read from its files without imports, so that no torch is needed."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .places import SOURCES

ROOMS = ("model", "text", "learn", "show", "walks", "web", "weights")
OUTSIDE = ("attnbook.assets", "attnbook.source")  # modules for readers that are in no room
Defined = ast.FunctionDef | ast.ClassDef | ast.Assign


@dataclass(frozen=True)
class Thing:
    """A function, class or constant: the module that defines it, its name and its syntax node."""

    module: str
    name: str  # "Class.method" for a method
    node: Defined

    @property
    def full(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def kind(self) -> str:
        if isinstance(self.node, ast.ClassDef):
            return "class"
        if isinstance(self.node, ast.Assign):
            return "data"
        return "method" if "." in self.name else "function"


def path_of(module: str) -> Path:
    """The module's file, which may not exist."""
    path = SOURCES / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(path_of(module).read_text("utf-8"))


@cache
def exports(module: str) -> dict[str, str]:
    """Names that the module imports from others of the package -> their full names there."""
    found = {}
    for node in tree(module).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("attnbook"):
            found |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
    return found


def home(full: str) -> str:
    """The full name in the module that defines it: "attnbook.model.attend" is in `attention`."""
    module, _, name = full.rpartition(".")
    if not path_of(module).is_file():
        return full
    there = exports(module).get(name)
    return home(there) if there else full


def modules(room: str) -> list[str]:
    """The modules of a room that define something; for "attnbook", the modules in no room."""
    if room == "attnbook":
        return list(OUTSIDE)
    names = []
    for path in sorted((SOURCES / room.replace(".", "/")).rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return [name for name in names if things(name)]


def offered(module: str) -> set[str]:
    """The names of the module that a package above it exports."""
    parents = module.split(".")[:-1]
    above = [".".join(parents[: n + 1]) for n in range(len(parents))]
    prefix = f"{module}."
    homes = (there for each in above for there in exports(each).values())
    return {there.removeprefix(prefix) for there in homes if there.startswith(prefix)}


@cache
def things(module: str) -> list[Thing]:
    """What the module defines for others, each class followed by its methods.

    If a name in its path begins with an underscore, only what a package above it exports."""
    only = offered(module) if any(part.startswith("_") for part in module.split(".")) else None
    found = []
    for name, node in defined(module):
        if name.startswith("_") or (only is not None and name not in only):
            continue
        found.append(Thing(module, name, node))
        if isinstance(node, ast.ClassDef):
            found += [
                Thing(module, f"{name}.{part.name}", part)
                for part in node.body
                if isinstance(part, ast.FunctionDef) and not part.name.startswith("_")
                if ast.get_docstring(part)  # an overload has none
            ]
    return found


def defined(module: str) -> Iterator[tuple[str, Defined]]:
    """The names that the module's statements define; of assignments, only constants."""
    for node in tree(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if not any("overload" in ast.unparse(each) for each in node.decorator_list):
                yield node.name, node
        elif isinstance(node, ast.Assign):
            names = [part.id for part in ast.walk(node.targets[0]) if isinstance(part, ast.Name)]
            yield from ((name, node) for name in names if name.isupper())


def signature(thing: Thing) -> str:
    """The text after the name: arguments as the file writes them, or a constant's value."""
    node = thing.node
    if isinstance(node, ast.Assign):
        value = ast.unparse(node.value)
        plain = not any(isinstance(part, ast.Call) for part in ast.walk(node.value))
        alone = plain and isinstance(node.targets[0], ast.Name)
        return f" = {value}" if alone and len(value) <= 60 else ""
    if isinstance(node, ast.ClassDef):
        made = [
            part
            for part in node.body
            if isinstance(part, ast.FunctionDef) and part.name == "__init__"
        ]
        return arguments(made[0]) if made else fields(node)
    gives = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return arguments(node) + gives


def arguments(node: ast.FunctionDef) -> str:
    written = ast.unparse(node.args)
    for first in ("self, ", "self", "cls, ", "cls"):
        if written.startswith(first):
            written = written[len(first) :]
            break
    return f"({written})"


def fields(node: ast.ClassDef) -> str:
    """The fields of a dataclass or named tuple; "" for another class without `__init__`."""
    marks = map(ast.unparse, [*node.decorator_list, *node.bases])
    if not any("dataclass" in mark or mark == "NamedTuple" for mark in marks):
        return ""
    names = (ast.unparse(part) for part in node.body if isinstance(part, ast.AnnAssign))
    return f"({', '.join(names)})"
