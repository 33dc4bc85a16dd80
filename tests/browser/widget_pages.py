"""What the tests of both widgets share: where they open a page, odd tokens, and waiting."""

import pytest
from playwright.sync_api import Locator, Page

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
