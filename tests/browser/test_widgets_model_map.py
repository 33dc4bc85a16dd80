"""ModelMap in Chromium: what is exchanged, names, the ledger, by pointer and keys."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page

from attnbook.model.config import BERT, GPT_2, SMOLLM2
from attnbook.walks import modern_parts
from attnbook.web import ModelMap
from tests.browser.widget_pages import copied, everywhere, settle, violations, widget, work
from tests.helpers.walks_modern import TOKENS, WORDS, decoder

MODERN = {"normalizer": "rms", "activation": "silu", "gated": True, "d_ff": 2048, "bias": False,
          "positions": "rotary", "n_kv_heads": 4}  # fmt: skip
WORKED = modern_parts(decoder(), TOKENS, WORDS)


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    models = {"GPT-2": GPT_2, "Llama's parts": replace(GPT_2, **MODERN)}
    widgets = [
        ModelMap(models, 50257, title="This is GPT", name="gpt"),
        ModelMap({"GPT-2": GPT_2, "SmolLM2": SMOLLM2}, [50257, 49152], name="two"),
        ModelMap({"BERT": BERT}, 30522, shape="encoder", title="This is BERT", name="bert"),
        ModelMap(models, 50257, worked=WORKED, title="At work", name="work"),
    ]
    return widget_page(widgets)


def told(page: Page, n: int) -> tuple[str, dict[str, str]]:
    """What is said of the model on view, and its ledger."""
    settle(page)
    rows = (
        widget(page, n)
        .locator(".attn-counts tbody tr")
        .evaluate_all(
            "(all) => all.map((row) => [...row.children].slice(0, 2).map((e) => e.textContent))"
        )
    )
    return widget(page, n).locator(".attn-rule").text_content() or "", dict(rows)


def seen(board: Locator, part: str) -> list[str]:
    script = """(all) => all.filter((e) => getComputedStyle(e).display !== "none")
      .map((e) => [...e.querySelectorAll("text")].map((t) => t.textContent).join(" "))"""
    return board.locator(f".attn-towers [data-part={part}]").evaluate_all(script)


def counted(**changes: Any) -> tuple[str, str]:
    """Parameters, and the bytes of a token in the cache."""
    widget = ModelMap({"m": replace(GPT_2, **changes)}, 50257, n_tokens=1)
    ledger = widget.ledger()
    cache = ledger.pop("cache")
    return f"{sum(ledger.values()):,}", f"{cache:,}"


@everywhere
def test_parts_are_exchanged_one_by_one(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    page = page_factory(path, **where)
    board, taken = widget(page, 0), {}
    fields = {"RMSNorm": ["normalizer"], "SwiGLU": ["activation", "gated", "d_ff"],
              "RoPE": ["positions"], "4 heads of keys": ["n_kv_heads"],
              "no biases": ["bias"]}  # fmt: skip
    before = {"norm": ["LayerNorm"] * 3, "keys": ["V × 12", "K × 12"], "positions": ["+ place"]}
    for part, words in before.items():
        assert sorted(seen(board, part), reverse=True) == words
    exchange = board.get_by_role("group", name="Exchange")
    for n, (name, changed) in enumerate(fields.items()):
        button = exchange.get_by_role("button", name=name, exact=True)
        pointer = button.tap if where["width"] < 600 else button.click
        button.press("Enter") if n % 2 else pointer()
        taken |= {field: MODERN[field] for field in changed}
        said, ledger = told(page, 0)
        parameters, cache = counted(**taken)
        assert f": {parameters} parameters. A token keeps {cache} bytes" in said
        assert ledger["all"] == parameters
    assert said.startswith("Llama's parts: ") and cache == "12,288"
    assert seen(board, "norm") == ["RMSNorm"] * 3 and seen(board, "bias") == ["", ""]
    assert sorted(seen(board, "keys")) == ["K × 4", "V × 4"]
    assert seen(board, "rope").count("RoPE") == 2 and seen(board, "positions") == [""]
    assert seen(board, "feed-forward") == ["feed-forward down SiLU(gate) × up gate up"]
    board.get_by_role("button", name="GPT-2").press("Enter")
    assert told(page, 0)[0].startswith("GPT-2: 124,439,808 parameters")
    assert seen(board, "norm") == ["LayerNorm"] * 3


@everywhere
def test_a_part_opens_its_names(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    page = page_factory(path, **where)
    board = widget(page, 0)

    def names() -> list[str]:
        settle(page)
        return board.locator(".attn-names code").all_text_contents()

    board.locator(".attn-towers [data-part=feed-forward]:not(.attn-gone)").press("Enter")
    assert names() == ["feed_forward.up", "mlp.c_fc", "feed_forward.down", "mlp.c_proj"]
    board.get_by_role("button", name="SwiGLU", exact=True).press("Space")
    assert names()[1::2] == ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
    tap = "tap" if where["width"] < 600 else "click"
    getattr(board.locator(".attn-towers [data-part=keys]:not(.attn-gone)").first, tap)()
    assert names()[1::2] == ["attn.c_attn"] * 3 + ["attn.c_proj"]  # still GPT-2's
    lit = board.locator(".attn-counts .attn-on th").all_text_contents()
    assert lit == ["self-attention"]
    assert copied(board) == "#w.gpt=part:2;exchanged:2"


@everywhere
def test_what_is_exchanged_opens_with_numbers(
    page_factory: Callable[..., Page], path: Path, where: dict[str, Any]
) -> None:
    page = page_factory(path, **where)
    board = widget(page, 3)
    exchange = board.get_by_role("group", name="Exchange")

    def opened() -> tuple[str | None, list[list[str]]]:
        settle(page)
        script = """(all) => all.map((e) =>
          [...e.querySelectorAll("span > span")].map((x) => x.textContent))"""
        work = board.locator(".attn-worked")
        title = work.get_attribute("aria-label") if work.count() else None
        return title, work.locator("li").evaluate_all(script)

    assert opened() == (None, [])
    titles = {"RMSNorm": ("norm", "RMSNorm"), "SwiGLU": ("network", "SwiGLU"),
              "RoPE": ("places", "RoPE"),
              "4 heads of keys": ("keys", "Grouped queries")}  # fmt: skip
    for n, (button, (name, title)) in enumerate(titles.items()):
        key = exchange.get_by_role("button", name=button, exact=True)
        pointer = key.tap if where["width"] < 600 else key.click
        key.press("Enter") if n % 2 else pointer()
        numbers = [row[2] for row in WORKED[name]]
        assert opened() == (f"{title} at work in a small model", numbers)
    exchange.get_by_role("button", name="no biases").press("Enter")  # has none, and closes none
    assert opened()[0] == "Grouped queries at work in a small model"
    board.locator(".attn-towers [data-part=norm]:not(.attn-gone)").first.press("Enter")
    assert opened()[1] == [row[2] for row in WORKED["norm"]]
    board.get_by_role("button", name="GPT-2").press("Enter")  # its norm has names only
    assert opened() == (None, [])
    assert board.locator(".attn-names code").nth(1).text_content() == "ln_1"


def test_unlike_models_are_exchanged_whole_and_bert_has_two_outputs(
    page_factory: Callable[..., Page], path: Path
) -> None:
    page = page_factory(f"{path}#w.two=exchanged:1")
    said, ledger = told(page, 1)
    cache = "A token keeps 23,040 bytes in the cache, two for a number."
    assert said == f"SmolLM2: 134,515,008 parameters. {cache}"
    assert ledger["cache, 1,024 tokens"] == "23,592,960 bytes"
    assert widget(page, 1).get_by_role("group", name="Exchange").count() == 0
    said, ledger = told(page, 2)
    assert said == "BERT: 110,106,428 parameters." and ledger["B follows A?"] == "592,130"
    widget(page, 2).get_by_role("button", name="hidden words").press("Enter")
    settle(page)
    first = widget(page, 2).locator(".attn-names code").nth(1).text_content()
    assert first == "cls.predictions.transform.dense"


def test_an_exchange_changes_little(page_factory: Callable[..., Page], path: Path) -> None:
    button = widget(page_factory(path), 0).get_by_role("button", name="RMSNorm", exact=True)
    assert 0 < max(work(button, "() => node.click()")) < 400  # rows, marks: within one frame


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing(
    page_factory: Callable[..., Page], path: Path, theme: str, width: int
) -> None:
    page = page_factory(path, theme=theme, width=width)
    widget(page, 0).get_by_role("button", name="Llama's parts").press("Enter")
    widget(page, 3).get_by_role("button", name="SwiGLU", exact=True).press("Enter")
    for n, part in ((0, "attention"), (2, "next")):
        widget(page, n).locator(f".attn-towers [data-part={part}]:not(.attn-gone)").press("Enter")
    settle(page, 2)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
