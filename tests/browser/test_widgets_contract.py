"""anywidget's contract, held by a model that forgives nothing: only known traits, binary traits as
DataView, every change saved, every listener taken away again."""

import base64
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from attnbook.model.transformer import TransformerDecoder
from attnbook.web import (
    AblationMap,
    AttentionHeatmap,
    AttentionPlane,
    AttentionSheet,
    CostCalculator,
    DecodingBench,
    HeadChips,
    Laboratory,
    LossSurface,
    MaskedWords,
    Playground,
    PositionExplorer,
    Preset,
    PromptBench,
    Question,
    Quiz,
    RotaryDial,
    SoftmaxTemperature,
    TokenizerBench,
    Translator,
)
from attnbook.weights.int8 import load_int8
from attnbook.weights.translators import FOLDER
from attnbook.weights.vocabularies import VOCABULARIES
from tests.browser.widget_pages import follow, render, settle, until, visible
from tests.helpers.tiny_bert import NAME, tiny_bert
from tests.helpers.tiny_gpt import early_gpt, tiny_gpt
from tests.helpers.widgets import RUNS, bowls, few_heads, walk


def start(page: Page, widget: Any, attached: bool, on_page: bool = True) -> list[str]:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    render(page, widget, attached, on_page)
    settle(page, 2)
    return errors


def finish(page: Page, errors: list[str]) -> None:
    assert page.evaluate("unsaved.size") == 0, "a change that the kernel never hears of"
    page.evaluate("cleanup()")
    assert page.evaluate("[listeners.size, el.childNodes.length]") == [0, 0]
    page.evaluate("void (model.set = () => { throw new Error('set after the cleanup'); })")
    page.evaluate("void (model.get = () => { throw new Error('drawn after the cleanup'); })")
    follow(page, "#w.kept=query:0;temperature:3")  # nothing listens any more
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    settle(page, 2)
    assert not errors
    page.close()


