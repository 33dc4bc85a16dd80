"""AttentionSheet in Chromium, on a built page: by pointer, touch and keyboard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from attnbook.walks import attention_row
from attnbook.web import AttentionSheet, Drawing
from tests.browser.widget_pages import (
    copied,
    everywhere,
    settle,
    violations,
    widget,
    work,
    written,
)

RNG = np.random.default_rng(1)
WORDS = {word: RNG.normal(size=4) for word in ("dogs", "chase", "cat", "it", "they")}
SENTENCE = ["dogs", "chase", "cat", "it"]
BLOCKS = ("x", "w_q", "q", "w_k", "k", "w_v", "v", "scores", "weights", "out")  # as on the page


def sheet(**changes: Any) -> AttentionSheet:
    rng = np.random.default_rng(2)
    options: dict[str, Any] = {
        "x": [WORDS[word] for word in SENTENCE],
        "w_q": rng.normal(size=(4, 2)),
        "w_k": rng.normal(size=(4, 2)),
        "w_v": rng.normal(size=(4, 3)),
        "tokens": SENTENCE,
        "words": WORDS,
        "outputs": ["cat", "dog", "cow"],
        "cell": "scores.3.2",
        "title": "Whom does it mean?",
        "name": "sheet",
    }
    return AttentionSheet(**{**options, **changes})


def many() -> AttentionSheet:
    """As large as one can be, without other words."""
    rng = np.random.default_rng(3)
    x, w_q, w_k, w_v = (rng.normal(size=(size, 4)) for size in (6, 4, 4, 4))
    tokens = ["<b>", "a", "extraordinarily", "שלום", "", "z"]
    return AttentionSheet(x, w_q, w_k, w_v, tokens, mask=True, name="many")


def last_row() -> Drawing:
    """The last row of the sheet, step by step."""
    names = ("x", "w_q", "w_k", "w_v")
    x, q, k, v = (torch.tensor(getattr(sheet(), name), dtype=torch.double) for name in names)
    return attention_row(x, q, k, v, SENTENCE, outputs=["cat", "dog", "cow"], name="row")


@pytest.fixture(scope="module")
def path(widget_page: Callable[[list[Any]], Path]) -> Path:
    return widget_page([sheet(), many(), last_row()])


def shown(node: Locator) -> dict[str, list[list[str]]]:
    """What the cells of every block say."""
    settle(node.page)
    script = """(all) => all.map((block) => {
      const cells = [...block.querySelectorAll(".attn-num")];
      const wide = block.getAttribute("aria-label").match(/\\d+$/);
      return cells.reduce((rows, cell, n) => (n % wide ? rows.at(-1).push(cell.textContent)
        : rows.push([cell.textContent]), rows), []);
    })"""
    blocks = node.locator(".attn-block").evaluate_all(script)
    return dict(zip(BLOCKS, blocks, strict=True))


def shows(node: Locator, of: AttentionSheet) -> bool:
    """Whether the page has the numbers of Python, which are held to torch's."""
    texts, steps = shown(node), of.compute()
    got = {name: [[number(text) for text in row] for row in texts[name]] for name in BLOCKS}
    return all(np.allclose(got[name], steps[name], rtol=0, atol=0.005 + 1e-9) for name in BLOCKS)


def number(text: str) -> float:
    return float(text.replace("−", "-").replace("∞", "inf"))


def cell(node: Locator, name: str, i: int, j: int) -> Locator:
    wide = len(sheet().compute()[name][0])
    return (
        node.locator(".attn-block").nth(BLOCKS.index(name)).locator(".attn-num").nth(i * wide + j)
    )


def marked(node: Locator, look: str) -> list[str]:
    settle(node.page)
    script = """(all, look) => all.map((block) => [...block.querySelectorAll(".attn-num")]
      .flatMap((cell, n) => (cell.classList.contains(look) ? [n] : [])))"""
    found = node.locator(".attn-block").evaluate_all(script, look)
    wide = {name: len(block[0]) for name, block in sheet().compute().items()}
    return [
        f"{name}.{n // wide[name]}.{n % wide[name]}"
        for name, every in zip(BLOCKS, found, strict=True)
        for n in every
    ]


