"""What a heatmap and a temperature widget show at first, and in whose words."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from attnbook.web import AttentionHeatmap, SoftmaxTemperature

MAPS = np.eye(3)[[[[0, 1], [2, 0]], [[1, 1], [0, 2]], [[2, 0], [1, 1]]]]  # [layer step query key]
AXES = [("layer", ["1", "2", "3"]), ("step", ["0", "600"])]


def heatmap(**options: Any) -> AttentionHeatmap:
    return AttentionHeatmap(MAPS, ["q", "r"], ["a", "b", "c"], axes=AXES, **options)


def test_a_map_opens_where_it_is_told() -> None:
    widget = heatmap(index=[2, 1], query=1, key=2, ordered=["step"], weight_label="share")
    assert (widget.index, widget.query, widget.key, widget.ordered) == ([2, 1], 1, 2, ["step"])
    (shown,) = widget.shown()
    assert np.array_equal(shown, MAPS[2, 1])
    state = heatmap().get_state()
    assert [state[name] for name in ("index", "query", "ordered", "compare")] == [
        [0, 0],
        -1,
        [],
        "",
    ]


def test_two_positions_of_an_axis() -> None:
    widget = heatmap(compare="layer", against=2, index=[1, 1])
    assert np.array_equal(widget.shown(), MAPS[[1, 2], 1])
    assert widget.called() == ["layer 2", "layer 3"]
    before = widget.png()
    widget.against = 0
    assert np.array_equal(widget.shown(), MAPS[[1, 0], 1])
    then, now = (np.array(Image.open(io.BytesIO(png))) for png in (before, widget.png()))
    assert not np.array_equal(then, now)
    with pytest.raises(ValueError, match=r"against must be 0\.\.2, not 3"):
        widget.against = 3
    assert heatmap(compare="step").against == 1 and heatmap().against == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"ordered": ["steps"]}, r"ordered must name one of the axes \['layer', 'step'\]"),
        ({"ordered": "step"}, "ordered must be a list"),
        ({"compare": "head"}, "compare must name one of the axes"),
        ({"compare": "layer", "against": 3}, r"against must be 0\.\.2, not 3"),
        ({"compare": "layer", "other": MAPS[0, 0]}, "compare and other are two ways"),
        ({"index": [3, 0]}, "index must hold one position below each"),
        ({"query": 2}, r"query must be -1 \(none\) or 0\.\.1, not 2"),
    ],
)
def test_a_map_refuses_what_it_cannot_open(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        heatmap(**options)


def test_the_temperature_widget_in_other_words() -> None:
    options: dict[str, Any] = {
        "contexts": ["16", "64"],
        "context": 1,
        "temperature": 8,
        "greedy": False,
    }
    words: dict[str, Any] = {
        "share_label": "weight",
        "temperature_label": "divisor",
        "context_label": "d_k",
    }
    widget = SoftmaxTemperature([[1, 2], [4, 9]], ["a", "b"], hottest=64, **options, **words)
    assert widget.row().tolist() == [4, 9]
    assert repr(widget) == "SoftmaxTemperature(2 labels, 2 contexts, divisor 8)"
    assert {name: widget.get_state()[name] for name in words} == words
    for hottest in (1, 101, float("nan")):
        with pytest.raises(ValueError, match="hottest must be above 1 and at most 100"):
            SoftmaxTemperature([1, 2], ["a", "b"], hottest=hottest)
    with pytest.raises(ValueError, match=r"context must be 0\.\.1, not 2"):
        SoftmaxTemperature([[1, 2], [4, 9]], ["a", "b"], **{**options, "context": 2})


def test_a_second_map_comes_one_way_only() -> None:
    widget = heatmap(compare="layer", against=2)
    with pytest.raises(ValueError, match=r"against must be 0\.\.1, not 2"):
        widget.compare = "step"
    with pytest.raises(ValueError, match="compare and other are two ways"):
        widget.other = MAPS[0, 0]
    twice = [("head", ["1", "2", "3"]), ("head", ["0", "600"])]
    with pytest.raises(ValueError, match="compare must name one axis, not each of 2"):
        AttentionHeatmap(MAPS, ["q", "r"], ["a", "b", "c"], axes=twice, compare="head")
