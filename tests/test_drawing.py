"""Drawings: parts lay themselves out, arrows meet what they join, the SVG is safe and the same."""

import re
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from attnbook import bundles, web
from attnbook.show import drawing
from attnbook.show.drawing import (
    DEEPEST,
    FAINTEST,
    ROLES,
    SMALL,
    WIDTH,
    Part,
    arrow,
    bars,
    box,
    brace,
    cells,
    column,
    dial,
    frame,
    grid,
    row,
    space,
    text,
)
from attnbook.show.lettering import text_width
from attnbook.show.picture import Picture
from attnbook.show.plots import ROLES as COLOURS
from attnbook.web import Drawing, Step

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ["<script>alert(1)</script>", "\"a\" & 'b'", "שלום", "👩‍👧", "a\x00b\x1b", "", "]]>"]


def tree(picture: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(picture.svg("What one sees"))


def attention() -> Picture:
    """A query, three states with keys, weights and a sum; names for all."""
    weights = np.array([0.5, 0.375, 0.125])
    body = column(
        box("query", "query", name="q"),
        row(*(cells([x, -x], "key", name="keys") for x in (1, 2, 3)), gap=40),
        cells(weights, "weight", name="weights", digits=3),
        cells([[0.25], [1.5]], "value", name="sum", digits=2),
        gap=24,
    )
    links = arrow("q", "keys", "query"), arrow("keys", "weights.*"), arrow("weights", "sum")
    return Picture(body, *links)


def test_parts_stand_where_the_grid_puts_them() -> None:
    a, b, c, d = (cells([1.0], name=n, width=w, height=h) for n, w, h in
                  (("a", 10, 30), ("b", 40, 10), ("c", 20, 16), ("d", 8, 4)))  # fmt: skip
    whole = grid(
        [[a, b], space(5), [c, d], cells([1.0], name="e", width=100)], gap=(6, 3), align="rl"
    )
    assert (whole.width, whole.height) == (100, 30 + 3 + 5 + 3 + 16 + 3 + 12)
    places = {p.reference: (p.x, p.y) for n in "abcde" for p in Picture(whole).find(n)}
    left, top = (WIDTH - 100) / 2, 4
    inner = left + (100 - 66) / 2  # the columns, 20 and 40 wide, stand in the middle
    assert places == {
        "a": (inner + 10, top),
        "b": (inner + 26, top + 10),
        "c": (inner, top + 41),
        "d": (inner + 26, top + 47),
        "e": (left, top + 60),
    }


def test_hands_of_a_dial_point_as_their_numbers_say() -> None:
    hands = np.array([[0.6, 0.8], [-0.25, 0.5]])
    picture = Picture(dial(hands, ["q", "k"], ["query", "key"], name="both", size=128))
    assert np.array_equal(picture.values("both"), hands)
    (whole,), (q, k) = picture.find("both"), picture.find("both.*")
    assert [q.part.role, k.part.role] == ["query", "key"]
    wide, middle = text_width("k", SMALL), np.array([64, 64])
    rim = 0.64 * 64
    for place, hand in ((q, hands[0]), (k, hands[1])):
        inside: Any = place.part.inside
        line, head, label = inside
        tip = middle + rim * hand * [1, -1]
        assert np.allclose(line.points, [middle, tip]) and np.allclose(head.points[1], tip)
        way = hand * [1, -1] / np.hypot(*hand)
        assert np.allclose([label.x, label.y], tip + (8 + wide / 2 * abs(way[0])) * way)
    strokes: Any = whole.part.inside[:2]
    circle, arc = strokes
    for stroke, radius in ((circle, rim), (arc, 0.3 * rim)):
        points = np.array(stroke.points)
        a, b, c, d = (points[i:][:10:3] for i in range(4))  # of each piece
        halfway = (a + 3 * b + 3 * c + d) / 8
        assert np.allclose(
            np.hypot(*(np.concatenate([a, d, halfway]) - middle).T), radius, rtol=1e-3
        )
    ends = (np.array(arc.points)[[0, -1]] - middle) * [1, -1]
    assert np.allclose(ends / (0.3 * rim), hands / np.hypot(*hands.T)[:, None])
    assert np.allclose(circle.points[0], circle.points[-1])
    for wrong in ([[0.9, 0.9]], [0.1, 0.2], [[1, 0, 0]]):
        with pytest.raises(ValueError, match="hands must be"):
            dial(wrong)
    with pytest.raises(ValueError, match="labels and roles must be 2"):
        dial(hands, ["q"])


def test_a_label_comes_with_the_part_beside_it() -> None:
    body = grid([["keys", None, cells([1, 2], name="k")], ["alone", None, space(3)]])
    labels = {e.get("data-beside"): e[0].text for e in tree(Picture(body)).iter(f"{SVG}g")
              if e.get("data-beside")}  # fmt: skip
    assert labels == {"k": "keys"}


@pytest.mark.parametrize("down", [False, True])
def test_the_larger_a_number_the_deeper_its_cell(down: bool) -> None:
    values = [0.2, -0.4, 0.0, 0.4, np.nan, 9.0]
    part = cells(values, "value", name="v", digits=1, down=down, span=(-0.4, 0.4))
    picture = Picture(part)
    assert np.array_equal(picture.values("v"), values, equal_nan=True)
    rects = list(tree(picture).iter(f"{SVG}rect"))
    shades = [float(rect.get("fill-opacity", "nan")) for rect in rects]
    middle = (FAINTEST + DEEPEST) / 2
    assert shades == pytest.approx(
        [(middle + DEEPEST) / 2, FAINTEST, middle, DEEPEST, 0, DEEPEST], abs=0.006
    )
    assert len(list(tree(picture).iter(f"{SVG}path"))) == 1  # the one that is crossed out
    assert [e.text for e in tree(picture).iter(f"{SVG}text")] == [
        "0.2",
        "−0.4",
        "0.0",
        "0.4",
        "9.0",
    ]
    across = [float(rect.get("y" if down else "x", "nan")) for rect in rects]
    assert across == sorted(across) and len(set(across)) == 6


def test_numbers_may_be_of_torch_and_in_a_table() -> None:
    table = torch.arange(6.0, requires_grad=True).view(2, 3)
    part = cells(table, digits=0, width=10, height=5)
    assert (part.width, part.height) == (30, 10)
    assert part.values is not None and part.values.tolist() == table.tolist()
    said = [e.text for e in tree(Picture(part)).iter(f"{SVG}text")]
    assert said == [*"012345"]


def test_bars_are_as_long_as_their_shares() -> None:
    part = bars(["one", "a longer word", "none"], [0.25, 0.5, 0.0], digits=3, width=250)
    lines = list(tree(Picture(part)).iter(f"{SVG}rect"))
    lengths = [float(line.get("width", 0)) for line in lines]
    assert lengths[0] == pytest.approx(lengths[1] / 2, abs=0.1) and lengths[2] == 1
    texts = [e.text for e in tree(Picture(part)).iter(f"{SVG}text")]
    assert texts == ["one", "0.250", "a longer word", "0.500", "none", "0.000"]
    ends = [float(e.get("x", 0)) for e in tree(Picture(part)).iter(f"{SVG}text")][1::2]
    assert max(ends) + text_width("0.500", drawing.SMALL) <= (WIDTH + 250) / 2


def links(picture: Picture) -> list[ElementTree.Element]:
    return [e for e in tree(picture).iter(f"{SVG}g") if "draw-link" in e.get("class", "")]


def points(link: ElementTree.Element) -> np.ndarray:
    return np.array(re.findall(r"-?[\d.]+", link[0].get("d", "")), dtype=float).reshape(-1, 2)


def test_arrows_meet_the_edges_of_what_they_join() -> None:
    picture = attention()
    found = links(picture)
    ends = [(e.get("data-from"), e.get("data-to")) for e in found]
    assert ends == [
        *(("q", f"keys.{n}") for n in range(3)),
        *((f"keys.{n}", f"weights.{n}") for n in range(3)),
        ("weights", "sum"),
    ]
    for link, (start, end) in zip(found, ends, strict=True):
        (a,), (b,) = picture.find(start or ""), picture.find(end or "")
        way = points(link)
        assert way[0] == pytest.approx((a.x + a.part.width / 2, a.y + a.part.height), abs=0.06)
        assert way[-1] == pytest.approx((b.x + b.part.width / 2, b.y), abs=0.06)
    assert [link.get("class") for link in found[2:4]] == ["draw-link draw-query", "draw-link"]


def test_arrows_go_up_sideways_and_around() -> None:
    body = column(row(box("a", name="a"), box("b", name="b"), gap=50), box("c", name="c"), gap=40)
    picture = Picture(
        body, arrow("c", "a"), arrow("a", "b"), arrow("b", "a"), arrow("b", "c", side="right")
    )
    up, right, left, around = map(points, links(picture))
    (a,), (b,), (c,) = map(picture.find, "abc")
    assert up[:, 1][[0, -1]] == pytest.approx([c.y, a.y + a.part.height], abs=0.06)
    assert right[0][0] == pytest.approx(a.x + a.part.width, abs=0.06)
    assert right[-1][0] == left[0][0] == pytest.approx(b.x, abs=0.06)
    edge = b.x + b.part.width
    assert around[0] == pytest.approx((edge, b.y + b.part.height / 2), abs=0.06)
    assert around[1][0] > edge and around[-1][0] == pytest.approx(c.x + c.part.width, abs=0.06)


def test_a_weight_makes_an_arrow_thick_and_none_leaves_it_out() -> None:
    body = column(
        row(*(box(str(n), name="values") for n in range(3))), box("sum", name="sum"), gap=30
    )
    found = links(Picture(body, arrow("values", "sum", weights=[0.75, 0.0, 0.25])))
    assert [link.get("data-from") for link in found] == ["values.0", "values.2"]
    thick = [float(link[0].get("stroke-width", 0)) for link in found]
    assert thick == pytest.approx([0.8 + 5 * 0.75, 0.8 + 5 * 0.25], abs=0.01)


def test_frames_and_braces_hold_their_part() -> None:
    inner = cells([1, 2, 3], name="inner", width=30)
    for whole in (frame(inner, "a block"), brace(inner, "three"), brace(inner, "x", side="top")):
        picture = Picture(whole)
        (place,) = picture.find("inner")
        assert whole.width >= inner.width and whole.height > inner.height + 15
        assert place.x == pytest.approx((WIDTH - inner.width) / 2)
        marks = [e for e in tree(picture).iter() if e.tag in (f"{SVG}path", f"{SVG}text")]
        assert marks and picture.height <= whole.height + 9
        ys = [float(e.get("y", "nan")) for e in marks if e.tag == f"{SVG}text"]
        above = ys[0] < place.y
        assert above == (whole is not None and "three" not in [e.text for e in marks])


def test_the_svg_is_the_same_every_time() -> None:
    assert attention().svg("x y z") == attention().svg("x y z")
    assert "id=" not in attention().svg("x y z")  # two may stand on a page


@pytest.mark.filterwarnings("error")
def test_hostile_texts_stay_texts() -> None:
    body = column(*(box(each) for each in HOSTILE), text("two\nlines"), bars(HOSTILE, [0.5] * 7))
    picture = Picture(body)
    root = ElementTree.fromstring(picture.svg(f"alt {HOSTILE[0]} {HOSTILE[1]}"))
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {"svg", "g", "rect", "text", "path"}
    said = [e.text or "" for e in root.iter(f"{SVG}text")]
    shown = ["a␀b␛" if each == HOSTILE[4] else each for each in HOSTILE]
    assert said[:7] == shown and said[7:9] == ["two", "lines"]
    assert root.get("role") == "img" and root.get("aria-label") == f"alt {HOSTILE[0]} {HOSTILE[1]}"


def test_every_text_can_be_read_on_a_phone() -> None:
    sizes = {int(e.get("font-size", 11)) for e in tree(attention()).iter(f"{SVG}text")}
    phone = 336  # pixels that a widget's drawing has on a screen of 390
    assert sizes and min({*sizes, drawing.SMALL}) * phone / WIDTH >= 10
    assert f"font-size:{drawing.SMALL}px" in bundles.still()  # of a text that says no size


def test_texts_are_at_least_as_wide_as_counted_on_average() -> None:
    """Against a font as wide as any that systems use."""
    figure = Figure()
    for words in ("[MASK]", "0.25", "norm of the sum", "[CLS] the state of our union", "WORTH"):
        drawn = figure.text(0, 0, words, fontsize=10, family="DejaVu Sans")
        width = drawn.get_window_extent().width / figure.dpi * 72
        assert 0.75 * width <= text_width(words, 10) <= 1.25 * width
    assert text_width("漢字", 10) == 20 and text_width("e\u0301", 10) == text_width("e", 10)


def test_the_picture_for_other_places_draws_the_same() -> None:
    figure = Figure(figsize=(4, 4))
    axes = figure.subplots()
    picture = attention()
    picture.draw(axes, COLOURS, "#000000")
    assert [t.get_text() for t in axes.texts] == [e.text for e in tree(picture).iter(f"{SVG}text")]
    rects = len(list(tree(picture).iter(f"{SVG}rect")))
    paths = len(list(tree(picture).iter(f"{SVG}path")))
    assert len(axes.patches) == rects + paths


# ---- colours of roles


def variables(dark: bool) -> dict[str, str]:
    sheet = (Path(web.__file__).parent / "shared/colours.css").read_text("utf8")
    block = sheet[sheet.index('html[data-theme="dark"]') :] if dark else sheet
    return dict(re.findall(r"--attn-(\w+): (.*);", block[: block.index("}")]))


def channels(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])


