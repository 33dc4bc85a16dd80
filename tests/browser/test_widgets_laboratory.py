"""Laboratory in Chromium, on a built page: it trains there, and keeps what was done."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from attnbook.web import Laboratory, PositionExplorer
from attnbook.web.laboratory.widget import TESTED
from tests.browser.conftest import Faults
from tests.browser.widget_pages import copied, everywhere, settle, until, violations, widget
from tests.helpers.laboratory import table

SMALL: dict[str, Any] = {"d_model": 16, "n_heads": 2, "n_layers": 1, "batch": 8, "steps": 100}
LONG: dict[str, Any] = {"timeout": 180_000}  # a test asserts no time, and others may be running


@pytest.fixture(scope="module")
def path(widget_page: Callable[..., Path]) -> Path:
    stored = table(({"task": "add", "seed": 1}, [0, 0.5]), ({"task": "add", "seed": 2}, [0, 1]))
    return widget_page([Laboratory(runs=stored, name="lab", **SMALL), PositionExplorer()])


def found(page: Page) -> Locator:
    return widget(page, 0)


def press(view: Locator, name: str) -> None:
    view.get_by_role("button", name=name, exact=True).click()


def said(view: Locator) -> Locator:
    return view.locator(".attn-progress")


COUNTED = """() => {
  globalThis.unanswered = 0;
  Worker = class extends Worker {
    constructor(address) {
      super(address);
      this.addEventListener("message", () => (unanswered -= 1));
    }
    postMessage(...given) {
      unanswered += 1;
      super.postMessage(...given);
    }
  };
}"""


def stands(view: Locator) -> None:
    """Waits until no worker has anything left to do, of a page whose workers are `COUNTED`; what
    comes of its last answer is drawn in the next frame."""
    view.page.wait_for_function("unanswered === 0")
    settle(view.page, 2)
    before = said(view).inner_text()
    settle(view.page, 5)
    assert view.page.evaluate("unanswered") == 0 and said(view).inner_text() == before


def unfold(view: Locator, name: str) -> None:
    view.locator("summary", has_text=name).click()


def run(view: Locator, number: int, name: str = "Run") -> None:
    press(view, name)
    expect(said(view)).to_have_text(re.compile(rf"^Run {number}\b.*Over\.$"), **LONG)
    settle(view.page)


def losses(view: Locator) -> list[float]:
    """Heights of the drawn losses of the newest run, top to bottom of the chart 0..100."""
    points = (
        view.locator(".attn-line.attn-now:not(.attn-noise)").first.get_attribute("points") or ""
    )
    return [float(point.split(",")[1]) for point in points.split()]


def ledger(view: Locator) -> list[list[str]]:
    cells = "(rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim()))"
    return view.locator(".attn-ledger tbody tr").evaluate_all(cells)


@everywhere
def test_train_to_a_falling_loss(open_page: Callable[..., Page], where: dict[str, Any]) -> None:
    page = open_page(**where)
    view = found(page)
    assert "Nothing has been trained yet" in said(view).inner_text()
    assert view.get_by_text("Press Run: the answer comes as it learns.").is_visible()
    run(view, 2)  # run 1 was made before, of another task
    heights = losses(view)
    assert len(heights) == 5 and heights[-1] > heights[0] + 15
    assert re.search(
        r"step 100 of 100, loss \d\.\d{3}, \d+ % of held-out items", said(view).inner_text()
    )
    answer = view.locator(".attn-answer .attn-out")
    expect(answer).to_have_count(6)
    unfold(view, "Where it looks")
    expect(view.locator(".attn-small button")).to_have_count(2)
    view.get_by_role("button", name="layer 1, head 2").click()
    expect(view.get_by_role("img", name="Weights of layer 1, head 2")).to_be_visible()
    view.get_by_role("textbox", name="ask it").fill("jihgfe")
    expect(answer).to_have_count(6)
    view.get_by_role("textbox", name="ask it").fill("xyz")
    expect(view.get_by_text("Type 6 letters of a to j.")).to_be_visible()
    unfold(view, "Change the model")
    assert view.evaluate("(e) => e.scrollWidth <= e.clientWidth")


def test_pause_step_and_stop(open_page: Callable[..., Page]) -> None:
    page = open_page("#w.lab=steps:2000;n_layers:2")
    page.evaluate(COUNTED)
    view = found(page)
    press(view, "One step")
    expect(said(view)).to_have_text(re.compile(r"step 1 of 2000.*Paused\.$"))
    press(view, "One step")
    expect(said(view)).to_have_text(re.compile(r"step 2 of 2000.*Paused\.$"))
    press(view, "Continue")
    expect(said(view)).not_to_have_text(re.compile(r"step 2 of"))
    press(view, "Pause")
    expect(said(view)).to_have_text(re.compile(r"Paused\.$"))
    stands(view)
    before = said(view).inner_text()
    press(view, "Continue")
    expect(said(view)).not_to_have_text(before)
    tested = re.compile(r"step (2[5-9]|[3-9]\d|\d{3,}) of")  # before, there is nothing to keep
    expect(said(view)).to_have_text(tested, **LONG)
    press(view, "Stop")
    expect(said(view)).to_have_text(re.compile(r"Over\.$"))
    settle(page)
    assert len(ledger(view)) == 2 and view.get_by_role("button", name="Stop").is_hidden()
    press(view, "Run")
    expect(said(view)).to_have_text(re.compile(r"^Run 3: step"))


def test_the_ledger_keeps_what_changed_and_the_bet(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = found(page)
    assert view.get_by_role("radio", name="worse").is_hidden()  # nothing to be compared with
    run(view, 2)
    unfold(view, "Change the model")
    unfold(view, "Change the training")
    view.get_by_role("combobox", name="schedule").select_option("constant")
    view.get_by_role("combobox", name="feed-forward").select_option("off")
    set_now = (
        "Set for the next run: feed-forward network: on → off; schedule of the rate: "
        "cosine → constant; rate is zero from step: 100 → never."
    )
    expect(view.get_by_text(set_now)).to_be_visible()
    view.get_by_role("radio", name="worse").check()
    run(view, 3)
    expect(view.get_by_role("radio", name="no bet")).to_be_checked()  # the next bet is open
    first, second, third = ledger(view)
    assert first[1] == "add two numbers, 2 layers of 32 (2 seeds, made before)"
    assert second[6] == "–" and second[1].startswith("task: add two numbers → sort six letters")
    assert third[6] == "open, beside run 2, steps 0 to 100; bet: worse"
    said_so = view.locator(".attn-judged").inner_text()
    assert re.match(r"Right on average over the steps 0 to 100, which both made: run 3 ", said_so)
    assert said_so.endswith("is one throw of the dice beside another: press 5 seeds.")
    heard = view.locator("[role=status]").all_inner_texts()
    assert any("Your bet: worse; still open beside run 2." in text for text in heard)
    with page.expect_download() as downloaded:
        press(view, "Download as CSV")
    rows = list(csv.DictReader(io.StringIO(Path(downloaded.value.path()).read_text("utf8"))))
    assert [row["step"] for row in rows if row["run"] == "3"] == ["0", "25", "50", "75", "100"]
    assert {row["bet"] for row in rows} == {"", "worse"} and rows[0]["task"] == "add"
    view.get_by_role("button", name="Set the switches of run 2").click()
    expect(view.get_by_role("combobox", name="feed-forward")).to_have_value("on")
    swatches = view.locator(".attn-ledger .attn-swatch")
    colours = swatches.evaluate_all("(all) => all.map((e) => getComputedStyle(e).backgroundColor)")
    assert len(set(colours)) == 3


def test_five_seeds_beside_five_settle_a_bet(open_page: Callable[..., Page]) -> None:
    """Without learning nothing is right, with it something is: made up for sixteen numbers."""
    stored = [({"seed": seed, "steps": 100, **SMALL}, [1.0] * 5) for seed in range(1, 6)]
    page = open_page()
    view = found(page)
    given = table(*stored)
    runs = Laboratory(runs=given, **SMALL).runs
    kept = {"laboratory": 1, "runs": [_written(run) for run in runs]}
    unfold(view, "Your runs")
    _opened(view, json.dumps(kept))
    expect(view.get_by_text("1 run came from the file.")).to_be_visible()
    view.get_by_role("radio", name="worse").check()
    unfold(view, "Change the model")
    view.get_by_role("combobox", name="positions").select_option("none")
    run(view, 3, "5 seeds")
    row = ledger(view)[2]
    assert row[6] == "worse than run 2, steps 0 to 100; bet: worse ✓"
    assert "their bands do not touch" in view.locator(".attn-judged").inner_text()


def _written(run: dict[str, Any]) -> dict[str, Any]:
    """A stored run as a file has it."""
    seeds = [
        {
            "seed": seed["seed"],
            "done": seed["tests"][-1]["step"],
            "tests": [[test[name] for name in TESTED] for test in seed["tests"]],
        }
        for seed in run["seeds"]
    ]
    return {"number": 9, "settings": run["settings"], "seeds": seeds}


def _opened(view: Locator, text: str) -> None:
    file = {"name": "runs.json", "mimeType": "application/json", "buffer": text.encode()}
    view.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]


def test_runs_survive_a_reload_a_changed_switch_and_are_deleted(
    open_page: Callable[..., Page],
) -> None:
    page = open_page()
    view = found(page)
    press(view, "Run")
    expect(said(view)).to_have_text(re.compile(r"step [1-9]\d* of"), **LONG)
    unfold(view, "Change the model")
    view.get_by_role("combobox", name="positions").select_option("rotary")
    view.get_by_role("combobox", name="task").select_option("copy six letters, four dots later")
    view.get_by_role("combobox", name="task").select_option("sort six letters")
    expect(said(view)).to_have_text(re.compile(r"^Run 2\b.*step 100 of 100.*Over\.$"), **LONG)
    settle(page)
    before = ledger(view)
    page.reload()
    view = found(page)
    settle(page, 2)
    assert ledger(view) == before and len(before) == 2
    unfold(view, "Your runs")
    view.get_by_role("button", name="Delete run 2").click()
    expect(view.get_by_text("Run 2 is deleted.")).to_be_visible()
    press(view, "Undo")
    expect(view.get_by_text("1 run is back.")).to_be_visible()
    assert ledger(view) == before
    press(view, "Delete all my runs")
    page.reload()
    view = found(page)
    settle(page, 2)
    assert len(ledger(view)) == 1  # what was made before stays
    press(view, "One step")
    expect(said(view)).to_have_text(re.compile(r"^Run 3\b"))  # no number is given twice


def test_a_run_that_a_reload_breaks_off_is_kept_with_its_bet(
    open_page: Callable[..., Page],
) -> None:
    page = open_page("#w.lab=task:~add;steps:2000")
    view = found(page)
    view.get_by_role("radio", name="better").check()
    press(view, "Run")
    expect(said(view)).to_have_text(re.compile(r"step (2[5-9]|[3-9]\d|\d{3,}) of"), **LONG)
    page.reload()
    view = found(page)
    settle(page, 2)
    row = ledger(view)[1]
    assert row[0] == "2" and re.match(
        r"(open|better|worse).* run 1, steps 0 to \d+; bet: better", row[6]
    )


def test_runs_go_into_a_link_and_a_file(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = found(page)
    run(view, 2)
    unfold(view, "Your runs")
    with page.expect_download() as downloaded:
        press(view, "Save to a file")
    text = Path(downloaded.value.path()).read_text("utf8")
    assert len(json.loads(text)["runs"]) == 1
    _opened(view, text)
    expect(view.get_by_text("0 runs came from the file; 1 run of it stood here")).to_be_visible()
    _opened(view, "{")
    expect(view.get_by_text("This is no file of the laboratory")).to_be_visible()
    copied_link = page.evaluate(
        """async () => {
          let copied;
          const clipboard = { writeText: async (text) => { copied = text; } };
          Object.defineProperty(navigator, "clipboard", { value: clipboard, configurable: true });
          const buttons = [...document.querySelectorAll("button")];
          buttons.find((button) => /link with/.test(button.textContent)).click();
          await new Promise((done) => setTimeout(done));
          return copied;
        }"""
    )
    row = ledger(view)[1]
    press(view, "Delete all my runs")
    other = open_page("#" + copied_link.split("#")[1])
    view = found(other)
    expect(view.get_by_text("1 run came from the link.")).to_be_attached()
    assert [each[1:6] for each in ledger(view)[1:]] == [row[1:6]]
    assert "runs:" not in other.url  # they are kept now
    other.reload()
    settle(other, 2)
    assert len(ledger(found(other))) == 2


def test_compute_and_size_are_views(open_page: Callable[..., Page]) -> None:
    page = open_page("#w.lab=schedule:~constant")
    view = found(page)
    run(view, 2)
    unfold(view, "Change the model")
    view.get_by_role("combobox", name="d_model").select_option("32")
    run(view, 3)
    against = view.get_by_role("combobox", name="draw them against")
    against.select_option("compute: operations")
    first = view.locator(".attn-line:not(.attn-noise)")
    starts = "(all) => all.map((e) => Number(e.getAttribute('points').split(',')[0]))"
    # 25 steps of the larger cost more
    until(page, lambda: [at > 20 for at in first.evaluate_all(starts)[:2]] == [False, True])
    against.select_option("size, at equal compute")
    dots = view.locator(".attn-sizes .attn-point")
    expect(dots).to_have_count(2)
    expect(view.locator(".attn-best")).to_contain_text("operations the lowest loss is that of run")
    view.get_by_role("slider", name="operations").fill("1")
    expect(dots).to_have_count(1)
    expect(view.locator(".attn-best")).to_contain_text("one size has come so far")
    assert "view:~size" in copied(view)


def test_what_a_link_switched_off_does_not_stay_off_in_another_task(
    open_page: Callable[..., Page],
) -> None:
    view = found(open_page("#w.lab=causal:0"))
    unfold(view, "Change the model")
    mask = view.get_by_role("combobox", name="causal mask")
    expect(mask).to_have_value("off")
    expect(view.get_by_text("Without the mask a place sees")).to_be_visible()
    view.get_by_role("combobox", name="task").select_option("go on with a text")
    expect(mask).to_have_value("on")
    mask.select_option("off")  # what the reader sets stays
    view.get_by_role("combobox", name="task").select_option("sort six letters")
    expect(mask).to_have_value("off")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_ledger_fits(open_page: Callable[..., Page], width: int) -> None:
    page = open_page(width=width)
    view = found(page)
    run(view, 2)
    unfold(view, "Your runs")
    box = view.locator(".attn-ledger")
    assert box.evaluate("(e) => e.scrollWidth <= e.clientWidth")
    right = "(e) => e.getBoundingClientRect().right"
    edge = box.evaluate(right)
    for one in box.locator("tbody :is(td, th, button)").all():
        assert one.evaluate(right) <= edge + 1


def test_five_seeds_draw_a_band(open_page: Callable[..., Page]) -> None:
    view = found(open_page("#w.lab=seed:3"))
    run(view, 2, "5 seeds")
    assert "each of 5 seeds" in said(view).inner_text()
    area = view.locator("polygon.attn-area.attn-now").first.get_attribute("points") or ""
    assert len(area.split()) == 2 * 5
    assert ledger(view)[1][1].endswith("(5 seeds)")


def test_a_link_restores_the_switches(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = found(page)
    view.get_by_role("combobox", name="task").select_option("reverse six letters")
    unfold(view, "Change the model")
    view.get_by_role("combobox", name="positions").select_option("waves")
    link = copied(view)
    assert "task:~reverse" in link and "positions:~sinusoidal" in link and "lr" not in link
    again = found(open_page(link))
    expect(again.get_by_role("combobox", name="task")).to_have_value("reverse six letters")
    hostile = found(open_page("#w.lab=task:~%3Cimg%3E;n_layers:99;steps:200;lr:-1;seed:2.5"))
    expect(hostile.get_by_role("combobox", name="task")).to_have_value("sort six letters")
    unfold(hostile, "Change the model")
    unfold(hostile, "Change the training")
    steps = hostile.get_by_role("combobox", name="steps", exact=True)
    expect(steps).to_have_value("200")
    expect(hostile.get_by_role("combobox", name="layers")).to_have_value("1")


def test_a_text_of_the_reader(open_page: Callable[..., Page]) -> None:
    view = found(open_page())
    view.get_by_role("combobox", name="task").select_option("go on with a text")
    text = view.get_by_role("textbox", name="The text to learn")
    text.fill("too short")
    fault = view.locator(".attn-fault")
    expect(fault).to_contain_text("This text has 9 characters. A text to learn has 200 to 20,000")
    press(view, "Run")
    expect(text).to_be_focused()
    assert text.input_value() == "too short" and len(ledger(view)) == 1  # it is not replaced
    text.fill("x" * 20_001)
    expect(fault).to_contain_text("20,001 characters")
    text.fill("the cat sat on the mat, " * 20)
    expect(fault).to_be_hidden()
    view.get_by_role("textbox", name="ask it").fill("the cat ")
    run(view, 2)
    flow = view.locator(".attn-flow")
    expect(flow).to_contain_text("the cat ")
    assert set(flow.locator("b").inner_text()) <= set("the cat sat on the mat, ")


def test_by_keyboard(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = found(page)
    view.get_by_role("combobox", name="task").focus()
    for wanted in ("Run", "One step", "5 seeds"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == wanted
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(said(view)).to_have_text(re.compile(r"step 1 of 100.*Paused\.$"))
    view.locator("summary").first.press("Enter")
    expect(view.get_by_role("combobox", name="layers")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(open_page: Callable[..., Page], theme: Any) -> None:
    page = open_page(theme=theme)
    view = found(page)
    run(view, 2)
    for name in ("Change the model", "Change the training", "Where", "Your runs"):
        unfold(view, name)
    assert violations(page, ".attn-laboratory") == []


def test_the_page_stays_free_while_it_trains(open_page: Callable[..., Page]) -> None:
    """The main thread's own work in each frame, by Chromium's trace, and not what it waits for."""
    page = open_page("#w.lab=steps:2000;d_model:32;n_layers:2;batch:32")
    view = found(page)
    unfold(view, "Where it looks")
    press(view, "Run")
    expect(said(view)).to_have_text(re.compile(r"step [1-9]\d* of"), **LONG)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    before, steps = busy(), int(re.findall(r"step (\d+)", said(view).inner_text())[0])
    page.wait_for_timeout(2000)  # time itself: what the page's thread does in it
    done = int(re.findall(r"step (\d+)", said(view).inner_text())[0]) - steps
    assert done > 0 and busy() - before < 0.5  # of 2 s: a page that trained itself would be full


def test_it_waits_while_nobody_sees_it_and_ends_with_the_page(
    open_page: Callable[..., Page], faults: Faults
) -> None:
    page = open_page("#w.lab=steps:2000")
    page.evaluate(COUNTED)
    view = found(page)
    press(view, "Run")
    expect(said(view)).to_have_text(re.compile(r"step [1-9]\d* of"), **LONG)
    hide = """(hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    stands(view)
    before = said(view).inner_text()
    page.evaluate(hide, False)
    expect(said(view)).not_to_have_text(before)
    assert len(page.workers) == 1
    page.goto("about:blank")
    until(page, lambda: page.workers == [])


def test_a_worker_that_fails_says_why(open_page: Callable[..., Page]) -> None:
    page = open_page()
    view = found(page)
    page.evaluate(
        "() => { window.Worker = class { postMessage() { setTimeout(() => "
        "this.onerror({ message: 'no memory' })); } terminate() {} }; }"
    )
    press(view, "Run")
    expect(said(view)).to_have_text("The training stopped: no memory.")
    assert len(ledger(view)) == 1
