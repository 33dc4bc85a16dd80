"""TransformerMap: what it keeps of its walks, what it refuses, what its picture shows."""

from typing import Any

import pytest

from attnbook.show.blocks import SHAPES
from attnbook.walks import part_walks
from attnbook.web import Drawing, TransformerMap
from attnbook.web.transformer_map.widget import PARTS
from tests.helpers.walks_transformer import ENGLISH, FRENCH, PLACE, READ, translator
from tests.helpers.widgets import walk


def parts(**options: Any) -> TransformerMap:
    return TransformerMap(
        part_walks(translator(), ENGLISH, FRENCH, place=PLACE, source_place=READ), **options
    )


def test_it_keeps_both_orders_and_the_walks() -> None:
    widget, walks = (
        parts(name="parts"),
        part_walks(translator(), ENGLISH, FRENCH, place=PLACE, source_place=READ),
    )
    assert [*widget.walks] == [*walks] and {*widget.walks} == {*PARTS}
    for part, kept in widget.walks.items():
        assert kept["steps"] == walks[part].steps and kept["svg"] == walks[part].svg
    assert {*widget.pictures} == {"encoder-decoder pre", "encoder-decoder post"}
    for name, counts in (("norm", (7, 5)), ("add", (5, 5)), ("cross", (1, 1))):
        found = [picture.count(f"data-part='{name}'") for picture in widget.pictures.values()]
        assert tuple(found) == counts
    before = widget.png()
    widget.part = "add"
    assert widget.png() != before
    opened = widget.png()
    widget.part = "encoder norm"
    assert widget.png() not in (before, opened)
    widget.norm = "post"
    assert widget.figure_size()[1] > 3 and "walks of norm, add" in repr(widget)


def test_its_shapes() -> None:
    widget = parts(shapes=SHAPES)
    assert [*widget.pictures] == [f"{shape} {norm}" for shape in SHAPES for norm in ("pre", "post")]
    found = [widget.pictures[f"{shape} pre"].count("data-part='add'") for shape in SHAPES]
    assert found == [5, 2, 2] and widget.shape == "encoder-decoder"
    heights = []
    for widget.shape in SHAPES:
        heights.append(widget.figure_size()[1])
    assert heights[0] > heights[1] > 3 and "data-part='cross'" not in widget.pictures["decoder pre"]
    assert "encoder and decoder, decoder, encoder, walks of norm" in repr(widget)
    with pytest.raises(ValueError, match="shape must be one of"):
        parts().set_state({"shape": "decoder"})
    with pytest.raises(ValueError, match="shapes 0 must be one of"):
        parts(shapes=["tower"])


@pytest.mark.parametrize("trait", [{"norm": "none"}, {"part": "heads"}])
def test_states_it_refuses(trait: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"must be"):
        parts().set_state(trait)


def test_walks_it_refuses() -> None:
    still = Drawing(walk().body, alt="a query and two keys")
    for walks in ({"heads": walk()}, {"add": still}):
        with pytest.raises(ValueError, match="walks must be drawings with steps, of add, norm"):
            TransformerMap(walks)