def linear(colour: str) -> np.ndarray:
    c = channels(colour) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def mixed(colour: str, page: str, share: float) -> str:
    """As browsers mix: what is stored, not the light."""
    c = share * channels(colour) + (1 - share) * channels(page)
    return "#" + "".join(f"{round(x):02x}" for x in c)


def contrast(a: str, b: str) -> float:
    """As WCAG 2 defines it."""
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (a, b))
    return (high + 0.05) / (low + 0.05)


PAGES = {False: ("#ffffff", "#fdfcf9"), True: ("#111111", "#15181d")}  # Jupyter's and the book's
INKS = {False: "#23262b", True: "#dfe2e6"}
# What a colour looks like to those who lack one kind of cone: Machado et al. 2009, severity 1.
SIGHT = {
    "all": np.eye(3),
    "no long": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "no middle": [[0.3674, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "no short": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Björn Ottosson's space, in which equal distances look about equal."""
    to_cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    to_lab = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    return np.array(to_lab) @ np.cbrt(np.array(to_cones) @ np.clip(rgb, 0, 1))


@pytest.mark.parametrize("dark", [False, True])
def test_roles_can_be_read_and_told_apart(dark: bool) -> None:
    sheet = variables(dark)
    colours = {role: sheet[role] for role in ROLES}
    assert dark or colours == COLOURS
    share = DEEPEST * float(sheet["depth"].rstrip("%")) / 100
    for page in PAGES[dark]:
        for colour in colours.values():
            assert contrast(colour, page) >= 4.5  # as the colour of a word
            assert contrast(INKS[dark], mixed(colour, page, share)) >= 4.5  # a number in its cell
    for matrix in SIGHT.values():
        seen = [oklab(np.array(matrix) @ linear(colour)) for colour in colours.values()]
        assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 0.07


# ---- the widget


def test_a_drawing_says_what_it_is() -> None:
    still = Drawing(box("a"), alt="One small box")
    assert repr(still) == "Drawing(One small box)"
    assert "aria-label='One small box'" in still.svg
    walk = Drawing(
        box("a", name="a"), alt="One small box", steps=[Step("See [it](a).", "a", ask="What?")]
    )
    assert walk.steps == [{"caption": "See [it](a).", "parts": ["a"], "ask": "What?"}]
    assert walk.name != still.name == Drawing(box("a"), alt="One small box").name


def test_a_still_drawing_is_stored_as_its_picture_alone() -> None:
    title = "A finding that takes more than one line, and &lt; two"
    still = Drawing(row(box("a"), box("b", "key")), alt="Two small boxes", title=title)
    data, _ = still._repr_mimebundle_()  # type: ignore[misc]
    assert set(data) == {"image/svg+xml", "image/png", "text/plain"}  # no view, so no state
    root = ElementTree.fromstring(data["image/svg+xml"])
    assert (root.get("role"), root.get("aria-label")) == ("img", "Two small boxes")
    *lines, a, b = [e.text for e in root.iter(f"{SVG}text")]
    assert (a, b) == ("a", "b") and " ".join(map(str, lines)) == title and len(lines) == 2
    (style,) = root.iter(f"{SVG}style")
    # all that it looks like is in it, by day and by night
    used = set(re.findall(r"var\((--attn-\w+)", str(style.text)))
    night = str(style.text).split("prefers-color-scheme:dark")[-1]
    assert used and all(f"{name}:" in str(style.text) for name in used)
    assert f"--attn-key: {variables(dark=True)['key']};" in night
    assert "xmlns='http" in still.svg and "<style>" not in still.svg


def test_a_step_fits_its_window() -> None:
    tall: Part = column(box("a", name="a"), space(600), box("b", name="b"))
    options = {"alt": "Two boxes apart", "steps": [Step("Both.", "a b")]}
    with pytest.raises(ValueError, match="step 1 shows parts that are 668 high"):
        Drawing(tall, **options)
    assert Drawing(tall, window=700, **options).window == 700
