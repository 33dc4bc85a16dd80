"""Links from the page of claims to each cell that shows one, and back.

A cell's metadata lists its claims; as in `make claims`, a cell is named by its number among the
page's code cells.
"""

import json
import re
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

PAGE = "claims"
CHAPTER = re.compile(r"(?:.*/)?(\d\d)_\w+?(_evidence)?")


@lru_cache(maxsize=64)
def _read(path: Path, mtime: int) -> dict[int, tuple[int, list[str]]]:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [index for index, cell in enumerate(cells) if cell["cell_type"] == "code"]
    claims = ((n, index, cells[index]["metadata"].get("claims")) for n, index in enumerate(code, 1))
    return {index: (n, shown) for n, index, shown in claims if shown}


def shown_in(path: Path) -> dict[int, tuple[int, list[str]]]:
    """Index of each cell that shows claims -> its number among code cells, and the claims."""
    return _read(path, path.stat().st_mtime_ns)


class Claims(SphinxTransform):
    """Adds anchors and links back to a chapter, and a third column to the page of claims."""

    default_priority = 880

    def apply(self, **kwargs: Any) -> None:
        folder, _, name = self.env.docname.rpartition("/")
        self.folder = f"{folder}/" if folder else ""
        if name == PAGE:
            for table in self.document.findall(nodes.tgroup):
                self.complete(table)
        elif f"{self.folder}{PAGE}" in self.env.found_docs:
            self.lead_back()

    def lead_back(self) -> None:
        path = Path(self.env.doc2path(self.env.docname))
        shown = shown_in(path) if path.suffix == ".ipynb" else {}
        for cell in list(self.document.findall(nodes.container)):
            if cell.get("nb_element") != "cell_code" or cell["cell_index"] not in shown:
                continue
            number, claims = shown[cell["cell_index"]]
            cell["ids"].append(f"cell-{number}")
            links = ", ".join(f'<a href="{PAGE}.html#{each.lower()}">{each}</a>' for each in claims)
            back = nodes.raw("", f"<small class=shows>{links}</small>", format="html")
            cell.parent.insert(cell.parent.index(cell) + 1, back)

    def complete(self, table: nodes.tgroup) -> None:
        rows = [row for row in table.findall(nodes.row) if isinstance(row.parent, nodes.tbody)]
        ids = [row[0].astext() for row in rows if isinstance(row[0], nodes.entry)]
        if not ids or not all(re.fullmatch(r"C\d\d", each) for each in ids):
            return
        table["cols"] += 1
        table.insert(table["cols"] - 1, nodes.colspec(colwidth=50))
        (head,) = (row for row in table.findall(nodes.row) if row not in rows)
        head += nodes.entry("", nodes.paragraph(text="shown in"))
        for row, claim in zip(rows, ids, strict=True):
            row["ids"].append(claim.lower())
            row += nodes.entry("", nodes.raw("", self.places(claim), format="html"))

    def places(self, claim: str) -> str:
        """Links to the cells that show a claim, page by page."""
        said = []
        for docname in sorted(self.env.found_docs):
            found, path = CHAPTER.fullmatch(docname), Path(self.env.doc2path(docname))
            if not found or path.suffix != ".ipynb" or not docname.startswith(self.folder):
                continue
            self.env.note_dependency(str(path))
            page = docname.removeprefix(self.folder)
            cells = [
                f'<a href="{escape(page)}.html#cell-{n}">{n}</a>'
                for n, claims in shown_in(path).values()
                if claim in claims
            ]
            if cells:
                where = f"Chapter {int(found[1])}" + ", evidence" * bool(found[2])
                said.append(f"{where}, cell{'s' * (len(cells) > 1)}&nbsp;{' '.join(cells)}")
        return "<br>".join(said) or "–"


def setup(app: Sphinx) -> None:
    app.add_transform(Claims)
