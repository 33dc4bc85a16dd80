"""What the tests of widgets share: where they open a page, odd tokens, waiting, what is read."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from attnbook.widgets import format_number
from attnbook.widgets.rotary_dial import positioned

HOSTILE = [
    "<img src=x onerror=document.title='hacked'>",
    '"quo\'te" &amp; <b>',
    "שלום עולם",
    "👩‍👩‍👧‍👦",
    "long" * 60,
    "",
]
EVERYWHERE = pytest.mark.parametrize(  # every two of scheme, theme and width together once
    "where",
    [
        {"scheme": scheme, "theme": theme, "width": width}
        for scheme, theme, width in (
            ("http", "light", 1280),
            ("http", "dark", 390),
            ("file", "light", 390),
            ("file", "dark", 1280),
        )
    ],
    ids=lambda where: "-".join(map(str, where.values())),
)


def widget(page: Page, n: int) -> Locator:
    return page.locator(".attn").nth(n)


def settle(page: Page) -> None:
    """Until the next frame is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


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
        f"Wavelength {long} positions · at position {position}: sine {s}, cosine {c}",
        " · ".join(parts),
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
        wave_i, wave_j = (np.array([np.sin(n * theta), np.cos(n * theta)]) for n in (i, j))
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


WITHOUT = {
    "": "Whole model",
    "mask": "Without the mask",
    "residual": "Without residual connections",
    "norm": "Without layer norm",
    "scale": "Without the scale 1/√d",
}


def diagram_says(runs: list[dict[str, Any]], off: str, n_heads: int = 4) -> str:
    """The line of figures that a BlockDiagram must show."""
    names = {**WITHOUT, "heads": f"With one head, not {n_heads}"}
    share = {"".join(run["off"]): format_number(float(np.mean(run["exact"]))) for run in runs}
    exact = next(run["exact"] for run in runs if run["off"] == [off] * bool(off))
    seeds = ", ".join(format_number(float(x)) for x in exact)
    each = f" (seeds {seeds})" if len(exact) > 1 else ""
    rest = f"whole model {share['']}" if off else "switch a part off in the diagram"
    return f"{names.get(off, f'Without {off}')}: exactly right {share[off]}{each} · {rest}"


def surface_says(widget: Any) -> list[str]:
    """The lines of figures that a LossSurface must show."""

    def written(loss: float) -> str:
        return format_number(loss, 3 if loss < 100 else 0)

    lines = []
    for name, losses, centre in zip(widget.names, widget.surfaces, widget.centres(), strict=True):
        figures = [written(float(x)) for x in (centre, losses.mean(), losses.max())]
        line = f"{name}: loss %s at the trained weights, %s on average, %s at most"
        lines.append(line % tuple(figures))
    return lines


def signed(number: str) -> str:
    return f"− {number[1:]}" if number.startswith("-") else f"+ {number}"