@everywhere
def test_a_touch_shows_what_made_a_cell(open_page: Callable[..., Page], where: Any) -> None:
    page = open_page(**where)
    node = widget(page, 0)
    assert shows(node, sheet())
    touch = "tap" if where["width"] < 600 else "click"
    for name, i, j, first, second in (
        ("scores", 3, 0, ["q.3.0", "q.3.1"], ["k.0.0", "k.0.1"]),
        ("q", 1, 1, [f"x.1.{m}" for m in range(4)], [f"w_q.{m}.1" for m in range(4)]),
        ("out", 3, 2, [f"weights.3.{m}" for m in range(4)], [f"v.{m}.2" for m in range(4)]),
    ):
        getattr(cell(node, name, i, j), touch)()
        assert marked(node, "attn-at") == [f"{name}.{i}.{j}"]
        assert [marked(node, "attn-first"), marked(node, "attn-second")] == [first, second]
        all_cells = shown(node)
        a, b = (
            [all_cells[block][int(r)][int(c)] for block, r, c in (each.split(".") for each in side)]
            for side in (first, second)
        )
        said = " + ".join(f"{x} × {y}" for x, y in zip(a, b, strict=True))
        said = f"({said}) / √2" if name == "scores" else said
        want = f"{said} = {all_cells[name][i][j]}"
        assert node.locator(".attn-sum").text_content() == want
    getattr(cell(node, "weights", 3, 2), touch)()
    scores, weight = [f"e{x}" for x in shown(node)["scores"][3]], shown(node)["weights"][3][2]
    share = f"{scores[2]} / ({' + '.join(scores)}) = {weight}"
    assert node.locator(".attn-sum").text_content() == share
    assert marked(node, "attn-first") == ["scores.3.2"]
    assert marked(node, "attn-second") == ["scores.3.0", "scores.3.1", "scores.3.3"]
    assert node.evaluate("(e) => e.scrollWidth <= e.clientWidth")


@everywhere
def test_a_row_step_by_step_has_the_numbers_of_the_sheet(
    open_page: Callable[..., Page], where: Any
) -> None:
    page = open_page("#w.row=step:3", **where)
    drawing, numbers = widget(page, 2), shown(widget(page, 0))

    def alike(part: str, block: str, row: slice) -> bool:  # up to how a half is rounded
        there = [number(text) for line in numbers[block][row] for text in line]
        here = [number(text) for text in written(drawing, part)]
        return len(here) == len(there) and np.allclose(here, there, rtol=0, atol=0.011)

    last, every = slice(3, 4), slice(None)
    drawing.get_by_role("button", name="Next", exact=True).focus()
    page.keyboard.press("ArrowRight")
    assert alike("query", "q", last)
    assert alike("keys", "k", every)
    assert written(drawing, "scores") == written(drawing, "weights") == []  # it asks first
    for _ in range(7):  # two of them show what was asked for
        page.keyboard.press("ArrowRight")
    settle(page)
    assert drawing.locator(".draw-unseen").count() == 0
    assert alike("weights", "weights", last)
    assert alike("values", "v", every) and alike("out", "out", last)


@everywhere
def test_a_number_changed_by_keys_changes_what_follows(
    open_page: Callable[..., Page], where: Any
) -> None:
    page = open_page(**where)
    node, mine = widget(page, 0), sheet()
    cell(node, "x", 3, 1).click()
    assert marked(node, "attn-next") == [
        f"{name}.3.{m}" for name, wide in (("q", 2), ("k", 2), ("v", 3)) for m in range(wide)
    ]
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Shift+ArrowUp")
    mine.x = [*mine.x[:3], [x + 0.2 * (m == 1) for m, x in enumerate(mine.x[3])]]
    assert shows(node, mine) and not shows(node, sheet())
    assert set(marked(node, "attn-new")) >= {"x.3.1", "q.3.0", "scores.3.2"}
    page.keyboard.press("ArrowLeft")  # to its neighbour, which is typed anew
    page.keyboard.type("-1.25")
    mine.x = [*mine.x[:3], [-1.25, *mine.x[3][1:]]]
    assert shows(node, mine)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    mine.x = [*mine.x[:3], [-1.15, *mine.x[3][1:]]]
    expect(cell(node, "x", 3, 0)).to_be_focused()
    cell(node, "w_v", 0, 2).click()
    node.get_by_role("slider", name="the number").press("End")
    mine.w_v = [[*mine.w_v[0][:2], 3.0], *mine.w_v[1:]]
    node.get_by_role("button", name="less by 0.1").click()
    mine.w_v = [[*mine.w_v[0][:2], 2.9], *mine.w_v[1:]]
    assert shows(node, mine)
    heard = node.locator(".attn-heard[aria-live]").text_content() or ""
    assert heard.startswith("2.90, ") and heard.endswith(" numbers changed")
    node.get_by_role("button", name="Reset").click()
    assert shows(node, sheet())


