"""Bytes that the first load of each page fetches: text compressed by gzip, fonts as they are.

python -m benchmarks.pages [HTML_FOLDER]    (needs a built site and Chromium; budget 350 kB a page)
"""

import gzip
import sys
from collections import Counter
from pathlib import Path

from playwright.sync_api import Response

from benchmarks._chromium import chromium, serve

BUDGET = 350


def main(html: Path) -> None:
    names = [p.relative_to(html).as_posix() for p in sorted(html.glob("book/**/*.html"))]
    print(f"{'page':<28}{'all':>6}" + "".join(f"{k:>12}" for k in KINDS) + "   kB, pictures aside")
    with serve(html) as address, chromium() as browser:
        for name in names:
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            responses: list[Response] = []
            page.on("response", lambda response, found=responses: found.append(response))
            page.goto(f"{address}/{name}", wait_until="networkidle")
            weights: Counter[str] = Counter()
            for response in responses:
                kind = response.request.resource_type
                # A widget's module has a `blob:` address: it is part of a counted script.
                if kind in KINDS and response.url.startswith(address):
                    body = response.body()
                    weights[kind] += len(body if kind == "font" else gzip.compress(body, 6))
            context.close()
            total = weights.total() / 1000
            parts = "".join(f"{weights[kind] / 1000:12.0f}" for kind in KINDS)
            print(f"{name:<28}{total:6.0f}{parts}" + ("   above budget" if total > BUDGET else ""))


KINDS = ("document", "stylesheet", "script", "font")

if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "_build/html"))
