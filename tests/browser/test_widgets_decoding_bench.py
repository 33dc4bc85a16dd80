"""DecodingBench in Chromium, on a built page: filters, draws and branches against the model."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from attnbook.model.sampling import Sampling, uniform
from attnbook.model.transformer import TransformerDecoder
from attnbook.web import DecodingBench, format_number
from attnbook.web.playground.widget import token_name
from attnbook.weights.int8 import load_int8
from tests.browser.widget_pages import (
    copied,
    everywhere,
    exact,
    serious,
    settle,
    visible,
    widget,
    work,
)
from tests.helpers.tiny_gpt import tiny_gpt

PROMPT = "We must ask"
MODEL, TOKENIZER = load_int8(tiny_gpt(), TransformerDecoder)
SIZE = len(TOKENIZER.vocab)


@pytest.fixture(scope="module")
def path(widget_page: Callable[..., Path]) -> Path:
    bench = DecodingBench(MODEL, TOKENIZER, PROMPT, steps=5, title="It cuts", name="bench")
    cold = DecodingBench(MODEL, TOKENIZER, "", steps=1, seeds=0, temperature=0, name="cold")
    return widget_page([bench, cold])


class Wanted:
    """What the bench must show of a place, worked out from all of the model's logits."""

    def __init__(self, written: list[int], seed: int = 0, **filters: Any):
        how = Sampling(**filters)
        with torch.no_grad():
            logits = MODEL(torch.tensor([[*TOKENIZER.encode(PROMPT), *written]]))[0, -1].double()
        self.p, self.number = logits.softmax(-1), uniform(torch.tensor([seed]), len(written)).item()
        rest = how(logits[None], torch.zeros(1, 0, dtype=torch.long))[0]
        self.q, self.count = rest.softmax(-1), int((rest > -torch.inf).sum())
        self.order = logits.argsort(descending=True, stable=True).tolist()
        warm = Sampling(temperature=filters.get("temperature", 1.0))
        self.warm = warm(logits[None], torch.zeros(1, 0, dtype=torch.long))[0].softmax(-1)
        ends = self.q[self.order].cumsum(-1)
        self.drawn = self.order[int((ends <= self.number).sum())]

    def bits(self) -> list[str]:
        return [format_number(-(p * p.log2()).nansum().item(), 2) for p in (self.p, self.q)]


def name(i: int) -> str:
    return visible(token_name(TOKENIZER, i))


def chip(name: str) -> str:
    """How a token stands in the text."""
    return "·" if name.startswith("\\x") else name.replace("␣", " ")


def bar(view: Locator, written: list[int], i: int) -> Locator:
    """The bar of a token at a place."""
    return view.locator(".attn-take").nth(Wanted(written).order.index(i))


def shows(view: Locator, wanted: Wanted, slack: float = 0.0011) -> None:
    """That the page shows this place."""
    settle(view.page)
    best, drawn = wanted.order[:10], wanted.drawn
    kept = view.locator(".attn-fell b")
    expect(kept).to_have_text(format_number(wanted.number))
    names = view.locator(".attn-take .attn-label")
    stored = drawn in wanted.order[:24]
    more = [drawn] if stored and drawn not in best else []
    expect(names).to_have_text([name(i) for i in [*best, *more]])
    for n, i in enumerate([*best, *more]):
        before, after = view.locator(".attn-take").nth(n).locator("b").all_inner_texts()
        assert number_of(before) == pytest.approx(wanted.p[i].item(), abs=slack)
        if wanted.q[i] > 0:
            assert number_of(after) == pytest.approx(wanted.q[i].item(), abs=slack)
        else:
            assert after == "–"
    if stored:
        expect(view.locator(".attn-fell")).to_contain_text(f" falls on {name(drawn)} (")
        expect(view.locator(".attn-drawn .attn-label")).to_have_text(name(drawn))
    else:
        expect(view.locator(".attn-fell")).to_contain_text("falls among the")
        expect(view.get_by_role("button", name="Take it")).to_be_disabled()


def number_of(words: str) -> float:
    return 0.0 if words.startswith("<") else float(words)