def encoded(data: Any) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("attached", [True, False])
def test_heatmap_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    first = AttentionHeatmap([[[0.25, 0.75]], [[0, 1]]], ["q"], ["a", "b"], name="kept")
    errors = start(page, first, attached)
    page.locator(".attn-maps").focus()
    page.keyboard.press("ArrowRight")  # the first key puts the cursor on the first cell
    page.keyboard.press("ArrowLeft")
    settle(page, 2)
    readout = page.locator(".attn-readout")
    assert (page.evaluate("[model.get('query'), model.get('key')]")) == [0, 0]
    assert readout.text_content() == "query q → key a · weight 0.250"
    page.get_by_role("combobox", name="map").select_option("2")
    assert page.evaluate("[model.get('index'), unsaved.size]") == [[1], 0]
    later = AttentionHeatmap([[[0.25, 0.75]], [[0.5, 0.5]]], ["q"], ["a", "b"])
    new = encoded(later.get_state()["weights"])
    page.evaluate("(new_) => model.fromKernel('weights', bytes(new_))", new)
    page.evaluate("model.fromKernel('key', 1)")
    settle(page, 2)
    assert readout.text_content() == "query q → key b · weight 0.500"
    assert page.locator("canvas").evaluate("(canvas) => canvas.width") > 50
    page.evaluate("model.fromKernel('stretch', true)")
    settle(page, 2)
    assert page.get_by_role("checkbox").is_checked()
    assert page.locator(".attn-scale").text_content() == "weight 00.500"
    page.get_by_role("checkbox").click()
    assert page.evaluate("[model.get('stretch'), unsaved.size]") == [False, 0]
    page.mouse.click(*centre(page, "canvas"))
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate("[model.get('query'), model.get('index')]") == [-1, [0]]
    one = encoded(AttentionHeatmap([[1, 0]], ["q"], ["a", "b"]).get_state()["weights"])
    page.evaluate("(one) => model.fromKernel('other', bytes(one))", one)  # Python adds a second map
    assert page.locator("canvas").count() == 2
    page.evaluate("model.fromKernel('query', 0), model.fromKernel('key', 0)")
    settle(page, 2)
    assert readout.text_content() == "query q → key a · weights 0.250 · other 1.000"
    page.evaluate("model.fromKernel('other', bytes(''))")
    assert [page.locator("canvas").count(), page.locator(".attn").count()] == [1, 1]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_sheet_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    one = [[1, 0], [0, 1]]
    sheet = AttentionSheet(
        one, one, one, one, ["a", "b"], words={"a": [1, 0], "b": [0, 1], "c": [2, 1]}, name="kept"
    )
    errors = start(page, sheet, attached)
    page.get_by_role("button", name="x of “a”, number 2: 0.00").click()
    page.keyboard.press("Shift+ArrowUp")
    assert page.evaluate("[model.get('cell'), model.get('x'), unsaved.size]") == [
        "x.0.1",
        [[1, 0.1], [0, 1]],
        0,
    ]
    page.get_by_role("combobox", name="word 2").select_option("c")
    assert page.evaluate("[model.get('tokens'), model.get('x')[1]]") == [["a", "c"], [2, 1]]
    page.get_by_role("button", name="Mask later words").click()
    assert page.evaluate("[model.get('mask'), unsaved.size]") == [True, 0]
    page.evaluate("model.fromKernel('w_v', [[3, 0], [0, 1]]), model.fromKernel('cell', 'v.0.0')")
    settle(page, 2)
    assert page.locator(".attn-sum").text_content() == "1.00 × 3.00 + 0.10 × 0.00 = 3.00"
    page.evaluate("model.fromKernel('words', {})")  # Python takes the other words away
    assert [page.get_by_role("combobox").count(), page.locator(".attn").count()] == [0, 1]
    page.get_by_role("button", name="Divide by √2").click()
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate("[model.get('root'), model.get('mask'), unsaved.size]") == [True, True, 0]
    page.locator(".attn-num").first.click()
    page.locator(".attn-num").first.press("PageDown")
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_plane_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    two = [[1, 0], [0, 1]]
    first = AttentionPlane(two, two, [[2, 0], [0, -2]], ["a", "b"], name="kept")
    errors = start(page, first, attached)
    page.get_by_role("button", name="key of “b” at 0.00, 1.00").press("ArrowUp")
    assert page.evaluate("[model.get('k')[1], model.get('key'), unsaved.size]") == [[0, 1.1], 1, 0]
    page.get_by_role("combobox", name="query of").select_option("b")
    page.get_by_role("button", name="Divide by √2").click()
    traits = "['query', 'key', 'root'].map(model.get)"
    assert page.evaluate(f"[...{traits}, unsaved.size]") == [1, 1, False, 0]
    page.mouse.move(*centre(page, ".attn-qkv-grip.attn-qkv-query"))
    page.mouse.down()
    page.mouse.move(*centre(page, ".attn-qkv-plane:has(.attn-qkv-key)"))
    page.mouse.up()
    assert page.evaluate("model.get('q')[1].every((part) => Math.abs(part) < 0.02)")
    page.evaluate("model.fromKernel('q', [[1, 0], [0, 0]]), model.fromKernel('root', true)")
    settle(page, 2)
    assert page.locator(".attn-qkv-scores b").all_text_contents() == ["0.500", "0.500"]
    page.get_by_role("button", name="value of “a”").press("Shift+ArrowRight")
    assert page.evaluate("[model.get('v')[0], unsaved.size]") == [
        [2.25, 0],
        0,
    ]  # the end of the plane
    page.evaluate("model.fromKernel('outputs', ['x', 'y'])")  # Python names the numbers
    assert page.locator(".attn-qkv-axis").all_text_contents() == ["x", "y"]
    page.get_by_role("button", name="Reset").click()  # of what Python told last
    assert page.evaluate(traits) == [1, 1, True]
    page.evaluate("model.fromKernel('query', 0)")
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_temperature_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    contexts = ["x", "y"]
    first = SoftmaxTemperature(
        [[0, 0], [0, 5]], ["a", "b"], contexts=contexts, editable=True, name="kept"
    )
    errors = start(page, first, attached)
    values = page.locator("li b")
    assert values.all_text_contents() == ["0.500", "0.500"]
    page.get_by_role("combobox", name="context").select_option("y")
    settle(page, 2)
    assert values.all_text_contents() == ["0.007", "0.993"]
    page.get_by_role("slider", name="Logit of a").focus()
    page.keyboard.press("End")
    sent = page.evaluate("[0, 1, 2, 3].map((i) => model.get('logits').getFloat64(8 * i, true))")
    assert sent == [0, 0, 8, 5]  # eight bytes a logit, as Python reads them
    later = SoftmaxTemperature([[1, 1], [2, 2]], ["a", "b"], contexts=contexts)
    new = encoded(later.get_state()["logits"])
    page.evaluate("(new_) => model.fromKernel('logits', bytes(new_))", new)
    page.evaluate("model.fromKernel('temperature', 0)")
    settle(page, 2)
    assert values.all_text_contents() == ["0.500", "0.500"]
    assert page.get_by_role("spinbutton").input_value() == "0"
    page.get_by_role("button", name="Greedy").click()
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate("[model.get('temperature'), model.get('context')]") == [1, 0]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_explorer_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    errors = start(page, PositionExplorer(14, 19, position=3, pair=2, name="kept"), attached)
    for slider, state in (("position i", [4, 2]), ("hand m", [4, 3])):
        page.get_by_role("slider", name=slider).focus()
        page.keyboard.press("ArrowRight")
        assert page.evaluate("[model.get('position'), model.get('pair'), unsaved.size]") == [
            *state,
            0,
        ]
    page.get_by_role("slider", name="base").focus()
    page.keyboard.press("Home")
    assert page.evaluate("model.get('base')") == 10
    page.evaluate("model.fromKernel('base', 64), model.fromKernel('position', 0)")
    settle(page, 2)
    expected = "Wavelength 37.3 positions · at position 0: sine 0.000, cosine 1.000"
    assert page.locator(".attn-readout").nth(1).text_content() == expected  # 2 pi 64^(6/14)
    page.mouse.click(*centre(page, "canvas"))
    assert page.evaluate("[model.get('position'), model.get('pair')]") == [9, 3]
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate("['position', 'pair', 'base'].map(model.get)") == [3, 2, 10_000]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_dial_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    errors = start(page, RotaryDial((1.5, 0), (0, 1.5), i=5, j=3, name="kept"), attached)
    page.get_by_role("button", name="q at 1.50, 0.00").focus()
    page.keyboard.press("ArrowUp")
    page.get_by_role("button", name="Move both by one").click()
    page.get_by_role("slider", name="angle θ").focus()
    page.keyboard.press("End")
    sent = page.evaluate("['q', 'i', 'j', 'theta'].map(model.get)")
    assert [*sent, page.evaluate("unsaved.size")] == [[1.5, 0.1], 6, 4, 1, 0]
    page.get_by_role("combobox", name="a position").select_option("is added to its vector")
    assert page.evaluate("[model.get('mode'), unsaved.size]") == ["add", 0]
    page.evaluate("model.fromKernel('mode', 'rotate'), model.fromKernel('theta', 0)")
    page.evaluate("model.fromKernel('k', [2, 0])")
    settle(page, 2)
    expected = "All 63 pairs with i − j = 2: the same score, 3.000"
    assert page.locator(".attn-readout").last.text_content() == expected
    page.mouse.move(*centre(page, ".attn-handle.attn-k"))
    page.mouse.down()
    page.mouse.move(*centre(page, ".attn-plane"))
    page.mouse.up()
    assert page.evaluate("model.get('k').every((part) => Math.abs(part) < 0.02)")
    assert page.evaluate("unsaved.size") == 0
    page.get_by_role("button", name="Reset").click()
    sent = page.evaluate("['q', 'k', 'i', 'j', 'theta', 'mode'].map(model.get)")
    assert sent == [[1.5, 0], [0, 1.5], 5, 3, 0.2, "rotate"]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_calculator_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    six = {"d_model": 576, "n_layers": 6, "n_heads": 9, "n_kv_heads": 3, "size": 4}
    machines = {"here": {"speed": 1e10, "bandwidth": 1e10}}
    errors = start(page, CostCalculator({"six": six}, machines, n=64, name="kept"), attached)
    sizes = "['n', 'd_model', 'n_heads', 'n_kv_heads', 'cache', 'chart'].map(model.get)"
    page.get_by_role("slider", name="tokens n").press("ArrowRight")
    page.get_by_role("slider", name="width d").press("ArrowRight")  # 768 has other divisors
    page.get_by_role("checkbox").click()
    page.get_by_role("combobox", name="chart").select_option("memory")
    assert page.evaluate(f"[...{sizes}, unsaved.size]") == [76, 768, 8, 2, False, "memory", 0]
    page.evaluate("model.fromKernel('n', 1), model.fromKernel('batch', 7)")
    settle(page, 2)
    assert page.locator(".attn-value").all_text_contents()[:2] == ["1", "7"]
    box = page.locator(".attn-cost-curves .attn-graph").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] - 1, box["y"] + 20)
    assert page.evaluate("[model.get('n') > 120000, unsaved.size]") == [True, 0]
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate(sizes) == [64, 576, 9, 3, True, "operations"]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_ablation_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    errors = start(page, AblationMap(RUNS, name="kept"), attached)
    pressed = "[...el.querySelectorAll('[aria-pressed=true]')].map((e) => e.dataset.part)"
    page.get_by_role("button", name="mask: causal").click()
    settle(page, 2)
    assert page.evaluate(f"[model.get('off'), unsaved.size, {pressed}]") == ["mask", 0, ["mask"]]
    page.evaluate("model.fromKernel('off', 'add')")
    settle(page, 2)
    assert page.evaluate(pressed) == ["add"]
    readout = page.locator(".attn-rule")
    expected = "Without add (residual connections): exactly right 0.250 · whole model 0.995"
    assert readout.text_content() == expected
    fewer = AblationMap([{**RUNS[0], "exact": [0.5, 0.5]}, RUNS[2]]).get_state()["runs"]
    page.evaluate("(runs) => model.fromKernel('runs', runs)", fewer)  # Python gives other runs
    settle(page, 2)
    assert [readout.count(), page.locator("[aria-pressed]").count()] == [1, 1]
    assert (readout.text_content() or "").endswith("whole model 0.500")
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate("[model.get('off'), unsaved.size]") == ["add", 0]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_surface_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    errors = start(page, LossSurface(bowls(), ["a", "b"], name="kept"), attached)
    widths = page.locator("canvas").evaluate_all("(all) => all.map((each) => each.width > 310)")
    assert widths == [True, True]  # painted though attached late
    angles = "['azimuth', 'elevation', 'log'].map(model.get)"
    page.locator(".attn-surfaces").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(f"[...{angles}, unsaved.size]") == [40, 30, False, 0]
    page.get_by_role("slider", name="tilt").focus()
    page.keyboard.press("End")
    page.get_by_role("checkbox", name="logarithmic").click()
    assert page.evaluate(f"[...{angles}, unsaved.size]") == [40, 90, True, 0]
    x, y = centre(page, ".attn-surface:first-child canvas")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 20, y - 10)
    page.mouse.up()
    assert page.evaluate(f"[...{angles}, unsaved.size]") == [50, 85, True, 0]
    page.evaluate("model.fromKernel('azimuth', -7), model.fromKernel('log', false)")
    settle(page, 2)
    assert page.locator(".attn-value").all_text_contents() == ["-7°", "85°"]
    assert not page.get_by_role("checkbox").is_checked()
    new = encoded(LossSurface(2 * bowls(), ["a", "b"]).get_state()["surfaces"])
    over = "el.querySelector('canvas').dispatchEvent(new PointerEvent('pointermove'))"
    page.evaluate(f"(new_) => (model.fromKernel('surfaces', bytes(new_)), {over})", new)
    settle(page, 2)  # a pointer may come before the frame that draws them
    assert (page.locator(".attn-readout").last.text_content() or "").startswith("b: loss 3.000 at")
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate(f"[...{angles}, unsaved.size]") == [35, 30, False, 0]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_chips_keep_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    errors = start(page, HeadChips(**few_heads(), name="kept"), attached)
    page.get_by_role("button", name="head 2").click()
    page.get_by_role("combobox").select_option("its average result")
    now = "['at', 'off', 'mean'].map(model.get)"
    assert page.evaluate(f"[...{now}, unsaved.size]") == [2, [1], True, 0]
    page.evaluate("model.fromKernel('at', 1), model.fromKernel('off', [0])")
    settle(page, 2)
    readout = page.locator(".attn-readout")
    said = "Step 3: loss 2.00. Right: all heads 0.50, without head 1 0.54."  # 12/24, 13/24
    assert readout.text_content() == said
    new = encoded(HeadChips(**{**few_heads(), "right": np.ones((3, 2, 4))}).get_state()["right"])
    page.evaluate("(new_) => model.fromKernel('right', bytes(new_))", new)
    settle(page, 2)
    assert readout.text_content() == said.replace("0.50,", "1.00,").replace("0.54", "1.00")
    assert page.locator(".attn").count() == 1
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate(f"[...{now}, unsaved.size]") == [1, [0], True, 0]
    page.get_by_role("button", name="Play").click()
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_masked_words_keep_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    errors = start(
        page, MaskedWords("Ask the cats", [1], weights=tiny_bert(), name="kept"), attached
    )
    page.wait_for_function("sent.length")
    assert page.evaluate("sent") == [{"weights": NAME}]  # asked once
    assert page.locator("textarea").is_disabled()
    # The buffer as a kernel's message brings it: a part of a longer one. Another's is not meant.
    page.evaluate("model.message({ weights: 'another' }, [new DataView(new ArrayBuffer(9))])")
    script = """(text) => {
      const view = bytes(text), longer = new Uint8Array(view.byteLength + 7);
      longer.set(new Uint8Array(view.buffer), 3);
      model.message({ weights: "tiny" }, [new DataView(longer.buffer, 3, view.byteLength)]);
    }"""
    page.evaluate(script, encoded(tiny_bert().read_bytes()))
    page.locator("textarea:not([disabled])").wait_for()
    page.get_by_role("button", name="cats").click()
    page.locator(".attn-place").nth(1).wait_for()
    page.locator("textarea").fill("Ask all the cats")
    assert page.evaluate("[model.get('masks'), model.get('text'), unsaved.size]") == [
        [2, 3],
        "Ask all the cats",
        0,
    ]
    page.evaluate("model.fromKernel('masks', [0]), model.fromKernel('layer', 1)")
    page.get_by_text("instead of ask", exact=True).wait_for()
    assert page.get_by_role("combobox", name="layer").input_value() == "2"
    page.get_by_role("slider", name="words shown").press("Home")
    assert page.evaluate("[model.get('top'), unsaved.size]") == [1, 0]
    page.get_by_role("button", name="Reset").click()
    page.get_by_text("instead of the", exact=True).wait_for()
    sent = page.evaluate("['text', 'masks', 'top', 'layer'].map(model.get)")
    assert sent == ["Ask the cats", [1], 5, -1]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_tokenizers_keep_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    errors = start(page, TokenizerBench("the cat, the hat", name="kept"), attached)
    page.get_by_text("Next: a + t, 2 times.").wait_for()
    assert page.evaluate("sent") == []  # no vocabulary before it is asked for
    page.get_by_role("button", name="Next", exact=True).first.click()
    page.get_by_text("Merge 1: a + t became at, 2 times.").wait_for()
    page.get_by_role("checkbox").click()
    page.locator("textarea").fill("the cat, the hat: ".strip() * 2)
    page.get_by_role("button", name="Cut words").click()
    traits = "['view', 'apart', 'merges', 'word', 'step'].map(model.get)"
    assert page.evaluate(f"[...{traits}, unsaved.size]") == ["cut", False, 1, 0, 0, 0]
    page.wait_for_function("sent.length === 3")
    assert page.evaluate("sent.map(({ weights }) => weights)") == list(VOCABULARIES)
    for each in VOCABULARIES:
        file = encoded((FOLDER / f"{each}.safetensors").read_bytes())
        page.evaluate("([n, t]) => model.message({ weights: n }, [bytes(t)])", [each, file])
    page.get_by_role("button", name="hat:the").click()
    page.evaluate("model.fromKernel('step', 2), model.fromKernel('unfolded', true)")
    page.get_by_text("learnt as number").first.wait_for()
    expect(page.get_by_text("def by_rank")).to_be_visible()
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate(traits) == ["learn", True, 0, 0, 0]
    page.get_by_text("Next: a + t, 2 times.").wait_for()
    finish(page, errors)


