"""SmolLM2 in chapter 10 of the built site, beside llama.cpp in WebAssembly (`@wllama/wllama`).

MODEL=1 make book && make bench NAME=smollm2_page    (npm fetches wllama into a temporary folder;
without it, ours alone)

Ours is the page itself: its button loads the model, a text is begun and written greedily, then a
second visit with the same profile does it again. wllama reads the same GGUF file in an empty page,
on one thread without a GPU. Each visit is a Chromium of its own without developer tools, which
would keep all that is fetched in the page's memory. They take turns; the ratio is the median of
pairs. Compared in the same run: all our texts are what the package writes. Memory is the most that
the page's process had for itself. A phone is 390 pixels wide, with a page's thread four times
slower. Bars: 12 tokens a second, 0.7 of wllama's, the first token after 1.5 s, 400 MB, loaded in
5 s, again in 2 s without a request, no frame of more than 50 ms; a phone: 2 tokens a second, 50 ms.
"""

import functools
import json
import queue
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil
import torch
from playwright.sync_api import Browser

from attnbook import assets
from attnbook.weights.pretrained import load_smollm2
from benchmarks import _stored
from benchmarks._chromium import QuietHandler, chromium, serve
from tools.chromium import ensure
from tools.notebooks import ROOT

WLLAMA, TURNS, NEW, SLOWER = "3.13.0", 3, 60, 4
PROMPT = "Once upon a time there was a small house in the old forest"  # 13 tokens
PAGE = "book/10_sampling.html"
PATIENCE = 300  # seconds until a page must have told
RATIO, BARS = (
    0.7,
    {
        "loading": 5000,
        "loading at a second visit": 2000,
        "files asked for at a second visit": 0,
        "first token": 1500,
        "writing": 12,
        "memory at most": 400,
        "longest time between frames": 50,
        "writing on a phone": 2,
        "longest time between frames on a phone": 50,
    },
)

# Both give { load, first, rate, text }: milliseconds, tokens a second; ours the longest frame, too.
OURS = """async ({ prompt, n }) => {
  const soon = () => new Promise((done) => setTimeout(done, 10));
  const until = async (what) => { while (!what()) await soon(); };
  scrollBy(0, 1);
  await until(() => document.querySelector(".attn-bench"));
  const bench = document.querySelector(".attn-bench");
  bench.scrollIntoView();
  const buttons = () => [...bench.querySelectorAll("button")];
  const button = (name) => buttons().find((each) => each.textContent.match(name));
  const written = () => [...bench.querySelectorAll(".attn-text .attn-tok:not(.attn-next)")];
  await until(() => button(/^(Load|Start) the model/)?.getClientRects().length);
  const begun = performance.now();
  button(/^(Load|Start) the model/).click();
  await until(() => bench.textContent.includes("The model runs in this page"));
  const load = performance.now() - begun;
  bench.querySelector("textarea").value = prompt;
  button(/^Begin with this$/).click();
  button(/^greedy$/).click();
  await until(() => written().map((each) => each.textContent).join("") === prompt);
  await until(() => bench.querySelector(".attn-take")?.getClientRects().length);
  const from = written().length, start = performance.now();
  let longest = 0, last = start, first, watching = true;
  requestAnimationFrame(function frame(now) {
    longest = Math.max(longest, now - last);
    last = now;
    if (watching) requestAnimationFrame(frame);
  });
  button(/^Write$/).click();
  await until(() => {
    if (written().length > from) first ??= performance.now() - start;
    return written().length >= from + n;
  });
  const rate = (n - 1) / ((performance.now() - start - first) / 1000);
  watching = false;
  button(/^Stop$/).click();
  const text = written().slice(from, from + n).map((each) => each.textContent).join("");
  return { load, first, rate, longest, text };
}"""
THEIRS = """async ({ prompt, n }) => {
  const { Wllama } = await import("/wllama/index.js");
  const quiet = { debug() {}, log() {}, warn() {}, error() {} };
  const model = new Wllama({ default: "/wllama/wasm/wllama.wasm" }, { logger: quiet });
  const begun = performance.now(), file = await (await fetch("/model.gguf")).blob();
  await model.loadModel([file], { n_threads: 1, n_ctx: 1024, n_gpu_layers: 0 });
  const load = performance.now() - begun, start = performance.now();
  const given = { prompt, max_tokens: n, temperature: 0, stream: true };
  let first, count = 0, text = "";
  for await (const { choices: [piece] } of await model.createCompletion(given)) {
    count += 1;
    text += piece?.text ?? "";
    first ??= performance.now() - start;
  }
  const rate = (count - 1) / ((performance.now() - start - first) / 1000);
  return { load, first, rate, text };
}"""
DRIVE = """<script type="module">
  const told = await (SCRIPT)(GIVEN).catch((error) => ({ error: String(error) }));
  await fetch("/told", { method: "POST", body: JSON.stringify(told) });
</script>"""
GIVEN = {"prompt": PROMPT, "n": NEW}


class Driver(QuietHandler):
    """A site whose pages, asked for with `?drive`, run a script and tell what it gives."""

    def __init__(
        self, *args: Any, script: str, told: queue.Queue[Any], asked: list[str], **given: Any
    ) -> None:
        self.script, self.told, self.asked = script, told, asked
        super().__init__(*args, **given)

    def do_GET(self) -> None:  # noqa: N802
        path, _, query = self.path.partition("?")
        self.asked.extend([path] * ("/model/" in path))
        if query != "drive":
            return super().do_GET()
        drive = DRIVE.replace("SCRIPT", self.script).replace("GIVEN", json.dumps(GIVEN))
        page = Path(self.translate_path(path)).read_bytes() + drive.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def do_POST(self) -> None:  # noqa: N802
        self.told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()


