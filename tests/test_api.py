"""The package's pages: every name that a chapter imports has its place, without any import."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from docutils import nodes

from tests.helpers.minibook import ROOT

NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "book/_ext"))
    return importlib.import_module("attnbook_site.api")


def code(path: Path) -> list[str]:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_name_that_a_chapter_imports_has_a_place(api: Any, path: Path) -> None:
    for name, full in api.imported(code(path)).items():
        assert api.place_of(full), name


def test_a_name_leads_to_where_it_is_defined(api: Any) -> None:
    place = "model.html#attnbook.model.attention.attend"
    assert api.place_of("attnbook.model.attend") == place
    assert api.place_of("attnbook.model.attention.attend") == place
    assert api.place_of("attnbook.model.sampling") == "model.html#module-attnbook.model.sampling"
    assert api.place_of("attnbook.walks.gru_step") == "walks.html#attnbook.walks._gru.gru_step"
    assert api.place_of("attnbook.show.SMALL") == "show.html#attnbook.show.drawing.SMALL"
    for nowhere in (
        "attnbook.model.nothing",
        "attnbook.nothing.at",
        "attnbook.model._core",
        "torch",
    ):
        assert api.place_of(nowhere) == ""


def test_names_that_a_page_defines_itself_are_no_links(api: Any) -> None:
    cells = ["from attnbook.model import attend, Block as B", "%magic", "def attend(): pass"]
    assert api.imported(cells) == {"B": "attnbook.model.Block"}


def test_links_stand_on_names_and_not_on_keywords_or_attributes(api: Any) -> None:
    def span(text: str, kind: str = "n") -> str:
        return f'<span class="{kind}">{text}</span>'

    dot, equals = span(".", "o"), span("=", "o")
    start = '<div class="highlight-ipython3 notranslate">'
    known = {"attend": "attnbook.model.attend", "sampling": "attnbook.model.sampling"}

    def linked(text: str) -> list[str]:
        body = api.linked(f"{start}{text}</pre>", known, "api/")
        assert re.sub("<[^>]*>", "", body) == re.sub("<[^>]*>", "", text)
        return re.findall('href="([^"]*)"', body)

    attend = "api/model.html#attnbook.model.attention.attend"
    assert linked(span("attend")) == [attend]
    assert linked(span("x") + dot + span("attend")) == []
    assert linked(span("attend") + equals) == []
    both = linked(span("sampling") + dot + span("top_p"))
    assert both == [
        f"api/model.html#{end}"
        for end in ("module-attnbook.model.sampling", "attnbook.model.sampling.top_p")
    ]
    assert "href" not in api.linked(span("attend"), known, "api/")  # not in code: prose


def test_a_docstring_is_set_as_it_is_written(api: Any) -> None:
    text = """A sum of `values`.

    out_i = sum_j a_*

Args:
    a, b: the *first*,
        and more.
    c: the second.

Raises:
    ValueError: if not.

Source: someone.
"""
    first, formula, *rest = api.described(text)
    assert first.astext() == "A sum of values." and isinstance(first[1], nodes.literal)
    assert isinstance(formula, nodes.literal_block) and formula.astext() == "out_i = sum_j a_*"
    said = [node.astext() for node in rest]
    assert said[0] == "Args" and said[2] == "Raises" and said[4] == "Source: someone."
    items = [item.astext() for item in rest[1].children]
    assert items == ["a, b: the *first*, and more.", "c: the second."]


def test_the_site_has_places_and_sources(site: Path, api: Any) -> None:
    pages = {page.name: page.read_text("utf-8") for page in (site / "book/api").glob("*.html")}
    assert len(pages) == len(api.package.ROOMS) + 1
    links = 0
    for path in NOTEBOOKS:
        text = (site / f"book/{path.stem}.html").read_text("utf-8")
        for page, place in re.findall(r'class="api" href="api/([\w.]+)#([\w.-]+)"', text):
            assert f'id="{place}"' in pages[page], place
            links += 1
    assert links > 1000
    source = "../../_modules/attnbook/model/attention.html#attend"
    assert f'href="{source}"' in pages["model.html"]
    shown = (site / "_modules/attnbook/model/attention.html").read_text("utf-8")
    assert 'id="attend"' in shown and 'href="../../../book/api/model.html' in shown
