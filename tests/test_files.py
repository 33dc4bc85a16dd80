import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attnbook.files import FORGOTTEN, whole


def test_writers_of_the_same_file_have_places_of_their_own(tmp_path: Path) -> None:
    """The first to begin is the last to end, and stays."""
    path = tmp_path / "new" / "a.txt"
    with whole(path) as first:
        first.write_text("first, half ")
        with whole(path) as second:
            second.write_text("second")
        assert path.read_text() == "second" and first != second
        with first.open("a") as file:
            file.write("and whole")
    assert path.read_text() == "first, half and whole"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_many_write_at_once_is_one_of_theirs(tmp_path: Path) -> None:
    def write(i: int) -> None:
        with whole(tmp_path / "a") as partial:
            partial.write_text(f"{i} " * 10_000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    assert len(set((tmp_path / "a").read_text().split())) == 1
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("kind", ["file", "folder", "nothing"])
def test_what_is_half_written_is_removed(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a").write_text("before")

    def stopped() -> None:
        with whole(tmp_path / "a") as partial:
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
    with whole(tmp_path / "a") as partial:
        partial.mkdir()
        (partial / "b").write_text("b")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a" / "b").read_text() == "b"


def test_what_a_killed_writer_left_is_removed_a_day_later(tmp_path: Path) -> None:
    with whole(tmp_path / "a") as partial:
        partial.write_text("a")
    lefts = [partial, partial.with_name(partial.name.replace("a.", "b.", 1))]
    mine = tmp_path / "film.partial"
    for age, stays in ((FORGOTTEN - 100, True), (FORGOTTEN + 100, False)):
        for path in (*lefts, mine):
            path.write_text("half")
            os.utime(path, (time.time() - age, time.time() - age))
        with whole(tmp_path / "a") as partial:
            partial.write_text("a")
        assert [path.exists() for path in lefts] == 2 * [stays] and mine.exists()
