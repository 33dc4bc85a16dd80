"""A notebook that leaves the site installs the code it was built with."""

import hashlib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import nbformat
import pytest

from tests.helpers.files import listed
from tests.helpers.minibook import ADDRESS as REPOSITORY
from tests.helpers.minibook import PUBLISHED as SITE
from tests.helpers.minibook import ROOT, build_book, write_mini_book
from tools import branch, checks, door, notebooks, opened

WHEEL = f"attnbook-{checks.project()['version']}-py3-none-any.whl"
SDIST = f"attnbook-{checks.project()['version']}.tar.gz"
COLAB = "colab.research.google.com/github/someone/a-fork/blob/notebooks/chapter.ipynb"


@pytest.fixture
def site_door(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "book/_ext"))
    return importlib.import_module("attnbook_site.door")


def run(line: str, *said: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program's answer, which must be no error."""
    command, every = [*line.split(), *said], {**os.environ, **environment}
    done = subprocess.run(command, cwd=cwd, env=every, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


# The site


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small book of one chapter and one assignment."""
    folder = tmp_path_factory.mktemp("door")
    repository = notebooks.load(ROOT / "book/_ext/attnbook_site/door.py")
    cell = nbformat.v4.new_code_cell(repository.neutral("[pretrained]"))
    heading = nbformat.v4.new_markdown_cell("# A chapter")
    chapter = nbformat.v4.new_notebook(cells=[heading, cell])
    chapter.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    chapter.metadata["language_info"] = {"name": "python"}
    work = (ROOT / "book/assignments/a1.ipynb").read_text("utf-8")
    pages = {
        "index.md": "# A book\n\nText.\n",
        "chapter.ipynb": nbformat.writes(chapter),
        "work.ipynb": re.sub(r"\]\([^)]*\)|\{(doc|ref|cite)\}`[^`]*`", "]", work),
    }
    write_mini_book(folder, pages)
    return folder


@pytest.fixture(scope="module")
def built(book: Path) -> Path:
    """The small book as it is published."""
    done = build_book(book, book, REPOSITORY, SITE)
    assert done.returncode == 0, done.stdout[-5000:]
    return book / "_build/html"


def wheel(html: Path, ending: str = "whl") -> str:
    """The address of the site's only wheel, or sdist."""
    (path,) = (html / "_static/dist").rglob(f"*.{ending}")
    return path.relative_to(html).as_posix()


def first_cell(html: Path, name: str) -> nbformat.NotebookNode:
    return notebooks.code_cells(notebooks.read(html / "_sources" / f"{name}.ipynb"))[0]


def test_a_published_notebook_installs_the_sites_wheel(built: Path) -> None:
    source = f"{SITE}/{wheel(built)}"
    assert (
        f'%pip install -q "attnbook[pretrained] @ {source}"' in first_cell(built, "chapter").source
    )
    work = first_cell(built, "work")
    assert f'%pip install -q "attnbook @ {source}"' in work.source
    assert work.source.endswith("from attnbook.teach import a1")
    assert work.metadata.nbgrader.locked and "checksum" not in work.metadata.nbgrader
    assert wheel(built).endswith(f"/{WHEEL}")


def test_what_a_published_page_offers(built: Path) -> None:
    page = (built / "chapter.html").read_text("utf8")
    assert COLAB in page
    assert f'href="{wheel(built)}"' in page and 'href="_sources/chapter.ipynb"' in page
    assert f'href="{wheel(built, "tar.gz")}"' in page
    assert f'<link rel="canonical" href="{SITE}/chapter.html"' in page
    assert WHEEL not in (built / "index.html").read_text("utf8")  # no notebook, nothing to install


def test_another_address_reaches_notebooks_that_are_built_already(built: Path, book: Path) -> None:
    """And with none the cell says what to install, and no button opens what would fail."""
    done = build_book(book, book / "again")
    assert done.returncode == 0, done.stdout[-5000:]
    html = book / "again/_build/html"
    assert f'"{WHEEL}[pretrained]"' in first_cell(html, "chapter").source
    page = (html / "chapter.html").read_text("utf8")
    assert not re.search("colab|mybinder|canonical", page)
    assert f'href="{wheel(html)}"' in page
    done = build_book(book, book / "again", "", SITE + "2/")
    assert done.returncode == 0, done.stdout[-5000:]
    assert f"{SITE}2/{wheel(html)}" in first_cell(html, "chapter").source
    assert "colab" not in (html / "chapter.html").read_text("utf8")  # no repository to open


@pytest.mark.parametrize("address", ["someone.github.io", 'https://x"; import os', "https://a b"])
def test_a_site_without_an_address_that_installs_is_refused(book: Path, address: str) -> None:
    done = build_book(book, book / "refused", "", address)
    assert done.returncode != 0
    assert "it should look like https://you.github.io/book" in done.stdout


@pytest.mark.parametrize(
    ("site", "repository", "known", "source", "buttons"),
    [
        (SITE, REPOSITORY, None, f"{SITE}/_static/dist/{WHEEL}", True),
        ("", REPOSITORY, "abc", f"git+{REPOSITORY}@abc", True),
        ("", REPOSITORY, None, "", False),
        ("", "", "abc", "", False),
        (SITE, "", "abc", f"{SITE}/_static/dist/{WHEEL}", False),
        (SITE, "https://gitlab.com/a/b", None, f"{SITE}/_static/dist/{WHEEL}", False),
    ],
)
def test_where_the_code_comes_from(
    site_door: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    site: str,
    repository: str,
    known: str | None,
    source: str,
    buttons: bool,
) -> None:
    options: dict[str, Any] = {"repository_url": repository}
    config = SimpleNamespace(html_baseurl="", html_theme_options=options)
    monkeypatch.setenv("BOOK_SITE_URL", site)
    monkeypatch.setattr(site_door, "build", lambda folder: (WHEEL, "x.tar.gz"))
    monkeypatch.setattr(site_door, "commit", lambda: known)
    for follows in ("1", ""):  # whether somebody keeps the branch that buttons open
        options["launch_buttons"] = {"colab_url": "x"}
        monkeypatch.setenv("BOOK_BUTTONS", follows)
        site_door.configure(SimpleNamespace(outdir=tmp_path), config)
        assert config.attnbook_source == source
        assert bool(options["launch_buttons"]) == (buttons and bool(follows))


# First cells


@pytest.mark.parametrize("source", [f"{SITE}/x.whl", ""])
@pytest.mark.parametrize("extra", ["", "[pretrained]", "[bertviz,pretrained]"])
def test_a_first_cell_does_nothing_where_the_package_is(
    site_door: ModuleType, source: str, extra: str
) -> None:
    cell = site_door.handed_out(site_door.neutral(extra), source, WHEEL)
    assert 'python -m pip install ".' not in cell
    assert all(name in cell for name in re.findall(r"\w+", extra))
    called = []
    code = notebooks.parse(cell)
    names = {"get_ipython": lambda: called.append(True)}
    exec(compile(code, "cell", "exec"), names)
    assert names["attnbook"] is sys.modules["attnbook"] and not called


@pytest.mark.parametrize("source", [f"{SITE}/x.whl", ""])
@pytest.mark.parametrize("extra", ["", "[pretrained]", "[bertviz,pretrained]"])
def test_a_first_cell_where_the_package_is_missing(
    site_door: ModuleType, monkeypatch: pytest.MonkeyPatch, source: str, extra: str
) -> None:
    cell = site_door.handed_out(site_door.neutral(extra), source, WHEEL)
    monkeypatch.setitem(sys.modules, "attnbook", None)  # an import of it fails
    called = []

    class Shell:
        def run_line_magic(self, *said: str) -> None:
            called.append(said)

    with pytest.raises(ImportError) as failed:
        exec(compile(notebooks.parse(cell), "cell", "exec"), {"get_ipython": Shell})
    if source:
        others = extra.replace("bertviz,", "")
        asked = [f'install -q "attnbook{others} @ {source}"']
        asked += ["install -q --no-deps bertviz"] * ("bertviz" in extra)
        assert called == [("pip", each) for each in asked]
    else:
        assert not called
        assert f'python -m pip install "{WHEEL}{extra}"' in str(failed.value)


@pytest.mark.parametrize("extra", ["", "[pretrained]", "[bertviz,pretrained]"])
def test_a_first_cell_asks_for_its_extra(
    site_door: ModuleType, monkeypatch: pytest.MonkeyPatch, extra: str
) -> None:
    """Another chapter may have installed the package without it."""
    monkeypatch.setitem(sys.modules, site_door.PROBE["[pretrained]"].strip(", "), None)
    cell, called = site_door.handed_out(site_door.neutral(extra), f"{SITE}/x.whl", WHEEL), []
    shell = SimpleNamespace(run_line_magic=lambda *said: called.append(said))
    with pytest.raises(ImportError) if extra else nullcontext():
        exec(compile(notebooks.parse(cell), "cell", "exec"), {"get_ipython": lambda: shell})
    assert bool(called) == bool(extra)


def test_every_notebook_begins_with_the_neutral_line() -> None:
    found = {path.name: checks.first_line(notebooks.read(path)) for path in notebooks.every()}
    assert not any(found.values()), found


@pytest.mark.parametrize(
    ("extra", "imports", "fine"),
    [
        ("", "import torch", True),
        ("[pretrained]", "import torch", True),
        ("[pretrained]", "import transformers.models", True),
        ("[pretrained]", "from attnbook.weights import minilm", True),
        ("", "from bertviz import head_view", False),
        ("[pretrained]", "from bertviz import head_view", False),
        ("[bertviz,pretrained]", "from bertviz import head_view", True),
        ("[bertviz,pretrained]", "import gguf", False),
        ("", "from attnbook.weights import minilm", False),
        ("", "from attnbook import weights", False),
        ("", "from attnbook.weights.pretrained import minilm", False),
        ("", "import attnbook.weights.pretrained", False),
        ("[pretraned]", "import gguf", False),
    ],
)
def test_a_notebook_names_the_extra_that_it_imports(
    site_door: ModuleType, extra: str, imports: str, fine: bool
) -> None:
    cells = map(nbformat.v4.new_code_cell, (site_door.neutral(extra), f"{imports}\nx = 1"))
    assert (checks.first_line(nbformat.v4.new_notebook(cells=list(cells))) == []) == fine


# The wheel and the commit


def test_the_same_code_gives_the_same_wheel_and_sdist(
    site_door: ModuleType, tmp_path: Path
) -> None:
    made = list[tuple[str, str]]()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "attnbook-0.0.9-py3-none-any.whl").touch()
    for folder in ("one", "two"):
        made.append(site_door.build(tmp_path / folder))
        os.utime(ROOT / "src/attnbook/__init__.py")
    assert made[0] == made[1]
    for place, name in zip(made[0], (WHEEL, SDIST), strict=True):
        one, two = ((tmp_path / folder / place).read_bytes() for folder in ("one", "two"))
        digest = hashlib.sha256(one).hexdigest()[:12]
        assert one == two and place == f"{digest}/{name}"
    assert [path.name for path in (tmp_path / "one").rglob("*.whl")] == [WHEEL]
    names = set(zipfile.ZipFile(tmp_path / "one" / made[0][0]).namelist())
    inside = {name for name in listed() if name.startswith("src/attnbook/")}
    assert {name.removeprefix("src/") for name in inside} <= names
    assert not {name for name in names if "solutions" in name or name.startswith("tests")}


def test_the_sdist_makes_the_same_wheel(
    site_door: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wheel, sdist = site_door.build(tmp_path / "here")
    (tmp_path / "there").mkdir()
    run(f"tar -xzf ../here/{sdist}", cwd=tmp_path / "there")
    monkeypatch.setattr(site_door, "ROOT", tmp_path / "there" / SDIST.removesuffix(".tar.gz"))
    assert site_door.build(tmp_path / "again")[0] == wheel


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone, one commit long, and the repository that it is a clone of."""
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_COMMITTER_NAME": "a"}
    identity |= {"GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_EMAIL": "a@b"}
    run("git init -q --bare upstream", cwd=tmp_path)
    run("git clone -q upstream clone", cwd=tmp_path)
    (tmp_path / "clone" / "file").write_text("1")
    run("git add file", cwd=tmp_path / "clone")
    run("git commit -q -m one", cwd=tmp_path / "clone", **identity)
    return tmp_path / "clone"


def test_a_commit_is_named_where_others_have_it(site_door: ModuleType, clone: Path) -> None:
    assert site_door.commit(clone) is None  # not pushed
    run("git push -q origin HEAD:main", cwd=clone)
    head = run("git rev-parse HEAD", cwd=clone).stdout.strip()
    assert site_door.commit(clone) == head
    (clone / "folder").mkdir()
    assert site_door.commit(clone / "folder") is None  # of another repository
    (clone / "file").write_text("2")
    assert site_door.commit(clone) is None  # not what stands here
    assert site_door.commit(clone.parent) is None  # no repository


def test_the_branch_holds_the_notebooks_and_what_binder_installs(
    built: Path, clone: Path, tmp_path: Path
) -> None:
    head, files = run("git rev-parse HEAD", cwd=clone).stdout, (clone / "file").read_text()
    for turn in ("one", "two"):
        (tmp_path / turn).mkdir()
        branch.lay_out(built, ROOT, tmp_path / turn)
        branch.push(tmp_path / turn, "notebooks", clone)
    assert run("git rev-parse HEAD", cwd=clone).stdout == head
    assert run("git status --porcelain", cwd=clone).stdout == "" and files == "1"
    run("git clone -q -b notebooks upstream branch", cwd=tmp_path)
    there = tmp_path / "branch"
    assert run("git rev-list --count HEAD", cwd=there).stdout.strip() == "1"
    for name in ("chapter", "work"):
        text = (built / "_sources" / f"{name}.ipynb").read_text("utf-8")
        assert (there / f"{name}.ipynb").read_text("utf-8") == text
    asks = (there / "binder/requirements.txt").read_text("utf-8")
    assert f"\nattnbook[bertviz,pretrained] @ {SITE}/{wheel(built)}\n" in asks
    constraints = re.search(r"(?m)^-c (.*)$", asks)
    assert constraints and (there / "binder" / constraints[1]).is_file()
    assert head.strip() in (there / "README.md").read_text("utf-8")


def test_no_branch_whose_first_cells_fail(book: Path, tmp_path: Path) -> None:
    html = tmp_path / "_sources"
    html.mkdir()
    shutil.copy(book / "chapter.ipynb", html)
    with pytest.raises(SystemExit, match="set BOOK_SITE_URL"):
        branch.lay_out(tmp_path, ROOT, tmp_path)


# `make door`


def test_the_door_downloads_what_the_button_offers(built: Path) -> None:
    with door.served(built) as address:
        page = f"{address}/chapter.html"
        nb, other = door.download(page), door.download(page, sdist=True)
        sdist = f"{address}/{wheel(built, 'tar.gz')}"
    first = first_cell(built, "chapter").source
    assert notebooks.code_cells(nb)[0].source == first
    assert notebooks.code_cells(other)[0].source == first.replace(f"{SITE}/{wheel(built)}", sdist)


def test_another_environment_sees_nothing_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = []

    def call(self: door.Elsewhere, *said: str) -> str:
        commands.append(said)
        return ""

    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(ROOT / ".venv/bin"), os.environ["PATH"]]))
    monkeypatch.setattr(door.Elsewhere, "call", call)
    elsewhere = door.Elsewhere(tmp_path)
    code = "import sys, importlib.util as u; print(u.find_spec('attnbook'), u.find_spec('torch'))"
    done = subprocess.run(
        [elsewhere.python, "-c", code], env=elsewhere.environment, capture_output=True, text=True
    )
    assert done.stdout == "None None\n"
    assert str(ROOT) not in json.dumps(elsewhere.environment["PATH"])
    assert any(said[:2] == ("pip", "install") for said in commands)


@pytest.fixture
def elsewhere() -> door.Elsewhere:
    """An environment whose lists of packages are given: none is made."""
    found = door.Elsewhere.__new__(door.Elsewhere)
    found.had = {"torch": "2.9.0", "ipython": "7.34.0"}
    return found


def test_a_page_may_replace_nothing_that_was_there(
    elsewhere: door.Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Colab would ask for a new session, and forget what it was told."""
    now = {**elsewhere.had, "attnbook": "0.1.0"}
    monkeypatch.setattr(elsewhere, "versions", lambda: now)
    assert elsewhere.changed() == {}
    now["ipython"] = "9.0.0"
    assert elsewhere.changed() == {"ipython": "9.0.0"}
    del now["torch"]
    assert elsewhere.changed() == {"ipython": "9.0.0", "torch": None}


def test_each_page_installs_the_package_anew_but_where_binder_has(
    elsewhere: door.Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []
    monkeypatch.setattr(elsewhere, "call", lambda *said: called.append(said))
    elsewhere.forget()
    assert [said[:2] for said in called] == [("pip", "uninstall")]
    elsewhere.had["attnbook"] = "0.1.0"
    elsewhere.forget()
    assert len(called) == 1


def test_what_each_place_begins_with(
    built: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TORCH", "2.9.0")
    monkeypatch.setattr(door, "HTML", built)
    assert door.asked_first("plain", tmp_path) == ["torch==2.9.0", "ipykernel"]
    assert door.asked_first("nbclassic", tmp_path) == ["torch==2.9.0", "nbclassic"]
    assert {"torch==2.9.0", "ipython==7.34.0"} <= set(door.asked_first("colab", tmp_path))
    option, file = door.asked_first("binder", tmp_path)
    assert option == "-r" and f"{SITE}/{wheel(built)}" in Path(file).read_text("utf-8")


def test_several_pythons_are_tried_and_one_without_torch_is_told(
    built: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def made(folder: Path, python: str, like: str) -> SimpleNamespace:
        if python == "python3.99":
            raise subprocess.CalledProcessError(1, ["pip", "install", "torch"])
        return SimpleNamespace(python=python, like=like)

    def went(elsewhere: SimpleNamespace, nb: nbformat.NotebookNode, address: str) -> str:
        assert elsewhere.like == "colab" and ".tar.gz" in notebooks.code_cells(nb)[0].source
        return f"by {elsewhere.python}"

    said = "door --python python3.11 --python python3.99 --like colab --sdist"
    monkeypatch.setattr(sys, "argv", said.split())
    monkeypatch.setattr(door, "Elsewhere", made)
    monkeypatch.setattr(door, "tried", went)
    asked = door.arguments()
    with door.served(built) as address:
        monkeypatch.setattr(
            door,
            "offered",
            lambda where, kind, ending: (
                f"{address}/_sources/chapter.ipynb" if kind == "source" else f"{address}/x.tar.gz"
            ),
        )
        counts = [door.visit(python, asked, ["chapter"], address) for python in asked.python]
    out = capsys.readouterr().out
    assert counts == [1, 0]
    assert "by python3.11" in out and "python3.99: no environment" in out


def test_first_cells_end_with_the_first_widget() -> None:
    view = nbformat.v4.new_output("display_data", {notebooks.VIEW: {}})
    text, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    cells = [text(), code(), text(), code(outputs=[view]), code(outputs=[view])]
    assert opened.first_cells(nbformat.v4.new_notebook(cells=cells)) == [1, 3]
    assert opened.first_cells(nbformat.v4.new_notebook(cells=cells[:3])) == []
