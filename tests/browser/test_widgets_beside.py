"""Sheets of widgets hold for a whole page: a widget looks the same whatever others stand there."""

import pytest
from playwright.sync_api import Browser

from attnbook import bundles
from tests.browser.widget_pages import render, settle
from tests.helpers.repeats import repeats
from tests.helpers.widgets import each

STILL = "*, *::before { transition: none !important; animation: none !important; }"
# No widget asks for its model, nor says after a while that it still waits for something.
PATIENT = """(() => {
    globalThis.IntersectionObserver = class { observe() {} disconnect() {} };
    const later = globalThis.setTimeout;
    globalThis.setTimeout = (act, ms, ...more) => (ms >= 500 ? 0 : later(act, ms, ...more));
})()"""
# What each part looks like, but for sizes and places that its text decides.
LOOKS = """() => [...document.querySelectorAll(".attn, .attn *")].map((node) => {
    const look = getComputedStyle(node), name = `${node.tagName} ${node.getAttribute("class")}`;
    const size = /^(width|height|top|bottom|(block|inline)-size|inset-.*|.*-origin|grid-.*rows)$/;
    const traits = [...look].filter((trait) => !size.test(trait));
    return traits.map((trait) => `${name} ${trait}: ${look[trait]}`);
}).flat()"""


@pytest.mark.parametrize("width", repeats(390, 1280))
def test_a_widget_looks_the_same_beside_all_others(browser: Browser, width: int) -> None:
    changed = {}
    for widget in each():
        page = browser.new_page(viewport={"width": width, "height": 844})
        page.evaluate(PATIENT)
        render(page, widget)
        page.add_style_tag(content=STILL)
        settle(page, 2)
        page.evaluate(f"globalThis.looks = {LOOKS}, globalThis.alone = looks(), 0")
        others = {name for name in bundles.classes() if name != type(widget).__name__}
        page.add_style_tag(content="\n".join(bundles.load(name)[1] for name in sorted(others)))
        settle(page, 2)
        assert page.evaluate("alone.length") > 1000
        changed[type(widget).__name__] = page.evaluate(
            "() => looks().filter((now, n) => now !== alone[n])"
        )
        page.close()
    assert not any(changed.values()), {name: each[:5] for name, each in changed.items() if each}
