"""Latency of the engine in the page, and whether it blocks the page.

make bench NAME=engine    (needs the set-up of `make test` and the package's weights)
Budgets: 400 ms from navigation to the first answer, 100 ms from a click to its answer, no task of
more than 50 ms on the page's own thread while one types. A GPT: 300 ms from the page's load to the
first token, 60 tokens a second, no frame of more than 50 ms while it writes.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Page

from attnbook.web import MaskedWords, Playground
from benchmarks import _stored
from benchmarks._chromium import chromium, first_answer, serve
from tests.helpers.minibook import build_book, notebook_of, write_mini_book

TEXT = "We must ask the people of this country to keep the peace, and to pay for the war."
MORE = " It is the duty of the government to protect the rights of every citizen."

# Notes the time since navigation when the sentence can be edited: the first answer is drawn.
FIRST_ANSWER = """new MutationObserver((_, watch) => {
    if (!document.querySelector(".attn-masked textarea:enabled")) return;
    watch.disconnect();
    requestAnimationFrame(() => setTimeout(() => (window.answered = performance.now())));
}).observe(document, { subtree: true, childList: true, attributes: true })"""

# Clicks each word in turn: milliseconds from the click to the frame with the new answer.
PRESSES = """async () => {
    const times = [], bars = document.querySelector(".attn-places");
    for (const word of document.querySelectorAll("button.attn-chip")) {
        const start = performance.now();
        word.click();
        await new Promise((done) => {
            const watch = new MutationObserver(() => (watch.disconnect(), done()));
            watch.observe(bars, { childList: true });
        });
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        times.push(performance.now() - start);
    }
    return times;
}"""

# Notes the time of the page's load, and of the first frame with an active button.
FIRST_TOKEN = """addEventListener("load", () => (window.loaded = performance.now()));
new MutationObserver((_, watch) => {
    if (!document.querySelector(".attn-playground textarea:enabled")) return;
    watch.disconnect();
    document.querySelector(".attn-playground").querySelectorAll(".attn-act button")[1].click();
    new MutationObserver((_, all) => {
        all.disconnect();
        requestAnimationFrame(() => setTimeout(() => (window.answered = performance.now())));
    }).observe(document.querySelector(".attn-text > span"), { childList: true });
}).observe(document, { subtree: true, childList: true, attributes: true })"""

BOTH = "[answered - loaded, answered]"  # from the page's load, and from navigation

# Generates until the context is full: tokens per second, and the longest time between frames.
WRITE = """async () => {
    const root = document.querySelector(".attn-playground"), pace = root.querySelector("select");
    pace.selectedIndex = pace.options.length - 1;
    const count = () => root.querySelectorAll(".attn-tok").length;
    const button = root.querySelector(".attn-go");
    const from = count(), start = performance.now();
    let longest = 0, last = start;
    button.click();
    await new Promise((done) => requestAnimationFrame(function frame(now) {
        longest = Math.max(longest, now - last);
        last = now;
        button.textContent === "Stop" ? requestAnimationFrame(frame) : done();
    }));
    return [(count() - from) / ((last - start) / 1000), longest];
}"""

LONG_TASKS = """() => {
    window.tasks = [];
    const note = (list) => window.tasks.push(...list.getEntries().map((task) => task.duration));
    new PerformanceObserver(note).observe({ type: "longtask" });
}"""


def writing(browser: Browser, address: str) -> list[float]:
    """Tokens per second, and the longest time between two frames, until the context is full."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    page.locator(".attn-playground textarea:enabled").wait_for()
    found = page.evaluate(WRITE)
    page.close()
    return found


def typed(page: Page, text: str) -> list[float]:
    """The tasks of more than 50 ms on the page's thread while a text is typed, in ms."""
    page.evaluate(LONG_TASKS)
    page.locator("textarea").press("End")
    page.keyboard.type(text, delay=60)
    page.wait_for_timeout(300)
    return page.evaluate("window.tasks")


def spread(times: list[Any], unit: str = "ms") -> str:
    return f"{statistics.median(times):.0f} {unit} ({min(times):.0f} to {max(times):.0f})"


def main() -> None:
    widget = MaskedWords(TEXT, [4], name="words")
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        pages = {"index.md": "# Book\n", "words.ipynb": nbformat.writes(notebook_of([widget]))}
        pages["play.ipynb"] = nbformat.writes(notebook_of([Playground(TEXT[:26], name="play")]))
        write_mini_book(folder, pages)
        done = build_book(folder, folder)
        assert done.returncode == 0, done.stdout
        with serve(folder / "_build/html") as site:
            firsts = [first_answer(browser, f"{site}/words.html", FIRST_ANSWER) for _ in range(5)]
            print(f"first answer after navigation: {spread(firsts)}")
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"{site}/words.html")
            page.locator("textarea:enabled").wait_for()
            presses = page.evaluate(PRESSES)
            print(f"answer after a press, {len(presses)} words: {spread(presses)}")
            page.get_by_role("button", name="Reset").click()
            tasks = typed(page, MORE)
            longest = f", the longest {max(tasks):.0f} ms" if tasks else ""
            print(
                f"tasks of more than 50 ms while typing {len(MORE)} letters: {len(tasks)}{longest}"
            )
            after, whole = zip(
                *(first_answer(browser, f"{site}/play.html", FIRST_TOKEN, BOTH) for _ in range(5)),
                strict=True,
            )
            print(f"first token after load: {spread([*after])}, navigation: {spread([*whole])}")
            rates, frames = zip(
                *(writing(browser, f"{site}/play.html") for _ in range(3)), strict=True
            )
            print(f"writing: {spread([*rates], 'tokens a second')}")
            print(f"longest time between frames: {spread([*frames])}")
    rows = [
        _stored.budget("masked words: first answer after navigation", "ms", firsts, 400),
        _stored.budget("masked words: answer after a press", "ms", presses, 100),
        _stored.budget(
            "masked words: longest task while typing", "ms", [max(tasks, default=0.0)], 50
        ),
        _stored.budget("the playground: first token after the page's load", "ms", after, 300),
        _stored.budget("the playground: writing", "tokens/s", rates, 60, more=True),
        _stored.budget("the playground: longest time between frames", "ms", [max(frames)], 50),
    ]
    _stored.finish(__file__, rows)


if __name__ == "__main__":
    main()
