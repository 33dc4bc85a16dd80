"""Setting up, finding Chromium, counting tests, and pinning."""

import copy
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from attnbook import assets
from benchmarks.build import touched
from tests.helpers.minibook import write_mini_book
from tools import chromium, firefox, lock, notebooks, site, suite
from tools.notebooks import ROOT

# what is measured


def test_measuring_the_build_does_not_overtake_an_edited_text(tmp_path):
    path, text = tmp_path / "book" / "01_tiny.ipynb", tmp_path / ".text" / "01_tiny.md"
    for file in (path, text):
        file.parent.mkdir()
        file.write_text("edited")
    os.utime(path, (0, 0))
    with touched(path):
        assert not notebooks.behind(path, tmp_path)
    assert notebooks.behind(path, tmp_path)


# Chromium


def program(path: pathlib.Path, status: int) -> str:
    """A program that ends at once."""
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(0o755)
    return str(path)


def test_chromium_takes_the_named_one_first(monkeypatch, tmp_path):
    monkeypatch.setenv("CHROMIUM", program(tmp_path / "mine", 0))
    assert chromium.find() == str(tmp_path / "mine")


def test_chromium_says_that_the_named_one_does_not_start(monkeypatch, tmp_path):
    for path in (program(tmp_path / "broken", 1), str(tmp_path / "missing")):
        monkeypatch.setenv("CHROMIUM", path)
        with pytest.raises(SystemExit, match=f"CHROMIUM={path} does not start"):
            chromium.find()


def test_chromium_passes_over_a_stub(monkeypatch, tmp_path):
    program(tmp_path / "chromium", 1)
    program(tmp_path / "google-chrome", 0)
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert chromium.find() == str(tmp_path / "google-chrome")


def test_chromium_passes_over_a_broken_download(monkeypatch, tmp_path):
    """Playwright's is there, and lacks a library: status 127."""
    download = program(tmp_path / "download", 127)
    playwright = SimpleNamespace(chromium=SimpleNamespace(executable_path=download))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("playwright.sync_api.sync_playwright", lambda: nullcontext(playwright))
    assert chromium.find() is None
    program(tmp_path / "download", 0)
    assert chromium.find() == download


def test_chromium_s_headless_shell_is_taken_first(monkeypatch, tmp_path):
    for name in ("chromium", "chromium-headless-shell"):
        program(tmp_path / name, 0)
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert chromium.find(whole=False) == str(tmp_path / "chromium-headless-shell")
    assert chromium.find(whole=True) == str(tmp_path / "chromium")


@pytest.mark.parametrize("status", [0, 127])
def test_so_is_playwright_s_where_it_starts(monkeypatch, tmp_path, status):
    folders = [tmp_path / "chromium-1234/chrome-linux64"]
    folders += [tmp_path / "chromium_headless_shell-1234/chrome-headless-shell-linux64"]
    for folder in folders:
        folder.mkdir(parents=True)
    whole = program(folders[0] / "chrome", 0)
    shell = program(folders[1] / "chrome-headless-shell", status)
    playwright = SimpleNamespace(chromium=SimpleNamespace(executable_path=whole))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("playwright.sync_api.sync_playwright", lambda: nullcontext(playwright))
    assert chromium.find(whole=False) == (whole if status else shell)
    assert chromium.find(whole=True) == whole


@pytest.mark.parametrize(("missing", "asked"), [(0, 1), (1, 2), (2, 2)])
def test_the_first_of_debian_s_packages_that_there_is(monkeypatch, missing, asked):
    """`missing`: how many of them apt-get does not know."""
    packages, commands = ["chromium-headless-shell", "chromium"], []

    def run(command, **options):
        commands.append(command)
        return SimpleNamespace(returncode=100 if {*packages[:missing]} & {*command} else 0)

    monkeypatch.setattr(chromium, "debian", lambda: True)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(subprocess, "run", run)
    chromium.install(*packages)
    _update, *installed = commands
    assert [command[-2] for command in installed] == packages[:asked]


@pytest.mark.parametrize("whole", [False, True])
def test_what_chromium_is_fetched(monkeypatch, whole):
    fetched = []
    monkeypatch.setattr(chromium, "find", lambda _: "it" if fetched else None)
    monkeypatch.setattr(chromium, "install", lambda *packages: fetched.extend(packages))
    assert chromium.ensure(whole) == "it"
    assert fetched == (["chromium"] if whole else ["chromium-headless-shell", "chromium"])


def test_chromium_says_in_one_line_what_to_install(monkeypatch):
    monkeypatch.setattr(chromium, "find", lambda whole: None)
    monkeypatch.setattr(chromium, "install", lambda *packages: None)
    with pytest.raises(SystemExit) as stop:
        chromium.ensure()
    assert "apt-get install chromium" in str(stop.value)
    assert "\n" not in str(stop.value)


