"""Playground in Chromium, on a built page: its own engine against the model in Python."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from attnbook.model.recording import recorded
from attnbook.model.transformer import TransformerDecoder
from attnbook.web import Playground, format_number
from attnbook.weights.int8 import load_int8
from tests.browser.conftest import Faults
from tests.browser.widget_pages import (
    copied,
    everywhere,
    exact,
    settle,
    until,
    violations,
    visible,
    widget,
)
from tests.helpers.tiny_gpt import CONFIG, NAME, tiny_gpt

TEXT = "We must ask the"
READY = "textarea:not([disabled])"
MODEL, TOKENIZER = load_int8(tiny_gpt(), TransformerDecoder)


def playground(text: str = TEXT, **options: Any) -> Playground:
    return Playground(text, weights=tiny_gpt(), **options)


@pytest.fixture(scope="module")
def path(widget_page: Callable[..., Path]) -> Path:
    shown = [playground(name="play", title="It writes")]
    return widget_page(shown, attnbook_weights=str(tiny_gpt().parent))


@pytest.fixture
def open_page(page_factory: Callable[..., Page], path: Path) -> Callable[..., Page]:
    def open_at(fragment: str = "", ready: bool = True, **where: Any) -> Page:
        page = page_factory(f"{path}{fragment}", **where)
        if ready:
            widget(page, 0).locator(READY).wait_for()
        return page

    return open_at


def share(p: float) -> str:
    return "<0.001" if 0 < p < 0.0005 else format_number(p)


def shows(view: Locator, shown: Playground) -> None:
    """That the page shows the text, the bars and the draw of a widget in Python with its state."""
    answer = shown.answer
    settle(view.page)
    expect(view.locator(".attn-tok:not(.attn-next)")).to_have_count(len(answer["ids"]))
    drawn = answer["drawn"]
    best = answer["best"] + ([drawn] if drawn["rank"] >= len(answer["best"]) else [])
    names, fell = view.locator(".attn-take .attn-label"), view.locator(".attn-fell")
    expect(names).to_have_text([visible(one["name"]) for one in best])
    wanted = [one["p"] for one in best]
    wanted += [answer["number"], drawn["from"], drawn["to"]]

    def numbers() -> list[float]:
        values = " ".join([*view.locator(".attn-take b").all_inner_texts(), fell.inner_text()])
        return [float(x) for x in re.findall(r"[01]\.\d{3}", values)]

    def same() -> bool:
        found = numbers()
        return len(found) == len(wanted) and np.allclose(found, wanted, rtol=0, atol=0.0011)

    until(view.page, same, lambda: f"the page shows {numbers()}, Python says {wanted}")
    expect(fell).to_contain_text(f" falls on {visible(drawn['name'])} (")
    cut = [visible(one["name"]) for one in best[: len(answer["best"])][answer["count"] :]]
    expect(view.locator(".attn-cut .attn-label")).to_have_text(cut)
    expect(view.locator(".attn-drawn .attn-label")).to_have_text([visible(drawn["name"])])
    given = view.locator(".attn-given")
    expect(given).to_have_count(answer["prompt"])


def drawn_ids(n: int, **options: Any) -> list[int]:
    """What n steps write."""
    ids: list[int] = []
    for _ in range(n):
        ids.append(playground(written=ids, **options).answer["drawn"]["which"])
    return ids


@everywhere
def test_step_take_and_go_back(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = widget(page, 0)
    shows(view, playground())
    step, back = (view.get_by_role("button", name=name, exact=True) for name in ("Step", "Back"))
    expect(back).to_be_disabled()
    ids = drawn_ids(3)
    for n in (1, 2, 3):
        step.tap() if where["width"] < 600 else step.click()
        shows(view, playground(written=ids[:n]))
    back.click()
    shows(view, playground(written=ids[:2]))
    other = playground(written=ids[:2]).answer["best"][4]["which"]
    bar = view.locator(".attn-take").nth(4)
    bar.tap() if where["width"] < 600 else bar.click()
    shows(view, playground(written=[*ids[:2], other]))
    assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    view.get_by_role("button", name="Another number").click()
    shows(view, playground(written=[*ids[:2], other], seed=1))
    view.get_by_role("button", name="Reset").click()
    shows(view, playground())


@everywhere
def test_filters_cut(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = widget(page, 0)
    view.get_by_text("Filters", exact=True).click()
    cool = view.get_by_role("slider", name="temperature")
    cool.fill("0.4")
    k = view.get_by_role("slider", name="top-k")
    k.fill("7")  # the eighth step: 10
    state: dict[str, Any] = {"top_k": 10}
    for name, value in (("top-p", "0.6"), ("min-p", "0.3")):
        view.get_by_role("slider", name=name).fill(value)
        state[name.replace("-", "_")] = float(value)
    shown = playground(temperature=exact(0.4), **state)
    expect(view.locator(".attn-fold .attn-value").first).to_have_text(f"{exact(0.4):.2f}")
    shows(view, shown)
    found = view.locator(".attn-fold .attn-after").all_inner_texts()
    for said, stage in zip(found[1:], shown.answer["stages"].values(), strict=True):
        start, mass = f"leaves {stage['count']} of {shown.answer['size']}, ", stage["mass"]
        assert said.startswith(start) and said.endswith(" of the probability")
        assert float(said.removeprefix(start).split()[0]) == pytest.approx(mass, abs=0.0011)
    assert "attn-cut" in (view.locator(".attn-could li").nth(9).get_attribute("class") or "")
    widths = view.locator(".attn-strip span").evaluate_all(
        "(all) => all.map((e) => e.getBoundingClientRect().width)"
    )
    kept = [one["p"] / shown.answer["mass"] for one in shown.answer["best"]]
    kept = kept[: shown.answer["count"]]
    assert widths == pytest.approx([sum(widths) * q for q in kept], abs=0.6)
    pin = view.locator(".attn-pin").evaluate("(e) => parseFloat(e.style.left)")
    assert pin == pytest.approx(100 * shown.answer["number"])


def test_names_in_the_strip_do_not_collide(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    view = widget(page, 0)
    view.get_by_text("Filters", exact=True).click()
    script = """(strip) => [...strip.children].filter((e) => e.textContent).map((part) => {
      const [name, own, all] = [part.firstChild, part, strip].map((e) => e.getBoundingClientRect());
      const seen = name.top < all.bottom - 1;
      return [seen, name.left >= own.left - 0.5 && name.right <= own.right + 0.5];
    })"""
    names, strip = [], view.locator(".attn-strip")
    for k in ("2", "4", "7", "17"):  # steps: 3, 5, 10, all
        view.get_by_role("slider", name="top-k").fill(k)
        settle(page)
        names += strip.evaluate(script)
    strip.evaluate("(strip) => (strip.style.width = '60px')")
    narrow = strip.evaluate(script)
    assert all(inside for seen, inside in [*names, *narrow] if seen)
    assert sum(seen for seen, _ in names) > 3
    assert not all(seen for seen, _ in narrow)  # what does not fit hides


def test_what_stood_there_and_a_branch(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    ids, prompt = drawn_ids(4), TOKENIZER.encode(TEXT)
    for n in range(4):
        view.get_by_role("button", name="Step", exact=True).click()
        shows(view, playground(written=ids[: n + 1]))
    at = len(prompt) + 1
    view.locator(".attn-tok").nth(at).click()
    shown = playground(written=ids, place=at)
    shows(view, shown)
    assert shown.answer["at"] == at
    title = view.get_by_text("What could have stood after")
    assert visible(shown.answer["names"][at]) in title.inner_text()
    best = shown.answer["best"]
    choice = next(n for n, one in enumerate(best) if one["which"] != ids[1])
    view.locator(".attn-take").nth(choice).press("Enter")
    branched = [ids[0], best[choice]["which"]]
    shows(view, playground(written=branched))
    left = view.locator(".attn-branches button")
    expect(left).to_have_count(1)
    left.click()
    shows(view, playground(written=ids))
    view.locator(".attn-tok").nth(2).press("Enter")  # inside the beginning
    inside = playground(written=ids, place=2)
    shows(view, inside)
    best = inside.answer["best"]
    view.locator(".attn-take").nth(1).click()
    start = TOKENIZER.decode(prompt[:2])
    shows(view, playground(start, written=[best[1]["which"]]))
    expect(view.get_by_role("textbox", name="Your beginning")).to_have_value(start)


@everywhere
def test_write_and_stop(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = widget(page, 0)
    text = view.get_by_role("textbox", name="Your beginning")
    text.fill("People é🥲")
    shows(view, playground("People é🥲"))
    pace = view.get_by_role("combobox", name="pace")
    pace.select_option("as fast as it can")
    page.evaluate("let last = 0; void (Math.random = () => ((last += 0.123456)))")
    text.press("Enter")
    most, n = 4 * CONFIG.max_len, len(TOKENIZER.encode("People é🥲"))
    ids = drawn_ids_of("People é🥲", most - n, seed=123_456)  # beyond one window
    assert len(ids) > CONFIG.max_len
    again = view.get_by_role("button", name="Again with seed 123456")
    expect(again).to_be_enabled()
    shows(view, playground("People é🥲", written=ids, seed=123_456))
    if len(ids) == most - n:
        expect(view.get_by_text(f"A text of {most} tokens is the longest")).to_be_visible()
        for name in ("Write", "Step"):
            expect(view.get_by_role("button", name=name, exact=True)).to_be_disabled()
    expect(view.get_by_text("its window has slid on")).to_be_visible()
    gone = playground("People é🥲", written=ids).answer["start"]
    expect(view.locator(".attn-gone")).to_have_count(gone)
    pace.select_option("4 tokens a second")  # so that it is seen to write
    again.click()  # takes back what was written, and writes the same
    expect(view.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    pace.select_option("as fast as it can")
    expect(view.get_by_role("button", name="Write", exact=True)).to_be_visible()
    shows(view, playground("People é🥲", written=ids, seed=123_456))
    text.fill("")
    shows(view, playground("", seed=123_456))
    assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")


def test_each_write_takes_a_new_number(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    write = view.get_by_role("button", name="Write", exact=True)
    text = view.get_by_role("textbox", name="Your beginning")
    tokens, found = view.locator(".attn-tok:not(.attn-next)"), []
    seeds = range(100_000, 1_000_000, 100_000)  # two with which the text does not end at once
    first, second = [s for s in seeds if TOKENIZER.vocab.eos not in drawn_ids(7, seed=s)][:2]
    for seed in (first, second):
        page.evaluate("(x) => void (Math.random = () => x)", (seed + 0.5) / 1e6)
        write.click()
        expect(tokens.nth(len(TOKENIZER.encode(TEXT)) + 5)).to_be_visible()
        view.get_by_role("button", name="Stop", exact=True).click()
        again = view.get_by_role("button", name=f"Again with seed {seed}")
        expect(again).to_be_enabled()
        found.append(tokens.all_text_contents()[: len(TOKENIZER.encode(TEXT)) + 5])
        link = copied(view)
        text.fill("")
        text.fill(TEXT)  # from the same beginning
        shows(view, playground(seed=seed))
    assert found[0] != found[1]
    other = widget(open_page(link), 0)
    expect(other.get_by_role("button", name=f"Again with seed {second}")).to_be_enabled()
    shown = other.locator(".attn-tok:not(.attn-next)").all_text_contents()
    assert shown[: len(found[1])] == found[1]


def drawn_ids_of(text: str, n: int, **options: Any) -> list[int]:
    ids: list[int] = []
    for _ in range(n):
        ids.append(playground(text, written=ids, **options).answer["drawn"]["which"])
        if ids[-1] == TOKENIZER.vocab.eos:
            break
    return ids


def test_every_place(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    view.get_by_text("Every place", exact=True).click()
    ids = torch.tensor([TOKENIZER.encode(TEXT)])
    with torch.no_grad():
        logp = MODEL(ids)[0, :-1].double().log_softmax(-1)
    rows = []
    for after, row in zip(ids[0, 1:].tolist(), logp, strict=True):
        guess = int(row.argmax())
        name = "✓" if guess == after else visible(TOKENIZER.decode([guess]) or "<|endoftext|>")
        p, bits = share(row[after].exp().item()), format_number(-row[after].item() / 0.693147181, 1)
        rows.append(
            [visible(TOKENIZER.decode([after])), p, bits, f"{name} {share(row.max().exp().item())}"]
        )
    body = view.locator(".attn-every tbody tr")
    expect(body).to_have_count(len(rows))
    found = body.evaluate_all("(all) => all.map((row) => [...row.cells].map((e) => e.textContent))")
    assert [row[:3] for row in found] == [row[:3] for row in rows]
    for row, want in zip(found, rows, strict=True):
        assert row[3] == want[3] or "\\x" in row[3]
    levels = view.locator(".attn-tok").evaluate_all(
        "(all) => all.map((e) => +e.style.getPropertyValue('--level'))"
    )
    bits = [-row[i].item() / 0.693147181 for i, row in zip(ids[0, 1:], logp, strict=True)]
    assert levels[1:-1] == pytest.approx([min(1, each / 12) for each in bits], abs=1e-3)


def test_inside(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    view.get_by_text("Inside", exact=True).click()
    heads = view.locator(".attn-head-map")
    expect(heads).to_have_count(6)
    ids = torch.tensor([TOKENIZER.encode(TEXT)])
    with torch.no_grad(), recorded(MODEL) as weights:
        MODEL(ids)
    n = ids.shape[1]
    head = torch.stack([each[0] for each in weights.values()])[1, 2]  # [query key]
    expect(heads.nth(5)).to_have_attribute("aria-label", re.compile("^layer 2, head 3, looks most"))
    assert heads.nth(5).locator("canvas").evaluate("(e) => [e.width, e.height]") == [n, n]
    heads.nth(5).press("Space")
    best = head[-1].topk(min(5, n))
    names = [visible(TOKENIZER.decode([int(ids[0, i])])) for i in best.indices]
    told = " · ".join(
        f"{name} {format_number(w.item())}" for name, w in zip(names, best.values, strict=True)
    )
    panel = view.locator(".attn-opened:not([hidden])")
    last = visible(TOKENIZER.decode([int(ids[0, -1])]))
    expect(panel.locator("p").first).to_have_text(f"Layer 2, head 3: {last} looks at {told}")
    expect(panel.locator(".attn-lengths li")).to_have_count(3)
    heads.nth(5).click()
    expect(panel).to_have_count(0)


def test_keys(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    view.get_by_role("button", name="The next token").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    n = len(TOKENIZER.encode(TEXT))
    shows(view, playground(place=n - 2))
    page.keyboard.press("End")
    page.keyboard.press("Space")
    shows(view, playground())
    reachable = view.locator(".attn-tok[tabindex='0'], .attn-tok:not([tabindex])")
    expect(reachable).to_have_count(1)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(open_page: Callable[..., Page], theme: str) -> None:
    page = open_page(theme=theme)
    view = widget(page, 0)
    view.get_by_role("button", name="Step", exact=True).click()
    for name in ("Filters", "Every place", "Inside"):
        view.get_by_text(name, exact=True).click()
    view.locator(".attn-head-map").nth(3).click()
    expect(view.locator(".attn-opened:not([hidden])")).to_have_count(1)
    assert violations(page, ".attn-playground") == []


def test_a_link_restores_the_state(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    view.get_by_role("textbox", name="Your beginning").fill("Peace: 50% & cats;")
    ids = drawn_ids_of("Peace: 50% & cats;", 2)
    for n in (1, 2):
        view.get_by_role("button", name="Step", exact=True).click()
        shows(view, playground("Peace: 50% & cats;", written=ids[:n]))
    view.get_by_text("Inside", exact=True).click()
    view.locator(".attn-head-map").nth(3).click()
    again = widget(open_page(copied(view)), 0)
    shows(again, playground("Peace: 50% & cats;", written=ids))
    expect(again.locator(".attn-opened:not([hidden])")).to_contain_text("Layer 2, head 1")
    hostile = open_page(
        "#w.play=text:~%3Cimg%20src=x%3E;written:3,-4,99999,1.5;top_p:-3;head:999;place:7777;seed:-1"
    )
    shows(widget(hostile, 0), playground("<img src=x>", written=[3], top_p=0.01, place=7777))


def test_without_weights_the_stored_answer_stays(
    open_page: Callable[..., Page], faults: Faults
) -> None:
    page = open_page(ready=False)
    page.route(f"**/weights/{NAME}.js", lambda route: route.abort())
    page.reload()
    view = widget(page, 0)
    said = view.get_by_text("The model could not start: its script")
    expect(said).to_contain_text("Until then this is the stored answer.")
    shows(view, playground())
    for name in ("Write", "Step", "Back", "Another number"):
        expect(view.get_by_role("button", name=name, exact=True)).to_be_disabled()
    faults.clear()


def test_the_page_stays_smooth_while_it_writes(open_page: Callable[..., Page]) -> None:
    """Of what each token costs the page's own thread: elements that are there stay."""
    page = open_page()
    view = widget(page, 0)
    first = view.locator(".attn-tok").first.element_handle()
    bar, written = view.locator(".attn-take").first.element_handle(), view.locator(".attn-tok")
    tokens = written.count()
    view.get_by_role("combobox", name="pace").select_option("as fast as it can")
    view.get_by_role("button", name="Write", exact=True).click()
    expect(written).not_to_have_count(tokens)
    expect(view.get_by_role("button", name="Write", exact=True)).to_be_visible()
    for handle in (first, bar):
        assert handle.evaluate("(e) => e.isConnected")


def test_a_text_that_is_written_fast_is_drawn_now_and_then(open_page: Callable[..., Page]) -> None:
    """Where the clock stands still: at the end, and the box then shows the end."""
    page = open_page()
    view = widget(page, 0)
    box, written = view.locator(".attn-text"), view.locator(".attn-tok")
    tokens = written.count()
    box.evaluate("""(box) => {
        const now = performance.now();
        performance.now = () => now;
        Math.random = () => 0.5; // a text of many tokens
        box.style.maxHeight = "3rem";
        window.drawings = 0;
        const note = () => (window.drawings += 1);
        new MutationObserver(note).observe(box.querySelector("span"), { childList: true });
    }""")
    view.get_by_role("combobox", name="pace").select_option("as fast as it can")
    view.get_by_role("button", name="Write", exact=True).click()
    expect(written).not_to_have_count(tokens)
    expect(view.get_by_role("button", name="Write", exact=True)).to_be_visible()
    assert page.evaluate("window.drawings") < (written.count() - tokens) / 4
    assert box.evaluate(
        "(e) => e.scrollTop > 0 && e.scrollHeight - e.clientHeight - e.scrollTop < 2"
    )