@pytest.mark.parametrize("which", ["bench", "playground"])
def test_a_fold_stays_open_where_a_drawing_comes_before_its_event(
    browser: Browser, which: str
) -> None:
    page = browser.new_page()
    widget = TokenizerBench("the cat") if which == "bench" else Playground("We must")
    errors = start(page, widget, attached=True)
    folds = page.locator("details.attn-fold")
    trait = "step" if which == "bench" else "top_k"
    folds.first.evaluate(
        """(fold, trait) => new Promise((done) => {
          requestAnimationFrame(() => (fold.open = true));
          model.fromKernel(trait, 3); // drawn in the same frame, after it
          fold.addEventListener("toggle", () => setTimeout(done));
        })""",
        trait,
    )
    settle(page, 2)
    assert folds.first.evaluate("fold => fold.open") and page.evaluate("model.get('unfolded')")
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_translator_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    errors = start(page, Translator(["one_vector", "dot"], 42, name="kept"), attached)
    page.wait_for_function("sent.length")
    assert page.evaluate("sent") == [{"weights": "one_vector"}, {"weights": "dot"}]  # once each
    walk = page.get_by_role("button", name="Walk through one word")
    assert walk.get_attribute("aria-disabled") == "true"
    page.evaluate("model.message({ weights: 'additive' }, [new DataView(new ArrayBuffer(9))])")
    script = """([name, text]) => {
      const view = bytes(text), longer = new Uint8Array(view.byteLength + 7);
      longer.set(new Uint8Array(view.buffer), 3);
      model.message({ weights: name }, [new DataView(longer.buffer, 3, view.byteLength)]);
    }"""
    for name in ("dot", "one_vector"):
        file = (FOLDER / f"{name}.safetensors").read_bytes()
        page.evaluate(script, [name, encoded(file)])
    page.locator(".attn-number").fill("437")
    walk.click()
    assert page.evaluate("['text', 'stage', 'at', 'which'].map(model.get)") == ["437", 1, 0, 1]
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="und").last.click()
    settle(page, 2)
    assert page.evaluate("['stage', 'at'].map(model.get)") == [2, 3]
    page.evaluate("model.fromKernel('text', 'five'), model.fromKernel('at', 9)")
    settle(page, 2)
    assert page.locator(".attn-number").input_value() == "five"
    assert page.get_by_role("combobox", name="German word").input_value() == "2. (end)"
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="One digit longer").click()
    assert page.evaluate("[model.get('text'), model.get('stage'), unsaved.size]") == ["53", 0, 0]
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate("['text', 'at', 'which'].map(model.get)") == ["42", -1, 1]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_playground_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    first = Playground("We must", weights=tiny_gpt(), name="kept")
    errors = start(page, first, attached)
    page.wait_for_function("sent.length")
    assert page.evaluate("sent") == [{"weights": "tiny_gpt"}]
    script = "(text) => model.message({ weights: 'tiny_gpt' }, [bytes(text)])"
    page.evaluate(script, encoded(tiny_gpt().read_bytes()))
    page.locator("textarea:not([disabled])").wait_for()
    page.get_by_role("button", name="Step", exact=True).click()
    page.wait_for_function("model.get('written').length === 1")
    assert page.evaluate("model.get('written')[0]") == first.answer["drawn"]["which"]
    page.evaluate("Math.random = () => 0.5")  # a text that does not end at once
    page.get_by_role("combobox", name="pace").select_option("as fast as it can")
    page.get_by_role("button", name="Write", exact=True).click()
    page.wait_for_function("model.get('written').length > 1 && !unsaved.size")  # at the end
    page.get_by_role("button", name="Write", exact=True).wait_for()
    page.get_by_role("button", name="Back", exact=True).click()
    page.get_by_text("Filters", exact=True).click()
    page.evaluate("model.fromKernel('top_k', 3), model.fromKernel('written', [])")
    page.get_by_text("leaves 3 of").wait_for()
    page.wait_for_function("el.querySelectorAll('.attn-given + .attn-tok').length === 0")
    settle(page, 2)
    assert page.evaluate("[model.get('unfolded'), model.get('top_k')]") == [["filters"], 3]
    page.get_by_role("button", name="Reset").click()
    settle(page, 2)
    sent = page.evaluate("['text', 'written', 'top_k', 'unfolded', 'seed'].map(model.get)")
    assert sent == ["We must", [], 0, [], 0]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_checkpoints_keep_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    given: dict[str, Any] = {"weights": tiny_gpt(), "checkpoints": [early_gpt()]}
    errors = start(page, Playground("We must", name="kept", **given), attached)
    page.wait_for_function("sent.length")
    give = "([name, text]) => model.message({ weights: name }, [bytes(text)])"
    best = page.locator(".attn-take .attn-label").first
    for asked, (n, file) in enumerate(((1, tiny_gpt()), (0, early_gpt()), (1, tiny_gpt())), 1):
        said = page.get_by_text("The model after 3 of 0 steps of its training.")
        slider = page.get_by_role("slider", name="training")
        if n != page.evaluate("model.get('checkpoint')"):
            slider.press("ArrowLeft" if n == 0 else "ArrowRight")
            assert page.evaluate("[model.get('checkpoint'), unsaved.size]") == [n, 0]
            expect(page.locator("textarea")).to_be_disabled()
        page.wait_for_function("(n) => sent.length === n", arg=asked)
        page.evaluate(give, [file.stem, encoded(file.read_bytes())])
        page.locator("textarea:not([disabled])").wait_for()
        wanted = Playground("We must", checkpoint=n, **given).answer["best"][0]["name"]
        expect(best).to_have_text(visible(wanted))
        expect(said).to_be_visible(visible=n == 0)
    names = [each["weights"] for each in page.evaluate("sent")]
    assert names == ["tiny_gpt", "early", "tiny_gpt"]  # each when it is chosen
    page.evaluate("model.fromKernel('checkpoint', 0)")
    page.wait_for_function("sent.length === 4")
    page.evaluate(give, ["early", encoded(early_gpt().read_bytes())])
    page.locator("textarea:not([disabled])").wait_for()
    page.evaluate("Math.random = () => 0.5")  # a text whose end token comes late
    page.get_by_role("button", name="Write", exact=True).click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    page.wait_for_function("model.get('written').length > 3")
    slider.press("ArrowRight")
    page.get_by_role("button", name="Write", exact=True).wait_for()
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_bench_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    model, tokenizer = load_int8(tiny_gpt(), TransformerDecoder)
    bench = DecodingBench(model, tokenizer, "We must", steps=1, name="kept")
    errors = start(page, bench, attached)
    page.get_by_role("button", name="top-k 50").click()
    page.get_by_role("slider", name="min-p").press("End")
    sent = "[model.get('top_k'), model.get('min_p'), unsaved.size]"
    assert page.evaluate(sent) == [50, 0.5, 0]
    page.locator(".attn-take").nth(2).click()
    third = bench._logp([]).topk(3).indices.tolist()[2]
    assert page.evaluate("[model.get('written'), unsaved.size]") == [[third], 0]
    page.evaluate("model.fromKernel('min_p', 0), model.fromKernel('written', [5, 6])")
    page.get_by_text("is not stored, and no kernel is there to ask it").wait_for()
    assert page.evaluate("sent") == []  # a page of the book has no kernel
    page.get_by_role("button", name="Reset").click()
    traits = "['temperature', 'top_k', 'min_p', 'written'].map(model.get)"
    assert page.evaluate(traits) == [1, 0, 0, []]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_a_bench_asks_its_kernel(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    model, tokenizer = load_int8(tiny_gpt(), TransformerDecoder)
    # Neither its ids come back from its tokens' names, nor would so long a beginning be encoded.
    prompt = "é" + " a" * 12
    bench = DecodingBench(model, tokenizer, prompt, steps=1, name="kept")
    ids, answers = tokenizer.encode(prompt), []
    bench.send = lambda content, buffers=None: answers.append((content, buffers))  # type: ignore
    errors = start(page, bench, attached, on_page=False)

    def answer() -> None:
        bench._handle_custom_msg(page.evaluate("sent.at(-1)"), [])
        content, buffers = answers[-1]
        script = "([content, texts]) => model.message(content, texts.map(bytes))"
        page.evaluate(script, [content, [encoded(each) for each in buffers or []]])

    own = page.get_by_label("Your beginning")
    expect(own).to_be_hidden()
    page.evaluate("model.message({ number: 1, names: [] }, []), model.message({}, [])")  # not asked
    answer()
    expect(own).to_be_visible()
    tokens = page.locator(".attn-tok:not(.attn-next)")
    expect(tokens).to_have_count(len(ids))
    page.evaluate("model.fromKernel('written', [5, 6])")
    page.wait_for_function("sent.length === 2")
    assert page.evaluate("sent.at(-1).ids") == [*ids, 5, 6]
    page.get_by_text("Asking the model …", exact=True).wait_for()
    answer()
    page.locator(".attn-take").first.wait_for()
    best = bench._logp([5, 6]).topk(1)
    shown = page.locator(".attn-take b").first.text_content()
    assert float(shown or "") == pytest.approx(best.values.exp().item(), abs=0.0006)
    page.get_by_role("button", name="top-k 50").click()
    expect(page.locator(".attn-readout b").first).to_have_text("50")  # and is not about
    own.fill("We must")
    page.get_by_role("button", name="Begin with this").click()
    page.wait_for_function("sent.at(-1).encode === 'We must'")
    answer()
    expect(tokens).to_have_count(len(tokenizer.encode("We must")))
    page.wait_for_function("sent.at(-1).ids")
    page.get_by_role("button", name="Write", exact=True).click()
    page.get_by_text("The kernel does not answer.", exact=True).wait_for()  # in four seconds
    expect(page.get_by_role("button", name="Write", exact=True)).to_be_visible()
    assert page.evaluate("model.get('written')") == [5, 6]  # those behind the prompt
    answer()
    page.locator(".attn-take").first.wait_for()
    expect(page.get_by_text("The kernel runs the model")).to_be_visible()
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_prompts_keep_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    given = [Preset("we", "We must {}", "ask", (" the", "!")), Preset("they", "We must ask")]
    bench = PromptBench(*load_int8(tiny_gpt(), TransformerDecoder), given, steps=2, name="kept")
    errors = start(page, bench, attached)
    page.get_by_role("button", name="they").click()
    assert page.evaluate("[model.get('asked').form, unsaved.size]") == ["We must ask", 0]
    expect(page.locator(".attn-three")).to_be_hidden()
    page.get_by_role("button", name="we", exact=True).click()
    settle(page, 2)
    assert page.evaluate("sent") == []  # both are stored
    own = {**bench.presets[0]["asked"], "text": "keep"}
    page.evaluate("(asked) => model.fromKernel('asked', asked)", own)
    expect(page.locator(".attn-how")).to_contain_text("is not stored")
    asked = page.evaluate("sent.at(-1)")
    assert asked == {"ask": own, "number": asked["number"]}
    answers: list[Any] = []
    bench.send = lambda content, buffers=None: answers.append(content)  # type: ignore
    bench._handle_custom_msg(asked, [])
    (answer,) = answers
    page.evaluate("(told) => model.message({ ...told, number: 99 }, [])", answer)  # not asked
    page.evaluate("(told) => model.message(told, [])", answer)
    expect(page.locator(".attn-how")).to_have_text("")
    shown = page.locator(".attn-three li").first.locator("b").nth(2).text_content()
    logp = answer["answer"]["candidates"][0]["logp"]
    assert float((shown or "").split()[0]) == pytest.approx(logp, abs=0.006)
    page.get_by_role("button", name="Write", exact=True).click()
    written: list[int] = []
    for n in range(2):  # a kernel writes token by token
        page.wait_for_function("(n) => (sent.at(-1).written ?? []).length === n", arg=n)
        bench._handle_custom_msg(page.evaluate("sent.at(-1)"), [])
        assert page.evaluate("sent.at(-1)")["written"] == written
        page.evaluate("(told) => model.message(told, [])", answers[-1])
        written.append(answers[-1]["id"])
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator(".attn-write")).to_contain_text("Stopped.")
    page.get_by_label("Text", exact=True).fill("keep " * 50)
    expect(page.locator(".attn-how")).to_have_text("The model reads …")
    number = page.evaluate("sent.at(-1).number")
    page.evaluate("(number) => model.message({ number, error: 'it is long' }, [])", number)
    expect(page.locator(".attn-how")).to_have_text("it is long.")
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate("[model.get('asked').text, unsaved.size]") == ["ask", 0]
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_quiz_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    page.route("http://quiz.test/", lambda route: route.fulfill(body="", content_type="text/html"))
    page.goto("http://quiz.test/")  # a blank page has no storage
    one = Question("Which?", ["a", "b", "c"], 1, ["x", "y", "z"])
    errors = start(page, Quiz([one, one], name="kept"), attached)
    page.get_by_role("button", name="b", exact=True).click()
    assert page.evaluate("[model.get('chosen'), unsaved.size]") == [[1, -1], 0]
    assert page.locator(".attn-verdict").text_content() == "Right. y"
    page.get_by_role("button", name="Next").click()
    assert page.evaluate("[model.get('at'), unsaved.size]") == [1, 0]
    page.evaluate("model.fromKernel('chosen', [0, 2])")
    settle(page, 2)
    assert page.locator(".attn-verdict").text_content() == "Wrong. z"
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate("[model.get('at'), model.get('chosen')]") == [0, [-1, -1]]
    assert page.evaluate("localStorage.length") == 0
    fewer = Quiz([one]).get_state()["questions"]
    page.evaluate("model.fromKernel('chosen', [-1])")
    page.evaluate("(new_) => model.fromKernel('questions', new_)", fewer)
    assert page.get_by_role("button", name="Next").count() == 0
    finish(page, errors)


