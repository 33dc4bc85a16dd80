"""A published model in the page of DecodingBench: loaded in parts when the reader asks, held to the
package, kept by the browser, mended where it arrives damaged. The model is a small random one."""

import json
import re
from collections.abc import Callable
from math import log
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from playwright.sync_api import Locator, Page, Route, expect

from attnbook.model.decoding import beam_search
from attnbook.model.sampling import Sampling, draw, uniform
from attnbook.web import DecodingBench, format_number
from tests.browser.widget_pages import copied, serious, settle, until, visible, widget
from tests.helpers.repeats import repeats
from tests.helpers.tiny_llama import read_tiny_llama, write_tiny_llama

PART = 40_000
OWN = "It's in 1812 the end, and they"
OVER = re.compile("The text ends here|reads no more tokens")
# The bench, its button by either name, and whether its text has come to an end.
FOUND = """
    const bench = document.querySelector(".attn-bench");
    const button = [...bench.querySelectorAll(".attn-own button")]
      .find(({ textContent }) => ["Write", "Stop"].includes(textContent));
    const ended = /text ends here|no more tokens/.test(bench.innerText);
"""
# Presses a method and Write in one go, so that nothing is drawn between the look and the press; or
# tells that the text is over.
PRESSED = (
    f"(method) => {{{FOUND}"
    + """
    if (button.textContent !== "Write") throw new Error("it writes on after Stop");
    if (ended) return false;
    bench.querySelectorAll(".attn-methods button")[method].click();
    button.click();
    return true;
}"""
)
# Presses Stop once so many tokens stand there, if writing has not ended by itself before; only
# once, as the button is called Stop up to the next drawing and would begin anew.
WRITTEN = (
    f"(wanted) => {{{FOUND}"
    + """
    const count = bench.querySelectorAll(".attn-text .attn-tok:not(.attn-next)").length;
    const over = count >= wanted || ended;
    if (button.textContent !== "Stop") return button.pressed = false, over;
    if (count >= wanted && !button.pressed) button.pressed = true, button.click();
    return false;
}"""
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: Any) -> Any:
    """The model's file, and the model and the tokenizer that the package reads of it."""
    file = write_tiny_llama(tmp_path_factory.mktemp("tiny") / "tiny.gguf")
    return file, *read_tiny_llama(file)


@pytest.fixture(scope="module")
def path(widget_page: Callable[..., Path], known: Any) -> Path:
    file, model, tokenizer = known
    bench = DecodingBench(model, tokenizer, "the re", steps=1, seeds=1, name="bench")
    return widget_page([bench], attnbook_model=str(file), attnbook_part=PART)


def requests(page: Page) -> list[str]:
    """What the page asks for of the model from now on."""
    found: list[str] = []
    page.on("request", lambda each: found.extend([each.url] * ("/model/" in each.url)))
    return found


# The model hears nothing until it is released.
HELD = """() => {
  const post = Worker.prototype.postMessage, kept = [];
  Worker.prototype.postMessage = function (...given) { kept.push([this, given]); };
  window.release = () => {
    Worker.prototype.postMessage = post;
    for (const [worker, given] of kept) worker.postMessage(...given);
  };
}"""


def loaded(view: Locator) -> None:
    view.get_by_role("button", name="Load the model").click()
    expect(view.locator(".attn-own")).to_contain_text("The model runs in this page")


def begun(view: Locator, text: str) -> None:
    view.get_by_label("Your beginning").fill(text)
    view.get_by_role("button", name="Begin with this").click()
    tokens = view.locator(".attn-text .attn-tok:not(.attn-next)").all_text_contents
    until(view.page, lambda: "".join(tokens()).replace("·", " ") == text)  # not the one before
    expect(view.locator(".attn-take").first).to_be_visible()


@torch.no_grad()
def scores(model: Any, ids: list[int]) -> torch.Tensor:
    return model(torch.tensor([ids]))[0, -1].double()


