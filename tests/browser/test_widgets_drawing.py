"""Drawing in Chromium, on a built page: steps by keyboard, touch, play and link; still ones."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page

from attnbook.show.drawing import arrow, box, cells, column, row, space, text
from attnbook.web import Drawing, Step
from tests.browser.widget_pages import (
    HOSTILE,
    copied,
    everywhere,
    follow,
    serious,
    settle,
    stop_clocks,
    tick,
    widget,
)
from tests.helpers.widgets import walk


def tall() -> Drawing:
    """Twelve boxes, one below the other, of which three or four are in the window at once."""
    parts = [box(f"part {n}", "state", name=f"p{n}") for n in range(12)]
    body = column(*parts, text("the end", beside="p11"), gap=60)
    steps = [Step(f"This is [part {n}](p{n}).", f"p{n}") for n in range(12)]
    links = [arrow(f"p{n}", f"p{n + 1}") for n in range(11)]
    return Drawing(body, *links, alt="Twelve boxes in a row", steps=steps, name="tall")


def odd() -> Drawing:
    body = column(
        *(box(each[:30], name="odd") for each in HOSTILE), space(9), cells([[1]], name="x")
    )
    return Drawing(body, alt=f"Odd texts {HOSTILE[0]}", title=HOSTILE[1])


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page([walk(title="A walk", name="walk"), tall(), STILL, odd()])


WALK, TALL = range(2)
STILL = Drawing(
    row(box("a", name="a"), box("b", "key", name="b")),
    arrow("a", "b"),
    alt="An arrow from a to b",
    title="Still",
)


def button(drawing: Locator, name: str) -> Locator:
    return drawing.get_by_role("button", name=name, exact=True)


def seen(drawing: Locator) -> dict[str, int]:
    """How many parts of each name are shown."""
    settle(drawing.page)
    names = drawing.locator("[data-part]").evaluate_all(
        "(all) => all.map((e) => [e.dataset.part, !e.closest('.draw-unseen')])"
    )
    counts: dict[str, int] = {}
    for name, there in names:
        counts[name] = counts.get(name, 0) + there
    return counts


def lit(drawing: Locator) -> set[str]:
    settle(drawing.page)
    return set(
        drawing.locator(".draw-lit:not(.draw-link)").evaluate_all(
            "(all) => all.map((e) => e.dataset.part ?? 'cell of ' + e.parentNode.dataset.part)"
        )
    )


def says(drawing: Locator) -> str:
    """The caption, or the question, that one sees."""
    settle(drawing.page)
    shown = drawing.locator(".attn-captions p").evaluate_all(
        "(all) => all.filter((e) => getComputedStyle(e).visibility == 'visible')"
        ".map((e) => e.textContent)"
    )
    assert len(shown) == 1
    return shown[0]


@everywhere
def test_steps_by_keyboard(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    drawing = widget(page, WALK)
    assert seen(drawing) == {"query": 1, "keys": 0, "scores": 0}
    assert (
        says(drawing) == "The query asks."
        and button(drawing, "Back").get_attribute("aria-disabled") == "true"
    )
    button(drawing, "Next").focus()
    page.keyboard.press("ArrowRight")
    assert seen(drawing) == {"query": 1, "keys": 2, "scores": 0}
    assert (says(drawing), lit(drawing)) == ("Two keys answer.", {"keys"})
    heard = drawing.locator("[aria-live=polite]")
    assert heard.text_content() == "Step 2 of 3. Two keys answer."
    page.keyboard.press("Enter")
    assert says(drawing).startswith("Which score is larger?")  # and the answer waits
    assert button(drawing, "Next").get_attribute("aria-disabled") == "true"
    page.keyboard.press("Enter")  # on Next, which gives nothing away
    assert seen(drawing)["scores"] == 0
    page.keyboard.press("ArrowRight")
    assert seen(drawing)["scores"] == 1
    assert says(drawing) == "The second score is larger."
    assert button(drawing, "Next").get_attribute("aria-disabled") == "true"
    assert lit(drawing) == {"scores", "cell of scores"}
    page.keyboard.press("ArrowLeft")
    assert seen(drawing) == {"query": 1, "keys": 2, "scores": 0}
    page.keyboard.press("ArrowRight")  # a question that was answered is not asked again
    assert seen(drawing)["scores"] == 1
    slider = drawing.get_by_role("slider", name="Step")
    slider.focus()
    page.keyboard.press("Home")
    assert seen(drawing)["keys"] == 0
    assert slider.get_attribute("aria-valuetext") == "step 1 of 3"
    button(drawing, "Reset").click()
    assert says(drawing) == "The query asks."


def test_what_comes_is_a_shadow_and_an_answer_leaves_none(open_page: Callable[..., Page]) -> None:
    drawing = widget(open_page(), WALK)

    def looks(part: str, mark: str) -> set[tuple[str, str, str]]:
        found = drawing.locator(f"[data-part={part}]").first.locator(mark)
        style = "[s.opacity, s.fillOpacity, s.stroke]"
        script = f"(all) => all.map((e) => {{ const s = getComputedStyle(e); return {style}; }})"
        return {tuple(each) for each in found.evaluate_all(script)}

    settle(drawing.page)
    drawing.page.wait_for_function(
        "document.getAnimations().every((a) => a.playState != 'running')"
    )
    assert looks("keys", "rect") == {("0.1", "1", "none")}  # one shade, whatever the numbers
    # A question asks for the scores.
    assert {opacity for opacity, *_ in looks("scores", "rect, text")} == {"0"}


@everywhere
def test_steps_by_pointer(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    drawing = widget(page, WALK)
    press = "tap" if where["width"] < 600 else "click"
    for _ in range(2):
        getattr(button(drawing, "Next"), press)()
    getattr(button(drawing, "Show the answer"), press)()
    assert seen(drawing)["scores"] == 1
    noun = drawing.locator(".attn-here .attn-noun")
    colours = noun.evaluate_all("(all) => all.map((e) => getComputedStyle(e).color)")
    ink = drawing.evaluate("(e) => getComputedStyle(e).color")
    assert ink not in colours
    getattr(noun, press)()
    assert lit(drawing) == {"cell of scores"}
    for name in ("Back", "Play", "Next"):
        box = button(drawing, name).bounding_box()
        assert box and box["height"] >= 44 and box["width"] >= 44
    assert page.evaluate("document.documentElement.scrollWidth") <= where["width"]


def test_a_link_leads_to_a_step_and_copies_one(open_page: Callable[..., Page]) -> None:
    page = open_page("#w.tall=step:7")
    drawing = widget(page, TALL)
    assert says(drawing) == "This is part 6."
    assert sum(seen(drawing).values()) == 7
    button(drawing, "Next").click()
    assert copied(drawing) == "#w.tall=step:8"
    follow(page, "#w.tall=step:99")
    assert says(drawing) == "This is part 11."


@pytest.mark.parametrize("width", [1280, 390])
def test_the_part_of_a_step_is_in_the_window(open_page: Callable[..., Page], width: int) -> None:
    page = open_page(width=width)
    page.emulate_media(reduced_motion="reduce")
    drawing = widget(page, TALL)
    stage = drawing.locator(".attn-stage")
    tops = []
    for n in range(12):
        drawing.get_by_role("slider").fill(str(n + 1))
        settle(page)
        part, frame = drawing.locator(f"[data-part=p{n}]").bounding_box(), stage.bounding_box()
        assert part and frame
        assert frame["y"] - 1 <= part["y"]
        assert part["y"] + part["height"] <= frame["y"] + frame["height"] + 1
        tops.append(round(frame["y"] - drawing.bounding_box()["y"]))  # type: ignore[index]
    assert len(set(tops)) == 1  # nothing jumps
    caption = drawing.locator(".attn-here").bounding_box()
    whole, keys = drawing.bounding_box(), button(drawing, "Next").bounding_box()
    assert caption and whole and keys and frame
    if width < 600:  # caption, buttons and drawing are on the screen together, the words first
        assert frame["y"] + frame["height"] - caption["y"] < 844 - 60
        assert caption["y"] < keys["y"] and keys["y"] + keys["height"] <= frame["y"]
    else:
        assert caption["x"] >= frame["x"] + frame["width"]


def test_play_goes_on_by_itself_and_stops(open_page: Callable[..., Page]) -> None:
    page = open_page()
    stop_clocks(page)
    drawing = widget(page, WALK)
    button(drawing, "Play").click()
    tick(page, 300)
    assert says(drawing) == "Two keys answer." and button(drawing, "Pause").is_visible()
    button(drawing, "Pause").click()
    assert tick(page, 2400) == 0
    assert says(drawing) == "Two keys answer."
    button(drawing, "Play").click()
    tick(page, 300)
    assert says(drawing).startswith("Which")
    assert tick(page, 2400) == 1
    assert says(drawing) == "The second score is larger."
    assert tick(page, 2400) == 1
    settle(page)
    assert button(drawing, "Play").is_visible() and tick(page, 2400) == 0


PACED = """() => {
  globalThis.pace = 0;
  (function hold() {
    for (const each of document.getAnimations()) each.playbackRate = pace;
    requestAnimationFrame(hold);
  })();
}"""


def test_parts_fly_into_place_unless_motion_is_unwanted(open_page: Callable[..., Page]) -> None:
    page = open_page()
    drawing = widget(page, WALK)
    flying = "[...document.querySelectorAll('.draw-ghost')].map((e) => e.getAnimations().length)"
    page.evaluate(PACED)  # they stand, to be seen
    button(drawing, "Next").click()
    settle(page)
    assert page.evaluate(flying) == [1, 1]  # the query, to each key
    page.evaluate("pace = 1")
    page.wait_for_function("!document.querySelector('.draw-ghost')")
    page.emulate_media(reduced_motion="reduce")
    button(drawing, "Next").click()
    button(drawing, "Show the answer").click()
    settle(page)
    assert page.evaluate(flying) == [] and page.evaluate("document.getAnimations().length") == 0


def test_all_of_it_is_printed(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.emulate_media(media="print")
    drawing = widget(page, WALK)
    hidden = drawing.locator("rect, text, path").evaluate_all(
        "(all) => all.filter((e) => getComputedStyle(e).opacity != '1').length"
    )
    assert hidden == 0
    assert drawing.locator(".attn-captions").inner_text().count("\n") >= 2
    picture, stage = widget(page, TALL).locator("svg"), widget(page, TALL).locator(".attn-stage")
    a, b = picture.bounding_box(), stage.bounding_box()
    assert a and b and a["height"] == pytest.approx(b["height"], abs=2)


def test_colours_follow_the_theme(open_page: Callable[..., Page]) -> None:
    page = open_page(theme="light")
    cell = page.locator(".draw-still rect").nth(1)
    fills = set()
    for theme in ("light", "dark"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        fills.add(cell.evaluate("(e) => getComputedStyle(e).fill"))
    assert len(fills) == 2


def test_a_still_drawing_needs_no_script(open_page: Callable[..., Page]) -> None:
    page = open_page(javascript=False)
    still = page.locator("figure:has(.draw-still)")
    assert still.count() == 2 and page.title() != "hacked"
    picture = still.first.get_by_role("img", name="An arrow from a to b")
    size = picture.bounding_box()
    assert size and size["width"] > 300
    assert still.first.locator("text").all_text_contents() == ["Still", "a", "b"]
    fill = still.first.locator("rect").last.evaluate("(e) => getComputedStyle(e).stroke")
    assert fill == "rgb(168, 89, 24)"  # the colour of keys
    assert "<img" in (still.last.text_content() or "")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_still_drawing_is_itself_anywhere(browser: Browser, theme: Any) -> None:
    """As a picture's file, as JupyterLab shows it, and in a page that knows nothing of ours."""
    data, _ = STILL._repr_mimebundle_()  # type: ignore[misc]
    svg = data["image/svg+xml"]
    page = browser.new_page(color_scheme=theme)
    page.set_content(svg)
    background, ink, key = page.evaluate(
        "['svg', 'text', '.draw-key rect'].map((tag) => document.querySelector(tag))"
        ".map((e, i) => getComputedStyle(e)[['backgroundColor', 'fill', 'stroke'][i]])"
    )
    assert (background, ink, key) == ("rgb(255, 255, 255)", "rgb(31, 35, 40)", "rgb(168, 89, 24)")
    page.set_content('<img alt="">')
    page.evaluate(
        """async (svg) => {
            const img = document.querySelector("img");
            img.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
            await img.decode();
        }""",
        svg,
    )
    img = page.locator("img")
    assert img.evaluate("(node) => node.naturalWidth") == 520
    corner = Image.open(io.BytesIO(img.screenshot())).convert("RGB").getpixel((1, 1))
    assert corner == ((255, 255, 255) if theme == "light" else (21, 24, 29))
    page.close()


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing(open_page: Callable[..., Page], theme: str, width: int) -> None:
    page = open_page(theme=theme, width=width)
    button(widget(page, WALK), "Next").click()
    assert serious(page) == []
