"""The Transformer as one drawing: which lines there are, and where they end."""

import itertools
from collections import Counter
from dataclasses import replace

import pytest

from attnbook.show import transformer
from attnbook.show.blocks import Look
from attnbook.show.drawing import Box, Part, Stroke, Words
from attnbook.show.lettering import text_width
from attnbook.show.picture import Picture

ORDERS = pytest.mark.parametrize("norm", ["pre", "post"])


def boxes(picture: Part, name: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each box of this name, the encoder's first, upwards."""
    found = [(x, y, x + p.width, y + p.height) for x, y, p in parts(picture) if p.name == name]
    return sorted(found, key=lambda box: (box[0] > 180, -box[1]))


def parts(picture: Part) -> list[tuple[float, float, Part]]:
    return [each for each in picture.inside if isinstance(each, tuple)]


def lines(picture: Part) -> list[tuple]:
    """The points of each line, without its arrow's head."""
    strokes = [each for each in picture.inside if isinstance(each, Stroke)]
    return [stroke.points[:-3] for stroke in strokes]


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
    ports = [(x, y, p) for x, y, p in parts(picture) if p.name in ("port", "keys")]
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


ONE = pytest.mark.parametrize("shape", ["decoder", "encoder"])
GPT_2 = Look(layers=12, heads=12, key_heads=12, full=True, normalizer="LayerNorm", network="GELU")
LLAMA = replace(GPT_2, normalizer="RMSNorm", network="SiLU(gate) × up", gated=True, places="",
                rotary=True, key_heads=4, bias=False, tied=False)  # fmt: skip


def texts(picture: Part, name: str) -> list[str]:
    """What stands in the parts of this name, upwards."""
    return [
        " ".join(m.text for m in p.inside if isinstance(m, Words))
        for _, _, p in sorted(parts(picture), key=lambda each: -each[1])
        if p.name == name
    ]


@ONE
@ORDERS
def test_a_tower_alone_is_that_of_both_without_the_other(shape: str, norm: str) -> None:
    alone = transformer(norm, shape=shape)
    names = Counter(p.name for *_, p in parts(alone))
    assert names["attention"] == names["feed-forward"] == 1 and names["add"] == 2
    assert names["cross"] == 0 and names["norm"] == (3 if norm == "pre" else 2)
    assert names["mask"] == (shape == "decoder") and names["padding"] == (shape == "encoder")
    assert names["output"] == (shape == "decoder") and names["H"] == (shape == "encoder")
    both = transformer(norm)
    for box in boxes(alone, "add"):  # past each layer into its sum
        assert len(ends_at(alone, box, "beside")) == len(ends_at(alone, box, "below")) == 1
    heights = [box[3] - box[1] for box in boxes(both, "attention")]
    assert {box[3] - box[1] for box in boxes(alone, "attention")} == {*heights}
    assert Picture(alone).height < Picture(both).height and alone.width < 180


def test_models_of_one_layout_differ_in_what_is_exchanged() -> None:
    gpt, llama = (transformer(look, shape="decoder") for look in (GPT_2, LLAMA))
    places = [
        [(x, y, p.name, p.width, p.height) for x, y, p in parts(each)] for each in (gpt, llama)
    ]
    assert places[0] == places[1]  # a page exchanges one for the other where it stands
    differ = {p.name for (*_, p), (*_, q) in zip(parts(gpt), parts(llama), strict=True) if p != q}
    assert differ == {"norm", "positions", "keys", "rope", "bias", "feed-forward", "output"}
    assert texts(gpt, "keys") == ["V × 12", "K × 12"] and texts(llama, "keys") == ["V × 4", "K × 4"]
    assert sorted(texts(llama, "rope")) == ["", "RoPE", "RoPE"] and texts(gpt, "rope") == [""] * 3
    assert texts(gpt, "bias") == ["+ biases"] * 2 and texts(llama, "bias") == ["", ""]
    assert texts(llama, "norm") == ["RMSNorm"] * 3 and texts(llama, "positions") == [""]
    assert texts(gpt, "feed-forward") == ["feed-forward down GELU up"]
    assert texts(llama, "feed-forward") == ["feed-forward down SiLU(gate) × up gate up"]


def test_bert_has_two_output_layers_and_a_norm_behind_its_embeddings() -> None:
    look = replace(GPT_2, norm="post", start_norm=True, places="+ place, A/B", pretrained=True)
    bert = transformer(look, shape="encoder")
    assert texts(bert, "words") == ["hidden words"] and texts(bert, "next") == ["B follows A?"]
    assert len(texts(bert, "norm")) == 3 and texts(bert, "positions") == ["+ place, A/B"]
    (H,) = boxes(bert, "H")
    for box in [*boxes(bert, "words"), *boxes(bert, "next")]:
        (line,) = ends_at(bert, box, "below")
        assert line[0][1] == H[1]


def test_no_words_leave_their_box() -> None:
    drawn = [transformer(), *(transformer(each, shape="decoder") for each in (GPT_2, LLAMA))]
    for picture in drawn:
        for *_, part in parts(picture):
            for word in part.inside:
                if isinstance(word, Words):
                    half = text_width(word.text, word.size) / 2
                    assert half - 0.5 <= word.x <= part.width - half + 0.5, word.text


def test_two_towers_have_no_room_for_all() -> None:
    with pytest.raises(ValueError, match="full must be False with two towers"):
        transformer(GPT_2)


def test_the_wire_of_the_queries_is_clear_of_the_memorys() -> None:
    picture = transformer("pre")
    (H,) = boxes(picture, "H")
    memory = [line for line in lines(picture) if line[0][0] == H[2] and H[1] < line[0][1] < H[3]]
    *_, (x, y, port) = ((x, y, p) for x, y, p in parts(picture) if p.name == "port")
    (query,) = ends_at(picture, (x, y, x + port.width, y + port.height), "below")
    assert len(memory) == 2
    assert min(x for x, _ in query) > max(x for line in memory for x, _ in line)


@pytest.mark.parametrize("wrong", [{"norm": "none"}, {"lit": ("gate",)}, {"shape": "tower"}])
def test_what_it_refuses(wrong: dict) -> None:
    with pytest.raises(ValueError, match="must be one of"):
        transformer(**wrong)