def test_a_text_of_ones_own_goes_on_as_the_package_says(
    open_page: Callable[..., Page], known: Any
) -> None:
    _, model, tokenizer = known
    page = open_page()
    view = widget(page, 0)
    parts = json.loads(page.locator("script.attnbook-model").inner_text())["parts"]
    asked = requests(page)
    assert len(parts) > 3 and max(size for _, size in parts) == PART
    settle(page, 3)
    assert asked == []  # nothing before the reader asks
    loaded(view)
    assert len(asked) == len(parts)
    begun(view, OWN)
    assert serious(page) == []
    ids, at = tokenizer.encode(OWN), 0
    while at < 8:
        u = scores(model, ids)
        p, order = u.softmax(-1), u.argsort(descending=True)
        shown = view.locator(".attn-take").first
        expect(shown.locator(".attn-label")).to_have_text(
            visible(tokenizer.decode([int(order[0])]) or tokenizer.vocab.tokens[int(order[0])])
        )
        says, wanted = shown.locator("b").first.inner_text, p[order[0]].item()
        until(page, lambda says=says, wanted=wanted: abs(float(says()) - wanted) < 2e-3)
        number = uniform(torch.tensor([0]), at).item()
        expect(view.locator(".attn-fell b")).to_have_text(format_number(number))
        ends = p[order].cumsum(-1)
        near = (ends - number).abs().min() < 1e-3  # there 16 bits may decide
        ids.append(int(order[int((ends <= number).sum())]))
        name = visible(tokenizer.decode([ids[-1]]) or tokenizer.vocab.tokens[ids[-1]])
        if near:
            break
        if "\ufffd" not in name:
            expect(view.locator(".attn-fell")).to_contain_text(f" falls on {name} (")
        view.get_by_role("button", name="Take it").click()
        at += 1
        expect(page.locator(".attn-text .attn-tok:not(.attn-next)")).to_have_count(len(ids))
    assert at > 2


def test_a_text_never_ends_where_nothing_is_stored(
    open_page: Callable[..., Page], known: Any
) -> None:
    page = open_page("#w.bench=temperature:1.5")
    view = widget(page, 0)
    for _ in range(3):  # out of the stored tree, which has one step
        if view.locator(".attn-take:visible").count():
            view.locator(".attn-take").nth(6).click()
    expect(view.locator(".attn-beyond")).to_contain_text("is not stored")
    expect(view.locator(".attn-beyond")).to_contain_text("Load the model, go back,")
    loaded(view)
    expect(view.locator(".attn-beyond")).to_be_hidden()
    text = view.locator(".attn-text")
    text.evaluate("(text) => Object.assign(text.style, { width: '8rem', maxHeight: '3rem' })")
    view.get_by_role("button", name="Write", exact=True).click()
    count = page.locator(".attn-text .attn-tok:not(.attn-next)").count
    page.wait_for_function(WRITTEN, arg=41)
    expect(view.get_by_role("button", name="Write", exact=True)).to_be_visible()
    settle(page, 3)
    before = count()
    page.wait_for_timeout(200)  # time itself: what would be written in it
    assert count() == before  # it has stopped
    assert text.evaluate(
        "(e) => e.scrollTop > 0 && e.scrollHeight - e.clientHeight - e.scrollTop < 2"
    )
    # Shaded are those to which the model gave less than 1 in 1,000.
    _, model, tokenizer = known
    written = [int(i) for i in copied(view).split("written:")[1].split(";")[0].split(",")]
    prompt = tokenizer.encode("the re")
    with torch.no_grad():
        logp = model(torch.tensor([[*prompt, *written]]))[0].double().log_softmax(-1)
    p = logp[len(prompt) - 1 : -1].gather(1, torch.tensor(written)[:, None])[:, 0].exp()
    level = "(all) => all.map((each) => each.style.getPropertyValue('--level') === '1')"
    shaded = view.locator(".attn-text .attn-tok:not(.attn-next)").evaluate_all(level)
    assert not any(shaded[: len(prompt)])
    clear = (p.log() - log(1e-3)).abs() > 0.1  # else 8 bits may decide
    assert clear.sum() > 30 and torch.tensor(shaded[len(prompt) :])[clear].equal((p < 1e-3)[clear])
    assert 0 < sum(shaded) < len(written)
    described = "(all) => all.map((each) => each.getAttribute('aria-description') === 'rare')"
    assert view.locator(".attn-text .attn-tok:not(.attn-next)").evaluate_all(described) == shaded
    expect(view.get_by_text("Rare tokens are shaded")).to_contain_text(
        f": {sum(shaded)} of the {len(written)} after the beginning"
    )