def test_masked_words_without_a_kernel(browser: Browser) -> None:
    page = browser.new_page()
    errors = start(page, MaskedWords("Ask the cats", [1], weights=tiny_bert(), name="kept"), True)
    page.get_by_text("No kernel answers. Run the cell to ask the model yourself.").wait_for()
    assert page.get_by_text("instead of the", exact=True).is_visible()  # the stored answer
    finish(page, errors)


def test_a_translator_without_a_kernel(browser: Browser) -> None:
    page = browser.new_page()
    errors = start(page, Translator(["one_vector", "dot"], 42, name="kept"), True)
    page.get_by_text("No kernel answers. Run the cell to ask the models yourself.").wait_for()
    assert page.locator(".attn-written").first.inner_text().split() == ["zwei", "und", "vierzig"]
    page.locator(".attn-number").fill("43")
    settle(page, 2)
    assert page.locator(".attn-written").first.inner_text() == ""  # no answer is stored
    assert "dreiundvierzig" in page.locator(".attn-truth").inner_text()
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_laboratory_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    small = Laboratory(d_model=16, n_heads=2, batch=8, steps=2000, name="kept")
    errors = start(page, small, attached)
    page.get_by_role("combobox", name="task").select_option("copy six letters, four dots later")
    chosen = "[model.get('settings').task, model.get('settings').d_model, unsaved.size]"
    assert page.evaluate(chosen) == ["copy", 16, 0]
    settings = {**small.settings, "n_layers": 1}
    page.evaluate("(all) => model.fromKernel('settings', all)", settings)
    settle(page, 2)
    assert page.get_by_role("combobox", name="task").input_value() == "sort six letters"
    page.get_by_role("button", name="Run").click()
    page.locator(".attn-progress", has_text="step 1").wait_for()
    page.get_by_role("button", name="Reset").click()
    assert page.evaluate("[model.get('settings').n_layers, unsaved.size]") == [2, 0]
    page.get_by_role("button", name="Stop").click()  # a changed switch does not end a run
    page.get_by_role("button", name="Run").click()
    page.locator(".attn-progress", has_text="step 1").wait_for()
    until(page, lambda: len(page.workers) == 1)  # the first has ended
    finish(page, errors)


