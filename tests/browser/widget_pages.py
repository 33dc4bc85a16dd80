"""What the tests of widgets share: where they open a page, odd tokens, waiting, what is read."""

import base64
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from attnbook.web import format_number
from attnbook.web.rotary_dial.widget import positioned
from tests.helpers import firefox
from tools.notebooks import ROOT

HOSTILE = [
    "<img src=x onerror=document.title='hacked'>",
    '"quo\'te" &amp; <b>',
    "שלום עולם",
    "👩‍👩‍👧‍👦",
    "long" * 60,
    "",
]
PLACES = [  # every two of scheme, theme and width together once
    {"scheme": scheme, "theme": theme, "width": width}
    for scheme, theme, width in (
        ("http", "light", 1280),
        ("file", "light", 390),
        ("http", "dark", 390),
        ("file", "dark", 1280),
    )
]
AXE = ROOT / "node_modules/axe-core/axe.min.js"
SERIOUS = """async () => (await axe.run({ resultTypes: ["violations"] })).violations
    .filter((found) => ["serious", "critical"].includes(found.impact))
    .map((found) => found.id + ": " + found.nodes.map((node) => node.html).join(" | "))"""
VIOLATIONS = """async (part) => (await axe.run(part, { resultTypes: ["violations"] })).violations
    .map(({ id, nodes }) => id + ": " + nodes.map((node) => node.html).join(" | "))"""
TURNS: Counter[str] = Counter()  # of each module


def everywhere(test: Callable[..., None]) -> Callable[..., None]:
    """Run a test in four places. `make test` takes one of them, the next for each test of a
    module."""
    turn = TURNS[test.__module__] % len(PLACES)
    TURNS[test.__module__] += 1
    places = [
        pytest.param(
            where, id="-".join(map(str, where.values())), marks=[pytest.mark.full] * (n != turn)
        )
        for n, where in enumerate(PLACES)
    ]
    return pytest.mark.parametrize("where", places)(test)


def widget(page: Page, n: int) -> Locator:
    return page.locator(".attn").nth(n)


def settle(page: Page, frames: int = 1) -> None:
    """Until the next frame is drawn, in which widgets show what they were told before."""
    frame = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
    for _ in range(frames):
        page.evaluate(frame)


def until(page: Page, holds: Callable[[], bool], instead: Callable[[], str] = str) -> None:
    """Waits for what only Python sees of a page; `instead` says what came in its place."""
    for _ in range(1200):
        if holds():
            return
        page.wait_for_timeout(50)  # between two looks: meanwhile Playwright hears of the page
    raise AssertionError(f"it did not come in a minute. {instead()}")


def follow(page: Page, link: str) -> None:
    """Goes to another fragment of the page, as a link does, until all have heard of it."""
    script = """(link) => new Promise((done) => {
      const before = location.href;
      addEventListener("hashchange", done, { once: true });
      location.hash = link;
      if (location.href === before) done(); // it was there already
    })"""
    page.evaluate(script, link)
    settle(page)


def copied(view: Locator) -> str:
    """The fragment of the link to its present state, which a widget copies when it is asked to."""
    page = view.page
    view.get_by_role("button", name="Copy link to this state").click()
    page.wait_for_function("async () => await navigator.clipboard.readText() === location.href")
    expect(view.get_by_text("Link copied")).to_be_visible()
    return "#" + page.evaluate("location.href").split("#")[1]


# Nothing fades or flies any more.
STILL = "() => document.getAnimations().every((each) => each.playState !== 'running')"
TIMERS = """() => {
  const soon = setTimeout, clear = clearTimeout, waiting = new Map();
  let last = 1e9; // the page's own timers have smaller numbers
  const wait = (again) => (f, ms) => (ms ? (waiting.set(++last, { f, ms, again }), last) : soon(f));
  const stop = (n) => waiting.delete(n) || clear(n);
  Object.assign(globalThis, {
    setTimeout: wait(false), setInterval: wait(true), clearTimeout: stop, clearInterval: stop,
    tick(ms) {
      const over = [...waiting].filter(([, each]) => each.ms === ms);
      for (const [n, { f, again }] of over) (again || waiting.delete(n), f());
      return over.length;
    },
  });
}"""


def stop_clocks(page: Page) -> None:
    """From now on what plays moves on by `tick`, however slow the machine is."""
    page.evaluate(TIMERS)


def tick(page: Page, ms: int) -> int:
    """Lets the time of the timers of so many milliseconds be over; gives how many waited."""
    return page.evaluate("(ms) => tick(ms)", ms)


def serious(page: Page) -> list[str]:
    """What axe finds wrong with a page, and may keep somebody from reading it."""
    page.wait_for_function(STILL)
    page.add_script_tag(path=AXE)
    return page.evaluate(SERIOUS)


