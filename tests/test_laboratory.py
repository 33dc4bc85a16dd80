"""Laboratory in Python: what it refuses, the runs that it stores, its fallback, its numbers."""

import json
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from attnbook.text.number_words import number_pair
from attnbook.web import Laboratory
from attnbook.web.laboratory.widget import CHOICES
from tests.helpers.laboratory import table


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"task": "fly"}, r"task must be one of \['sort', .*\], not 'fly'"),
        ({"n_layers": 9}, r"n_layers must be one of \[1, 2, 3, 4\], not 9"),
        ({"layers": 2}, "settings must be of task, n_layers, .*, not 'layers'"),
        ({"view": "seconds"}, r"view must be one of \('steps', 'compute', 'size'\), not 'seconds'"),
        ({"optimizer": "lion"}, r"optimizer must be one of \['adamw', .*\], not 'lion'"),
        ({"text": "short"}, "text must have 200 to 20,000 characters, not 5"),
        ({"text": "x" * 20_001}, "text must have 200 to 20,000 characters, not 20,001"),
        ({"text": "a\ud83d" * 200}, "text must be Unicode text; half a character"),
        ({"runs": np.zeros(3, [("task", "U4")])}, "runs must have the columns of the table, not"),
        ({"runs": np.zeros(3)}, "runs must have the columns of the table, not miss"),
    ],
)
def test_what_it_refuses(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Laboratory(**options)


def test_settings_are_whole_and_follow_the_browser() -> None:
    shown = Laboratory(residual=False, lr=0.003)
    assert set(shown.settings) == set(CHOICES) and shown.settings["lr"] == 0.003
    assert shown.settings["residual"] == 0 and not isinstance(shown.settings["residual"], bool)
    shown.set_state({"settings": {**shown.settings, "task": "add"}})
    assert shown.settings["task"] == "add" and json.dumps(shown.get_state("settings"))
    with pytest.raises(ValueError, match="seed must be one of"):
        shown.settings = {"seed": -1}


def test_rows_that_differ_in_their_seed_are_one_run() -> None:
    base = {"positions": "none"}
    rows = table(({"seed": 1}, [0, 0.5]), ({"seed": 2}, [0, 0.7]), ({**base, "seed": 1}, [0, 0.1]))
    first, second = Laboratory(runs=rows).runs
    assert [seed["seed"] for seed in first["seeds"]] == [1, 2] and len(second["seeds"]) == 1
    assert first["seeds"][1]["tests"][1] == {
        "step": 25,
        "loss": pytest.approx(0.3),
        "exact": 0.7,
        "tokens": 0.7,
    }
    assert (first["settings"]["positions"], second["settings"]["positions"]) == ("learned", "none")
    assert len(Laboratory(runs=rows[0]).runs) == 1  # one row


def test_what_a_table_does_not_name_stands_as_the_laboratory_begins() -> None:
    names = ["positions", "seed", "step", "loss", "exact", "tokens"]
    rows = table(({"positions": "none", "seed": 3}, [0, 0.5]))[names]
    (run,) = Laboratory(runs=rows).runs
    assert run["settings"] == Laboratory(positions="none", seed=3).settings


def test_picture_draws_the_stored_runs() -> None:
    rows = table(
        ({"seed": 1}, [0, 0.5]), ({"seed": 2}, [0, 0.7]), ({"positions": "none"}, [0, 0.1])
    )
    shown, figure = Laboratory(runs=rows), Figure()
    shown.draw(figure)
    left, right = figure.axes
    assert [line.get_label() for line in left.lines] == ["as it stands", "positions: none"]
    ends = [line.get_ydata()[-1] for line in right.lines]  # type: ignore[index]
    assert ends == pytest.approx([0.6, 0.1])
    assert [line.get_ydata()[-1] for line in left.lines] == pytest.approx([0.4, 0.9])  # type: ignore[index]
    assert shown.png() == Laboratory(runs=rows).png() and "3 stored runs" in repr(shown)
    plain = Figure()
    Laboratory().draw(plain)
    assert "learning rate: 0.01" in plain.get_supxlabel()


def test_its_number_words_are_the_books() -> None:
    lines = Laboratory().table.split("\n")
    pair = number_pair(42)
    assert len(lines) == 999 and lines[41] == " ".join(pair.source) + "=" + " ".join(pair.target)
    assert len({line.split("=")[0] for line in lines}) == 999
