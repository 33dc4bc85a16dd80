"""HeadChips: what it keeps, sends and refuses."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from attnbook.web import HeadChips
from tests.helpers.head_chips import HEADS, SIDE, N, options


def test_it_sends_what_it_was_given() -> None:
    given = options()
    chips = HeadChips(**given)
    state = chips.get_state()
    maps = np.frombuffer(state["maps"], "u1").reshape(given["maps"].shape) / 255
    right = np.frombuffer(state["right"], "<u2").reshape(given["right"].shape) / 65535
    assert np.abs(maps - given["maps"]).max() <= 0.5 / 255 + 1e-9
    assert np.abs(right - given["right"]).max() <= 0.5 / 65535 + 1e-9
    assert state["scores"]["after"] == np.round(given["scores"]["after"], 3).tolist()
    assert [state["at"], state["off"], state["mean"]] == [N - 1, [], False]
    assert state["losses"] == [2.75, 2.5, 1.0, 0.5, 0.1235]


def test_each_set_has_its_share() -> None:
    given = options()
    chips = HeadChips(**given)
    for at, off, mean, place in ((1, [], False, 0), (4, [0, 2], True, 5), (0, [2, 1], False, 6)):
        chips.at, chips.off, chips.mean = at, off, mean
        assert chips.share() == given["right"][at, int(mean), place]
    assert chips.off == [1, 2]


def test_the_picture_is_of_what_is_on_view() -> None:
    given = options()
    chips = HeadChips(**given)
    chips.at, chips.off = 2, [1]
    figure = Figure()
    chips.draw(figure)
    images = [np.asarray(panel.images[0].get_array()) for panel in figure.axes if panel.images]
    assert len(images) == HEADS
    assert np.allclose(images[2], given["maps"][2, 2])
    assert images[1].max() < 0.16
    assert [panel.get_title() for panel in figure.axes[:2]] == ["head 1", "head 2 off"]


def test_what_does_not_fit_is_refused() -> None:
    good = options()
    for changes, says in (
        ({"maps": good["maps"][:, :, :, :3]}, r"maps must be .* square"),
        ({"maps": good["maps"][:1]}, "maps must be .* of 2 checkpoints or more"),
        ({"maps": np.ones((N, 9, SIDE, SIDE))}, "maps must be .* 2 to 8 heads"),
        ({"maps": good["maps"] + 1}, r"maps must be in 0\.\.1, not 1"),
        ({"right": good["right"][:, :, 1:]}, r"right must be \(5, 2, 8\) numbers"),
        ({"right": good["right"] * np.nan}, r"right must be in 0\.\.1"),
        ({"steps": [0, 10, 20, 20, 80]}, "steps must be 5 increasing whole numbers"),
        ({"steps": [0, 10]}, "steps must be 5 increasing whole numbers"),
        ({"losses": [1.0]}, r"losses must be \(5,\) numbers, not \(1,\)"),
        ({"losses": [np.inf] * N}, r"losses must be 0 or more, and not all 0, got \[inf"),
        ({"losses": [np.nan] * N}, r"losses must be 0 or more, and not all 0, got \[nan"),
        ({"losses": [0.0] * N}, "losses must be 0 or more, and not all 0"),
        ({"losses": [1.0, 1, 1, 1, -1]}, "losses must be 0 or more"),
        ({"scores": {"before": np.ones((N, 2))}}, r"scores\['before'\] must be \(5, 3\)"),
        ({"scores": {"before": np.full((N, 3), 3.0)}}, r"scores\['before'\] must be in 0\.\.1"),
        ({"scores": {}}, "scores must be numbers by one name or more, not {}"),
    ):
        with pytest.raises(ValueError, match=says):
            HeadChips(**options(**changes))
    chips = HeadChips(**good)
    for trait, value, says in (
        ("at", N, r"at must be 0\.\.4, not 5"),
        ("off", [HEADS], r"off must be of heads 0\.\.2, not \[3\]"),
        ("maps", good["maps"][1:], "maps must keep its shape"),
        ("steps", [5], "steps must stay"),
        ("losses", [1.0], "losses must stay"),
        ("scores", {"z": "nonsense"}, "scores must stay"),
    ):
        with pytest.raises(ValueError, match=says):
            setattr(chips, trait, value)