@pytest.mark.parametrize(
    ("debian", "user", "called"),
    [(True, 0, "apt-get"), (True, 7, "playwright"), (False, 0, "playwright")],
)
@pytest.mark.parametrize("names", [("chromium", "chromium"), ("firefox-esr", "firefox")])
def test_a_browser_comes_from_debian_or_from_playwright(monkeypatch, debian, user, called, names):
    commands = []

    def run(command, **options):
        commands.append(command)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(chromium, "debian", lambda: debian)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(subprocess, "run", run)
    chromium.install(names[0], playwrights=names[1])
    assert commands and all(called in command for command in commands)
    assert names[called == "playwright"] in commands[-1]


def told(path: pathlib.Path, version: str) -> str:
    """A program that tells its version."""
    path.write_text(f"#!/bin/sh\necho Mozilla Firefox {version}\n")
    path.chmod(0o755)
    return str(path)


def test_firefox_is_new_enough_to_be_driven(monkeypatch, tmp_path):
    told(tmp_path / "firefox-esr", "140.12.0esr")
    monkeypatch.delenv("FIREFOX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert firefox.find() is None
    assert told(tmp_path / "firefox", "153.7.0esr") == firefox.find()


def test_firefox_says_that_the_named_one_does_not_do(monkeypatch, tmp_path):
    for path in (told(tmp_path / "old", "128.0"), program(tmp_path / "stub", 0)):
        monkeypatch.setenv("FIREFOX", path)
        with pytest.raises(SystemExit, match=f"FIREFOX={path} does not start"):
            firefox.find()


def test_firefox_says_in_one_line_what_to_install(monkeypatch):
    for name, gives in {"find": None, "install": None, "playwrights": False}.items():
        monkeypatch.setattr(firefox, name, lambda *names, gives=gives, **more: gives)
    with pytest.raises(SystemExit) as stop:
        firefox.ensure()
    assert "apt-get install firefox-esr" in str(stop.value) and "\n" not in str(stop.value)


@pytest.mark.parametrize(
    ("stage", "setting"),
    [
        ("firefox", "ATTNBOOK_BROWSER=firefox"),
        ("drawn late", "ATTNBOOK_SLOW=200"),
        ("asked late", "ATTNBOOK_LATE=300"),
        ("answered late", "ATTNBOOK_BUSY=60"),
    ],
)
def test_pages_meet_other_browsers_in_test_all_alone(stage, setting):
    assert stage not in suite.stages()
    assert setting in suite.stages(full=True)[stage] and stage in suite.LONG_STAGES


def test_the_suite_runs_with_an_instruction_set(monkeypatch):
    monkeypatch.delenv("ATTNBOOK_KIND", raising=False)
    assert suite.instructions() == {}
    monkeypatch.setenv("ATTNBOOK_KIND", "default")
    asks = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    environment = {**os.environ, **suite.instructions()}
    said = subprocess.run(
        [sys.executable, "-c", asks], env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout == "DEFAULT\n"
    monkeypatch.setenv("ATTNBOOK_KIND", "avx3")
    with pytest.raises(SystemExit, match="one of default, avx2, avx512, got avx3"):
        suite.instructions()


def test_the_suite_names_what_failed(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.test_a" name="test_one"/>'
        '<testcase classname="tests.test_a" name="test_two">'
        '<failure message="assert 1 == 2&#10; + where 2"/></testcase>'
        '<testcase classname="tests.test_b" name="test_three"><error message="no site"/></testcase>'
        '<testcase classname="tests.test_b" name="test_four"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    assert suite.count(report) == {"passed": 1, "failed": 2, "skipped": 1}
    assert suite.failed(report) == [
        "tests.test_a::test_two: assert 1 == 2",
        "tests.test_b::test_three: no site",
    ]


# environment


def run_environment(folder: pathlib.Path, prelude: str) -> subprocess.CompletedProcess[str]:
    """Run tools/environment.py of an empty checkout, after a line that changes the machine."""
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "environment.py", folder / "tools")
    program = f"""
import runpy, shutil, subprocess, sys
sys.argv = ["environment.py", "book"]
{prelude}
runpy.run_path({str(folder / "tools" / "environment.py")!r}, run_name="__main__")
"""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("prelude", "said"),
    [
        ("sys.version_info = (3, 8, 1); shutil.which = lambda name: None", "install python3.11"),
        ("subprocess.call = lambda *a, **k: 1", "install python3-venv"),
    ],
)
def test_a_missing_python_gets_one_line(tmp_path, prelude, said):
    done = run_environment(tmp_path, prelude)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("state", ["no pip", "old", "whole"])
def test_a_half_made_environment_is_made_anew(tmp_path, state):
    venv = tmp_path / ".venv"
    if state == "no pip":
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    else:
        (venv / "bin").mkdir(parents=True)
        program(venv / "bin" / "python", int(state == "old"))
    (venv / "mark").touch()
    # Only what would install something is left out.
    prelude = """call = subprocess.call
subprocess.call = lambda command, **options: 0 if "install" in command else call(command, **options)
"""
    done = run_environment(tmp_path, prelude)
    assert done.returncode == 0, done.stderr
    assert (venv / "mark").exists() == (state == "whole")
    assert (venv / ".book").exists()
    subprocess.run([venv / "bin" / "python", "-m", "pip", "--version"], check=True)


def test_an_old_python_can_read_what_it_runs():
    source = (ROOT / "tools" / "environment.py").read_text()
    compile(source, "environment.py", "exec", dont_inherit=True)
    import ast

    ast.parse(source, feature_version=(3, 5))


# pins


def test_pins_drop_what_is_not_a_pin():
    frozen = "torch==2.13.0+cpu\n-e git+x\nattnbook==0.1.0\nwheel==1\nBabel==2\nanyio==4\n"
    pins = [line for line in lock.pins(frozen).splitlines() if not line.startswith("#")]
    assert pins == ["anyio==4", "Babel==2", "torch==2.13.0"]


def test_every_dependency_is_pinned():
    import tomllib

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pinned = {}
    for requirement in (Requirement(s) for s in lines if not s.startswith("#")):
        (version,) = requirement.specifier
        assert version.operator == "=="
        pinned[canonicalize_name(requirement.name)] = version.version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"]
    for extra in project["project"]["optional-dependencies"].values():
        wanted = [*wanted, *extra]
    for group in project["dependency-groups"].values():
        wanted = [*wanted, *group]
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        assert requirement.specifier.contains(pinned[name], prereleases=True), name


# the package as others get it


def test_the_wheel_made_from_the_sdist_has_every_table(tmp_path):
    checkout, dist, unpacked = tmp_path / "checkout", tmp_path / "dist", tmp_path / "unpacked"
    for part in ("src", "book/experiments"):
        shutil.copytree(ROOT / part, checkout / part)
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copy(ROOT / name, checkout)
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(dist), "-t"]
    subprocess.run([*build, "sdist"], cwd=checkout, check=True)
    (sdist,) = dist.glob("*.tar.gz")
    safe: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # not before 3.11.4
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, **safe)
    (source,) = unpacked.iterdir()
    subprocess.run([*build, "wheel"], cwd=source, check=True)
    (wheel,) = dist.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    tables = {path.name for path in (ROOT / "book" / "experiments").glob("*.csv")}
    assert tables
    assert {name for name in names if "/table_files/" in name} == {
        f"attnbook/table_files/{name}" for name in tables
    }
    package = ROOT / "src"
    files = (package / "attnbook").rglob("*.*")
    code = {str(path.relative_to(package)) for path in files if path.is_file()}
    assert {name for name in code if "__pycache__" not in name} <= names


