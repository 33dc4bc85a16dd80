"""The rooms of the package: modules import downwards, and few arrows cross a room's wall."""

import shutil
from graphlib import CycleError

import pytest

from tools.house import ORDER, PACKAGE, arrows, floors, upward
from tools.notebooks import ROOT


def test_every_room_is_in_the_order():
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py"}
    folders = {path.parent.relative_to(PACKAGE).parts[0] for path in PACKAGE.glob("*/**/*.py")}
    assert found - {"__init__"} | folders == set(ORDER) and len(ORDER) == len(set(ORDER))
    assert len(folders) <= 8


def test_no_import_runs_up_or_in_a_circle():
    pairs = arrows()
    assert not upward(pairs)
    assert set(floors(pairs)) == set(ORDER)
    assert len(pairs) <= 80


def test_the_design_tells_todays_counts():
    pairs, height = arrows(), floors(arrows())
    counts = len(height), len(pairs), pairs.total(), max(height.values()) + 1
    row = f"| now | {' | '.join(map(str, counts))} |"
    assert row in (ROOT / "DESIGN.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("text/tasks.py", "def late():\n    from attnbook.model.masks import causal_mask"),
        ("model/masks.py", "import attnbook.learn.loop"),
        ("files.py", "from attnbook import assets"),
    ],
)
def test_a_planted_import_is_found(tmp_path, path, line):
    package = tmp_path / "attnbook"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("*.[!p]*"))
    with (package / path).open("a") as file:
        file.write(f"\n{line}\n")
    pairs = arrows(package)
    assert len(upward(pairs)) == 1
    with pytest.raises(CycleError):
        floors(pairs)
    (package / path).write_text("from . import masks\n")
    with pytest.raises(ValueError, match="name the package"):
        arrows(package)
