"""The road of the first page: what its file holds, and that its tool still makes it."""

import xml.etree.ElementTree as ET

from tests.helpers.minibook import ROOT
from tools import notebooks, pictures

FILE = ROOT / "book/figures/road.svg"
NAMESPACE = {"svg": pictures.SVG}


def test_the_road_is_what_its_tool_draws() -> None:
    assert FILE.read_text("utf-8") == pictures.road(), "make it anew: python -m tools.pictures"


def test_every_chapter_is_a_stop_in_its_order() -> None:
    chapters = [path.stem for path in notebooks.every() if notebooks.is_story(path)]
    root = ET.fromstring(pictures.road())
    stops = root.findall(".//svg:a", NAMESPACE)
    assert [stop.get("href") for stop in stops] == [f"{name}.html" for name in chapters]
    for n, stop in enumerate(stops, 1):
        said = "".join(stop.itertext()).split()
        assert said == [str(n), *" ".join(pictures.STOPS[n - 1][1:]).split()]
        assert len(stop.findall(".//svg:*", NAMESPACE)) > 7


def test_stops_do_not_overlap() -> None:
    for draw in pictures.SKETCHES:
        for part in draw():
            assert (part.width, part.height) == (pictures.WIDE, pictures.HIGH)
    assert pictures.HIGH < pictures.STEP
