"""Latency of the translator in a page: from navigation to its own answer, and to each further one.

make bench NAME=translator    (needs the set-up of `make test` and the package's weights)
Budgets: 400 ms to the first answer, 100 ms to the next. Every answer is compared with Python's.
"""

import tempfile
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser

from attnbook.web import Translator
from attnbook.web.translator.widget import answer
from benchmarks import _stored
from benchmarks._chromium import chromium, first_answer, serve
from tests.helpers.minibook import build_book, notebook_of, write_mini_book

PAGES = {"two": ("one_vector", "additive"), "one": ("transformer",)}
NUMBERS = [7, 42, 937, 5_081, 43_729, 120_316, 9_999_999, 40_000_001, 437_296_851]

# Notes the time since navigation when the models are there and what they say is drawn.
FIRST = """new MutationObserver((_, watch) => {
    const buttons = [...document.querySelectorAll(".attn-translator button")];
    const walk = buttons.find((button) => button.textContent === "Walk through one word");
    if (walk?.getAttribute("aria-disabled") !== "false") return;
    watch.disconnect();
    requestAnimationFrame(() => setTimeout(() => (window.answered = performance.now())));
}).observe(document, { subtree: true, childList: true, attributes: true })"""

# Types each number: milliseconds to the frame with the answers, and their words.
NEXT = """async (numbers) => {
    const text = document.querySelector(".attn-number"), found = [];
    for (const number of numbers) {
        const start = performance.now();
        text.value = number;
        text.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        const time = performance.now() - start;
        const cards = [...document.querySelectorAll(".attn-card .attn-written")];
        const words = (card) => [...card.querySelectorAll(".attn-german")].map((e) => e.innerText);
        found.push([time, cards.map((card) => words(card).filter((word) => word !== "…"))]);
    }
    return found;
}"""


def further(browser: Browser, address: str) -> list[tuple[float, Any]]:
    """Of each of `NUMBERS` the milliseconds to its answers, and what they are."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.add_init_script(FIRST)
    page.goto(address)
    page.wait_for_function("window.answered")
    found = page.evaluate(NEXT, NUMBERS)
    page.close()
    return found


def main() -> None:
    rows, right = [], True
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        widgets = {page: notebook_of([Translator(models, 58)]) for page, models in PAGES.items()}
        pages = {f"{page}.ipynb": nbformat.writes(nb) for page, nb in widgets.items()}
        write_mini_book(folder, {"index.md": "# Book\n", **pages})
        done = build_book(folder, folder)
        assert done.returncode == 0, done.stdout
        with serve(folder / "_build/html") as site:
            for page, models in PAGES.items():
                address, named = f"{site}/{page}.html", " and ".join(models)
                firsts = [first_answer(browser, address, FIRST) for _ in range(5)]
                times, said = zip(*further(browser, address), strict=True)
                wanted = [[answer(m, number)["written"] for m in models] for number in NUMBERS]
                right &= wanted == list(said)
                rows += [
                    _stored.budget(f"translator, {named}: first answer", "ms", firsts, 400),
                    _stored.budget(f"translator, {named}: next answer", "ms", times, 100),
                ]
    for row in rows:
        print(f"{row.what}: {row.ours:.0f} ms ({row.least:.0f} to {row.most:.0f})")
    _stored.finish(__file__, rows, right=right)


if __name__ == "__main__":
    main()
