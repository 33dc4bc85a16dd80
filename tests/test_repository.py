"""What holds for the whole tree: budgets of size, and no trace of the machine it was made on."""

import ast
import io
import pathlib
import re
import subprocess
import tokenize

import pytest

from tools.notebooks import ROOT

PACKAGE = sorted((ROOT / "src").rglob("*.py"))
MODULE_LINES, PACKAGE_LINES, WIDGET_LINES = 300, 3500, 250

# Spelt in parts, so that this file does not name what it looks for.
HOSTS = [a + b for a, b in [("python", "hosted.org"), ("py", "pi.org"), ("npm", "js.org")]]
FOLDERS = ["/" + a + b for a, b in [("wo", "rk/"), ("fa", "rm/"), ("tm", "p/"), ("ro", "ot/")]]
# `~/root/` and `a/tmp/` are other folders; only absolute paths are one machine's.
MACHINE = re.compile("|".join([*map(re.escape, HOSTS), *(r"(?<![\w.~-])" + f for f in FOLDERS)]))
PYTORCH = "download." + "pytorch.org"


def lines_of_code(source: str) -> int:
    """Lines that hold code: not blank, not a comment, not a docstring."""
    documented = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                documented |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    idle = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    idle |= {tokenize.ENCODING, tokenize.ENDMARKER}
    used = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in idle:
            used |= set(range(token.start[0], token.end[0] + 1))
    return len(used - documented)


def test_lines_of_code_counts_code_alone():
    source = '"""Doc\nstring."""\n\n# no\nx = 1  # why\n\ndef f():\n    "doc"\n    return (\n  x)\n'
    assert lines_of_code(source) == 4


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: path.stem)
def test_module_is_small(path):
    assert lines_of_code(path.read_text("utf-8")) <= MODULE_LINES


def test_package_is_small():
    assert sum(lines_of_code(path.read_text("utf-8")) for path in PACKAGE) <= PACKAGE_LINES


@pytest.mark.parametrize("path", sorted((ROOT / "src").rglob("*.js")), ids=lambda path: path.name)
def test_widget_file_is_small(path):
    assert len(path.read_text("utf-8").splitlines()) <= WIDGET_LINES


def tracked() -> dict[str, str]:
    """The text of every file that is, or is about to be, in the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = {}
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in (raw := path.read_bytes()):
            files[name] = raw.decode("utf-8")
    return files


def test_nothing_names_a_machine_or_a_registry():
    found = {name: MACHINE.findall(text) for name, text in tracked().items()}
    assert {name: hits for name, hits in found.items() if hits} == {}


@pytest.mark.parametrize("trace", [HOSTS[0], f"see {FOLDERS[0]}x", f'"{FOLDERS[2]}a"'])
def test_a_trace_of_a_machine_is_found(trace):
    assert MACHINE.search(trace)


def test_only_binder_and_workflows_name_pytorchs_index():
    allowed = {"binder", ".github"}
    naming = {pathlib.PurePath(name) for name, text in tracked().items() if PYTORCH in text}
    assert {str(p) for p in naming if p.parts[0] not in allowed} == set()


def test_the_version_is_the_same_everywhere():
    from tools.checks import version

    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"version: {version()}\n" in citation
    assert f"## {version()}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_ci_calls_make_test_and_nothing_else():
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert lines == ["#!/bin/sh", "exec make test"]
