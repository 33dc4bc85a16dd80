import re
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attnbook.show import charts, plots

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def in_the_style():
    with plt.rc_context():
        plots.use_style()
        yield
        plt.close("all")


def drawn(figure):
    return ElementTree.fromstring(charts.svg(figure))


def words(root):
    return [text.text for text in root.iter(f"{SVG}text")]


def curve(**given):
    figure, ax = plt.subplots(**given)
    ax.plot([0, 1, 2], [3, 1, 2], marker="o")
    return figure, ax


def test_words_stay_words_and_colours_follow_the_page():
    figure, ax = curve()
    ax.set(xlabel="steps & more", title="It falls")
    root = drawn(figure)
    assert {"steps & more", "It falls"} <= set(words(root))
    line = next(p for p in root.iter(f"{SVG}path") if "chart-blue" in p.get("stroke", ""))
    assert line.get("fill") == "none" and line.get("d", "").count("L") == 2
    colours = {p.get(k, "none") for p in root.iter(f"{SVG}path") for k in ("fill", "stroke")}
    assert colours == {"none", "var(--chart-blue)", "var(--attn-ink)"}  # so no plate, either


def test_the_same_bytes_again():
    once, again = (charts.svg(curve()[0]) for _ in range(2))
    assert once == again and "'" in once and '="' not in re.sub("<style>.*</style>", "", once)


@pytest.mark.parametrize("size", [(5.6, 2), (3, 4)])
def test_a_chart_is_as_wide_as_a_phone_and_no_word_is_small(size):
    figure, ax = curve(figsize=size)
    ax.text(1, 1, "small", fontsize=6)
    ax.text(1, 2, "large", fontsize=13)
    root = drawn(figure)
    _, _, width, height = map(float, root.get("viewBox", "").split())
    assert (width, height) == (352.8, size[1] * 72)
    sizes = {text.text: float(text.get("font-size", 11)) for text in root.iter(f"{SVG}text")}
    assert min(sizes.values()) == sizes["small"] == 11 and sizes["large"] == 13


def test_long_titles_and_labels_are_broken_and_begin_at_the_left():
    figure, ax = curve()
    ax.set_title(" ".join(["title"] * 20))
    ax.set_xlabel(" ".join(["label"] * 20))
    root = drawn(figure)
    for word, count in (("title", 20), ("label", 20)):
        lines = [text for text in root.iter(f"{SVG}text") if word in (text.text or "")]
        assert len(lines) > 1 and sum((t.text or "").count(word) for t in lines) == count
    starts = {float(t.get("x", 0)) for t in root.iter(f"{SVG}text") if "title" in (t.text or "")}
    assert max(starts) - min(starts) < 0.2 and max(starts) < 6


def test_lines_of_one_text_are_aligned():
    figure, ax = curve()
    ax.text(1, 2, "one\na longer line", ha="center")
    found = [t for t in drawn(figure).iter(f"{SVG}text") if t.text in ("one", "a longer line")]
    assert [t.get("text-anchor") for t in found] == ["middle"] * 2
    assert abs(float(found[0].get("x", 0)) - float(found[1].get("x", 9))) < 0.2


def test_powers_are_letters_and_formulas_shapes():
    figure, ax = curve()
    ax.set(yscale="log", ylim=(0.01, 100), xlabel="$d_k$")
    found = list(filter(None, words(drawn(figure))))
    assert {"10⁻¹", "10²"} <= set(found) and not any("$" in each or "{" in each for each in found)


def test_what_leaves_its_axes_is_cut_there():
    figure, ax = curve()
    assert not [*drawn(figure).iter(f"{SVG}svg")][1:]
    ax.plot([0, 2], [-50, 50])
    ax.set(ylim=(0, 4))
    (_, inner) = drawn(figure).iter(f"{SVG}svg")
    assert inner.find(f"{SVG}path") is not None


def test_images_and_colours_of_a_map_are_turned_in_the_dark():
    figure, ax = plt.subplots()
    ax.imshow(np.eye(3), cmap="Blues")
    ax.text(0, 0, "1", color="white")
    ax.scatter([0, 1], [1, 2], c=["#123456", plots.ORANGE])
    root = drawn(figure)
    (image,) = root.iter(f"{SVG}image")
    own = [e for e in root.iter() if "chart-own" in e.get("class", "")]
    assert image in own and [e.get("fill") for e in own if e is not image] == ["#123456"]
    (white,) = (t for t in root.iter(f"{SVG}text") if t.text == "1" and t.get("class"))
    assert white.get("class") == "chart-page"


def test_greys_stand_between_page_and_ink():
    assert charts.paint((1, 1, 1)) == ("var(--attn-page)", True)
    assert charts.paint((0, 0, 0, 1)) == charts.paint((0.2, 0.2, 0.2)) == ("var(--attn-ink)", True)
    assert charts.paint((0.6, 0.6, 0.6))[0].startswith("color-mix(in srgb,var(--attn-page) 50%")
    assert charts.paint((0.2, 0.4, 0.6)) == ("#336699", False)


def test_many_alike_are_one_path_and_circles_arcs():
    figure, ax = plt.subplots()
    ax.scatter(range(200), range(200), color=plots.GREEN)
    (dots,) = (p for p in drawn(figure).iter(f"{SVG}path") if "green" in p.get("fill", ""))
    assert dots.get("d", "").count("a") == 400
    ax.clear()
    ax.scatter(range(5), range(5), color=plots.GREEN, alpha=0.5)  # where they overlap it shows
    found = [p for p in drawn(figure).iter(f"{SVG}path") if "green" in p.get("fill", "")]
    assert len(found) == 5 and {p.get("fill-opacity") for p in found} == {"0.5"}


def test_no_hatch():
    figure, ax = plt.subplots()
    ax.bar([1], [1], hatch="/")
    with pytest.raises(ValueError, match="must have no hatch"):
        charts.svg(figure)
