"""`python -m tools.social`: draw book/figures/social.png, the preview of links to the book.

It shows the title and the last attention weights that chapter 2 stores: the thicker a line, the
larger the German word's weight on the English one.
"""

import base64
import io
from html import escape

import numpy as np
import yaml
from PIL import Image
from playwright.sync_api import sync_playwright

from attnbook.web.attention_heatmap.widget import LEVELS
from tools import chromium, notebooks
from tools.notebooks import BOOK, ROOT

FILE = BOOK / "figures/social.png"
WIDTH, HIGH = 1200, 630
TOP, BOTTOM, LEFT, STEP = 372, 548, 130, 157  # positions of the two rows of words
LEAST = 0.02  # smaller weights are not drawn
SERIF = "@fontsource-variable/source-serif-4/files/source-serif-4-latin-wght-normal.woff2"
STYLE = """
@font-face { font-family: "Book"; font-weight: 400 700; src: url(data:font/woff2;base64,FONT); }
body { margin: 0; background: #fdfcf9; }
text { fill: #23262b; font: 28px system-ui, sans-serif; text-anchor: middle; }
.title { font: 620 88px "Book"; }
.below { fill: #5a6069; font: 40px "Book"; }
path { fill: none; stroke: #1c5a96; }
"""


def learnt() -> tuple[list[str], list[str], np.ndarray]:
    """German words, English words, and the weights of the last step that chapter 2 stores."""
    models = notebooks.models(notebooks.read(BOOK / "02_attention.ipynb")).values()
    (model,) = (each for each in models if each["state"].get("name") == "alignment-grows")
    german, english = model["state"]["query_tokens"], model["state"]["key_tokens"]
    (data,) = (each["data"] for each in model["buffers"] if each["path"] == ["weights"])
    levels = np.frombuffer(base64.b64decode(data), "<u2")
    return german, english, levels.reshape(-1, len(german), len(english))[-1] / LEVELS


def card() -> str:
    """The picture as SVG."""
    named = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["title"]
    title, _, below = named.partition(": ")
    german, english, weights = learnt()
    below = below[0].upper() + below[1:]
    marks = [words("title", WIDTH / 2, 150, title), words("below", WIDTH / 2, 222, below)]
    for y, row in ((TOP - 14, english), (BOTTOM + 34, german)):
        marks += [words("word", LEFT + STEP * n, y, word) for n, word in enumerate(row)]
    middle = (TOP + BOTTOM) // 2
    for i, j in np.argwhere(weights > LEAST):
        start, end = LEFT + STEP * j, LEFT + STEP * i
        way = f"M{start} {TOP} C{start} {middle} {end} {middle} {end} {BOTTOM}"
        marks.append(f'<path d="{way}" stroke-width="{12 * weights[i, j]:.2f}"/>')
    size = f'width="{WIDTH}" height="{HIGH}" viewBox="0 0 {WIDTH} {HIGH}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(marks)}</svg>'


def words(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def main() -> None:
    font = base64.b64encode((ROOT / "node_modules" / SERIF).read_bytes()).decode()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.ensure(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HIGH})
        page.set_content(f"<style>{STYLE.replace('FONT', font)}</style>{card()}")
        page.evaluate("document.fonts.ready")
        shot = Image.open(io.BytesIO(page.screenshot()))
        browser.close()
    shot.convert("RGB").quantize(64, Image.Quantize.MAXCOVERAGE, kmeans=2).save(FILE, optimize=True)


if __name__ == "__main__":
    main()
