"""From a keystroke to the new picture of the bench for tokenizers.

make bench NAME=tokenizers    (needs the set-up of `make test`)
Budget: 50 ms at 10,000 characters, in each half; 100,000 characters stay live.
"""

import base64
import statistics

from playwright.sync_api import Page

from attnbook.web import TokenizerBench
from attnbook.weights.vocabularies import FOLDER, VOCABULARIES
from benchmarks import _stored
from benchmarks._chromium import chromium
from tests.browser.widget_pages import render

WORDS = "the people of these states naïve 🙂 unaffordable don't 1776 peace".split()
# Types letters at the end: milliseconds from each to the frame in which the sum of the text is new.
TYPE = """async ([letters, what]) => {
  const area = document.querySelector("textarea"), times = [];
  const sum = () => document.querySelector(what).textContent;
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  for (const letter of letters) {
    const before = sum(), start = performance.now();
    area.value += letter;
    area.dispatchEvent(new Event("input"));
    while (sum() === before) await frame();
    times.push(performance.now() - start);
  }
  return times;
}"""
BUDGET = 50
SUMS = {"learn": ".attn-pieces + .attn-note", "cut": ".attn-lane b:last-child"}


def text_of(size: int) -> str:
    """A text in which most words stand once or twice."""
    count = size // 5
    return " ".join(f"{WORDS[n % len(WORDS)]}{n % 997:x}" for n in range(count))[:size]


def keystrokes(page: Page, size: int, view: str) -> list[float]:
    page.locator("textarea").fill(text_of(size))
    page.get_by_role("button", name="Learn pieces" if view == "learn" else "Cut words").click()
    page.wait_for_timeout(1500)
    return page.evaluate(TYPE, [[" a"] * 20, SUMS[view]])


def main() -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 800, "height": 900})
        render(page, TokenizerBench("a", merges=20, name="bench"))
        page.get_by_role("button", name="Cut words").click()
        page.wait_for_function("sent.length")
        for name in VOCABULARIES:
            file = base64.b64encode((FOLDER / f"{name}.safetensors").read_bytes()).decode()
            page.evaluate("([n, t]) => model.message({ weights: n }, [bytes(t)])", [name, file])
        page.locator(".attn-words button").wait_for()
        rows = []
        for size in (10_000, 100_000):
            for view in SUMS:
                times = keystrokes(page, size, view)
                middle, most = (f"{x:.0f} ms" for x in (statistics.median(times), max(times)))
                print(f"{size:,} characters, {view}: {middle} a keystroke, {most} at most")
                what = f"the bench for tokenizers: a keystroke, {size:,} characters, {view}"
                bar = BUDGET if size <= 10_000 else None
                rows.append(_stored.budget(what, "ms", times, bar))
    _stored.finish(__file__, rows)


if __name__ == "__main__":
    main()