@torch.no_grad()
def drawn(model: Any, ids: list[int], how: Sampling, seed: int) -> tuple[list[int], float, float]:
    """40 tokens behind ids, their log-probability, and how near a number came to a border."""
    read, total, nearest = list(ids), 0.0, 1.0
    while len(read) < len(ids) + 40 and read[-1] != model.vocab.eos:
        u = scores(model, read)
        number = uniform(torch.tensor([seed]), len(read) - len(ids))
        left = how(u[None], torch.tensor([read]))[0]
        ends = left.sort(descending=True).values.softmax(-1).cumsum(-1)
        nearest = min(nearest, (ends - number).abs().min().item())
        read.append(int(draw(left[None], number)))
        total += u.log_softmax(-1)[read[-1]].item()
    return read[len(ids) :], total, nearest


@pytest.mark.parametrize("n", range(4))
def test_other_rules_write_behind_the_text(
    open_page: Callable[..., Page], known: Any, n: int
) -> None:
    """Held to the package; the text above stays, and with another text the old one goes."""
    _, model, tokenizer = known
    ids, end = tokenizer.encode(OWN), model.vocab.eos
    if n < 2:
        how = (Sampling(typical=0.9), Sampling(repetition_penalty=1.3))[n]
        tried = [(seed, *drawn(model, ids, how, seed)) for seed in range(20)]
        seed, row, total, _ = max(tried, key=lambda one: one[3])  # where 16 bits decide nothing
    else:
        start, seed = torch.tensor([ids]), 0
        best = beam_search(
            model.step, model.start(), start, 40, model.vocab, beam=4, length_penalty=n - 2.0
        )
        row, total = best.tokens[0].tolist(), best.scores.item()
        row = row[: row.index(end) + 1] if end in row else row
    page = open_page(f"#w.bench=seed:{seed}")
    view = widget(page, 0)
    loaded(view)
    begun(view, OWN)
    rules = view.get_by_label("Another rule")
    rules.select_option(index=n)
    view.get_by_role("button", name="Write by this rule").click()
    note = view.locator(".attn-own .attn-continued + [role=status]")
    expect(note).to_contain_text("bits a token by the model", timeout=180_000)
    told = note.inner_text()
    assert told.startswith(f"{len(row)} tokens, ") and ("end token" in told) == (row[-1] == end)
    bits = float(told.split(" tokens, ")[1].split()[0])
    assert bits == pytest.approx(-total / len(row) / log(2), abs=0.02)
    out = view.get_by_label("What the other rule wrote")
    assert (out.text_content() or "").startswith(tokenizer.decode(row[:8]).split("\ufffd")[0])
    assert page.locator(".attn-text .attn-tok:not(.attn-next)").count() == len(ids)
    assert serious(page) == []
    rules.select_option(index=(n + 1) % 4)
    expect(note).to_have_text("It goes on behind the text above, which stays as it is.")
    view.get_by_role("button", name="Take it").click()
    expect(out).to_be_hidden()


@pytest.mark.parametrize("writing", [False, True])
def test_a_rule_waits_until_the_place_above_is_known(
    open_page: Callable[..., Page], writing: bool
) -> None:
    """Both ask the one model, which answers the newest question only."""
    page = open_page()
    view = widget(page, 0)
    loaded(view)
    begun(view, OWN)
    page.evaluate(HELD)
    go = view.get_by_role("button", name="Write by this rule")
    expect(go).to_be_enabled()
    if writing:
        view.get_by_role("button", name="Write", exact=True).click()
        expect(go).to_be_disabled()
        view.get_by_role("button", name="Stop", exact=True).click()
    else:
        view.locator(".attn-take").nth(1).click()
    expect(view.get_by_text("Asking the model …", exact=True)).to_be_visible()
    expect(go).to_be_disabled()
    page.evaluate("release()")
    expect(view.locator(".attn-take").first).to_be_visible()
    go.click()
    expect(view.locator(".attn-own")).to_contain_text("bits a token by the model", timeout=180_000)


