import os
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jupyter_server.services.contents.filemanager import FileContentsManager

from attnbook.files import ABANDONED, atomic
from tools.notebooks import ROOT


def test_writers_of_the_same_file_have_places_of_their_own(tmp_path: Path) -> None:
    """The first to begin is the last to end, and stays."""
    path = tmp_path / "new" / "a.txt"
    with atomic(path) as first:
        first.write_text("first, half ")
        with atomic(path) as second:
            second.write_text("second")
        assert path.read_text() == "second" and first != second
        with first.open("a") as file:
            file.write("and whole")
    assert path.read_text() == "first, half and whole"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_many_write_at_once_is_one_of_theirs(tmp_path: Path) -> None:
    def write(i: int) -> None:
        with atomic(tmp_path / "a") as partial:
            partial.write_text(f"{i} " * 10_000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    assert len(set((tmp_path / "a").read_text().split())) == 1
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("kind", ["file", "folder", "nothing"])
def test_what_is_half_written_is_removed(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a").write_text("before")

    def stopped() -> None:
        with atomic(tmp_path / "a") as partial:
            if kind == "file":
                partial.write_text("half")
            elif kind == "folder":
                partial.mkdir()
                (partial / "b").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "before"


def test_a_folder_becomes_whole_at_once(tmp_path: Path) -> None:
    with atomic(tmp_path / "a") as partial:
        partial.mkdir()
        (partial / "b").write_text("b")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a" / "b").read_text() == "b"


def test_what_a_killed_writer_left_is_removed_a_day_later(tmp_path: Path) -> None:
    with atomic(tmp_path / "a") as partial:
        partial.write_text("a")
    lefts = [partial, partial.with_name(partial.name.replace("a.", "b.", 1))]
    mine = tmp_path / "film.partial"
    for age, stays in ((ABANDONED - 100, True), (ABANDONED + 100, False)):
        for path in (*lefts, mine):
            path.write_text("half")
            os.utime(path, (time.time() - age, time.time() - age))
        with atomic(tmp_path / "a") as partial:
            partial.write_text("a")
        assert [path.exists() for path in lefts] == 2 * [stays] and mine.exists()


def test_jupyter_lists_no_file_that_is_being_written(tmp_path: Path) -> None:
    """Its list of a folder answers 404 if a file that it shows goes meanwhile."""
    with atomic(tmp_path / "a.ipynb") as partial:
        partial.write_text("{}")
        listed = FileContentsManager(root_dir=str(tmp_path)).get("")["content"]
    assert listed == [] and partial.parent == tmp_path


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is opened and put on the disk, and what is renamed, in order."""
    seen, opened = [], {}
    really = {"open": os.open, "fsync": os.fsync, "replace": os.replace}

    def note_open(path, *how):
        place = really["open"](path, *how)
        opened[place] = Path(path).name.removeprefix(".").split(".")[0]
        return place

    def note_sync(place):
        seen.append(f"sync {opened[place]}")
        really["fsync"](place)

    def note_replace(a, b):
        seen.append(f"rename {Path(b).name}")
        really["replace"](a, b)

    for name, note in (("open", note_open), ("fsync", note_sync), ("replace", note_replace)):
        monkeypatch.setattr(os, name, note)
    return seen


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, steps: list[str]) -> None:
    """Else a power cut may leave an empty file of that name; then the folder's list follows."""
    with atomic(tmp_path / "place" / "a") as partial:
        partial.write_text("a")
    assert steps == ["sync a", "rename a", "sync place"]
    steps.clear()
    with atomic(tmp_path / "place" / "b") as partial:
        (partial / "deep").mkdir(parents=True)
        (partial / "deep" / "c").write_text("c")
    assert sorted(steps[:3]) == ["sync b", "sync c", "sync deep"]
    assert steps[3:] == ["rename b", "sync place"]


@pytest.mark.parametrize("where", ["open", "fsync"])
def test_a_system_that_cannot_sync_a_folder_writes_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Windows opens no folder, some file systems sync none."""
    really = os.open

    def no_folder(path, *how):
        if where == "open" and os.path.isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        return really(path, *how)

    def no_sync(place):
        if stat.S_ISDIR(os.fstat(place).st_mode):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "open", no_folder)
    monkeypatch.setattr(os, "fsync", no_sync)
    for name in "ab":
        with atomic(tmp_path / name) as partial:
            partial.mkdir()
            (partial / "c").write_text("c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_disk_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(place: int) -> None:
        raise OSError(5, "Input/output error")

    (tmp_path / "a").write_text("before")
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output error"), atomic(tmp_path / "a") as partial:
        partial.write_text("after")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "before"


def test_tools_write_notebooks_by_the_same_code_and_without_torch() -> None:
    where = "n.atomic.__wrapped__.__code__.co_filename"
    code = f"import sys, tools.notebooks as n; print({where}, 'torch' in sys.modules)"
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert done.stdout.split() == [str(ROOT / "src/attnbook/files.py"), "False"], done.stderr


@pytest.mark.parametrize("tool", ["site", "branch", "course"])
def test_the_site_is_built_without_torch(tool: str) -> None:
    """`make book` installs what building needs, and not torch."""
    known = [path for path in sys.path if path.endswith("site-packages")]
    code = f"import sys; sys.path += {[str(ROOT), *known]}; import tools.{tool}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-S", "-c", f"{code}; print('torch' in sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "False", done.stderr