@everywhere
def test_mask_root_and_another_word(open_page: Callable[..., Page], where: Any) -> None:
    page = open_page(**where)
    node = widget(page, 0)
    node.get_by_role("button", name="Mask later words").click()
    assert shows(node, sheet(mask=True))
    assert shown(node)["scores"][0][1:] == ["−∞"] * 3
    assert node.locator(".attn-num.attn-hidden").count() == 12  # six scores and their weights
    cell(node, "weights", 0, 1).click()
    assert node.locator(".attn-sum").text_content() == "hidden by the mask: e−∞ = 0.00"
    node.get_by_role("button", name="Divide by √2").click()
    assert shows(node, sheet(mask=True, root=False))
    node.get_by_role("combobox", name="word 4").select_option("they")
    changed = [*SENTENCE[:3], "they"]
    mine = sheet(x=[WORDS[word] for word in changed], tokens=changed, mask=True, root=False)
    assert shows(node, mine)
    expect(cell(node, "q", 3, 0)).to_have_attribute(
        "aria-label", f"query of “they”, number 1: {shown(node)['q'][3][0]}"
    )
    assert node.locator(".attn-lab", has_text="they").count() == 8  # rows of six, columns of two
    again = widget(open_page(copied(node)), 0)
    assert shows(again, mine)
    assert marked(again, "attn-at") == ["weights.0.1"]


def test_links_that_do_not_fit_are_taken_as_far_as_they_go(open_page: Callable[..., Page]) -> None:
    wrong = "x:1,2;w_q:1,2,3,4,5,6,7,800;tokens:~dogs,~chase,~cat,~horse;cell:~out.9.9;root:0"
    node = widget(open_page(f"#w.sheet={wrong}"), 0)
    mine = sheet(root=False, w_q=[[1, 2], [3, 4], [5, 6], [7, 9.99]])
    assert shows(node, mine)
    expect(node.locator(".attn-which")).to_have_text("Touch a number: what was it made of?")


def test_dragged_sideways(open_page: Callable[..., Page]) -> None:
    page = open_page()
    node, mine = widget(page, 0), sheet()
    box = cell(node, "w_k", 2, 0).bounding_box()
    assert box
    x, y = box["x"] + 20, box["y"] + 20
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 3, y)  # no step yet
    page.mouse.move(x - 41, y + 30, steps=4)
    page.mouse.up()
    old = mine.w_k[2]
    mine.w_k = [*mine.w_k[:2], [old[0] - 0.5, old[1]], mine.w_k[3]]
    assert shows(node, mine)
    page.mouse.move(x + 50, y)  # let go
    assert shows(node, mine)
    assert cell(node, "w_k", 2, 0).evaluate("(e) => getComputedStyle(e).touchAction") == "pan-y"


def test_keys_go_from_cell_to_cell(open_page: Callable[..., Page]) -> None:
    page = open_page()
    node = widget(page, 0)
    assert node.locator(".attn-num[tabindex='0']").count() == len(BLOCKS)  # one stop a block
    cell(node, "scores", 3, 2).focus()
    for key, want in (
        ("ArrowUp", "scores.2.2"),
        ("End", "scores.2.3"),
        ("ArrowRight", "scores.2.3"),
        ("Home", "scores.2.0"),
        ("ArrowDown", "scores.3.0"),
        ("5", "scores.3.0"),
    ):
        page.keyboard.press(key)
        assert marked(node, "attn-at") == [want], key
    assert shows(node, sheet())
    said = node.locator(".attn-heard[aria-live]").text_content() or ""
    assert said.startswith("score, “it” → “dogs” = query of “it” · key of “dogs”")


def test_large_enough_to_read_and_touch(open_page: Callable[..., Page]) -> None:
    page = open_page(width=390)
    for n in (0, 1):
        node = widget(page, n)
        script = """(e) => [...e.querySelectorAll("*")].filter((one) => one.checkVisibility() &&
          [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
          .map((one) => parseFloat(getComputedStyle(one).fontSize))"""
        assert min(node.evaluate(script)) >= 11
        boxes = node.locator("button").evaluate_all(
            "(all) => all.map((e) => e.getBoundingClientRect()).filter((b) => b.width)"
            ".map((b) => [b.width, b.height])"
        )
        width, height = np.array(boxes).min(axis=0)
        assert width >= 40 and height >= 34
        assert node.evaluate("(e) => e.scrollWidth <= e.clientWidth")
        over = "(all) => all.map((e) => e.scrollWidth - e.clientWidth)"
        assert max(node.locator(".attn-num").evaluate_all(over)) <= 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible(open_page: Callable[..., Page], theme: Any) -> None:
    page = open_page(theme=theme)
    for name in ("x", "out"):
        cell(widget(page, 0), name, 0, 0).click()
        assert violations(page) == []


def test_reduced_motion(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.emulate_media(reduced_motion="reduce")
    look = "(e) => getComputedStyle(e).transitionProperty"
    assert cell(widget(page, 0), "q", 0, 0).evaluate(look) == "none"


def test_a_frame_changes_little(open_page: Callable[..., Page]) -> None:
    page = open_page()
    node = widget(page, 0)
    cell(node, "x", 0, 0).click()
    step = """(n) => {
      node.value = -3 + n / 6;
      node.dispatchEvent(new Event("input"));
    }"""
    slider = node.get_by_role("slider", name="the number")
    assert 0 < max(work(slider, step)) < 500  # 70 cells at most, each with text, colour, label