def violations(page: Page, part: str = ".attn") -> list[str]:
    """All that axe finds wrong with the widgets of a page."""
    page.wait_for_function(STILL)
    page.add_script_tag(path=AXE)
    return page.evaluate(VIOLATIONS, part)


def assert_pictures(page: Page, widgets: list[Any]) -> None:
    """That a page without scripts shows each widget's picture and says what it is."""
    pictures = page.locator("noscript img").all()
    assert [picture.get_attribute("alt") for picture in pictures] == list(map(repr, widgets))
    assert all((picture.bounding_box() or {"width": 0})["width"] > 100 for picture in pictures)


def touch(page: Page, points: list[tuple[float, float]]) -> None:
    """A finger, as the screen reports it: the browser may take the gesture for scrolling."""
    if page.context.browser and page.context.browser.browser_type.name != "chromium":
        return firefox.touch(page, points)
    session = page.context.new_cdp_session(page)
    kinds = ["touchStart", *["touchMove"] * (len(points) - 1)]
    for kind, (x, y) in zip(kinds, points, strict=True):
        spots = [{"x": x, "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": spots})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def written(drawing: Locator, part: str) -> list[str]:
    """The texts that one sees in parts of this name."""
    settle(drawing.page)
    return drawing.locator(f'[data-part="{part}"] text').evaluate_all(
        "(all) => all.filter((e) => !e.closest('.draw-unseen')).map((e) => e.textContent)"
    )


HARNESS = """async ({ state, binary, attached, onPage }) => {
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  for (const name of binary) state[name] = bytes(state[name]);
  const listeners = new Map(), unsaved = new Set(), sent = [];
  const model = {
    get(name) {
      if (!(name in state)) throw new Error(`no trait ${name}`);
      return state[name];
    },
    set(name, value) {
      if (binary.includes(name) !== value instanceof DataView) throw new Error(`${name}: ${value}`);
      model.get(name);
      unsaved.add(name);
      model.fromKernel(name, value);
    },
    fromKernel(name, value) {
      state[name] = value;
      for (const listener of [...(listeners.get(`change:${name}`) ?? [])]) listener();
    },
    save_changes: () => unsaved.clear(),
    send: (content) => void sent.push(content),
    message(content, buffers) {
      for (const listener of [...(listeners.get("msg:custom") ?? [])]) listener(content, buffers);
    },
    on: (event, listener) => listeners.set(event, [...(listeners.get(event) ?? []), listener]),
    off(event, listener) {
      const rest = listeners.get(event).filter((other) => other !== listener);
      if (rest.length === listeners.get(event).length) throw new Error(`${event} not listened to`);
      rest.length ? listeners.set(event, rest) : listeners.delete(event);
    },
  };
  const style = document.createElement("style");
  style.textContent = state._css;
  document.head.append(style);
  const url = URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" }));
  const { default: widget } = await import(url);
  const el = document.createElement("div");
  if (onPage) el.dataset.attnbookPage = "";
  if (attached) document.body.append(el);
  const cleanup = widget.render({ model, el });
  document.body.append(el); // JupyterLab does so only now
  Object.assign(globalThis, { model, el, cleanup, listeners, unsaved, sent, bytes });
}"""


def render(page: Page, widget: Any, attached: bool = True, on_page: bool = True) -> None:
    """Draws a widget by a model of its own that keeps to anywidget's contract, on an empty page of
    the book or as in a notebook."""
    raw = {name: value for name, value in widget.get_state().items() if name != "layout"}
    binary = [name for name, value in raw.items() if isinstance(value, bytes)]
    state = {
        name: base64.b64encode(value).decode() if name in binary else value
        for name, value in raw.items()
    }
    given = {"state": state, "binary": binary, "attached": attached, "onPage": on_page}
    page.evaluate(HARNESS, given)


def work(control: Locator, step: str, moves: int = 1) -> list[int]:
    """What a widget draws in each of 12 frames: calls of canvases' methods, changes of elements.

    Args:
        step: a function of JavaScript that moves something, given the number of the move from 1 on;
            `node` is the control.
        moves: how many of them come before a frame.
    """
    script = """async (node, moves) => {
      const step = STEP, all = CanvasRenderingContext2D.prototype, counts = [];
      const every = Object.entries(Object.getOwnPropertyDescriptors(all));
      const methods = every.filter(([, { value }]) => typeof value === "function");
      let calls = 0;
      for (const [name, { value }] of methods)
        all[name] = function (...given) { calls += 1; return value.apply(this, given); };
      const watch = new MutationObserver((changes) => { calls += changes.length; });
      const kinds = { childList: true, attributes: true, characterData: true, subtree: true };
      watch.observe(node.closest(".attn"), kinds);
      const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      await frame(); // of what was moved before
      calls = 0;
      for (let n = 1; n <= 12 * moves; n++) {
        step(n);
        if (n % moves) continue;
        await frame();
        counts.push(calls);
        calls = 0;
      }
      watch.disconnect();
      for (const [name, { value }] of methods) all[name] = value;
      return counts;
    }"""
    return control.evaluate(script.replace("STEP", step), moves)


