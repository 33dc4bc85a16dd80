"""AblationMap: what it keeps of its runs, what it refuses, what its picture shows."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from attnbook.show.blocks import PARTS
from attnbook.web import AblationMap
from tests.helpers.widgets import RUNS


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"off": ["gate"]}, "runs[1]: off must be [] or one of embedding, positions, norm"),
        ({"off": ["mask", "heads"]}, "runs[1]: off must be [] or one of"),
        ({"off": []}, "runs[0] must be the whole model's (off: []), and no other"),
        ({"off": ["add"]}, "runs must leave out each part once, not ['add', 'add'"),
        ({"steps": [0, 50]}, "runs[1]: loss must be [step] or [seed, step] for 2 steps, not (2, 3"),
        ({"steps": [0, 50, 50]}, "runs[1]: steps must be two or more increasing numbers"),
        ({"steps": [0]}, "runs[1]: steps must be two or more increasing numbers"),
        ({"loss": [1, np.nan, 1]}, "runs[1]: loss must be numbers of at least 0; NaN or infinity"),
        ({"loss": [1, -1, 1]}, "runs[1]: loss must be numbers of at least 0"),
        ({"loss": [[[1, 2, 3]]]}, "runs[1]: loss must be [step] or [seed, step]"),
        ({"loss": [[1, 2, 3], [1]]}, "runs[1]: loss must be a full array of numbers"),
        ({"exact": [0, 1.01]}, "runs[1]: exact must be a share 0..1 for each seed"),
        ({"exact": []}, "runs[1]: exact must be a share 0..1 for each seed"),
        ({"exact": 0.5}, "runs[1]: exact must be a share 0..1 for each seed"),
        ({"exact": [0, 0, 1]}, "runs[1]: 2 curves of loss for 3 seeds in exact"),
        ({"translations": [["a", "b"]]}, "translations must be [source, output, gold] each"),
        ({"translations": ["abc"]}, "runs[1]: translations must be a list of tokens"),
        ({"translations": [["a", "b", "c"]]}, "runs[1] must translate the same sources as runs[0]"),
        ({"seed": 1}, "runs[1] must be a dict with the keys off, steps, loss, exact, translations"),
    ],
)
def test_it_refuses(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        AblationMap([RUNS[0], {**RUNS[1], **change}, *RUNS[2:]])


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ([], "runs must be a list of dicts, the whole model's first"),
        ("whole", "runs must be a list of dicts"),
        (RUNS[1:], "runs[0] must be the whole model's"),
        ([None], "runs[0] must be a dict with the keys off"),
    ],
)
def test_it_refuses_what_it_cannot_draw(runs: Any, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        AblationMap(runs)


def test_it_keeps_what_it_was_given() -> None:
    exact = {**RUNS[0], "loss": torch.tensor([4.123456, 1, 0.0123456])}
    widget = AblationMap([exact, {**RUNS[1], "off": "mask"}])
    assert [run["off"] for run in widget.runs] == [[], ["mask"]]
    assert widget.runs[0]["loss"] == [[4.123, 1, 0.01235]]
    assert AblationMap(widget.runs).runs == widget.runs  # kept once, kept for good
    assert widget.runs[1]["translations"] == RUNS[1]["translations"]
    long = {**RUNS[0], "steps": range(200_000), "loss": np.full(200_000, 0.125)}
    with pytest.raises(ValueError, match="bytes, more than 1,000,000: give fewer steps"):
        AblationMap([long])


def test_it_follows_the_browser_and_python() -> None:
    widget = AblationMap(RUNS)
    assert widget.parts() == ["mask", "add", "positions"]
    assert widget.run()["exact"] == [1, 0.99]
    widget.set_state({"off": "add"})
    assert widget.run()["exact"] == [0.25]
    for trait, value in (("off", "norm"), ("off", "whole"), ("runs", RUNS[:2])):
        before = getattr(widget, trait)
        with pytest.raises(ValueError, match=f"{trait} must"):
            setattr(widget, trait, value)
        assert getattr(widget, trait) == before
    widget.off = ""
    widget.runs = RUNS[:2]
    assert widget.parts() == ["mask"]


def test_it_pictures_every_run() -> None:
    widget = AblationMap([*RUNS, {**RUNS[1], "off": ["heads"]}])
    widget.off = "mask"
    figure = Figure()
    widget.draw(figure)
    (bars,) = figure.axes
    names = [tick.get_text() for tick in bars.get_yticklabels()]
    assert names == ["whole model", "no mask", "no add", "no positions", "no heads"]
    assert [text.get_text() for text in bars.texts] == ["0.99", "0.06", "0.25", "0.50", "0.06"]
    assert bars.get_title() == "shown: no mask"
    for part in PARTS:
        assert AblationMap([RUNS[0], {**RUNS[1], "off": part}]).parts() == [part]
