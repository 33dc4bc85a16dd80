import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attnbook.learn import tables
from attnbook.learn.tables import Experiment
from tools import again
from tools.notebooks import ROOT

SCRIPTS = sorted(p.stem for p in (ROOT / "book" / "experiments").glob("*.csv"))
WIDTHS = [{"width": width, "seed": seed} for width in (32, 64) for seed in range(3)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "folder", lambda: tmp_path)
    return tmp_path


def learn(width: int, seed: int) -> list[dict]:
    """Two rows a run, which seeds move by hundredths."""
    return [{"digits": n, "exact": np.float64(width + seed - 10 * n) / 100} for n in (1, 2)]


def experiment(run=learn, settings=WIDTHS, **more) -> Experiment:
    return Experiment("widths", settings, run, ("exact",), **more)


def test_a_table_comes_back_with_its_types_and_its_making(folder):
    experiment(rates="0.01 0.03").store()
    table = tables.load("widths")
    assert table["exact"][table["seed"] == 2].round(2).tolist() == [0.24, 0.14, 0.56, 0.46]
    head = (folder / "widths.csv").read_text().splitlines()[:9]
    assert head[0] == "# command: make experiments NAME=widths"
    assert {"# seeds: 0 1 2", "# learning rates tried: 0.01 0.03"} <= set(head)
    assert any(line.startswith("# torch ") for line in head)
    assert [path.name for path in folder.iterdir()] == ["widths.csv"]


def test_an_interrupted_experiment_goes_on_and_the_old_table_stays_until_then(folder):
    experiment(settings=WIDTHS[:1]).store()
    before, made = (folder / "widths.csv").read_text(), []

    def run(width, seed):
        made.append((width, seed))
        if len(made) == 4:
            raise RuntimeError("power cut")
        return learn(width, seed)

    with pytest.raises(RuntimeError):
        experiment(run).store()
    assert (folder / "widths.csv").read_text() == before
    with (folder / "widths.csv.partial").open("a") as file:
        file.write('[[{"width": 64, "se')  # half a run
    experiment(run).store()
    assert made == [*((32, 0), (32, 1), (32, 2)), *((64, 0), (64, 0), (64, 1), (64, 2))]
    assert len(tables.load("widths")) == 12


def test_parts_of_two_processes_make_the_table_of_one(folder):
    helper = ROOT / "tests" / "helpers" / "table_in_parts.py"
    command = [sys.executable, str(helper), str(folder)]
    parts = [
        subprocess.Popen(command, env={**os.environ, "ATTNBOOK_PART": part})
        for part in ("1/2", "2/2")
    ]
    assert [each.wait() for each in parts] == [0, 0]
    kept = {path.name: path.read_text().count("\n") - 1 for path in folder.glob("*.partial")}
    assert kept == {"widths.csv.1-of-2.partial": 3, "widths.csv.2-of-2.partial": 3}
    assert not (folder / "widths.csv").exists()

    one = folder / "one"
    one.mkdir()
    for where in (folder, one):
        subprocess.run([*command[:2], str(where)], check=True)
    together, alone = ((where / "widths.csv").read_text() for where in (folder, one))
    assert bare(together) == bare(alone) and "64,2,2,0.46" in together
    assert not list(folder.glob("*.partial"))
    assert (folder / "made").read_text().split() == ["run"] * 6  # each run once


def bare(table: str) -> list[str]:
    """A table without the time that it took."""
    return [line for line in table.splitlines() if not line.startswith("# finished")]


def test_a_part_that_was_killed_is_finished_by_the_run_of_all(folder):
    experiment().store("1/3")
    with pytest.raises(ZeroDivisionError):
        experiment(lambda width, seed: learn(width, seed) if width < 64 else 1 / 0).store("2/3")
    made = []

    def run(**setting):
        made.append(tuple(setting.values()))
        return learn(**setting)

    experiment(run).store()
    assert made == [(32, 2), (64, 1), (64, 2)]
    assert len(tables.load("widths")) == 12


@pytest.mark.parametrize("part", ["3/2", "0/2", "2", "a/b", "1/2/3", "-1/2"])
def test_a_part_that_is_none_is_refused(folder, part):
    with pytest.raises(ValueError, match="part must be K/N with K in 1"):
        experiment().store(part)


def test_columns_may_have_any_name(folder):
    names = ("file", "print", "return", "loss")
    Experiment("names", WIDTHS, lambda **_: [dict.fromkeys(names, 0.5)], ()).store()
    assert tables.load("names").dtype.names == ("width", "seed", *names)
    assert tables.load("names")["file"].tolist() == [0.5] * 6
    assert [path.name for path in folder.iterdir()] == ["names.csv"]


def test_what_was_kept_is_not_lost_when_the_last_step_fails(folder, monkeypatch):
    made = []

    def run(**setting):
        made.append(setting)
        return learn(**setting)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            experiment(run).store()
    experiment(run).store()
    assert made == WIDTHS and len(tables.load("widths")) == 12


