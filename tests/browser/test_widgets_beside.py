"""Sheets of widgets hold for a whole page: a widget looks the same whatever others stand there."""

import pytest
from playwright.sync_api import Browser

from attnbook import bundles
from tests.browser.widget_pages import render, settle
from tests.helpers.repeats import repeats
from tests.helpers.widgets import each

STILL = "*, *::before { transition: none !important; animation: none !important; }"
# What of the looks changes as sheets come to the page, but for sizes and places that text decides.
# Both are looked at in one breath: a widget that waits for its model says nothing between them.
CHANGED = """(sheets) => {
    const size = /^(width|height|top|bottom|(block|inline)-size|inset-.*|.*-origin|grid-.*rows)$/;
    const looks = () => [...document.querySelectorAll(".attn, .attn *")].map((node) => {
        const look = getComputedStyle(node), name = `${node.tagName} ${node.getAttribute("class")}`;
        const traits = [...look].filter((trait) => !size.test(trait));
        return traits.map((trait) => `${name} ${trait}: ${look[trait]}`);
    }).flat();
    const alone = looks();
    document.head.append(Object.assign(document.createElement("style"), { textContent: sheets }));
    return [alone.length, looks().filter((now, n) => now !== alone[n])];
}"""


@pytest.mark.parametrize("width", repeats(390, 1280))
def test_a_widget_looks_the_same_beside_all_others(browser: Browser, width: int) -> None:
    changed = {}
    for widget in each():
        page = browser.new_page(viewport={"width": width, "height": 844})
        render(page, widget)
        page.add_style_tag(content=STILL)
        settle(page, 2)
        others = {name for name in bundles.classes() if name != type(widget).__name__}
        sheets = "\n".join(bundles.load(name)[1] for name in sorted(others))
        seen, changed[type(widget).__name__] = page.evaluate(CHANGED, sheets)
        assert seen > 1000
        page.close()
    assert not any(changed.values()), {name: each[:5] for name, each in changed.items() if each}