@pytest.mark.parametrize("part", repeats(*range(10)))
def test_many_texts_by_random_presses(open_page: Callable[..., Page], part: int) -> None:
    """Five texts of 60 tokens, changing methods: none ends but by the end token or its room."""
    page = open_page()
    view, chance = widget(page, 0), Random(part)
    loaded(view)
    methods = view.locator(".attn-methods button").count()
    place = view.locator(".attn-take:visible").first.or_(view.get_by_text(OVER))
    count = page.locator(".attn-text .attn-tok:not(.attn-next)").count
    for text in range(5):
        begun(view, " ".join(chance.sample(OWN.split(), 1 + text % 5)))
        start = count()
        while (before := count()) - start < 60:
            if not page.evaluate(PRESSED, chance.randrange(methods)):
                break
            page.wait_for_function(WRITTEN, arg=before + 1 + chance.randrange(30))
            expect(place).to_be_visible()
        assert "not stored" not in view.inner_text()


def test_a_second_visit_fetches_nothing_and_needs_no_network(
    open_page: Callable[..., Page],
) -> None:
    page = open_page()
    loaded(widget(page, 0))
    page.reload()
    asked = requests(page)
    view = widget(page, 0)
    expect(view.locator(".attn-own")).to_contain_text("This browser has kept the model's file.")
    page.wait_for_load_state("networkidle")  # fonts of the page may come after its load
    page.context.set_offline(True)
    view.get_by_role("button", name="Start the model").click()
    expect(view.locator(".attn-own")).to_contain_text("The model runs in this page")
    begun(view, OWN)
    assert asked == []


def test_what_is_interrupted_goes_on_and_what_is_damaged_comes_again(
    open_page: Callable[..., Page], faults: Any
) -> None:
    page = open_page()
    view, asked, cut = widget(page, 0), requests(page), [3]

    def weak(route: Route) -> None:
        """The second part arrives damaged once, the third not at all."""
        if len(asked) == 2:
            body = bytearray(route.fetch().body())
            body[7] ^= 1
            route.fulfill(body=bytes(body))
        elif len(asked) == 4 and cut.pop():
            route.abort()
        else:
            route.continue_()

    page.route("**/model/*", weak)
    view.get_by_role("button", name="Load the model").click()
    expect(view.locator(".attn-own")).to_contain_text("What has come is kept.")
    assert len(asked) == 4 and asked[1] == asked[2]
    view.get_by_role("button", name="Go on loading").click()
    expect(view.locator(".attn-own")).to_contain_text("The model runs in this page")
    assert asked[3] == asked[4] and len({*asked[:3]} & {*asked[4:]}) == 0
    begun(view, OWN)
    faults.clear()


def test_a_part_that_was_kept_damaged_is_fetched_again(open_page: Callable[..., Page]) -> None:
    page = open_page()
    loaded(widget(page, 0))
    page.evaluate("""async () => {
      const cache = await caches.open("attnbook-model"), [, second] = await cache.keys();
      await cache.put(second, new Response(new Uint8Array(40000)));
    }""")
    page.reload()
    asked = requests(page)
    view = widget(page, 0)
    view.get_by_role("button", name="Start the model").click()
    expect(view.locator(".attn-own")).to_contain_text("The model runs in this page")
    assert len(asked) == 1
    begun(view, OWN)


def test_a_page_from_a_file_says_what_is_missing(open_page: Callable[..., Page]) -> None:
    view = widget(open_page(scheme="file"), 0)
    expect(view.locator(".attn-own")).to_contain_text("a page from a server can load the model")
    expect(view.get_by_role("button", name="Load the model")).to_be_hidden()