@pytest.mark.parametrize("change", ["code", "versions"])
def test_what_other_code_left_is_neither_used_nor_lost(folder, monkeypatch, change):
    partial = folder / "widths.csv.partial"
    with pytest.raises(ZeroDivisionError):
        experiment(lambda width, seed: learn(width, seed) if width < 64 else 1 / 0).store()
    before = partial.read_text()
    new = {"code": ("_digest", lambda _: "other"), "versions": ("_versions", dict)}[change]
    monkeypatch.setattr(tables, *new)
    with pytest.raises(ValueError, match="must be of this code: remove it, or undo changes"):
        experiment().store()
    assert partial.read_text() == before


def test_what_a_script_imports_from_its_folder_is_its_code(tmp_path, monkeypatch):
    script, recipe = tmp_path / "script.py", tmp_path / "recipe.py"
    script.write_text("import recipe")
    recipe.write_text("RATE = 1")
    alone = tables._digest(script)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("recipe")
    with_recipe = tables._digest(script)
    recipe.write_text("RATE = 2")
    assert len({alone, with_recipe, tables._digest(script)}) == 3
    del sys.modules["recipe"]


def test_a_run_made_again_may_differ_as_much_as_seeds_do(folder):
    experiment().store()
    assert experiment().again(WIDTHS[1]) == []
    for change, found in ((0.02, 0), (0.1, 1), (float("nan"), 1)):
        rotten = experiment(
            lambda width, seed, change=change: [
                {**row, "exact": row["exact"] + change * (row["digits"] == 2)}
                for row in learn(width, seed)
            ]
        )
        assert len(rotten.again(WIDTHS[4])) == found
    assert "2 rows are stored, made 1" in experiment(lambda **s: learn(**s)[:1]).again(WIDTHS[0])[0]


def test_one_rare_run_is_chance_and_two_are_not(folder):
    experiment().store()
    for rare, found in (([1, 3], 1), ([1, 5], 1), ([1], 0), ([3, 4, 5], 0)):
        made = experiment(lambda width, seed, rare=rare: learn(width + 50 * (seed in rare), seed))
        assert len(made.again(WIDTHS[1])) == found, rare


def test_where_a_seed_diverged_another_may(folder):
    def run(width, seed):
        return [{"loss": 1.0 + seed / 10 if width == 32 or seed else float("nan")}]

    def again(setting, loss):
        made = Experiment("widths", WIDTHS, lambda **_: [{"loss": loss}], ("loss",))
        return len(made.again(setting))

    Experiment("widths", WIDTHS, run, ("loss",)).store()
    assert again(WIDTHS[3], float("nan")) == again(WIDTHS[3], 1.1) == 0
    assert again(WIDTHS[0], float("nan")) == again(WIDTHS[3], 3.0) == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least one a run, got none"),
        ([{"a": 1}, {"b": 1}], r"columns \['width', 'seed', 'a'\], got \['width', 'seed', 'b'\]"),
        ([{"a": "x,y"}], r"got \['x,y'\]"),
        ([{"learning rate": 1}], r"got \['learning rate'\]"),
        ([{"a.b": 1, "c": "d e"}], r"got \['a.b', 'd e'\]"),
        ([{"seed": 1}], r"not have a column of \['width', 'seed'\], got \['seed'\]"),
    ],
)
def test_rows_that_would_not_come_back_are_refused(folder, rows, message):
    with pytest.raises(ValueError, match=message):
        experiment(lambda **_: rows).store()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "got 0"),
        (WIDTHS[:1] * 2, "each its own, got 2"),
        ([{"a": 1}, {"b": 1}], r"the same names, got \[\('a',\), \('b',\)\]"),
    ],
)
def test_settings_that_do_not_tell_runs_apart_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        experiment(settings=settings)


def test_a_table_that_is_not_stored(folder):
    experiment().store()
    with pytest.raises(FileNotFoundError, match="one of \\['widths'\\], got 'width'"):
        tables.load("width")


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_stored_table_has_the_runs_of_its_script(name):
    """So that each of its rows can be made again."""
    made = again.script(name).EXPERIMENT
    table = tables.load(name)
    columns = list(made.settings[0])
    assert made.name == name and Path(inspect.getfile(made.run)).stem == name
    assert set(made.measured) <= set(table.dtype.names or ())
    stored = {tuple(str(row[column]) for column in columns) for row in table}
    assert stored == {tuple(map(str, setting.values())) for setting in made.settings}
    head = (ROOT / "book" / "experiments" / f"{name}.csv").read_text().splitlines()[:9]
    assert [line.split(":")[0] for line in head[:5]] == [
        *("# command", "# finished", "# script", "# seeds", "# learning rates tried"),
    ]


def test_a_run_of_a_stored_table_is_found_again():
    """The cheapest; `make again` takes one of each table."""
    made = again.script("norms").EXPERIMENT
    assert made.again(made.settings[0]) == []
