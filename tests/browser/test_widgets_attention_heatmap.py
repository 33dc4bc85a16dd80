"""AttentionHeatmap in Chromium, on a built page: numbers by pointer, touch and keyboard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attnbook.web import AttentionHeatmap, format_number
from tests.browser.widget_pages import (
    AXE,
    HOSTILE,
    assert_pictures,
    copied,
    everywhere,
    follow,
    settle,
    stop_clocks,
    tick,
    touch,
    widget,
)

SOURCE = ["two", "hundred", "forty", "three", "</s>"]
STEPS = [("step", ["1", "2"])]
STEEP = np.array([1, 2, 4, 8])[:, None, None]
SLID = [[f"{side}{i}" for i in range(40)] for side in ("row", "column")]
TARGET = ["zwei", "hundert", "drei", "und", "vierzig", "<end>"]


def learnt() -> np.ndarray:
    """[step, query, key] with all dimensions distinct; query 3 of step 0 attends to nothing."""
    raw = np.random.default_rng(1).random((2, len(TARGET), len(SOURCE))) ** 3
    weights = raw / raw.sum(-1, keepdims=True)
    weights[0, 3] = 0
    return weights


def grown() -> np.ndarray:
    """[step, query, key], further from equal shares with each step."""
    raw = np.random.default_rng(5).uniform(0.6, 1, (4, len(TARGET), len(SOURCE))) ** STEEP
    return raw / raw.sum(-1, keepdims=True)


def widgets() -> list[AttentionHeatmap]:
    many = [f"t{i}" for i in range(128)]
    near = np.exp(-np.abs(np.subtract.outer(np.arange(128), np.arange(128))) / 4)
    band = near / near.sum(-1, keepdims=True)
    wide = np.full((3, 50), 1 / 50)
    raw = np.random.default_rng(3).uniform(0.7, 1.3, (2, 3, 14)) ** [[[1]], [[2]]]
    pale = raw / raw.sum(-1, keepdims=True)  # shares about 1/14, the second step's wider apart
    return [
        AttentionHeatmap(
            learnt(),
            TARGET,
            SOURCE,
            other=np.eye(len(TARGET), len(SOURCE)),
            names=("learnt", "gold links"),
            axes=[("step", ["100", "600"])],
            query_label="target word",
            key_label="source word",
            title="The decoder finds the words",
            name="learnt-map",
        ),
        AttentionHeatmap(learnt()[1], TARGET, SOURCE, name="second-map"),
        AttentionHeatmap(np.eye(len(HOSTILE)), HOSTILE, HOSTILE, name="hostile"),
        AttentionHeatmap([[1.0]], ["a"], ["b"], name="one"),
        AttentionHeatmap(band, many, many, name="largest"),
        AttentionHeatmap(wide, list("abc"), many[:50], name="wide"),
        AttentionHeatmap(
            pale, list("abc"), [f"key{j}" for j in range(14)], axes=STEPS, name="pale"
        ),
        AttentionHeatmap(wide, list("abc"), many[:50], stretch=True, name="deep"),
        AttentionHeatmap(
            grown(),
            TARGET,
            SOURCE,
            axes=[("training step", ["0", "30", "100", "600"])],
            ordered=["training step"],
            index=[2],
            query=4,
            query_label="German word written",
            key_label="English word read",
            weight_label="share",
            name="grows",
        ),
        AttentionHeatmap(
            grown()[:3].reshape(1, 3, len(TARGET), len(SOURCE)),
            TARGET,
            SOURCE,
            axes=[("layer", ["1"]), ("positions", ["none", "waves", "2"])],
            compare="positions",
            against=2,
            name="schemes",
        ),
        AttentionHeatmap(
            band[:40, :40] / band[:40, :40].sum(-1, keepdims=True), *SLID, name="slid"
        ),
        AttentionHeatmap(
            np.stack([np.full((3, 3), 1 / 3), np.tril(np.ones((3, 3))) / [[1], [2], [3]]]),
            *2 * [[*"abc"]],
            axes=[("mask", ["none", "causal"])],
            compare="mask",
            masked=np.stack([np.zeros((3, 3)), np.triu(np.ones((3, 3)), 1)]),
            name="masked",
        ),
    ]


MAP, SECOND, ODD, ONE, LARGEST, WIDE, PALE, DEEP, GROWS, SCHEMES, SLIDES, MASKED = range(12)
SHOWN = widgets()  # `weights` of these are the numbers that the page must show


def number(step: int, i: int, j: int) -> str:
    return format_number(SHOWN[MAP].weights[step, i, j])


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(widgets())


def text(widget: Locator, what: str) -> str:
    """What an element says once the next frame is drawn."""
    settle(widget.page)
    return " ".join((widget.locator(f".attn-{what}").first.text_content() or "").split())


def cell(widget: Locator, i: int, j: int, canvas: int = 0) -> tuple[float, float]:
    """Where a cell is in the window; found by asking the widget what lies under each point."""
    place = widget.locator(".attn-map > canvas:first-of-type").nth(canvas)
    place.scroll_into_view_if_needed()
    queries, keys = place.evaluate(
        """(canvas) => {
          const root = canvas.closest(".attn"), tip = root.querySelector(".attn-tip");
          const first = root.querySelector("canvas"), rows = {}, columns = {};
          const ask = (node, x, y) => {
            const box = node.getBoundingClientRect();
            const at = { clientX: box.left + x, clientY: box.top + y, bubbles: true };
            node.dispatchEvent(new PointerEvent("pointermove", at));
            const tokens = tip.hidden ? [] : [...tip.querySelectorAll("bdi")];
            return tokens.map((token) => token.textContent);
          };
          for (let y = first.clientHeight - 6; y > 0; y -= 1) {
            const [token, other] = ask(first, 2, y); // only the first map has labels of rows
            if (token && !other) (rows[token] ??= []).push(y);
          }
          for (let x = 0; x < canvas.clientWidth; x += 1) {
            const [token, other] = ask(canvas, x, 2);
            if (token && !other) (columns[token] ??= []).push(x);
          }
          for (const node of [first, canvas]) node.dispatchEvent(new PointerEvent("pointerleave"));
          const middles = (all) => Object.values(all).map((n) => (n[0] + n.at(-1)) / 2);
          return [middles(rows).sort((a, b) => a - b), middles(columns)];
        }"""
    )
    box = place.bounding_box()
    assert box
    return box["x"] + keys[j], box["y"] + queries[i]


def hover(widget: Locator, i: int, j: int, canvas: int = 0) -> None:
    widget.page.mouse.move(*cell(widget, i, j, canvas))


def focus(widget: Locator) -> None:
    widget.locator(".attn-maps").focus()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


@everywhere
def test_pointer_reads_weights(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    first = widget(page, MAP)
    for i, j in ((0, 0), (4, 2), (5, 4)):
        hover(first, i, j)
        gold = "1.000" if i == j else "0.000"
        weight = number(0, i, j)
        assert text(first, "readout") == (
            f"target word {TARGET[i]} → source word {SOURCE[j]}"
            f" · learnt {weight} · gold links {gold}"
        )
        tip = f"{TARGET[i]} → {SOURCE[j]} · learnt {weight} · gold links {gold}"
        assert text(first, "tip") == tip
    hover(first, 1, 1, canvas=1)  # the second map has the same cursor
    assert f"learnt {number(0, 1, 1)} · gold links 1.000" in text(first, "readout")
    page.mouse.move(2, 2)
    assert first.locator(".attn-tip").is_hidden()
    assert text(first, "readout") == "Hover, tap or use the arrow keys to read a weight."
    hover(first, 3, 2)
    assert "(attends to nothing)" in text(first, "readout")


@everywhere
def test_keyboard_moves_the_cursor(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    first = widget(page, MAP)
    focus(first)

    def heard(i: int, j: int) -> str:
        gold = "1.000" if i == j else "0.000"
        return (
            f"target word {TARGET[i]}, source word {SOURCE[j]},"
            f" learnt {number(0, i, j)}, gold links {gold}"
        )

    steps = [
        ("ArrowRight", 0, 0),
        ("ArrowUp", 0, 0),
        ("ArrowLeft", 0, 0),
        ("ArrowDown", 1, 0),
        ("End", 1, 4),
        ("ArrowRight", 1, 4),
        ("Control+End", 5, 4),
        ("ArrowDown", 5, 4),
        ("ArrowLeft", 5, 3),
        ("Home", 5, 0),
        ("Control+Home", 0, 0),
    ]
    for key, i, j in steps:
        press(page, key)
        assert text(first, "heard") == heard(i, j), key
    assert text(first, "tip").startswith("zwei → two")  # focus shows the weight as hovering does
    press(page, "Escape")
    assert text(first, "readout").startswith("Hover, tap")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "application"
    press(page, "Tab")
    assert page.evaluate("document.activeElement.textContent") == "Reset"


def backgrounds(widget: Locator, line: int = 0) -> list[float]:
    """Luminance behind each word of the weighted text."""
    return (
        widget.locator(".attn-text")
        .nth(line)
        .locator(".attn-word")
        .evaluate_all(
            """(words) => words.map((word) => {
          const [r, g, b] = word.style.backgroundColor.match(/\\d+/g).map(Number);
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        })"""
        )
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_choosing_a_query_weights_the_text(open_page: Callable[..., Page], theme: str) -> None:
    page = open_page(theme=theme)
    first = widget(page, MAP)
    words = first.locator(".attn-text").first.locator(".attn-word")
    assert words.all_text_contents() == SOURCE
    first.get_by_role("combobox", name="target word", exact=True).select_option(index=2)
    text(first, "readout")
    shades = backgrounds(first)
    by_shade = sorted(range(len(SOURCE)), key=lambda j: shades[j], reverse=theme == "light")
    assert by_shade == np.argsort(SHOWN[MAP].weights[0, 1]).tolist()
    assert words.nth(0).get_attribute("title") == f"two: {number(0, 1, 0)}"
    page.mouse.click(*cell(first, 4, 0))  # the same by clicking into its row
    text(first, "readout")
    assert (
        first.get_by_role("combobox", name="target word", exact=True).input_value() == "5 · vierzig"
    )
    assert backgrounds(first) != shades
    assert first.locator(".attn-word.attn-at").all_text_contents() == ["two", "two"]


def test_selector_changes_the_map(open_page: Callable[..., Page]) -> None:
    page = open_page()
    first = widget(page, MAP)
    focus(first)
    press(page, "ArrowRight", "ArrowRight")
    assert number(0, 0, 1) in text(first, "readout")
    first.get_by_role("combobox", name="step", exact=True).select_option("600")
    assert f"learnt {number(1, 0, 1)}" in text(first, "readout")
    assert number(0, 0, 1) != number(1, 0, 1)


def colours(widget: Locator) -> list[list[int]]:
    """The commonest colours of the map, which are those of its cells and its page."""
    settle(widget.page)
    return widget.locator("canvas").evaluate(
        """(canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const counts = new Map();
          for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) {
            const colour = [data[i], data[i + 1], data[i + 2]].join();
            counts.set(colour, (counts.get(colour) ?? 0) + 1);
          }
          return [...counts].filter(([, n]) => n > 60).map(([c]) => c.split(",").map(Number));
        }"""
    )


DEEPEST = {"light": [17, 48, 124], "dark": [196, 236, 255]}


@everywhere
def test_colours_stretch_to_the_largest(
    open_page: Callable[..., Page], where: dict[str, Any]
) -> None:
    page = open_page(**where)
    pale, deepest = widget(page, PALE), DEEPEST[where["theme"]]
    box = pale.get_by_role("checkbox", name="scale ends at the largest value", exact=True)
    label = pale.locator(".attn-check")
    legend = [f"weight 0{format_number(SHOWN[PALE].weights[step].max())}" for step in (0, 1)]
    assert legend[0] != legend[1]
    focus(pale)
    press(page, "ArrowRight", "ArrowRight")
    numbers, shades = text(pale, "readout"), backgrounds(pale)
    assert (text(pale, "scale"), box.is_checked()) == ("weight 01", False)
    assert deepest not in colours(pale)

    area = label.bounding_box()
    assert area and area["height"] >= 32 and area["x"] + area["width"] <= where["width"]
    label.click()
    assert (text(pale, "scale"), box.is_checked()) == (legend[0], True)
    assert deepest in colours(pale)
    spread = max(backgrounds(pale)) - min(backgrounds(pale))
    assert spread > 3 * (max(shades) - min(shades))
    assert text(pale, "readout") == numbers
    pale.get_by_role("combobox", name="step", exact=True).select_option("2")
    assert text(pale, "scale") == legend[1]  # the largest on view, not of all steps

    link = copied(pale)
    assert link == "#w.pale=query:0;key:1;index:1;stretch:1"
    fresh = widget(open_page(link, **where), PALE)
    assert fresh.get_by_role("checkbox").is_checked() and text(fresh, "scale") == legend[1]
    pale.get_by_role("button", name="Reset").click()
    assert (text(pale, "scale"), box.is_checked()) == ("weight 01", False)
    assert deepest not in colours(pale)

    box.focus()
    press(page, "Space")
    assert (text(pale, "scale"), box.is_checked()) == (legend[0], True)
    press(page, "Space")
    assert (text(pale, "scale"), box.is_checked()) == ("weight 01", False)
    if where["width"] < 600:
        label.tap()
        assert (text(pale, "scale"), box.is_checked()) == (legend[0], True)
    assert not widget(page, SECOND).get_by_role("checkbox").is_checked()


def test_a_map_can_start_stretched(open_page: Callable[..., Page]) -> None:
    page = open_page()
    deep = widget(page, DEEP)
    assert text(deep, "scale") == "weight 00.020"
    assert DEEPEST["light"] in colours(deep) and DEEPEST["light"] not in colours(widget(page, WIDE))
    deep.locator(".attn-check").click()
    assert copied(deep) == "#w.deep=stretch:0"
    fresh = widget(open_page("#w.deep=stretch:0"), DEEP)
    assert text(fresh, "scale") == "weight 01"
    deep.get_by_role("button", name="Reset").click()
    assert text(deep, "scale") == "weight 00.020"


def shares(step: int, i: int) -> list[str]:
    return [format_number(x) for x in SHOWN[GROWS].weights[step, i]]


def row_titles(widget: Locator) -> list[str]:
    settle(widget.page)
    script = "(words) => words.map(({ title }) => title.split(': ').at(-1))"
    return widget.locator(".attn-word").evaluate_all(script)


@everywhere
def test_an_ordered_axis_is_a_slider_that_plays(
    open_page: Callable[..., Page], where: dict[str, Any]
) -> None:
    page = open_page(**where)
    grows = widget(page, GROWS)
    slider = grows.get_by_role("slider", name="training step", exact=True)
    assert slider.get_attribute("aria-valuetext") == "100"
    assert text(grows, "readout") == "German word written vierzig"  # it opens on a row
    assert text(grows, "text").startswith("English word read, shaded by share: two hundred")
    assert row_titles(grows) == shares(2, 4)
    slider.focus()
    for key, step, name in (("ArrowRight", 3, "600"), ("Home", 0, "0"), ("ArrowUp", 1, "30")):
        press(page, key)
        assert row_titles(grows) == shares(step, 4), key
        assert slider.get_attribute("aria-valuetext") == name
        assert text(grows, "player b") == name
    box = slider.bounding_box()
    assert box and box["width"] >= 80 and box["height"] >= 32
    page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    assert row_titles(grows) == shares(3, 4)

    play = grows.get_by_role("button", name="training step")
    assert play.text_content() == "Play training step"
    stop_clocks(page)
    play.click()  # at the end: from the start
    for step in range(4):
        assert row_titles(grows) == shares(step, 4)
        plays = play.text_content() == "Pause training step"
        assert tick(page, 900) == plays == (step < 3)
    for act, step in ((play.click, 0), (lambda: tick(page, 900), 1), (play.click, 1)):
        act()
        assert row_titles(grows) == shares(step, 4)
    assert (tick(page, 900), row_titles(grows)) == (0, shares(1, 4))
    play.click()
    grows.get_by_role("button", name="Reset").click()
    assert play.text_content() == "Play training step"
    assert row_titles(grows) == shares(2, 4)
    assert page.locator(".attn-player").count() == 1  # layers that are not in order have a list


@everywhere
def test_two_of_an_axis_side_by_side(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    schemes = widget(page, SCHEMES)
    first, second = (schemes.locator("canvas").nth(n).bounding_box() for n in (0, 1))
    assert first and second and first["x"] + first["width"] <= second["x"]
    assert abs(first["y"] + first["height"] - second["y"] - second["height"]) < 1
    assert second["x"] + second["width"] <= where["width"] - 16

    def says(i: int, j: int, left: int, right: int) -> str:
        names = ["none", "waves", "positions 2"]  # a number says of what
        each = [f"{names[n]} {format_number(grown()[n, i, j])}" for n in (left, right)]
        return f"query {TARGET[i]} → key {SOURCE[j]} · {each[0]} · {each[1]}"

    assert schemes.locator(".attn-name").all_text_contents() == ["none", "positions 2"]
    for canvas in (0, 1):
        hover(schemes, 2, 3, canvas)
        assert text(schemes, "readout") == says(2, 3, 0, 2)
    page.mouse.move(2, 2)
    schemes.get_by_role("combobox", name="positions, map 1").select_option("waves")
    schemes.get_by_role("combobox", name="positions, map 2").select_option("none")
    focus(schemes)
    press(page, "ArrowDown", "ArrowRight", "ArrowRight")  # the first starts it
    assert text(schemes, "readout") == says(0, 2, 1, 0)
    assert schemes.locator(".attn-name").all_text_contents() == ["waves", "none"]
    schemes.locator("summary").click()
    schemes.locator("table").first.wait_for()
    cells = [table.locator("td:not(thead *)").first for table in schemes.locator("table").all()]
    assert [td.text_content() for td in cells] == [format_number(grown()[n, 0, 0]) for n in (1, 0)]
    link = copied(schemes)
    assert link == "#w.schemes=query:0;key:2;index:0,1;against:0"
    fresh = widget(open_page(link, **where), SCHEMES)
    assert text(fresh, "readout") == says(0, 2, 1, 0)
    schemes.get_by_role("button", name="Reset").click()
    expect(schemes.locator(".attn-name")).to_have_text(["none", "positions 2"])


def test_what_a_mask_hides_is_crossed_out(open_page: Callable[..., Page]) -> None:
    node = widget(open_page(), MASKED)
    assert "crossed out: masked" in (node.locator(".attn-scale").text_content() or "")
    hover(node, 0, 1)
    assert text(node, "readout") == "query a → key b · none 0.333 · causal masked"
    hover(node, 2, 1)
    assert text(node, "readout") == "query c → key b · none 0.333 · causal 0.333"


def test_a_narrow_map_slides_and_keeps_its_labels(open_page: Callable[..., Page]) -> None:
    wide = widget(open_page(width=1280), SLIDES)
    assert wide.locator(".attn-still").count() == 0
    page = open_page(width=390)
    slides = widget(page, SLIDES)
    maps, still = slides.locator(".attn-maps"), slides.locator(".attn-still")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    width = maps.evaluate("(node) => [node.clientWidth, node.scrollWidth]")
    assert width[0] < 340 and width[1] > 40 * 14
    focus(slides)
    press(page, "ArrowRight", "End")  # the cursor comes into view, the labels of rows stay there
    weight = format_number(SHOWN[SLIDES].weights[0, 39])
    assert text(slides, "readout") == f"query row0 → key column39 · weight {weight}"
    moved = maps.evaluate("(node) => node.scrollLeft")
    assert moved == pytest.approx(width[1] - width[0], abs=4)
    box, around = still.bounding_box(), maps.bounding_box()
    assert box and around and box["x"] == pytest.approx(around["x"], abs=1)
    ink = """(still) => {
      const all = still.getContext("2d").getImageData(0, 0, still.width, still.height).data;
      return all.filter((_, n) => n % 4 === 3 && all[n] > 200).length;
    }"""
    assert still.evaluate(ink) > 1000
    page.mouse.click(box["x"] + 5, box["y"] + box["height"] - 12)  # the last row's label
    assert text(slides, "readout") == "query row39"
    press(page, "Home")
    settle(page)
    assert maps.evaluate("(node) => node.scrollLeft") == 0
    follow(page, "#w.slid=query:3;key:38")  # its cell comes into view, too
    assert text(slides, "readout").startswith("query row3 → key column38")
    assert maps.evaluate("(node) => node.scrollLeft") > 100


@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(open_page: Callable[..., Page], width: int) -> None:
    page = open_page(width=width)
    page.add_script_tag(path=AXE)
    for n in (GROWS, SCHEMES, SLIDES):
        found = widget(page, n).evaluate("(node) => axe.run(node)")
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]] == []


def test_the_switch_of_colours_stands_where_it_does_something(
    open_page: Callable[..., Page],
) -> None:
    page = open_page()
    for n, there in ((MAP, False), (PALE, True), (DEEP, True), (ONE, False), (GROWS, True)):
        assert widget(page, n).locator(".attn-check").is_visible() == there, n


def test_row_is_highlighted(open_page: Callable[..., Page]) -> None:
    page = open_page()
    second = widget(page, SECOND)
    mark = second.evaluate("(el) => getComputedStyle(el).getPropertyValue('--attn-mark')")
    rgb = [int(mark.strip()[i : i + 2], 16) for i in (1, 3, 5)]
    count = """(canvas, rgb) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let n = 0;
      for (let i = 0; i < data.length; i += 4) n += rgb.every((c, k) => c === data[i + k]);
      return n;
    }"""
    assert second.locator("canvas").evaluate(count, rgb) == 0
    second.get_by_role("combobox", name="query", exact=True).select_option(index=3)
    text(second, "readout")
    assert second.locator("canvas").evaluate(count, rgb) > 400  # a frame around the whole row


@everywhere
def test_two_on_a_page_and_reset(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    first, second = widget(page, MAP), widget(page, SECOND)
    focus(second)
    press(page, "ArrowRight", "ArrowDown")
    assert f"weight {format_number(SHOWN[SECOND].weights[1, 0])}" in text(second, "readout")
    assert text(first, "readout").startswith("Hover, tap")
    focus(first)
    press(page, "ArrowRight")
    first.get_by_role("combobox", name="step", exact=True).select_option("600")
    first.get_by_role("button", name="Reset").click()
    assert text(first, "readout").startswith("Hover, tap")
    assert first.get_by_role("combobox", name="step", exact=True).input_value() == "100"
    assert text(first, "status") == "Reset"
    assert text(second, "readout").startswith("query hundert → key two")


@everywhere
def test_a_link_restores_the_state(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    second = widget(page, SECOND)
    focus(second)
    press(page, "ArrowRight", "ArrowDown")
    assert copied(second) == "#w.second-map=query:1;key:0"
    first = widget(page, MAP)
    first.get_by_role("combobox", name="step", exact=True).select_option("600")
    page.mouse.click(*cell(first, 4, 2))
    link = copied(first)
    assert link == "#w.learnt-map=query:4;key:2;index:1&w.second-map=query:1;key:0"
    fresh = open_page(link, **where)
    assert f"learnt {number(1, 4, 2)}" in text(widget(fresh, MAP), "readout")
    assert text(widget(fresh, SECOND), "readout").startswith("query hundert → key two")
    expect(widget(fresh, MAP)).to_be_in_viewport()  # the page scrolls to the first one named
    follow(fresh, "#w.second-map=query:5;key:4")  # a link inside the page
    assert text(widget(fresh, SECOND), "readout").startswith("query <end> → key </s>")
    follow(fresh, "#w.second-map=query:99;key:-7;index:3")
    assert text(widget(fresh, SECOND), "readout") == "query <end>"


def test_an_ordinary_anchor_is_left_alone(open_page: Callable[..., Page]) -> None:
    page = open_page("#widgets")
    assert text(widget(page, MAP), "readout").startswith("Hover, tap")
    assert copied(widget(page, MAP)) == "#w.learnt-map="


@everywhere
def test_hostile_tokens_stay_text(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    odd = widget(page, ODD)
    odd.locator("summary").click()
    odd.locator("table").first.wait_for()  # made when the browser says it is open
    shown = [token or "∅" for token in HOSTILE]
    assert odd.locator("tbody th").all_text_contents() == shown
    assert odd.locator(".attn-word").all_text_contents() == shown
    focus(odd)
    press(page, "ArrowRight")
    for token in shown:
        assert text(odd, "heard") == f"query {token}, key {token}, weight 1.000"
        assert text(odd, "tip") == f"{token} → {token} 1.000"  # the whole, though the label is cut
        press(page, "ArrowRight", "ArrowDown")
    assert odd.locator("img, b b").count() == 0
    assert "hacked" not in page.title()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_table_holds_the_numbers(open_page: Callable[..., Page]) -> None:
    page = open_page()
    first = widget(page, MAP)
    first.locator("summary").click()
    first.locator("table").first.wait_for()  # made when the browser says it is open
    learnt_table, gold = first.locator("table").all()
    assert learnt_table.locator("thead th[scope=col]").all_text_contents() == SOURCE
    assert learnt_table.locator("tbody th[scope=row]").all_text_contents() == TARGET
    want = [number(0, i, j) for i in range(len(TARGET)) for j in range(len(SOURCE))]
    assert learnt_table.locator("td:not(thead *)").all_text_contents() == want
    assert gold.locator("tbody tr").nth(1).locator("td").nth(1).text_content() == "1.000"
    first.get_by_role("combobox", name="step", exact=True).select_option("600")
    expect(learnt_table.page.locator("table td").nth(1)).to_have_text(number(1, 0, 0))
    assert "16 bits" in (first.locator(".attn-note").text_content() or "")


@pytest.mark.parametrize("width", [1280, 390])
def test_sizes_from_one_cell_to_128(open_page: Callable[..., Page], width: int) -> None:
    page = open_page(width=width)
    for n, last in (
        (ONE, "query a, key b"),
        (LARGEST, "query t127, key t127"),
        (WIDE, "query c, key t49"),
    ):
        shown = widget(page, n)
        focus(shown)
        press(page, "ArrowRight", "Control+End")
        weight = format_number(SHOWN[n].weights[-1, -1])
        assert text(shown, "heard") == f"{last}, weight {weight}"
        box, around = shown.locator("canvas").bounding_box(), shown.bounding_box()
        assert box and around and box["width"] <= around["width"] - 16
        assert 20 < box["height"] < 800
    hover(widget(page, LARGEST), 100, 101)
    weight = format_number(SHOWN[LARGEST].weights[100, 101])
    assert text(widget(page, LARGEST), "readout") == f"query t100 → key t101 · weight {weight}"


def test_colours_follow_the_theme(open_page: Callable[..., Page]) -> None:
    page = open_page()
    one = widget(page, ONE)
    count = """(canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let deep = 0, pale = 0;
      for (let i = 0; i < data.length; i += 4) {
        deep += data[i] === 17 && data[i + 1] === 48 && data[i + 2] === 124;
        pale += data[i] === 196 && data[i + 1] === 236 && data[i + 2] === 255;
      }
      return [deep > 500, pale > 500];
    }"""
    assert one.locator("canvas").evaluate(count) == [True, False]
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(
        f"({count})(document.querySelectorAll('.attn')[3].querySelector('canvas'))[1]"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_narrow_page_is_comfortable(open_page: Callable[..., Page], theme: str) -> None:
    page = open_page(width=390, theme=theme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    controls = page.locator(".attn button, .attn select, .attn summary").all()
    assert len(controls) > 15
    for control in controls:
        box = control.bounding_box()
        assert box and box["height"] >= 32 and box["width"] >= 32
    tables = page.locator(".attn summary").all()
    for summary in tables[:2]:
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_touch_reads_and_scrolls(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    second = widget(page, SECOND)
    start, end = cell(second, 2, 0), cell(second, 2, 4)
    page.touchscreen.tap(*start)
    assert text(second, "readout").startswith("query drei → key two")
    before = page.evaluate("scrollY")
    middle = [(start[0] + (end[0] - start[0]) * n / 8, start[1]) for n in range(9)]
    touch(page, middle)  # sideways: the cursor follows, the page stays
    assert text(second, "readout").startswith("query drei → key </s>")
    assert page.evaluate("scrollY") == before
    x, y = start
    touch(page, [(x, y - 20 * n) for n in range(9)])  # up: the page scrolls
    page.wait_for_function(f"scrollY > {before + 60}")


def test_dragging_with_the_mouse(open_page: Callable[..., Page]) -> None:
    page = open_page()
    second = widget(page, SECOND)
    start, end = cell(second, 0, 0), cell(second, 4, 3)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=6)
    page.mouse.up()
    page.mouse.move(2, 2)
    weight = format_number(SHOWN[SECOND].weights[4, 3])
    assert text(second, "readout") == f"query vierzig → key three · weight {weight}"


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_without_javascript_a_picture(open_page: Callable[..., Page], scheme: str) -> None:
    """One widget stands for all: the picture comes of the page, and test_site.py looks at each."""
    assert_pictures(open_page(scheme=scheme, javascript=False), SHOWN)


def test_labels_for_screen_readers(open_page: Callable[..., Page]) -> None:
    page = open_page()
    first = widget(page, MAP)
    name = first.get_by_role("application").get_attribute("aria-label") or ""
    assert name.startswith("The decoder finds the words. 6 rows (target word), 5 columns")
    assert first.locator("[aria-live=polite]").count() == 1
    assert page.locator(".attn [id]").count() == 0
