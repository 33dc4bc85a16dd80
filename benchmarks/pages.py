"""Bytes that the first load of each page fetches: text compressed by gzip, fonts as they are.

make bench NAME=pages    (needs a built site and Chromium; budget 300 kB a page)
"""

import gzip
import sys
from collections import Counter
from pathlib import Path

from playwright.sync_api import Page, Response

from benchmarks import _stored
from benchmarks._chromium import chromium, serve

BUDGET, NOTEBOOK = 300, 600


def first_load(page: Page, address: str, name: str) -> Counter[str]:
    """Bytes by kind that a page fetches before its reader does anything, pictures aside."""
    responses: list[Response] = []
    page.on("response", lambda response: responses.append(response))
    page.goto(f"{address}/{name}", wait_until="networkidle")
    weights: Counter[str] = Counter()
    for response in responses:
        kind = response.request.resource_type
        # A widget's module has a `blob:` address: it is part of a counted script.
        if kind in KINDS and response.url.startswith(address):
            body = response.body()
            weights[kind] += len(body if kind == "font" else gzip.compress(body, 6))
    return weights


def main(html: Path) -> None:
    totals: dict[str, float] = {}
    names = [p.relative_to(html).as_posix() for p in sorted(html.glob("book/**/*.html"))]
    print(f"{'page':<28}{'all':>6}" + "".join(f"{k:>12}" for k in KINDS) + "   kB, pictures aside")
    with serve(html) as address, chromium() as browser:
        for name in names:
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            weights = first_load(context.new_page(), address, name)
            context.close()
            totals[name] = total = weights.total() / 1000
            parts = "".join(f"{weights[kind] / 1000:12.0f}" for kind in KINDS)
            print(f"{name:<28}{total:6.0f}{parts}" + ("   above budget" if total > BUDGET else ""))
    heaviest = max(totals, key=totals.__getitem__)
    files = [path for path in html.rglob("*") if path.is_file() and "model" not in path.parts]
    stored = max((path.stat().st_size, path.stem) for path in Path("book").glob("*.ipynb"))
    rows = [
        _stored.budget("first load of a page, over pages", "kB", [*totals.values()]),
        _stored.budget(
            f"first load of the heaviest page, {Path(heaviest).stem}",
            "kB",
            [totals[heaviest]],
            BUDGET,
        ),
        _stored.budget(
            "all files of the site without SmolLM2",
            "MB",
            [sum(path.stat().st_size for path in files) / 1e6],
        ),
        _stored.budget(f"the largest notebook, {stored[1]}", "kB", [stored[0] / 1000], NOTEBOOK),
    ]
    _stored.finish(__file__, rows)


KINDS = ("document", "stylesheet", "script", "font")

if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "_build/html"))