# the build of the site


def test_the_build_is_strict_and_fails_again(tmp_path, monkeypatch, capfd):
    """A second build reads no page anew: what the first one saw must not be forgotten."""
    write_mini_book(tmp_path, {"index.md": "# A\n\n{py:func}`one`, {py:func}`two`.\n"})
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("BOOK_REPOSITORY_URL", "")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["site"])
    monkeypatch.setenv("ATTNBOOK_CACHE", str(tmp_path / "empty"))
    monkeypatch.delenv("MODEL", raising=False)
    for _ in range(2):
        with pytest.raises(SystemExit, match="problems"):
            site.main()
        said = "".join(capfd.readouterr())
        assert "reference target not found: one" in said
        assert "reference target not found: two" in said
        assert "Without SmolLM2, which chapters 10 and 11 run in the page" in said


def test_the_model_is_taken_from_the_cache_or_fetched(tmp_path, monkeypatch):
    (tmp_path / "model.gguf").touch()
    monkeypatch.setattr(sys, "path", [*sys.path])
    for variable, way in (("", "cached"), ("1", "fetch")):
        with monkeypatch.context() as patch:
            patch.setenv("MODEL", variable)
            for name in ("cached", "fetch"):
                found = (lambda asset: tmp_path) if name == way else None
                patch.setattr(assets, name, found)
            assert site.model() == str(tmp_path / "model.gguf")


# nbval, which judges the chapters: a wrong number fails, an address is no number


def test_nbval_compares_what_is_stored(tmp_path):
    stored = {
        "print(6 * 7)": "42\n",
        "print(6 + 7)": "14\n",
        "print('<x at 0x7f0011aabb>')": "<x at 0x55ee22ccdd>\n",
    }
    nb = new_notebook(metadata={"kernelspec": copy.copy(notebooks.KERNEL)})
    for count, (source, text) in enumerate(stored.items(), start=1):
        output = nbformat.v4.new_output("stream", name="stdout", text=text)
        nb.cells.append(new_code_cell(source, outputs=[output], execution_count=count))
    notebooks.write(tmp_path / "tiny.ipynb", nb)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *suite.NBVAL]
    done = subprocess.run(
        [*command, "tiny.ipynb"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    verdicts = re.findall(r"^(PASSED|FAILED) tiny.ipynb::Cell (\d)", done.stdout, re.MULTILINE)
    assert sorted(verdicts, key=lambda verdict: verdict[1]) == [
        ("PASSED", "0"),
        ("FAILED", "1"),
        ("PASSED", "2"),
    ], done.stdout
