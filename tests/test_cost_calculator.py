"""CostCalculator's Python side, and that the page computes as `costs.step_cost` does."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from attnbook import web
from attnbook.model.costs import step_cost
from attnbook.web import CostCalculator
from attnbook.web.cost_calculator.widget import COUNTS, MOST, STORE, WIDTHS, rated, scaled, timed

SMALL = {"d_model": 576, "n_layers": 6, "n_heads": 9, "n_kv_heads": 3, "size": 4}
LARGE = {"d_model": 12288, "n_layers": 96, "n_heads": 96, "n_kv_heads": 96, "size": 2}
HERE = {"speed": 5e10, "bandwidth": 2e10}
POINT = {"n": 64, "batch": 2, "cache": True, "operations": 7, "bytes": 8, "seconds": 0.5}

SETTING = {"model": "large", "machine": "here", "n": 63, "batch": 401}


def calculator(**options: Any) -> CostCalculator:
    given = {"models": {"small": SMALL, "large": LARGE}, "machines": {"here": HERE}, **options}
    return CostCalculator(**given)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"models": {}}, "models must have d_model, n_layers, n_heads, n_kv_heads, size each"),
        ({"models": {"a": {**SMALL, "d_ff": 4}}}, "n_kv_heads, size each, not {'a'"),
        ({"machines": {"b": {"speed": 1e10}}}, "machines must have speed, bandwidth each, not"),
        ({"models": {"a": {**SMALL, "d_model": 577}}}, "models['a']: d_model must be one of"),
        ({"models": {"a": {**SMALL, "n_layers": 129}}}, "n_layers must be 1..128, not 129"),
        ({"models": {"a": {**SMALL, "n_heads": 5}}}, "n_heads must divide d_model, 576, into"),
        ({"models": {"a": {**SMALL, "n_heads": 96}}}, "of 8 numbers or more, not 96"),
        ({"models": {"a": {**SMALL, "n_kv_heads": 2}}}, "n_kv_heads must divide n_heads, 9, not 2"),
        ({"models": {"a": {**SMALL, "size": 3}}}, "size must be one of [1, 2, 4] bytes, not 3"),
        ({"machines": {"b": {**HERE, "speed": 1e8}}}, "speed must be 1e9 to 1e16, not 1"),
        ({"machines": {"b": {**HERE, "bandwidth": 1e15}}}, "bandwidth must be 1e9 to 1e14, not"),
        ({"points": [{**POINT, "ms": 3}]}, "points must have n, batch, cache, operations, bytes,"),
        ({"points": [{**POINT, "seconds": np.nan}]}, "points must have n, batch, cache"),
        (
            {"machines": {"b": HERE, "c": {**HERE, "speed": 1e8}}},
            "machines['c']: speed must be 1e9 to 1e16, not 1",
        ),
        ({"points": [{**POINT, "n": -5}]}, "points: n must be 1..131072, not -5"),
        ({"points": [{**POINT, "n": 10**9}]}, "points: n must be 1..131072, not 1000000000"),
        ({"points": [{**POINT, "batch": 2.7}]}, "points: batch must be 1..1024, not 2.7"),
        ({"points": [{**POINT, "operations": 0}]}, "points: operations must be above 0, not 0"),
        ({"points": [{**POINT, "bytes": -1}]}, "points: bytes must be at least 0, not -1"),
        ({"points": [{**POINT, "seconds": -1}]}, "points: seconds must be above 0, not -1"),
        (
            {"settings": {"s": {"n": 1}}},
            "settings['s']: must have model, machine, n and batch, not",
        ),
        (
            {"settings": {"s": {**SETTING, "model": "x"}}},
            "settings['s']: no such model or machine: x",
        ),
        (
            {"settings": {"s": {**SETTING, "batch": 1025}}},
            "settings['s']: batch must be 1..1024, not",
        ),
        ({"n": 0}, "n must be 1..131072, not 0"),
        ({"batch": 1025}, "batch must be 1..1024, not 1025"),
        (
            {"chart": "cost"},
            "chart must be one of ['operations', 'memory', 'time', 'roofline'], not",
        ),
    ],
)
def test_what_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        calculator(**options)


def test_a_setting_sets_everything_exactly() -> None:
    (chosen,) = calculator(settings={"many": SETTING}).settings
    assert chosen == {"name": "many", "n": 63, "batch": 401, "cache": True, **LARGE, **HERE}


def test_it_follows_the_browser_and_python() -> None:
    widget = calculator(points=[POINT])
    widget.set_state({**LARGE, "n": 9, "batch": 4, "cache": False, "chart": "time", "speed": 1e15})
    assert widget.cost() == step_cost(9, 12288, 96, 96, 96, batch=4, cache=False, size=2)
    assert widget.seconds() == widget.cost().seconds(1e15, 2e10)
    for trait, value in (("n", 0), ("n_heads", 7), ("d_model", 5), ("chart", ""), ("speed", 1)):
        before = getattr(widget, trait)
        with pytest.raises(ValueError, match=trait):
            setattr(widget, trait, value)
        assert getattr(widget, trait) == before


def test_curves_are_those_of_the_formula() -> None:
    widget = calculator(batch=3, chart="operations")
    sizes: Any = {"batch": 3, "size": 4}
    anew, kept = widget.curves()["all anew"], widget.curves()["with a cache"]
    assert anew[5] == step_cost(32, 576, 6, 9, 3, cache=False, **sizes).operations
    assert kept[5] == step_cost(32, 576, 6, 9, 3, **sizes).operations
    widget.chart = "memory"
    assert widget.curves()["cache"][17] == step_cost(131072, 576, 6, 9, 3, **sizes).cache
    widget.cache = False
    assert list(widget.curves()) == ["parameters", "scores"]
    widget.chart = "time"
    for name, k in (("computing", 0), ("reading", 1)):
        assert widget.curves()[name][10] == widget.seconds(n=1024)[k]


def test_a_point_below_the_roof_computed_by_hand() -> None:
    sizes = {"d_model": 64, "n_layers": 1, "n_heads": 4, "n_kv_heads": 2, "size": 2}
    speeds = {"speed": 1e12, "bandwidth": 1e11}  # the ridge: 10 operations a byte
    widget = calculator(models={"tiny": sizes}, machines={"here": speeds}, n=16, chart="roofline")
    # matrices: 10 · 64² + 2 · 64 · 32 = 45,056; a token: 2 · 45,056 + 4 · 16 · 64 = 94,208
    # read: 2 · 45,056 bytes of parameters, 2 · 16 · 32 · 2 = 2,048 of the cache
    reading, writing = widget.roofline().values()
    assert writing == (94208 / 92160, pytest.approx(94208 / 92160 * 1e11), "memory")
    assert reading == (16 * 94208 / 90112, 1e12, "arithmetic")  # 16.7 operations a byte
    widget.cache = False  # each token reads all anew
    assert list(widget.roofline().values()) == [reading, reading]


def test_one_text_waits_for_memory_and_a_long_prompt_for_arithmetic() -> None:
    machine = {"speed": 1e15, "bandwidth": 3.35e12}
    for sizes in (SMALL, LARGE):
        widget = calculator(models={"a": sizes}, machines={"fast": machine})
        reading, writing = widget.roofline().values()
        assert (reading.bound, writing.bound) == ("arithmetic", "memory")
        assert reading.intensity > 1e15 / 3.35e12 > 100 * writing.intensity
        assert reading.reached == 1e15
        assert writing.reached == pytest.approx(3.35e12 * writing.intensity)


def test_the_picture_draws_the_roof() -> None:
    widget = calculator(chart="roofline")
    figure = Figure()
    widget.draw(figure)
    roof, *points = figure.axes[0].lines
    x, y = np.asarray(roof.get_xydata()).T
    assert x[1] == 2.5 and np.allclose(y, np.minimum(5e10, 2e10 * x))
    drawn = [np.ravel(point.get_xydata()).tolist() for point in points]
    assert drawn == [[each.intensity, each.reached] for each in widget.roofline().values()]
    assert "bound by memory" in str(points[1].get_label())
    assert figure.axes[0].get_xlabel() == "operations a byte; the ridge at 2.50"


def test_the_picture_draws_the_curves() -> None:
    widget = calculator(chart="memory")
    figure = Figure()
    widget.draw(figure)
    *lines, here = figure.axes[0].lines
    for line, values in zip(lines, widget.curves().values(), strict=True):
        assert np.array_equal(
            np.asarray(line.get_xydata()), np.stack([2 ** np.arange(18), values], 1)
        )
    assert np.asarray(here.get_xdata()).tolist() == [1024, 1024]
    assert "reading" in figure.axes[0].get_xlabel()


def test_numbers_as_one_reads_them() -> None:
    numbers = [0, 1, 999, 999.4, 999.6, 1000, 1234, 9.994e6, 9.996e6, 99.96e9, 5e21]
    assert [scaled(x, COUNTS) for x in numbers[:8]] == [
        *("0", "1", "999", "999", "1.00 thousand", "1.00 thousand", "1.23 thousand"),
        "9.99 million",
    ]
    assert [scaled(x, STORE) for x in numbers[7:10]] == ["9.99 MB", "10.0 MB", "100 GB"]
    assert scaled(5e21, COUNTS) == "5,000 quintillion"
    assert [rated(x) for x in (1e-5, 0.00123, 0.01, 298.6)] == ["0.00001", "0.0012", "0.01", "299"]
    assert [timed(x) for x in (2e-10, 3.21e-6, 0.0123, 0.5, 12, 4000, 1649.4)] == [
        *("0.20 ns", "3.21 µs", "12.3 ms", "500 ms", "12 s", "4,000 s", "1,649 s"),
    ]


def node(script: str, given: Any) -> Any:
    """What a script prints, with `given` and the widget's functions."""
    file = Path(web.__file__).parent / "cost_calculator/costs.js"
    head = (
        f"import * as calculator from {json.dumps(file.as_uri())};"
        "const { stepCost, seconds, counted, stored, timed, rated, divisors } = calculator;"
        "import { readFileSync } from 'node:fs';"
        "const given = JSON.parse(readFileSync(0, 'utf8'));"
    )
    out = subprocess.run(
        [shutil.which("node") or "node", "--input-type=module", "-e", head + script],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(out.stdout)


def test_the_page_counts_as_python_does() -> None:
    rng = np.random.default_rng(0)
    cases: list[dict[str, Any]] = []
    for _ in range(200):
        d = int(rng.choice(WIDTHS))
        heads = int(rng.choice([h for h in range(1, d // 8 + 1) if d % h == 0]))
        groups = int(rng.choice([g for g in range(1, heads + 1) if heads % g == 0]))
        n, layers, batch = (int(2 ** rng.uniform(0, np.log2(most))) for most in MOST)
        case = {"n": n, "d_model": d, "n_layers": layers, "n_heads": heads, "n_kv_heads": groups}
        more = {
            "batch": batch,
            "cache": bool(rng.random() < 0.5),
            "size": int(rng.choice([1, 2, 4])),
        }
        cases.append(case | more)
    speeds = {"speed": 3e11, "bandwidth": 7e10}
    found = node(
        "console.log(JSON.stringify(given.cases.map((c) => {"
        "const cost = stepCost(c), times = seconds(cost, given.speeds);"
        "const words = [counted(cost.operations), stored(cost.cache), timed(times[0])];"
        "return [cost, times, ...words]; })));",
        {"cases": cases, "speeds": speeds},
    )
    for case, (cost, times, operations, cache, computing) in zip(cases, found, strict=True):
        ours = step_cost(**case)
        assert cost == pytest.approx(ours._asdict(), rel=1e-12)
        assert times == pytest.approx(ours.seconds(**speeds), rel=1e-12)
        assert operations == scaled(ours.operations, COUNTS)
        assert (cache, computing) == (scaled(ours.cache, STORE), timed(ours.seconds(**speeds)[0]))


def test_the_page_draws_the_roofline_of_python() -> None:
    machines = [HERE, {"speed": 1e15, "bandwidth": 3.35e12}, {"speed": 1e9, "bandwidth": 1e14}]
    choices = [(SMALL, 1, 1), (SMALL, 1024, 7), (LARGE, 64, 300), (LARGE, 131072, 1024)]
    for speeds in machines:
        for sizes, n, batch in choices:
            widget = calculator(
                models={"a": sizes}, machines={"b": speeds}, n=n, batch=batch, cache=n != 64
            )
            now = {**sizes, **speeds, "n": n, "batch": batch, "cache": n != 64}
            found = node(
                "const all = calculator.roofline(given).map(Object.values);"
                "console.log(JSON.stringify([...all, rated(given.speed / given.bandwidth)]));",
                now,
            )
            ours = [[name, *each] for name, each in widget.roofline().items()]
            for (name, x, y, bound), (name_, x_, y_, bound_) in zip(found, ours, strict=False):
                assert (name, bound) == (name_, bound_)
                assert [x, y] == pytest.approx([x_, y_], rel=1e-12)
            assert found[2] == rated(speeds["speed"] / speeds["bandwidth"])


def test_divisors() -> None:
    assert node("console.log(JSON.stringify([divisors(576, 8), divisors(9)]));", 0) == [
        [1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32, 36, 48, 64, 72],
        [1, 3, 9],
    ]
