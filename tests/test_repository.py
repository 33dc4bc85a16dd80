"""What holds for the whole tree: budgets of size, and no trace of the machine it was made on."""

import ast
import pathlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.files import listed
from tools.notebooks import ROOT

PACKAGE = sorted((ROOT / "src").rglob("*.py"))
# An assignment's check is mostly the names of mistakes.
FUNCTION_LINES, LISTS = 45, {"teach": 95}

# Spelt in parts, so that this file does not name what it looks for.
HOSTS = [a + b for a, b in [("python", "hosted.org"), ("py", "pi.org"), ("npm", "js.org")]]
FOLDERS = ["/" + a + b for a, b in [("wo", "rk/"), ("fa", "rm/"), ("tm", "p/"), ("ro", "ot/")]]
# A folder whose name only ends like such a one is another; absolute paths are one machine's.
MACHINE = re.compile("|".join([*map(re.escape, HOSTS), *(r"(?<![\w.~-])" + f for f in FOLDERS)]))
PYTORCH = "download." + "pytorch.org"


def test_each_widget_has_its_own_test_in_a_browser():
    folders = [path.parent.name for path in (ROOT / "src/attnbook/web").glob("*/widget.js")]
    assert len(folders) > 20
    for folder in folders:
        test = ROOT / "tests/browser" / f"test_widgets_{folder}.py"
        widget = folder.title().replace("_", "")
        assert test.is_file() and widget in test.read_text("utf-8"), folder


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from a function's first statement to its last, without signature and docstring."""
    body = function.body if ast.get_docstring(function) is None else function.body[1:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_lines_of_a_body_are_counted_without_signature_and_docstring():
    (function,) = ast.parse(
        'def f(\n    x,\n):\n    """Doc\n    string."""\n    y = x\n\n    return y'
    ).body
    assert isinstance(function, ast.FunctionDef) and body_lines(function) == 3


def test_a_function_of_the_package_is_short():
    found = {
        f"{path.relative_to(ROOT)}: {node.name}": lines
        for path in PACKAGE
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := body_lines(node)) > LISTS.get(path.parent.name, FUNCTION_LINES)
    }
    assert found == {}, f"at most {FUNCTION_LINES} lines"


def tracked() -> dict[str, str]:
    """The text of every file that holds text."""
    files = {name: (ROOT / name).read_bytes() for name in listed()}
    return {name: raw.decode("utf-8") for name, raw in files.items() if b"\0" not in raw}


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


def test_the_weekly_seeds_run_with_the_least_torch_that_is_allowed():
    least = re.search(r'"torch>=([\d.]+)"', tracked()["pyproject.toml"])
    weekly = tracked()[".github/workflows/weekly.yml"]
    assert least and f'["torch=={least[1]}.0", "torch"]' in weekly


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "DESIGN.md"])
def test_what_a_page_links_to_is_in_the_repository(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)", text) + re.findall(r"\b(?:src|href)=\"([^\"#]+)", text)
    files = {pathlib.PurePath(name) for name in listed()}
    there = {str(part) for file in files for part in (file, *file.parents)}
    relative = {target for target in targets if "://" not in target}
    assert relative - there == set()
    assert relative or page != "README.md"


def test_a_notebook_half_written_is_not_committed():
    command = ["git", "check-ignore", "-q", "book/01_topic.partial"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def test_what_the_package_imports_is_declared():
    """At the top of a module what the package depends on, in a function also what extras bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = [said for extra in project["optional-dependencies"].values() for said in extra]
    needs, extras = (
        {canonicalize_name(Requirement(said).name) for said in requirements}
        for requirements in (project["dependencies"], optional)
    )
    provided = packages_distributions()
    for tree in (ast.parse(path.read_text("utf-8")) for path in PACKAGE):
        for nodes, declared in ((tree.body, needs), (ast.walk(tree), needs | extras)):
            for name in imported(nodes) - sys.stdlib_module_names - {"attnbook"}:
                assert {canonicalize_name(found) for found in provided[name]} & declared, name


def imported(nodes: Iterable[ast.AST]) -> set[str]:
    """The packages that some statements import."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def test_no_test_is_imported():
    """What several tests need is in `tests/helpers`, or beside them in a file of another name.
    Only the tests of chapter 6's errors run other tests, which must see them."""
    found = {
        str(path.relative_to(ROOT)): sorted(modules)
        for folder in ("tests", "benchmarks", "tools")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (modules := imported_tests(ast.parse(path.read_text("utf-8"))))
    }
    assert found == {"tests/test_bugs.py": ["test_block", "test_transformer"]}


@pytest.mark.parametrize(
    "line",
    [
        "from tests.test_x import y",
        "from tests.browser.test_x import y",
        "import tests.test_x as x",
        "from tests import test_x",
        "def f():\n    from .test_x import y",
    ],
)
def test_an_import_of_a_test_is_found(line):
    assert imported_tests(ast.parse(line))
    assert not imported_tests(ast.parse(line.replace("test_x", "helpers")))


def imported_tests(tree: ast.AST) -> set[str]:
    """The test files that a module imports from."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module or ''}.{alias.name}" for alias in node.names}
    return {name for name in names if re.search(r"(^|[.])test_\w+", name)}


def test_the_version_is_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"version: {version}\n" in citation
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")