def told(view: Locator) -> list[float]:
    """How many are left, their mass, both entropies."""
    found = view.locator(".attn-readout b").all_inner_texts()
    return [float(re.sub(r"[^\d.]", "", words)) for words in found]


@everywhere
def test_take_draw_and_go_back(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = widget(page, 0)
    shows(view, Wanted([]))
    take, again, back, anew = (
        view.get_by_role("button", name=name, exact=True)
        for name in ("Take it", "Draw again", "Back", "Start anew")
    )
    expect(back).to_be_disabled()
    written: list[int] = []
    for _ in range(2):
        seed = 0
        while Wanted(written, seed).drawn not in Wanted(written).order[:10]:
            seed += 1
        for _ in range(seed):
            again.tap() if where["width"] < 600 else again.click()
        shows(view, Wanted(written, seed))
        best = Wanted(written).order[0]
        pressed = bar(view, written, best)
        pressed.tap() if where["width"] < 600 else pressed.click()
        written.append(best)
        shows(view, Wanted(written, seed))
        view.get_by_role("button", name="Reset").click()
        shows(view, Wanted([]))
        for n, i in enumerate(written):
            bar(view, written[:n], i).click()
    shows(view, Wanted(written))
    expect(view.locator(".attn-tok:not(.attn-next)")).to_have_count(
        len(TOKENIZER.encode(PROMPT)) + 2
    )
    back.click()
    shows(view, Wanted(written[:1]))
    anew.click()
    shows(view, Wanted([]))
    assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    take.click()
    drawn = Wanted([]).drawn
    expect(view.locator(".attn-tok:not(.attn-next)").last).to_have_text(chip(name(drawn)))


@everywhere
def test_methods_and_filters(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = widget(page, 0)
    methods: dict[str, dict[str, Any]] = {
        "greedy": {"temperature": 0.0},
        "temperature 0.7": {"temperature": 0.7},
        "top-k 50": {"top_k": 50},
        "top-p 0.9": {"top_p": 0.9},
        "min-p 0.1": {"min_p": 0.1},
        "as it is": {},
    }
    for method, how in methods.items():
        button = view.get_by_role("button", name=method, exact=True)
        button.tap() if where["width"] < 600 else button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(view.locator(".attn-methods [aria-pressed=true]")).to_have_count(1)
        wanted = Wanted([], **how)
        shows(view, wanted, 0.003)
        count, mass, *bits = told(view)
        assert count == pytest.approx(wanted.count, rel=0.05)
        near = "about" in view.locator(".attn-readout b").first.inner_text()
        assert near or count == wanted.count
        left = wanted.warm[wanted.order[: wanted.count]].sum().item()
        assert mass == pytest.approx(left, abs=0.01)
        assert bits == pytest.approx([float(x) for x in wanted.bits()], abs=0.05)
    for slider, value in (("temperature", "0.6"), ("top-k", "3"), ("top-p", "0.6")):
        view.get_by_role("slider", name=slider).fill(value)
    expect(view.locator(".attn-methods [aria-pressed=true]")).to_have_count(0)
    wanted = Wanted([], temperature=exact(0.6), top_k=4, top_p=0.6)
    shows(view, wanted, 0.003)
    assert told(view)[0] == wanted.count
    cut = [name(i) for i in wanted.order[wanted.count : 10]]
    expect(view.locator(".attn-cut .attn-label")).to_have_text(cut)
    widths = view.locator(".attn-strip span").evaluate_all(
        "(all) => all.map((e) => e.getBoundingClientRect().width)"
    )
    kept = wanted.q[wanted.order[: wanted.count]].tolist()
    assert widths == pytest.approx([sum(widths) * q for q in kept], abs=1)
    pin = view.locator(".attn-pin").evaluate("(e) => parseFloat(e.style.left)")
    assert pin == pytest.approx(100 * wanted.number)


def test_beyond_the_stored_tree(open_page: Callable[..., Page]) -> None:
    """No number is shown there, and the reader finds the way back."""
    page = open_page()
    view = widget(page, 0)
    bar(view, [], Wanted([]).order[0]).click()
    unstored = view.locator(".attn-unstored button")
    expect(unstored.first).to_contain_text("what follows is not stored")
    last = unstored.last.locator(".attn-label").inner_text()
    unstored.last.click()
    panel = view.locator(".attn-beyond")
    expect(panel).to_contain_text("is not stored, and no kernel is there to ask it")
    expect(view.locator(".attn-take").first).to_be_hidden()
    expect(view.locator(".attn-readout")).to_be_hidden()
    expect(view.locator(".attn-tok:not(.attn-next)").last).to_have_text(chip(last))
    branch = panel.get_by_role("button").first
    branch.focus()
    page.keyboard.press("Enter")
    expect(panel).to_be_hidden()
    expect(view.locator(".attn-take").first).to_be_visible()
    expect(view.locator(".attn-tok:not(.attn-next)")).to_have_count(
        len(TOKENIZER.encode(PROMPT)) + 2
    )


def test_keys_and_what_is_heard(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    heard = view.locator(".attn-heard[aria-live]").last
    view.get_by_role("button", name="Draw again").focus()
    page.keyboard.press("Enter")
    shows(view, Wanted([], 1))
    expect(heard).to_contain_text(f"The number {format_number(Wanted([], 1).number)} falls")
    bar(view, [], Wanted([]).order[0]).focus()
    page.keyboard.press("Space")
    shows(view, Wanted([Wanted([]).order[0]], 1))
    expect(heard).to_contain_text("Kept: ")
    view.get_by_role("button", name="The next token").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")  # the place of the one that was taken
    shows(view, Wanted([], 1))
    k = view.get_by_role("slider", name="top-k")
    k.focus()
    page.keyboard.press("Home")
    expect(k).to_have_attribute("aria-valuetext", "1")
    shows(view, Wanted([], 1, top_k=1))


def test_a_link_restores_the_state(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = widget(page, 0)
    first = Wanted([]).order[1]
    bar(view, [], first).click()
    view.get_by_role("button", name="top-p 0.9").click()
    view.get_by_role("button", name="Draw again").click()
    shows(widget(open_page(copied(view)), 0), Wanted([first], 1, top_p=0.9), 0.003)
    hostile = f"#w.bench=written:{first},-4,99999,1.5;top_p:-3;seed:-1;temperature:-2;min_p:9"
    view = widget(open_page(hostile), 0)
    shows(view, Wanted([first], temperature=0.0, top_p=0.01, min_p=1.0))
    far = ",".join(["7"] * 60)
    view = widget(open_page(f"#w.bench=written:{far}"), 0)
    expect(view.get_by_text("The model reads no more tokens than these.")).to_be_visible()
    view = widget(open_page(f"#w.bench=written:{MODEL.vocab.eos}"), 0)
    expect(view.get_by_text("The text ends here")).to_be_visible()


def test_it_can_start_greedy(open_page: Callable[..., Page]) -> None:
    view = widget(open_page(), 1)
    expect(view.locator(".attn-tok:not(.attn-next)")).to_have_text("<|endoftext|>")
    assert told(view)[0] == 1 and told(view)[3] == 0
    expect(view.get_by_role("button", name="greedy")).to_have_attribute("aria-pressed", "true")


def test_dragging_redraws_once_a_frame(open_page: Callable[..., Page]) -> None:
    view = widget(open_page(), 0)
    step = "(n) => { node.value = 0.3 + 0.005 * n; node.dispatchEvent(new Event('input')); }"
    counts = work(view.get_by_role("slider", name="temperature"), step, moves=4)
    assert max(counts) < 200


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing(open_page: Callable[..., Page], theme: str, width: int) -> None:
    page = open_page(theme=theme, width=width)
    view = widget(page, 0)
    view.get_by_role("button", name="top-p 0.9").click()
    assert serious(page) == []
    view.locator(".attn-take").nth(1).click()
    view.locator(".attn-unstored button").last.click()
    expect(view.locator(".attn-beyond")).to_be_visible()
    assert serious(page) == []


def test_a_site_without_a_model_says_so(open_page: Callable[..., Page]) -> None:
    view = widget(open_page(), 0)
    expect(view.locator(".attn-own .attn-note")).to_have_text(
        "This copy of the book was built without the model's file,"
        " so only what is stored can be shown."
    )
    expect(view.get_by_role("button", name="Load the model")).to_be_hidden()
