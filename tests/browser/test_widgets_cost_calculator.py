"""CostCalculator in Chromium, on a built page: its numbers are those of `costs.step_cost`."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import FloatRect, Locator, Page

from attnbook.model.costs import step_cost
from attnbook.web import CostCalculator
from attnbook.web.cost_calculator.widget import COUNTS, SHORT, STORE, rated, scaled, timed
from tests.browser.widget_pages import (
    box_of,
    copied,
    drag_along,
    everywhere,
    follow,
    settle,
    violations,
    widget,
    work,
)

SIX: dict[str, Any] = {"d_model": 576, "n_layers": 6, "n_heads": 9, "n_kv_heads": 3, "size": 4}
LARGE = {"d_model": 12288, "n_layers": 96, "n_heads": 96, "n_kv_heads": 96, "size": 2}
HERE, FAST = {"speed": 4.5e10, "bandwidth": 1.8e10}, {"speed": 1e15, "bandwidth": 3e12}


def point(n: int, batch: int, cache: bool) -> dict[str, Any]:
    cost = step_cost(n, **{**SIX, "batch": batch, "cache": cache})
    seconds = 1.5 * max(cost.seconds(**HERE))
    return {"n": n, "batch": batch, "cache": cache, "operations": cost.operations} | {
        "bytes": cost.cache,
        "seconds": seconds,
    }


POINTS = [point(n, b, c) for n, b, c in ((16, 1, True), (64, 1, True), (64, 8, True))]
POINTS += [point(n, 1, False) for n in (16, 64, 256)]


def widgets() -> list[Any]:
    models, machines = {"six blocks": SIX, "GPT-3": LARGE}, {"this computer": HERE, "fast": FAST}
    many = {"model": "GPT-3", "machine": "fast", "n": 65, "batch": 401}
    return [
        CostCalculator(
            models,
            machines,
            settings={"401 texts": many},
            points=POINTS,
            n=64,
            title="Mostly reading",
            name="costs",
        ),
        CostCalculator({"large": LARGE}, {"fast": FAST}, n=131072, batch=1024, cache=False),
    ]


COSTS, LARGEST = range(2)


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page(widgets())


def says(**given: Any) -> list[str]:
    """The numbers that a calculator must show."""
    sizes = {"n": 64, **SIX, "batch": 1, "cache": True, **HERE, **given}
    speeds = {name: sizes.pop(name) for name in HERE}
    cost = step_cost(**sizes)
    computing, reading = cost.seconds(**speeds)
    most, least = max(computing, reading), min(computing, reading)
    bound = "arithmetic" if computing > reading else "memory"
    other = "reading" if computing > reading else "computing"
    speed = f"at most {scaled(sizes['batch'] / most, COUNTS)} tokens a second"
    return [
        f"{scaled(cost.operations, COUNTS)} operations",
        f"Bound by {bound}, which takes {scaled(most / least, COUNTS)} times as long as"
        f" {other}: {speed}",
        *(scaled(x, STORE) for x in (cost.parameters, cost.cache, cost.scores)),
        *(timed(x) for x in (computing, reading)),
    ]


def texts(calculator: Locator) -> list[str]:
    settle(calculator.page)
    found = [".attn-readout", ".attn-cost-row b"]
    return [text for each in found for text in calculator.locator(each).all_text_contents()]


def slider(calculator: Locator, name: str) -> Locator:
    return calculator.get_by_role("slider", name=name, exact=True)


def choose(calculator: Locator, name: str, option: str) -> None:
    calculator.get_by_role("combobox", name=name).select_option(option)


@everywhere
def test_calculator_by_keyboard(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    calculator = widget(open_page(**where), COSTS)
    assert texts(calculator) == says()
    slider(calculator, "tokens n").press("End")
    assert texts(calculator) == says(n=131072)
    slider(calculator, "tokens n").press("Home")
    slider(calculator, "texts at once").press("End")
    assert texts(calculator) == says(n=1, batch=1024)
    slider(calculator, "blocks").press("ArrowRight")
    slider(calculator, "key heads").press("ArrowRight")
    assert texts(calculator) == says(n=1, batch=1024, n_layers=7, n_kv_heads=9)
    slider(calculator, "query heads").press("Home")  # one head has one of keys
    assert texts(calculator) == says(n=1, batch=1024, n_layers=7, n_heads=1, n_kv_heads=1)
    slider(calculator, "width d").press("End")
    sizes = {"n": 1, "batch": 1024, "n_layers": 7, "n_heads": 1, "n_kv_heads": 1, "d_model": 16384}
    assert texts(calculator) == says(**sizes)
    slider(calculator, "operations/s").press("Home")
    slider(calculator, "bytes/s").press("End")
    assert texts(calculator) == says(**sizes, speed=1e9, bandwidth=1e14)
    spoken = slider(calculator, "blocks").get_attribute("aria-valuetext")
    assert spoken == "7, bound by arithmetic"
    calculator.get_by_role("button", name="Reset").click()
    assert texts(calculator) == says()


@everywhere
def test_calculator_by_choice(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    calculator = widget(open_page(**where), COSTS)
    check = calculator.get_by_role("checkbox", name="keys and values kept in a cache")
    check.click()
    assert texts(calculator) == says(cache=False)
    heard = calculator.locator("[aria-live=polite]").text_content()
    assert heard == says(cache=False)[1]
    check.press("Space")
    choose(calculator, "numbers", "of 8 bits")
    model, machine = (calculator.get_by_role("combobox", name=n) for n in ("model", "machine"))
    shown = "(list) => list.selectedOptions[0].text"
    assert texts(calculator) == says(size=1)
    assert model.evaluate(shown) == "as set below"
    choose(calculator, "model", "GPT-3")
    choose(calculator, "machine", "fast")
    assert texts(calculator) == says(**LARGE, **FAST)
    assert [model.evaluate(shown), machine.evaluate(shown)] == ["GPT-3", "fast"]
    assert texts(widget(calculator.page, LARGEST)) == says(
        **LARGE, **FAST, n=131072, batch=1024, cache=False
    )


@everywhere
def test_a_setting_is_exact(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    calculator = widget(open_page(**where), COSTS)
    choose(calculator, "setting", "401 texts")
    assert texts(calculator) == says(**LARGE, **FAST, n=65, batch=401)
    slider(calculator, "blocks").press("ArrowLeft")
    settle(calculator.page)
    setting = calculator.get_by_role("combobox", name="setting")
    assert setting.evaluate("(list) => list.selectedOptions[0].text") == "as set below"
    assert calculator.page.get_by_role("combobox", name="setting").count() == 1  # none: no list


def places(calculator: Locator, look: str) -> np.ndarray:
    """Where the visible points of a kind are, x and y as shares from the lower left corner."""
    settle(calculator.page)
    script = """(all) => all.filter((e) => !e.hidden)
      .map((e) => [parseFloat(e.style.left) / 100, 1 - parseFloat(e.style.top) / 100])"""
    return np.array(calculator.locator(look).evaluate_all(script)).reshape(-1, 2)


def curves(calculator: Locator) -> list[np.ndarray]:
    settle(calculator.page)
    every = calculator.locator("polyline.attn-cost-line")
    texts = every.evaluate_all("(all) => all.map((e) => e.getAttribute('points'))")
    tables = [np.array([p.split(",") for p in text.split()], float) / 100 for text in texts if text]
    return [np.stack([table[:, 0], 1 - table[:, 1]], 1) for table in tables]


@pytest.mark.parametrize("chart", ["operations", "memory", "time"])
def test_curves_and_rings_are_where_the_formula_says(
    open_page: Callable[..., Page], chart: str
) -> None:
    calculator = widget(open_page(), COSTS)
    choose(calculator, "chart", chart)
    of = widgets()[COSTS]
    of.chart = chart
    expected, drawn = list(of.curves().values()), curves(calculator)
    measured = {"operations": 5, "memory": 2, "time": 2}[chart]  # of the batch of one
    rings = places(calculator, ".attn-cost-ring")
    assert len(rings) == measured
    column = {"operations": "operations", "memory": "bytes", "time": "seconds"}[chart]
    kept = [p for p in POINTS if p["batch"] == 1 and (p["cache"] or chart == "operations")]
    every = np.array([*np.ravel(expected), *(p[column] for p in kept)], float)
    low, high = np.floor(np.log10(every.min())), np.ceil(np.log10(every.max()) + 0.01)
    assert len(drawn) == len(expected)
    for line, values in zip(drawn, expected, strict=True):
        assert np.allclose(line[:, 0], np.arange(18) / 17, atol=1e-3)
        assert np.allclose(line[:, 1], (np.log10(values) - low) / (high - low), atol=1e-3)
    for (x, y), p in zip(rings, kept, strict=True):
        assert x == pytest.approx(np.log2(p["n"]) / 17, abs=1e-3)
        assert y == pytest.approx((np.log10(p[column]) - low) / (high - low), abs=1e-3)
    labels = calculator.locator(".attn-cost-end").all_text_contents()
    assert [text for text in labels if text] == list(of.curves())


def test_the_grid_reaches_the_top(open_page: Callable[..., Page]) -> None:
    calculator = widget(open_page("#w.costs=cache:0;n_layers:30;size:2"), COSTS)
    for chart in ("operations", "memory", "time"):  # memory: eleven powers of ten
        choose(calculator, "chart", chart)
        ticks = calculator.locator(".attn-cost-tick")
        at = sorted(
            y
            for (_, y), text in zip(
                places(calculator, ".attn-cost-tick"), ticks.all_text_contents(), strict=True
            )
            if text
        )
        assert len(at) > 3 and max(at) + (at[1] - at[0]) > 0.999


def test_rings_are_shown_where_they_were_measured(open_page: Callable[..., Page]) -> None:
    calculator = widget(open_page(), COSTS)
    note = calculator.locator(".attn-cost-note")
    slider(calculator, "texts at once").press("ArrowRight")
    assert len(places(calculator, ".attn-cost-ring")) == 0
    assert "six blocks on this computer, 1 or 8 texts at once" in (note.text_content() or "")
    for _ in range(2):
        slider(calculator, "texts at once").press("ArrowRight")
    assert len(places(calculator, ".attn-cost-ring")) == 1
    choose(calculator, "machine", "fast")
    assert len(places(calculator, ".attn-cost-ring")) == 1  # operations are the same everywhere
    choose(calculator, "chart", "time")
    assert len(places(calculator, ".attn-cost-ring")) == 0


def test_a_pointer_moves_along_the_curves(open_page: Callable[..., Page]) -> None:
    page = open_page()
    calculator = widget(page, COSTS)
    graph = calculator.locator(".attn-cost-curves .attn-graph")
    graph.scroll_into_view_if_needed()
    box = graph.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 10 / 17, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 12 / 17, box["y"] + 90, steps=3)
    page.mouse.up()
    settle(page)
    n = int((calculator.locator(".attn-value").first.text_content() or "").replace(",", ""))
    assert n == pytest.approx(4096, rel=0.05)
    assert texts(calculator) == says(n=n)
    x = places(calculator, ".attn-cost-curves .attn-point:not(.attn-cost-ring)")[:, 0]
    assert np.allclose(x, np.log2(n) / 17, atol=1e-3)


@everywhere
def test_a_link_restores_it(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    calculator = widget(page, COSTS)
    slider(calculator, "tokens n").press("End")
    choose(calculator, "model", "GPT-3")
    calculator.get_by_role("checkbox").click()
    choose(calculator, "chart", "time")
    fresh = widget(open_page(copied(calculator), **where), COSTS)
    assert texts(fresh) == says(**LARGE, n=131072, cache=False)
    assert fresh.get_by_role("combobox", name="chart").input_value() == "time"
    odd = "n:0;d_model:570;n_heads:5;n_kv_heads:7;n_layers:999;batch:-3;size:3;speed:1;chart:9"
    follow(fresh.page, f"#w.costs={odd}")  # what it can mean
    sizes = {"n": 1, "d_model": 576, "n_heads": 4, "n_kv_heads": 4, "n_layers": 128, "size": 2}
    assert texts(fresh) == says(**sizes, speed=1e9)
    assert "NaN" not in fresh.evaluate("(root) => root.innerHTML")


def test_a_drag_changes_little(open_page: Callable[..., Page]) -> None:
    calculator = widget(open_page(), COSTS)
    for name, most in (("tokens n", 68), ("blocks", 128)):
        step = (
            f"(n) => {{ node.value = (7 * n) % {most}; node.dispatchEvent(new Event('input')); }}"
        )
        counts = work(slider(calculator, name), step, moves=3)
        assert 0 < max(counts) < 250  # one drawing a frame, however many moves
    assert texts(calculator)[0].endswith("operations")


@pytest.mark.parametrize("width", [1100, 390])
def test_names_of_curves_stand_beside_them(open_page: Callable[..., Page], width: int) -> None:
    page = open_page(width=width)
    calculator = widget(page, COSTS)
    plot, frame = (
        calculator.locator(part).bounding_box()
        for part in (".attn-cost-curves .attn-graph", ":scope")
    )
    assert plot and frame
    for chart in ("operations", "memory", "time"):
        calculator.get_by_role("combobox", name="chart").select_option(chart)
        settle(page, 2)
        names = [end for end in calculator.locator(".attn-cost-end").all() if end.text_content()]
        boxes = [box for end in names if (box := end.bounding_box())]
        assert len(boxes) >= 2
        assert all(box["x"] >= plot["x"] + plot["width"] for box in boxes)
        assert all(box["x"] + box["width"] <= frame["x"] + frame["width"] for box in boxes)


def roofline(calculator: Locator, of: CostCalculator) -> None:
    """That the roof, both points and the words beneath are where Python says."""
    settle(calculator.page)
    roof = calculator.locator("polyline.attn-cost-roof").get_attribute("points") or ""
    (left, foot), (ridge, peak), end = (map(float, pair.split(",")) for pair in roof.split())
    bend = of.speed / of.bandwidth
    first = calculator.locator(".attn-cost-roofline .attn-axis span").first
    low = np.log10(float(first.text_content() or ""))
    assert left == 0 and list(end) == [100, peak]
    decade = ridge / (np.log10(bend) - low)
    rise = (foot - peak) / ridge * decade  # of a power of ten
    points = places(calculator, ".attn-cost-roofline .attn-point") * 100
    said = calculator.locator(".attn-cost-said").all_text_contents()
    alt = calculator.locator(".attn-cost-roofline [role=img]").get_attribute("aria-label") or ""
    for (x, y), words, (intensity, reached, bound) in zip(
        points, said, of.roofline().values(), strict=True
    ):
        assert x == pytest.approx((np.log10(intensity) - low) * decade, abs=0.05)
        assert 100 - y == pytest.approx(peak + np.log10(of.speed / reached) * rise, abs=0.05)
        share = f"{rated(100 * reached / of.speed)} % of the peak"
        assert f"{rated(intensity)} operations a byte, bound by {bound}: " in words
        assert f": at most {scaled(reached, SHORT)} operations a second, {share}." in words
        assert words in alt
    assert f"They meet at the ridge, {rated(bend)} operations a byte" in alt
    assert scaled(of.speed, SHORT) in alt and scaled(of.bandwidth, STORE) in alt


@everywhere
def test_points_move_below_the_roof(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    calculator, of = widget(page, COSTS), widgets()[COSTS]
    choose(calculator, "chart", "roofline")
    assert not calculator.locator(".attn-cost-curves").is_visible()
    roofline(calculator, of)
    before = places(calculator, ".attn-cost-roofline .attn-point")
    said = calculator.locator(".attn-cost-said").all_text_contents()
    knob = slider(calculator, "texts at once")
    box = box_of(knob)
    y = box["y"] + box["height"] / 2
    drag_along(page, (box["x"] + 12, y), (box["x"] + box["width"] * 0.8, y))
    of.batch = int((calculator.locator(".attn-value").nth(1).text_content() or "").replace(",", ""))
    assert of.batch > 32
    roofline(calculator, of)
    assert (places(calculator, ".attn-cost-roofline .attn-point") != before).any(1).all()
    now = calculator.locator(".attn-cost-said").all_text_contents()
    assert "bound by memory" in said[1] and "bound by arithmetic" in now[1]
    choose(calculator, "model", "GPT-3")
    of.set_state(LARGE)
    choose(calculator, "machine", "fast")
    of.set_state(FAST)
    roofline(calculator, of)
    for name, end, trait, value in (
        ("tokens n", "End", "n", 131072),
        ("operations/s", "Home", "speed", 1e9),
        ("bytes/s", "End", "bandwidth", 1e14),
    ):
        slider(calculator, name).press(end)
        of.set_state({trait: value})
        roofline(calculator, of)
    calculator.get_by_role("checkbox").click()
    of.cache = False
    roofline(calculator, of)


@pytest.mark.parametrize("width", [1100, 390])
def test_words_in_the_roofline_stand_apart(open_page: Callable[..., Page], width: int) -> None:
    page = open_page(width=width)
    calculator = widget(page, COSTS)
    choose(calculator, "chart", "roofline")
    for model, keys in (
        ("six blocks", {"tokens n": "Home", "texts at once": "Home"}),
        ("six blocks", {"tokens n": "End", "texts at once": "End"}),
        ("GPT-3", {"tokens n": "Home"}),
        ("GPT-3", {"operations/s": "Home", "bytes/s": "End"}),
        ("six blocks", {"operations/s": "End", "bytes/s": "Home"}),
    ):
        choose(calculator, "model", model)
        for name, key in keys.items():
            slider(calculator, name).press(key)
        settle(page, 2)
        inside = calculator.locator(".attn-cost-label, .attn-cost-side").all()
        frame = box_of(calculator)
        for one, other in itertools.combinations(inside, 2):
            assert not overlap(box_of(one), box_of(other)), (model, keys, one.text_content())
        for label in inside:
            box = box_of(label)
            assert frame["x"] <= box["x"]
            assert box["x"] + box["width"] <= frame["x"] + frame["width"]
            assert label.evaluate("(e) => parseFloat(getComputedStyle(e).fontSize)") >= 11


def overlap(a: FloatRect, b: FloatRect) -> bool:
    return all(
        a[at] + 1 < b[at] + b[size] and b[at] + 1 < a[at] + a[size]
        for at, size in (("x", "width"), ("y", "height"))
    )


@everywhere
def test_a_page_holds_it(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    settle(page)
    choose(widget(page, COSTS), "chart", "roofline")
    assert page.evaluate("document.documentElement.scrollWidth") <= where["width"]
    for control in page.locator(".attn button, .attn select, .attn input").all():
        box = control.bounding_box()
        assert box and box["height"] >= 32 and box["width"] >= 32


@pytest.mark.parametrize("width", [1100, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(open_page: Callable[..., Page], theme: Any, width: int) -> None:
    page = open_page(theme=theme, width=width)
    assert violations(page) == []
    choose(widget(page, COSTS), "chart", "roofline")
    settle(page)
    assert violations(page) == []
