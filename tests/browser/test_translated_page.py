"""A translated page says everything in its language: what stands there, and what its widgets say
when all is opened, pressed and answered. The English page is walked through in the same way: what
both say must be code, a name, or a word that the page is about."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.widget_pages import serious
from tests.helpers.translated import page_of
from tools import translation

PAGES = [(code, name) for code in translation.NAMES for name in translation.pages(code)]

# Words that are the same in both languages here, each with its reason.
KEPT = {
    "de": {
        "what the models read": """two three four six seven nine ten twenty forty fifty eighty
            hundred thousand million billion and""",
        "what they write": """eins zwei drei vier fünf sechs sieben acht neun elf zwölf dreizehn
            hundert tausend Millionen Milliarden ein und zwanzig dreißig vierzig fünfzig sechzig
            siebzig achtzig neunzig""",
        "the field's own": """Encoder Decoder GRU Score Scores score tanh softmax Softmax Logits
            RNNsearch dot cos""",
        "German, or not English": """in input feeding additive one Six Auf
            Start Pause""",
        "names": "Worth Some Attention Bahdanau Luong et al CC BY BSD ipynb whl tar gz pdf Ctrl",
    }
}
# Words that no German sentence has: what holds one is English, at least in part.
TELLTALE = {"de": r"\b(the|is|of|with|which|this|that|to|each|not|gets|has|right|wrong)\b"}

SAID = """(said) => {
    const stays = "pre, code, script, style, noscript, bdi, .katex, [class*=citation], body [lang]";
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = texts.nextNode());)
        if (!node.parentElement.closest(stays)) said.add(node.data.replace(/\\s+/g, " ").trim());
    const names = ["aria-label", "aria-valuetext", "aria-roledescription", "title", "alt"];
    names.push("placeholder");
    for (const name of names)
        for (const node of document.body.querySelectorAll(`[${name}]`))
            if (!node.closest(stays)) said.add(node.getAttribute(name).trim());
}"""
# Words that do not fit: beyond the picture, over another word, over the edge of their box or into
# the next one; and buttons beyond their widget.
BEYOND = """() => [...document.querySelectorAll("svg.draw-picture")].flatMap((picture) => {
    const boxOf = (node) => {
        const { left, right, top, bottom } = node.getBoundingClientRect();
        return { left, right, top, bottom, words: node.textContent };
    };
    const wide = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = (a, b) => Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    const frame = boxOf(picture);
    const boxes = [...picture.querySelectorAll("text")].map(boxOf)
        .filter((box) => box.right > box.left && /\\p{L}{2}/u.test(box.words));
    const rects = [...picture.querySelectorAll("rect")].map(boxOf)
        .filter((box) => box.right - box.left > 8);
    const inside = (a, b) => wide(a, b) > 0.6 * Math.min(a.right - a.left, b.right - b.left);
    const out = boxes.filter((b) => b.left < frame.left - 1 || b.right > frame.right + 1);
    const meets = (a, b) => wide(a, b) > 1 && high(a, b) > 4;
    const over = boxes.filter((a, n) => boxes.slice(n + 1).some((b) => meets(a, b)));
    const edge = boxes.filter((a) => rects.some((b) => meets(a, b)
        && (inside(a, b) ? a.left < b.left - 1 || a.right > b.right + 1 : true)));
    return [...out, ...over, ...edge].map(({ words }) => words);
}).concat([...document.querySelectorAll(".attn button")].filter((button) => {
    const frame = button.closest(".attn").getBoundingClientRect();
    return button.getBoundingClientRect().right > frame.right - 1;
}).map((button) => button.textContent))"""
# Opens, presses and answers everything; gives all that was said on the way.
WALK = """async (say) => {
    const said = new Set(), look = (0, eval)(say);
    const all = (selector, from = document) => [...from.querySelectorAll(selector)];
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const then = async (act) => { act?.(); await frame(); await frame(); look(said); };
    const off = (button) => !button || button.getAttribute("aria-disabled") === "true";
    const tell = (node, Kind, name, more) =>
        node.dispatchEvent(new Kind(name, { bubbles: true, cancelable: true, ...more }));
    const press = (node, key) => tell(node, KeyboardEvent, "keydown", { key });
    await then(() => all("details").forEach((each) => (each.open = true)));
    for (const walk of all(".attn-drawing:has(.attn-keys)")) {
        const [, play, next] = all(".attn-keys button", walk);
        await then(() => play.click());
        await then(() => play.click());
        for (let n = 0; n < 40; n++) {
            await then(() => walk.querySelector(".attn-here.attn-waits .attn-show")?.click());
            if (off(next)) break;
            await then(() => next.click());
        }
    }
    for (const quiz of all(".attn-quiz")) {
        for (let n = 0; n < 40; n++) {
            for (const choice of all(".attn-choice", quiz)) await then(() => choice.click());
            const next = quiz.querySelector(".attn-next");
            if (off(next)) break;
            await then(() => next.click());
        }
    }
    for (const map of all(".attn-heatmap")) {
        const cells = map.querySelector(".attn-maps");
        const play = map.querySelector(".attn-player button");
        await then(() => press(cells, "ArrowRight"));
        await then(() => press(cells, "ArrowDown"));
        await then(() => play?.click());
        await then(() => play?.click());
        await then(() => press(cells, "Escape"));
    }
    for (const bars of all(".attn-temperature")) {
        const slider = bars.querySelector("input[type=range]");
        for (const value of [0, 1]) {
            slider.value = value;
            await then(() => tell(slider, Event, "input"));
        }
    }
    for (const translator of all(".attn-translator")) {
        const field = translator.querySelector(".attn-number");
        for (const text of TYPED) {
            field.value = text;
            await then(() => tell(field, Event, "input"));
        }
        await then(() => translator.querySelector("button:has(+ .attn-inside)").click());
        const next = translator.querySelector(".attn-onwards");
        for (let n = 0; n < 40; n++) await then(() => next.click());
        const cell = translator.querySelector(".attn-grid td[data-i]");
        await then(() => tell(cell, PointerEvent, "pointerover"));
    }
    for (const foot of all(".attn-foot"))
        for (const button of all("button", foot).reverse()) await then(() => button.click());
    return [...said].filter((text) => /\\p{L}{2}/u.test(text));
}"""
# What is typed: numbers, the first that is too long for training, and all that is no number.
TYPED = [
    "7",
    "x",
    "-3",
    "1.5",
    "six six",
    "two trillion",
    "1234567890123",
    "101000",
    "",
    "2000000000",
]
TYPED += ["1040", "987654321", "642"]


def said_on(page: Page) -> set[str]:
    page.locator(".attn-translator").scroll_into_view_if_needed()
    page.wait_for_selector("button:not([aria-disabled=true]):has(+ .attn-inside)")
    return set(page.evaluate(WALK.replace("TYPED", json.dumps(TYPED)), SAID))


def words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]{2,}", text))


@pytest.mark.parametrize(("language", "name"), PAGES)
def test_every_text_of_a_page_is_translated(
    site: Path, page_factory: Callable[..., Page], language: str, name: str
) -> None:
    ours = said_on(page_factory(page_of(site, language, name)))
    theirs = said_on(page_factory(site / f"{name}.html"))
    assert len(theirs) > 300 and len(ours) > 300
    kept = words(" ".join(KEPT[language].values()))
    assert sorted(text for text in ours & theirs if words(text) - kept) == []
    telltale = re.compile(TELLTALE[language])
    bare = {text: re.sub(r"“[^”]*”|„[^“]*“", "", text) for text in ours}
    assert sorted(text for text, rest in bare.items() if telltale.search(rest)) == []


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
@pytest.mark.parametrize(("language", "name"), PAGES)
def test_a_translated_page_can_be_read_by_everyone(
    site: Path, page_factory: Callable[..., Page], language: str, name: str, theme: str, width: int
) -> None:
    page = page_factory(page_of(site, language, name), theme=theme, width=width)
    assert page.locator("html").get_attribute("lang") == language
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious(page) == []
    assert page.evaluate(BEYOND) == []


@pytest.mark.parametrize(("language", "name"), PAGES)
def test_only_a_translated_page_asks_for_words(site: Path, language: str, name: str) -> None:
    assert "translated.js" in page_of(site, language, name).read_text("utf-8")
    assert not list(site.rglob("translated.js"))
