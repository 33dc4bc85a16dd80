"""The Transformer as one drawing: which lines there are, and where they end."""

import itertools

import pytest

from attnbook.show import transformer
from attnbook.show.drawing import Box, Part, Stroke
from attnbook.show.picture import Picture

ORDERS = pytest.mark.parametrize("norm", ["pre", "post"])


def boxes(picture: Part, name: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each box of this name, the encoder's first, upwards."""
    found = [(x, y, x + p.width, y + p.height) for x, y, p in parts(picture) if p.name == name]
    return sorted(found, key=lambda box: (box[0] > 180, -box[1]))


def parts(picture: Part) -> list[tuple[float, float, Part]]:
    return [each for each in picture.inside if isinstance(each, tuple)]


def lines(picture: Part) -> list[tuple]:
    """The points of each line, without the arrows' heads."""
    strokes = [each for each in picture.inside if isinstance(each, Stroke)]
    return [stroke.points for stroke in strokes[::2]]


def ends_at(picture: Part, box: tuple[float, float, float, float], side: str) -> list[tuple]:
    left, top, right, bottom = box
    at = {
        "below": lambda x, y: y == bottom and left <= x <= right,
        "beside": lambda x, y: x in (left, right) and top < y < bottom,
    }[side]
    return [line for line in lines(picture) if at(*line[-1])]


@ORDERS
def test_a_line_runs_past_each_layer_into_its_sum(norm: str) -> None:
    picture = transformer(norm)
    sums = boxes(picture, "add")
    assert len(sums) == 5
    for box in sums:
        (past,) = ends_at(picture, box, "beside")
        (through,) = ends_at(picture, box, "below")
        assert past[0][1] > box[3] and len(past) == 4  # it begins below the layer
        middle = (box[0] + box[2]) / 2
        layers = [
            b for name in ("attention", "cross", "feed-forward") for b in boxes(picture, name)
        ]
        (layer,) = (b for b in layers if b[1] == through[0][1] and b[0] < middle < b[2])
        assert past[0][0] == middle and past[0][1] > layer[3]
        assert not layer[0] < past[1][0] < layer[2]  # beside the layer, not through it


@ORDERS
def test_norms_stand_where_they_are(norm: str) -> None:
    picture = transformer(norm)
    norms, sums = boxes(picture, "norm"), boxes(picture, "add")
    assert len(norms) == (7 if norm == "pre" else 5)  # pre: one more at the end of each tower
    tops = {(box[0] > 180, box[1]) for box in sums}
    above = [b for b in norms if (b[0] > 180, b[3] + 14) in tops]
    assert len(above) == (5 if norm == "post" else 0)


@ORDERS
def test_queries_keys_and_values_enter_each_attention(norm: str) -> None:
    picture = transformer(norm)
    ports = [(x, y, p) for x, y, p in parts(picture) if p.name == "port"]
    assert [p.role for *_, p in ports] == ["value", "key", "query"] * 3
    starts = []
    for x, y, p in ports:
        (line,) = ends_at(picture, (x, y, x + p.width, y + p.height), "below")
        starts.append(line[0])
    (H,) = boxes(picture, "H")
    for start, port in zip(starts, [*"VKQ"] * 3, strict=True):
        assert start[1] > 0, port
    own = [{starts[n], starts[n + 1], starts[n + 2]} for n in (0, 3)]
    assert [len(each) for each in own] == [1, 1]  # one place for all three
    value, key, query = starts[6:]
    assert value == key == (H[2], (H[1] + H[3]) / 2) and query[0] > 180


@ORDERS
def test_no_line_runs_through_a_box(norm: str) -> None:
    picture = transformer(norm)
    rectangles = [(x, y, x + p.width, y + p.height) for x, y, p in parts(picture)]
    for line in lines(picture):
        for (x1, y1), (x2, y2) in itertools.pairwise(line):
            for left, top, right, bottom in rectangles:
                across = max(x1, x2) > left + 1 and min(x1, x2) < right - 1
                along = max(y1, y2) > top + 1 and min(y1, y2) < bottom - 1
                assert not (across and along), (line, (left, top, right, bottom))


def test_what_is_lit_is_coloured_and_a_phone_shows_it() -> None:
    picture = transformer(lit=("add", "cross"))
    assert {p.name for *_, p in parts(picture) if p.role == "weight"} == {"add", "cross"}
    assert Picture(picture).height < 560
    assert any(isinstance(each, Box) and each.look == "frame" for each in picture.inside)


@pytest.mark.parametrize("wrong", [{"norm": "none"}, {"lit": ("heads",)}])
def test_what_it_refuses(wrong: dict) -> None:
    with pytest.raises(ValueError, match="must be one of"):
        transformer(**wrong)
