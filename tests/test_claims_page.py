"""The list of claims and the cells that show them lead to each other."""

import re
from pathlib import Path

import nbformat
import pytest

from tests.helpers.minibook import build_book, write_mini_book
from tools import checks, notebooks

LIST = """# Claims

| id | claim |
| --- | --- |
| C01 | One *holds* |
| C02 | Two holds |
| C03 | A test shows it |

| word | meaning |
| --- | --- |
| C01 | another table |
| cell | no claim |
"""


def chapter(*cells: tuple[str, list[str]]) -> str:
    """A notebook: `(tag, claims)` of each code cell, with prose before it."""
    nb = nbformat.v4.new_notebook()
    nb.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    nb.cells.append(nbformat.v4.new_markdown_cell("# A page"))
    for n, (tag, claims) in enumerate(cells, 1):
        meta = {"tags": [tag] * bool(tag), **({"claims": claims} if claims else {})}
        nb.cells.append(nbformat.v4.new_markdown_cell(f"Text {n}."))
        cell = nbformat.v4.new_code_cell(f"assert {n}", execution_count=n, metadata=meta)
        nb.cells.append(cell)
    return nbformat.writes(nb)


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book")
    pages = {
        "index.md": "# Mini book\n",
        "01_first.ipynb": chapter(("", []), ("hide-input", ["C01"]), ("", ["C02", "C01"])),
        "01_first_evidence.ipynb": chapter(("", ["C02"])),
        "claims.md": LIST,
    }
    write_mini_book(folder, pages, attnbook_cut_fonts=False)
    done = build_book(folder, folder)
    assert done.returncode == 0, done.stdout[-5000:]
    return folder / "_build/html"


def row(page: str, claim: str) -> str:
    return page.partition(f'id="{claim.lower()}"')[2].partition("</tr>")[0]


def test_each_claim_leads_to_its_cells(mini: Path) -> None:
    page = (mini / "claims.html").read_text("utf-8")
    first, second = (f'<a href="01_first.html#cell-{n}">{n}</a>' for n in (2, 3))
    assert f"Chapter 1, cells&nbsp;{first} {second}" in row(page, "C01")
    assert "evidence" not in row(page, "C01")
    other = '<a href="01_first_evidence.html#cell-1">1</a>'
    assert f"Chapter 1, cell&nbsp;{second}<br>" in row(page, "C02")
    assert f"Chapter 1, evidence, cell&nbsp;{other}" in row(page, "C02")
    assert "–" in row(page, "C03") and "href" not in row(page, "C03")
    assert page.count("shown in") == 1 and page.count('id="c01"') == 1  # not in the other table


def test_each_cell_leads_back(mini: Path) -> None:
    page = (mini / "01_first.html").read_text("utf-8")
    assert re.findall(r'id="(cell-\d+)"', page) == ["cell-2", "cell-3"]
    backs = re.findall(r"<small class=shows>(.*?)</small>", page)
    one, two = (f'<a href="claims.html#c0{n}">C0{n}</a>' for n in (1, 2))
    assert backs == [one, f"{two}, {one}"]


def test_the_books_list_is_complete(site: Path) -> None:
    page = (site / "book/claims.html").read_text("utf-8")
    shown = checks.claims_shown(notebooks.every())
    assert len(shown) > 50
    for claim in checks.claim_titles():
        told = [where.split(", ")[:2] for where in shown.get(claim, [])]
        stored = {(name.removesuffix(".ipynb"), cell.split()[-1]) for name, cell in told}
        links = re.findall(r'href="([\w.]+)\.html#cell-(\d+)"', row(page, claim))
        assert set(links) == stored and len(links) == len(stored), claim
        for name, cell in links:
            other = (site / f"book/{name}.html").read_text("utf-8")
            assert f'id="cell-{cell}"' in other, (name, cell)
            assert f'href="claims.html#{claim.lower()}"' in other, (name, claim)


def test_a_page_grows_little(site: Path) -> None:
    for path in (site / "book").glob("[0-9]*.html"):
        text = path.read_text("utf-8")
        added = re.findall(r'<small class=shows>.*?</small>| id="cell-\d+"', text)
        assert sum(map(len, added)) < 2000, path.name