@pytest.mark.parametrize("attached", [True, False])
def test_drawing_keeps_the_contract(browser: Browser, attached: bool) -> None:
    page = browser.new_page()
    errors = start(page, walk(name="kept"), attached)
    page.get_by_role("button", name="Next").click()
    assert page.evaluate("[model.get('step'), unsaved.size]") == [2, 0]
    page.evaluate("model.fromKernel('step', 3)")
    settle(page, 2)
    assert page.get_by_role("button", name="Show").is_visible()
    page.get_by_role("button", name="Show").click()
    page.keyboard.press("ArrowLeft")  # the focus has not gone with the button
    assert page.evaluate("[model.get('step'), unsaved.size]") == [2, 0]
    fewer = walk(steps=walk().steps[:0]).get_state()["steps"]
    page.evaluate("(steps) => model.fromKernel('steps', steps)", fewer)  # Python takes the steps
    settle(page, 2)
    assert [page.locator("svg").count(), page.get_by_role("button").count()] == [1, 0]
    page.evaluate("model.fromKernel('steps', [{ caption: 'x', parts: [], ask: '' }])")
    page.get_by_role("button", name="Play").click()
    finish(page, errors)


def centre(page: Page, selector: str) -> tuple[float, float]:
    box = page.locator(selector).bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