def vectors(n: int, d_model: int, base: float) -> np.ndarray:
    """The sinusoidal vectors [position dimension], in double precision."""
    angles = np.arange(n)[:, None] / base ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, d_model)


def explorer_says(position: int, pair: int, base: float, max_len: int, d_model: int) -> list[str]:
    """The lines that a PositionExplorer must show."""
    p = vectors(max_len, d_model, base)
    wavelength = 2 * np.pi * base ** (2 * pair / d_model)
    long = f"{wavelength:.1f}" if wavelength < 1000 else f"{wavelength:,.0f}"
    s, c = (format_number(value) for value in p[position, 2 * pair : 2 * pair + 2])
    parts = [f"p{position} · p{position} = {format_number(p[position] @ p[position], 2)}"]
    for step in (1, 10):
        j = position + step if position + step < max_len else position - step
        if j >= 0:
            parts.append(f"{step} away {format_number(p[position] @ p[j], 2)}")
    return [
        " · ".join(parts),
        f"Wavelength {long} positions · at position {position}: sine {s}, cosine {c}",
    ]


LOWER = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def dial_says(q: Any, k: Any, i: int, j: int, theta: float, mode: str) -> list[str]:
    """The lines that a RotaryDial must show."""

    def score(a: int, b: int) -> float:
        return float(positioned(q, a, theta, mode) @ positioned(k, b, theta, mode))

    q, k, distance = np.array(q), np.array(k), i - j
    if mode == "rotate":
        phi = np.degrees(np.arctan2(*q[::-1]) - np.arctan2(*k[::-1]))
        phi = (phi + 180) % 360 - 180
        lengths = " · ".join(format_number(float(np.hypot(*v)), 2) for v in (q, k))
        turn = signed(format_number(np.degrees(distance * theta), 0))
        first = f"Score |q| |k| cos(φ {signed(str(distance))}θ): {lengths}"
        first += f" · cos({format_number(phi, 0)}° {turn}°)"
    else:
        pi, pj = (f"p{str(n).translate(LOWER)}" for n in (i, j))
        wave_i, wave_j = (np.array([np.cos(n * theta), np.sin(n * theta)]) for n in (i, j))
        terms = [q @ k, q @ wave_j, wave_i @ k, wave_i @ wave_j]
        names = ["q·k", f"q·{pj}", f"{pi}·k", f"{pi}·{pj}"]
        sums = [f"{n} {format_number(x, 2)}" for n, x in zip(names, terms, strict=True)]
        first = f"Score (q + {pi})·(k + {pj}): {' + '.join(sums)}"
    first += f" = {format_number(score(i, j))}"
    every = [score(n + max(distance, 0), n + max(-distance, 0)) for n in range(65 - abs(distance))]
    low, high = format_number(min(every)), format_number(max(every))
    if len(every) == 1:
        return [first, f"The one pair with i − j = {distance}: score {low}"]
    spread = f"the same score, {low}" if low == high else f"scores from {low} to {high}"
    return [first, f"All {len(every)} pairs with i − j = {distance}: {spread}"]


def surface_says(widget: Any) -> list[str]:
    """The lines of figures that a LossSurface must show."""

    def written(loss: float) -> str:
        return format_number(loss, 3 if loss < 100 else 0)

    lines = []
    for name, losses, centre in zip(widget.names, widget.surfaces, widget.centres(), strict=True):
        figures = [written(float(x)) for x in (centre, losses.mean(), losses.max())]
        line = f"{name}: loss %s at the trained parameters, %s on average, %s at most"
        lines.append(line % tuple(figures))
    return lines


def signed(number: str) -> str:
    return f"− {number[1:]}" if number.startswith("-") else f"+ {number}"


def visible(token: str) -> str:
    token = token.replace("\n", "↵").replace("\t", "⇥")
    inner = token.strip(" ")
    if not inner:
        return "␣" * len(token) or "∅"
    before = len(token) - len(token.lstrip(" "))
    return "␣" * before + inner + "␣" * (len(token) - before - len(inner))


def exact(x: float) -> float:
    """The temperature of a place of the slider."""
    return float(f"{0.05 * (20 / 0.05) ** x:.3g}")


def readouts(widget: Locator) -> list[str]:
    """The texts of a widget's readouts, once they are drawn."""
    settle(widget.page)
    return widget.locator(".attn-readout").all_text_contents()


def slider(widget: Locator, name: str) -> Locator:
    return widget.get_by_role("slider", name=name, exact=True)


def box_of(place: Locator) -> FloatRect:
    """Where an element is in the window, scrolled into view."""
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box
    return box


def drag_along(page: Page, *points: tuple[float, float]) -> None:
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=3)
    page.mouse.up()
    settle(page)