def memory(browser: psutil.Process) -> float:
    """Megabytes that the largest of a browser's pages has for itself."""
    found = [0.0]
    for process in browser.children(recursive=True):
        try:
            if "--type=renderer" in process.cmdline():
                found.append(process.memory_full_info().uss / 1e6)
        except psutil.Error:
            continue
    return max(found)


class Site:
    """A folder whose page runs a script when it is visited, each time in a browser of its own."""

    def __init__(self, folder: Path, page: str, script: str) -> None:
        self.folder, self.page, self.script = folder, page, script
        self.told: queue.Queue[Any] = queue.Queue()
        self.asked: list[str] = []

    def serve(self) -> AbstractContextManager[str]:
        given = {"script": self.script, "told": self.told, "asked": self.asked}
        return serve(self.folder, functools.partial(Driver, **given))

    def visit(self, address: str, profile: str) -> dict[str, Any]:
        """What the script gave, the most memory, and how many files of the model were asked for."""
        self.asked.clear()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        command, most = [ensure(whole=True), *flags, f"{address}/{self.page}?drive"], 0.0
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as browser:
            begun = time.monotonic()
            while self.told.empty() and time.monotonic() - begun < PATIENCE:
                most = max(most, memory(psutil.Process(browser.pid)))
                time.sleep(0.2)
            browser.terminate()
        found = {"error": "it told nothing"} if self.told.empty() else self.told.get()
        if "error" in found:
            sys.exit(f"{self.page}: {found['error']}")
        return {**found, "memory": most, "asked": len(self.asked)}


def on_phone(browser: Browser, address: str) -> dict[str, Any]:
    """The same page on a phone's screen, its own thread slower."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True)
    page = context.new_page()
    page.goto(f"{address}/{PAGE}")
    session = context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    found = page.evaluate(OURS, GIVEN)
    context.close()
    return found


def wllama(folder: Path) -> bool:
    """An empty page, the model's file and wllama; whether it could be fetched."""
    (path,) = assets.fetch("smollm2").iterdir()
    (folder / "model.gguf").symlink_to(path)
    (folder / "index.html").write_text("<!doctype html><title>Benchmark</title>")
    asked = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"]
    npm = [*asked, "--prefix", str(folder), f"@wllama/wllama@{WLLAMA}"]
    if subprocess.run(npm, capture_output=True).returncode:
        return False
    (folder / "wllama").symlink_to(folder / "node_modules/@wllama/wllama/esm")
    return True


def expected() -> str:
    """What the package writes, with the line ends that the page shows."""
    model, tokenizer = load_smollm2()
    prompt = torch.tensor([tokenizer.encode(PROMPT)])
    text = tokenizer.decode(model.generate(prompt, NEW).tokens[0].tolist())
    return text.replace("\n", "↵")


def said(name: str, turns: list[dict[str, Any]]) -> None:
    middle = {
        key: statistics.median(each[key] for each in turns)
        for key in ("load", "first", "rate", "memory")
    }
    print(
        f"{name:8} loaded in {middle['load']:5.0f} ms, first token after {middle['first']:5.0f} ms,"
        f" {middle['rate']:5.1f} tokens a second, {middle['memory']:4.0f} MB at most"
    )


def main() -> None:
    html = ROOT / "_build/html"
    if not (html / "_static/model").is_dir():
        sys.exit("the built site has no model: MODEL=1 make book")
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        both, ours = wllama(Path(name)), Site(html, PAGE, OURS)
        peer = Site(Path(name), "index.html", THEIRS)
        turns, again, theirs = [], [], []
        with ours.serve() as here, peer.serve() as there:
            for _ in range(TURNS):
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
                    turns.append(ours.visit(here, profile))
                    again.append(ours.visit(here, profile))
                if both:
                    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
                        theirs.append(peer.visit(there, profile))
            phone = on_phone(browser, here)
    text = expected()
    right = all(each["text"] == text for each in (*turns, *again, phone))
    said("ours", turns)
    print(f"the package's own text in all of our turns: {right}")
    what, rows = "SmolLM2 in chapter 10's page", []
    for words, unit, found, key in (
        ("loading", "ms", turns, "load"),
        ("loading at a second visit", "ms", again, "load"),
        ("files asked for at a second visit", "files", again, "asked"),
        ("first token", "ms", turns, "first"),
        ("writing", "tokens/s", turns, "rate"),
        ("memory at most", "MB", [*turns, *again], "memory"),
        ("longest time between frames", "ms", [*turns, *again], "longest"),
        ("writing on a phone", "tokens/s", [phone], "rate"),
        ("longest time between frames on a phone", "ms", [phone], "longest"),
    ):
        values, bar = [each[key] for each in found], BARS[words]
        rows.append(_stored.budget(f"{what}: {words}", unit, values, bar, more=key == "rate"))
    why = ""
    if both:
        said("wllama", theirs)
        for words, unit, key, bar in (
            ("writing", "tokens/s", "rate", RATIO),
            ("memory at most", "MB", "memory", None),
        ):
            pairs = [(a[key], b[key]) for a, b in zip(turns, theirs, strict=True)]
            row = _stored.against(
                f"{what}: {words}", unit, pairs, f"wllama {WLLAMA}", bar=bar, more=key == "rate"
            )
            print(f"{words}: {row.ratio:.2f} of wllama's ({row.least:.2f} to {row.most:.2f})")
            rows.append(row)
    else:
        print(why := f"wllama {WLLAMA} could not be fetched: no ratio")
    _stored.finish(__file__, rows, right=right, why=why)


if __name__ == "__main__":
    main()
