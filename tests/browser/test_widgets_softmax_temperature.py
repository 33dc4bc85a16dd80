"""SoftmaxTemperature in Chromium, on a built page: numbers by pointer, touch and keyboard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from attnbook.web import SoftmaxTemperature, fold_tail, format_number
from attnbook.web.softmax_temperature.widget import softmax
from tests.browser.widget_pages import (
    HOSTILE,
    copied,
    everywhere,
    follow,
    settle,
    widget,
)

WORDS = ["We", "wash", "our", "cats"]
SCALED = np.array([13, 24, 20, 12]) / 8
KEYS = np.array([[3.0, 1.0, -2.0], [12.0, 20.0, 7.0]])
MANY = 4000


def vocabulary() -> np.ndarray:
    """[context, label]"""
    return np.random.default_rng(2).normal(0, 2, (3, MANY))


def widgets() -> list[SoftmaxTemperature]:
    return [
        SoftmaxTemperature(SCALED, WORDS, editable=True, title="Our scores", name="cats"),
        SoftmaxTemperature(
            vocabulary(),
            [f"word{i}" for i in range(MANY)],
            contexts=["after zwei", "after und", "after vierzig"],
            top=6,
            temperature=0.5,
            name="next-word",
        ),
        SoftmaxTemperature(np.arange(6.0), HOSTILE, editable=True, name="hostile"),
        SoftmaxTemperature([0.0, 1.0, -np.inf], ["a", "b", "masked"], editable=True, name="masked"),
        SoftmaxTemperature([3.0], ["alone"], name="alone"),
        SoftmaxTemperature(
            KEYS,
            ["key 1", "key 2", "key 3"],
            contexts=["16", "64"],
            context=1,
            temperature=8,
            hottest=64,
            greedy=False,
            editable=True,
            bar_label="key",
            score_label="score",
            share_label="weight",
            context_label="d_k",
            temperature_label="divisor",
            name="too-loud",
        ),
        SoftmaxTemperature(SCALED, WORDS, perplexity=False, name="bits-alone"),
        whole(),
    ]


def whole() -> SoftmaxTemperature:
    """All words: forty by name, the others in groups."""
    kept, logits, counts = fold_tail(vocabulary(), 40)
    names = [f"word{i}" for i in kept] + [f"{n} words" for n in counts[40:]]
    contexts = ["after zwei", "after und", "after vierzig"]
    return SoftmaxTemperature(
        logits, names, counts=counts, contexts=contexts, top=6, name="all-words"
    )


CATS, NEXT, ODD, MASKED, ALONE, LOUD, BITS, WHOLE = range(8)


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(widgets())


def bars(widget: Locator) -> list[str]:
    settle(widget.page)
    return widget.locator("li b").all_text_contents()


def expected(logits: np.ndarray, temperature: float) -> list[str]:
    return [format_number(p) for p in softmax(logits, temperature)]


def readout(widget: Locator) -> str:
    settle(widget.page)
    return widget.locator(".attn-readout").text_content() or ""


def says(logits: np.ndarray, temperature: float, labels: list[str]) -> str:
    p = softmax(logits, temperature)
    nats = -sum(x * np.log(x) for x in p if x > 0)
    best = int(np.argmax(p))
    return (
        f"Entropy {format_number(nats / np.log(2))} bits ({format_number(nats)} nats)"
        f" · perplexity {format_number(np.exp(nats), 2)}"
        f" · most likely {labels[best]} {format_number(p[best])}"
    )


def slider(widget: Locator) -> Locator:
    return widget.get_by_role("slider", name="Temperature, 0.05 to 20")


def entry(widget: Locator) -> Locator:
    return widget.get_by_role("spinbutton", name="Temperature, as a number; 0 is greedy")


def logit(widget: Locator, label: str) -> Locator:
    return widget.get_by_role("slider", name=f"Logit of {label}", exact=True)


def temperature(widget: Locator) -> float:
    settle(widget.page)
    return float(entry(widget).input_value())


def test_a_folded_vocabulary_counts_all_words(open_page: Callable[..., Page]) -> None:
    view = widget(open_page(), WHOLE)
    given, counts = whole(), np.array(whole().counts)
    for t in (1.0, 8.0):  # at 8, groups have more than any word
        entry(view).fill(str(t))
        p = softmax(given.logits[0], t, counts)
        nats = -(p * np.log(p / counts)).sum()
        best = int(given.logits[0].argmax())
        assert f"Entropy {format_number(nats / np.log(2))} bits" in readout(view)
        assert f"most likely {given.labels[best]} {format_number(p[best])}" in readout(view)
        assert bars(view)[0] == format_number(p[best])
    expect(view.get_by_text("3,994 others")).to_be_visible()
    assert f"if all {MANY:,} have the same" in (view.locator(".attn-caption").text_content() or "")


@everywhere
def test_keyboard_warms_and_cools(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    cats = widget(page, CATS)
    assert bars(cats) == ["0.121", "0.480", "0.291", "0.107"]
    assert readout(cats) == says(SCALED, 1, WORDS)
    slider(cats).focus()
    page.keyboard.press("ArrowRight")
    warmer = temperature(cats)
    assert 1 < warmer < 1.1
    assert bars(cats) == expected(SCALED, warmer)
    for key, end in (("Home", 0.05), ("End", 20.0)):
        page.keyboard.press(key)
        assert temperature(cats) == end
        assert bars(cats) == expected(SCALED, end)
        assert readout(cats) == says(SCALED, end, WORDS)
    best = expected(SCALED, 20)[1]
    assert slider(cats).get_attribute("aria-valuetext") == f"20, most likely wash {best}"
    entry(cats).fill("0.5")
    assert bars(cats) == expected(SCALED, 0.5)
    page.keyboard.press("Tab")
    expect(cats.locator("[aria-live=polite]")).to_have_text(says(SCALED, 0.5, WORDS))


@everywhere
def test_pointer_drags_the_slider(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    cats = widget(page, CATS)
    slider(cats).scroll_into_view_if_needed()
    box = slider(cats).bounding_box()
    assert box
    y, middle = box["y"] + box["height"] / 2, box["x"] + box["width"] / 2
    page.mouse.move(middle, y)
    page.mouse.down()
    seen = []
    for x in (middle - 40, middle - 80, box["x"] + 2, middle + 60, box["x"] + box["width"] - 2):
        page.mouse.move(x, y, steps=3)
        seen.append(temperature(cats))
        assert bars(cats) == expected(SCALED, seen[-1])
    page.mouse.up()
    assert 1 > seen[0] > seen[1] > seen[2] == 0.05 < 1 < seen[3] < seen[4] == 20
    fills = cats.locator(".attn-fill").evaluate_all("(all) => all.map((fill) => fill.style.width)")
    p = softmax(SCALED, 20)
    assert [float(width[:-1]) for width in fills] == pytest.approx(100 * p, abs=0.01)


@everywhere
def test_words_and_range_are_the_chapters(
    open_page: Callable[..., Page], where: dict[str, Any]
) -> None:
    page = open_page(**where)
    loud = widget(page, LOUD)
    head = " ".join((loud.locator(".attn-head").text_content() or "").split())
    assert head == "keyscoreweight (mark : at divisor 1)"
    caption = loud.locator(".attn-caption").text_content() or ""
    told = "Entropy by divisor: 0 bits if a single one has all the weight, 1.58 (dashed)"
    assert caption.startswith(told)
    assert loud.locator(".attn-ticks span").all_text_contents()[-3:] == ["10", "20", "50"]
    assert loud.get_by_role("button", name="Greedy").count() == 0
    assert loud.get_by_role("combobox", name="d_k").input_value() == "64"
    slider = loud.get_by_role("slider", name="Divisor, 0.05 to 64")
    entry = loud.get_by_role("spinbutton", name="Divisor, as a number", exact=True)
    assert bars(loud) == expected(KEYS[1], 8)
    slider.focus()
    for key, divisor in (("End", 64.0), ("Home", 0.05)):
        page.keyboard.press(key)
        settle(page)
        assert float(entry.input_value()) == divisor
        assert bars(loud) == expected(KEYS[1], divisor)
    entry.fill("32")
    assert bars(loud) == expected(KEYS[1], 32)
    (x,) = loud.locator(".attn-dot").evaluate_all(
        "(all) => all.map((d) => parseFloat(d.style.left))"
    )
    assert x == pytest.approx(100 * np.log(32 / 0.05) / np.log(64 / 0.05))
    drag = loud.get_by_role("slider", name="Score of key 2", exact=True)
    assert (drag.get_attribute("aria-valuetext") or "").startswith("20.000, weight ")
    loud.get_by_role("combobox", name="d_k").select_option("16")
    assert bars(loud) == expected(KEYS[0], 32)
    loud.get_by_role("button", name="Reset").click()
    assert bars(loud) == expected(KEYS[1], 8)
    assert loud.get_by_role("combobox", name="d_k").input_value() == "64"


def test_entropy_in_bits_alone(open_page: Callable[..., Page]) -> None:
    bits, _, largest = says(SCALED, 1, WORDS).split(" · ")
    line = f"{bits.split(' (')[0]} · largest {largest.removeprefix('most likely ')}"
    assert readout(widget(open_page(), BITS)) == line


def test_towards_zero_is_greedy(open_page: Callable[..., Page]) -> None:
    page = open_page()
    cats = widget(page, CATS)
    for zero in ("0", "1e-6", "1e-300"):
        entry(cats).fill(zero)
        assert bars(cats) == ["0.000", "1.000", "0.000", "0.000"]
        cold = "Entropy 0.000 bits (0.000 nats) · perplexity 1.00 · most likely wash 1.000"
        assert readout(cats) == cold
    entry(cats).fill("-3")  # not a temperature: nothing happens
    assert bars(cats) == ["0.000", "1.000", "0.000", "0.000"]
    entry(cats).fill("1e9")
    assert bars(cats) == ["0.250"] * 4
    cats.get_by_role("button", name="Greedy (0)").click()
    assert temperature(cats) == 0
    assert bars(cats) == ["0.000", "1.000", "0.000", "0.000"]


@everywhere
def test_logits_can_be_dragged(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    cats = widget(page, CATS)
    drag = logit(cats, "cats")
    drag.scroll_into_view_if_needed()
    box = drag.bounding_box()
    assert box and box["height"] >= 32
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, y, steps=4)
    page.mouse.up()
    settle(page)
    high = float(cats.locator("li .attn-logit").nth(3).text_content() or "nan")
    assert high == 6  # three above the largest
    assert bars(cats) == expected(np.array([*SCALED[:3], high]), 1)
    drag.focus()
    page.keyboard.press("Home")
    settle(page)
    low = float(cats.locator("li .attn-logit").nth(3).text_content() or "nan")
    assert low == -2
    assert bars(cats) == expected(np.array([*SCALED[:3], low]), 1)
    page.keyboard.press("ArrowRight")
    settle(page)
    assert -2 < float(cats.locator("li .attn-logit").nth(3).text_content() or "nan") < -1.8
    cats.get_by_role("button", name="Reset").click()
    assert bars(cats) == expected(SCALED, 1)


def test_a_masked_logit_stays_masked(open_page: Callable[..., Page]) -> None:
    page = open_page()
    masked = widget(page, MASKED)
    assert masked.locator("li .attn-logit").all_text_contents() == ["0.000", "1.000", "-∞"]
    assert logit(masked, "masked").is_disabled()
    entry(masked).fill("20")
    assert bars(masked)[2] == "0.000"
    entry(masked).fill("0")
    assert bars(masked) == ["0.000", "1.000", "0.000"]
    assert bars(widget(page, ALONE)) == ["1.000"]


@everywhere
def test_the_largest_of_thousands(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    words = widget(page, NEXT)
    for context, name in enumerate(["after zwei", "after und", "after vierzig"]):
        words.get_by_role("combobox", name="context").select_option(name)
        settle(page)
        logits = vocabulary()[context]
        order = np.argsort(-logits, kind="stable")[:6]
        labels = [f"word{i}" for i in order]
        assert words.locator(".attn-label").all_text_contents() == [*labels, "3,994 others"]
        p = softmax(logits, 0.5)
        rest = format_number(float(1 - p[order].sum()))
        assert bars(words) == [*(format_number(float(p[i])) for i in order), rest]
        assert readout(words) == says(logits, 0.5, [f"word{i}" for i in range(MANY)])


@everywhere
def test_two_on_a_page_and_reset(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    cats, words = widget(page, CATS), widget(page, NEXT)
    entry(cats).fill("3")
    assert temperature(words) == 0.5
    words.get_by_role("combobox", name="context").select_option("after und")
    entry(words).fill("7")
    assert temperature(words) == 7
    words.get_by_role("button", name="Reset").click()
    assert temperature(words) == 0.5
    assert words.get_by_role("combobox", name="context").input_value() == "after zwei"
    assert temperature(cats) == 3
    assert bars(cats) == expected(SCALED, 3)


@everywhere
def test_a_link_restores_the_state(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    words, cats = widget(page, NEXT), widget(page, CATS)
    words.get_by_role("combobox", name="context").select_option("after und")
    assert copied(words) == "#w.next-word=context:1"
    entry(cats).fill("0.25")
    logit(cats, "our").focus()
    page.keyboard.press("End")
    link = copied(cats)
    assert link == "#w.cats=temperature:0.25;logits:2,6&w.next-word=context:1"
    fresh = open_page(link, **where)
    assert bars(widget(fresh, CATS)) == expected(np.array([*SCALED[:2], 6, SCALED[3]]), 0.25)
    assert widget(fresh, NEXT).get_by_role("combobox").input_value() == "after und"
    follow(fresh, "#w.cats=temperature:-4;logits:1.5,3,99,9;context:8")
    assert bars(widget(fresh, CATS)) == ["0.000", "1.000", "0.000", "0.000"]  # what it can mean


@everywhere
def test_hostile_tokens_stay_text(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    odd = widget(page, ODD)
    shown = [token or "∅" for token in HOSTILE]
    assert odd.locator(".attn-label").all_text_contents() == shown
    titles = [label.get_attribute("title") for label in odd.locator(".attn-label").all()]
    assert titles == shown  # the whole, where the label is cut
    for n, token in enumerate(shown):
        assert logit(odd, token).count() == 1, n
    assert odd.locator("img").count() == 0
    assert "hacked" not in page.title()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_curve_carries_the_dot(open_page: Callable[..., Page]) -> None:
    page = open_page()
    cats = widget(page, CATS)
    points = cats.locator("polyline").get_attribute("points") or ""
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert heights == sorted(heights, reverse=True)  # entropy only grows with temperature
    assert heights[0] == pytest.approx(100, abs=1)  # the base line: no doubt left
    assert heights[-1] == pytest.approx(12, abs=1)  # the dashed line: all equally likely
    for value in ("0.05", "1", "4", "20"):
        entry(cats).fill(value)
        settle(page)
        x, y = cats.locator(".attn-dot").evaluate(
            "(dot) => [dot.style.left, dot.style.top].map(parseFloat)"
        )
        assert y == pytest.approx(np.interp(x, np.linspace(0, 100, len(heights)), heights), abs=0.3)


def test_narrow_page_is_comfortable(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390, theme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for control in page.locator(".attn button, .attn select, .attn input").all():
        box = control.bounding_box()
        assert box and box["height"] >= 32 and box["width"] >= 32
    values = page.locator(".attn li b").all()
    assert all((value.bounding_box() or {"x": 999})["x"] < 360 for value in values)


def test_sideways_touch_leaves_scrolling_alone(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    actions = page.locator(".attn input[type=range]").evaluate_all(
        "(all) => all.map((input) => getComputedStyle(input).touchAction)"
    )
    assert set(actions) == {"pan-y"}


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_motion_as_preferred(open_page: Callable[..., Page], motion: Any) -> None:
    page = open_page()
    page.emulate_media(reduced_motion=motion)
    moves = page.locator(".attn-fill").first.evaluate(
        "(fill) => getComputedStyle(fill).transitionProperty !== 'none'"
    )
    assert moves == (motion == "no-preference")
