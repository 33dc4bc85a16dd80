"""SmolLM2 in the page's engine, beside llama.cpp in WebAssembly (`@wllama/wllama`).

make bench NAME=smollm2_page    (npm fetches wllama into a temporary folder; without it, ours alone)

Both read the same GGUF file in the same Chromium, each in a worker and a page of its own, on one
thread without a GPU, and go on greedily with the same 12 tokens. They take turns; the ratio is the
median of pairs of turns. Memory is what the page's process has for itself after it wrote. Bars: 12
tokens a second, 0.7 of wllama's, the first token after 1.5 s, 400 MB, no frame of more than 50 ms.
"""

import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser

from attnbook import assets
from benchmarks import _stored
from benchmarks._chromium import chromium, serve
from tools.notebooks import ROOT

WLLAMA, TURNS, NEW = "3.13.0", 3, 60
PROMPT = "Once upon a time there was a small house in the old forest"  # 13 tokens
BARS = {"rate": 12, "ratio": 0.7, "first": 1500, "memory": 400, "frame": 50}
BUNDLE = """import { writeFileSync } from "node:fs";
import { script } from "ROOT/tools/bundling.mjs";
writeFileSync(process.argv[1], await script("./engine/language.js"));"""

# Both give { first, rate, load, text }: milliseconds, tokens a second; and the longest frame.
FRAMES = """let longest = 0, last = performance.now(), watching = true;
(function frame() {
  const now = performance.now();
  longest = Math.max(longest, now - last);
  last = now;
  if (watching) requestAnimationFrame(frame);
})();"""
OURS = """async ({ prompt, n, part }) => {
  const worker = new Worker("/worker.js"), waiting = new Map();
  let number = 0;
  worker.onmessage = ({ data }) => waiting.get(data.number)(data);
  const call = async (name, given, moved = []) => {
    const { result, error } = await new Promise((done) => {
      waiting.set(++number, done);
      worker.postMessage({ number, name, given }, moved);
    });
    if (error) throw new Error(error);
    return result;
  };
  const begun = performance.now(), file = await (await fetch("/model.gguf")).arrayBuffer();
  for (let at = 0; at < file.byteLength; at += part) {
    const bytes = file.slice(at, at + part);
    await (at ? call("put", { at, part: bytes }, [bytes])
      : call("begin", { part: bytes, total: file.byteLength }, [bytes]));
  }
  const load = performance.now() - begun;
  const ids = await call("encode", { text: prompt, special: false }), from = ids.length;
  FRAMES
  const start = performance.now();
  let first;
  while (ids.length < from + n) {
    let told;
    do told = await call("read", { ids }); while (!told.done);
    ids.push(told.order[0]);
    first ??= performance.now() - start;
  }
  watching = false;
  const rate = (n - 1) / ((performance.now() - start - first) / 1000);
  return { load, first, rate, longest, prompt: from };
}""".replace("FRAMES", FRAMES)
THEIRS = """async ({ prompt, n }) => {
  const { Wllama } = await import("/wllama/index.js");
  const quiet = { debug() {}, log() {}, warn() {}, error() {} };
  const model = new Wllama({ default: "/wllama/wasm/wllama.wasm" }, { logger: quiet });
  const begun = performance.now(), file = await (await fetch("/model.gguf")).blob();
  await model.loadModel([file], { n_threads: 1, n_ctx: 1024, n_gpu_layers: 0 });
  const load = performance.now() - begun, start = performance.now();
  const given = { prompt, max_tokens: n, temperature: 0, stream: true };
  let first, count = 0;
  for await (const _ of await model.createCompletion(given)) {
    count += 1;
    first ??= performance.now() - start;
  }
  const rate = (count - 1) / ((performance.now() - start - first) / 1000);
  return { load, first, rate, count };
}"""


def renderers() -> dict[int, float]:
    """Megabytes that each page's process has for itself."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        try:
            if "--type=renderer" in process.cmdline():
                found[process.pid] = process.memory_full_info().uss / 1e6
        except psutil.Error:
            continue
    return found


def turn(browser: Browser, site: str, script: str) -> dict[str, Any]:
    """One load and one text in a fresh page."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site}/index.html")
    told = page.evaluate(script, {"prompt": PROMPT, "n": NEW, "part": 8_000_000})
    told["memory"] = max(renderers().values())
    context.close()
    return told


def prepare(folder: Path) -> bool:
    """Everything that the pages load; whether wllama is there."""
    (path,) = assets.fetch("smollm2").iterdir()
    (folder / "model.gguf").symlink_to(path)
    (folder / "index.html").write_text("<!doctype html><title>Benchmark</title>")
    bundle = BUNDLE.replace("ROOT", ROOT.as_uri())
    command = ["node", "--input-type=module", "-e", bundle, str(folder / "worker.js")]
    subprocess.run(command, check=True)
    asked = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"]
    npm = [*asked, "--prefix", str(folder), f"@wllama/wllama@{WLLAMA}"]
    if subprocess.run(npm, capture_output=True).returncode:
        return False
    (folder / "wllama").symlink_to(folder / "node_modules/@wllama/wllama/esm")
    return True


def said(name: str, turns: list[dict[str, Any]]) -> dict[str, float]:
    middle = {
        key: statistics.median(each[key] for each in turns)
        for key in ("load", "first", "rate", "memory")
    }
    print(
        f"{name:8} loaded in {middle['load']:5.0f} ms, first token after {middle['first']:5.0f} ms,"
        f" {middle['rate']:5.1f} tokens a second, {middle['memory']:4.0f} MB"
    )
    return middle


def main() -> None:
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        both = prepare(Path(name))
        with serve(Path(name)) as site:
            pairs = []
            for _ in range(TURNS):
                pairs.append([turn(browser, site, OURS)])
                if both:
                    pairs[-1].append(turn(browser, site, THEIRS))
    ours = said("ours", [pair[0] for pair in pairs])
    frame = max(pair[0]["longest"] for pair in pairs)
    print(f"longest time between frames while it writes: {frame:.0f} ms")
    mine = {key: [pair[0][key] for pair in pairs] for key in ("rate", "first", "memory")}
    what = "SmolLM2 in the page"
    rows = [
        _stored.budget(f"{what}, writing", "tokens/s", mine["rate"], BARS["rate"], more=True),
        _stored.budget(f"{what}, first token", "ms", mine["first"], BARS["first"]),
        _stored.budget(f"{what}, memory", "MB", mine["memory"], BARS["memory"]),
        _stored.budget(f"{what}, longest time between frames", "ms", [frame], BARS["frame"]),
    ]
    why = ""
    if both:
        theirs = said("wllama", [pair[1] for pair in pairs])
        ratio = statistics.median(pair[0]["rate"] / pair[1]["rate"] for pair in pairs)
        memory = ours["memory"] / theirs["memory"]
        print(f"ratios: tokens a second {ratio:.2f}, memory {memory:.2f}")
        for name, unit, bar in ("rate", "tokens/s", BARS["ratio"]), ("memory", "MB", None):
            both, said_ = [(a[name], b[name]) for a, b in pairs], f"{what}: {unit}"
            peer = f"wllama {WLLAMA}"
            rows.append(_stored.against(said_, unit, both, peer, bar=bar, more=name == "rate"))
    else:
        print(why := f"wllama {WLLAMA} could not be fetched: no ratio")
    _stored.finish(__file__, rows, why=why)


if __name__ == "__main__":
    main()
