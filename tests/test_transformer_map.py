"""TransformerMap: what it keeps of its walks, what it refuses, what its picture shows."""

from typing import Any

import pytest

from attnbook.walks import part_walks
from attnbook.web import Drawing, TransformerMap
from tests.helpers.walks_transformer import ENGLISH, FRENCH, PLACE, translator
from tests.helpers.widgets import walk


def parts(**options: Any) -> TransformerMap:
    return TransformerMap(part_walks(translator(), ENGLISH, FRENCH, place=PLACE), **options)


def test_it_keeps_both_orders_and_the_walks() -> None:
    widget, walks = parts(name="parts"), part_walks(translator(), ENGLISH, FRENCH, place=PLACE)
    assert [*widget.walks] == ["norm", "add", "attention", "cross", "feed-forward"]
    for part, kept in widget.walks.items():
        assert kept["steps"] == walks[part].steps and kept["svg"] == walks[part].svg
    assert {*widget.pictures} == {"pre", "post"}
    for name, counts in (("norm", (7, 5)), ("add", (5, 5)), ("cross", (1, 1))):
        found = [widget.pictures[order].count(f"data-part='{name}'") for order in ("pre", "post")]
        assert tuple(found) == counts
    before = widget.png()
    widget.part = "add"
    assert widget.png() != before
    widget.norm = "post"
    assert widget.figure_size()[1] > 3 and "walks of norm, add" in repr(widget)


@pytest.mark.parametrize("trait", [{"norm": "none"}, {"part": "heads"}])
def test_states_it_refuses(trait: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"must be"):
        parts().set_state(trait)


def test_walks_it_refuses() -> None:
    still = Drawing(walk().body, alt="a query and two keys")
    for walks in ({"heads": walk()}, {"add": still}):
        with pytest.raises(ValueError, match="walks must be drawings with steps, of add, norm"):
            TransformerMap(walks)
