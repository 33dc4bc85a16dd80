"""`make figures`: pack all drawings and charts of the chapters as SVG, for slides and papers.

Each file is named by its chapter and its number; a page in the archive lists and describes them."""

import argparse
import pathlib
import re
import zipfile
from collections.abc import Iterator
from html import escape, unescape

from tools import notebooks
from tools.notebooks import ROOT, SVG

OUT = ROOT / "_build" / "figures.zip"
LICENCE = "From the book Worth Some Attention, CC BY 4.0: say where you have it from."
MAP = "Map of the chapter"  # at the top of each section, shows the reader's position
WHEN = (2026, 1, 1, 0, 0, 0)  # time of every file, so that equal figures give equal archives


def figures(path: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """(name, SVG, description) of each figure that a notebook stores, except for the maps."""
    number = 0
    for cell in notebooks.code_cells(notebooks.read(path)):
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        for svg in (output.get("data", {}).get(SVG) for output in cell.outputs):
            seen = alt or _title(svg or "")
            if svg and not seen.startswith(MAP):
                number += 1
                words = re.findall(r"[a-z0-9]+", seen.lower())[:6]
                yield "_".join([f"{number:02}", *words]), svg, seen


def _title(svg: str) -> str:
    """The description that a drawing contains."""
    found = re.search(r"""aria-label=(["'])(.*?)\1|<title>([^<]*)""", svg)
    return unescape(found[2] or found[3] or "") if found else ""


def pack(paths: list[pathlib.Path], out: pathlib.Path) -> int:
    """Write the archive; returns how many figures it has."""
    rows, count = list[str](), 0
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, text: str) -> None:
            entry = zipfile.ZipInfo(name, WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)

        for path in paths:
            rows.append(f"<h2>{escape(path.stem)}</h2>")
            for name, svg, seen in figures(path):
                add(f"{path.stem}/{name}.svg", svg)
                rows.append(
                    f'<p><img src="{path.stem}/{name}.svg" alt="" width="240"> {escape(seen)}'
                )
                count += 1
        page = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Figures</title>'
        add("index.html", f"{page}<h1>Figures</h1><p>{LICENCE}{''.join(rows)}</html>\n")
        add("LICENCE.txt", LICENCE + "\n")
    return count


def main() -> None:
    argparse.ArgumentParser(prog="tools.figures", description=__doc__).parse_args()
    count = pack([path for path in notebooks.every() if notebooks.is_chapter(path)], OUT)
    print(f"{OUT}: {count} figures, {OUT.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
