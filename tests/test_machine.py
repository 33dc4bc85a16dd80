"""The map of a chapter: what is lit, what it refuses, what a notebook shows."""

import re

import pytest

from attnbook.bundles import STILL, SVG
from attnbook.show import machine

PARTS = ("words", "encoder", "one\nvector", "decoder")


def test_what_is_lit_is_drawn_so_and_said() -> None:
    shown = machine(*PARTS)("encoder", "decoder")._repr_mimebundle_()
    assert STILL in shown[SVG]
    groups = re.findall(r"data-part='(part\d)'( class='draw-weight')?", shown[SVG])
    assert groups == [(f"part{n}", " class='draw-weight'" * (n in (1, 3))) for n in range(4)]
    assert shown[SVG].count("data-from=") == 3
    assert shown[SVG].count(">here<") == 2
    assert "words to encoder to one vector to decoder. Here: encoder and decoder." in shown[SVG]
    assert shown["text/plain"] == "words → [encoder] → one vector → [decoder]"


def test_here_is_no_name_for_the_whole_machine() -> None:
    assert ">here<" not in machine(*PARTS)(*PARTS)._repr_mimebundle_()[SVG]


def test_the_whole_machine_may_be_dark() -> None:
    assert "draw-weight'" not in machine(*PARTS)()._repr_mimebundle_()[SVG].split("</style>")[1]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (("words",), "parts must be two or more different names"),
        (("words", "words"), "parts must be two or more different names"),
        (("a long name",) * 2 + ("another",), "different names"),
        (tuple(f"a part of many words {n}" for n in range(5)), "at most 356 wide"),
    ],
)
def test_parts_it_refuses(parts: tuple, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        machine(*parts)


def test_only_its_parts_can_be_lit() -> None:
    with pytest.raises(ValueError, match="part 1 must be one of 'words'"):
        machine(*PARTS)("attention")
