"""Below each page: who made it, its licence and version, as CITATION.cff has them."""

import importlib
import importlib.metadata
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from jinja2 import Template
from PIL import Image

from tests.helpers.minibook import ROOT
from tools import social

CITED = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
PAGE = (ROOT / "book/cite.md").read_text("utf-8")


def test_version_and_names_are_those_of_the_package() -> None:
    version = importlib.metadata.version("attnbook")
    assert CITED["version"] == version
    assert f"version = {{{version}}}" in PAGE and f"version {version}." in PAGE
    changed = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.findall(r"(?m)^## (\S+)", changed)[0] == version
    title, (author,) = CITED["title"], (each["name"] for each in CITED["authors"])
    assert f"title   = {{{title}}}" in PAGE and f"author  = {{{{{author}}}}}" in PAGE
    assert PAGE.count(title) == 2 and CITED["license"] == "BSD-3-Clause"


@pytest.fixture
def colophon(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "book/_ext"))
    return importlib.import_module("attnbook_site.colophon")


def app(out: Path, address: str) -> Any:
    config = SimpleNamespace(
        html_baseurl=address, html_title="The book", html_theme_options={"repository_url": ""}
    )
    env = SimpleNamespace(found_docs={"book/index", "book/cite"})
    return SimpleNamespace(outdir=str(out), config=config, env=env)


@pytest.mark.parametrize("address", ["", "https://me.github.io/book/"])
def test_a_site_with_an_address_names_its_pages(
    colophon: Any, tmp_path: Path, address: str
) -> None:
    (tmp_path / "_static").mkdir()
    (tmp_path / "sitemap.xml").write_text("of an older build")
    made = app(tmp_path, address)
    colophon.finish(made)
    lost = (tmp_path / "404.html").read_text("utf-8")
    assert f'href="{address or "/"}"' in lost and "src=" not in lost  # served at any depth
    sitemap = tmp_path / "sitemap.xml"
    assert sitemap.exists() == bool(address)
    if address:
        assert f"<loc>{address}book/cite.html</loc>" in sitemap.read_text("utf-8")
        with Image.open(tmp_path / "_static/social.png") as picture:
            assert picture.size == (social.WIDTH, social.HIGH)
    context = {
        "pathto": lambda name: f"../{name}.html",
        "title": '<span class="n">1. </span>A &quot;page&quot; &amp; more',
    }
    colophon.on_page(made, "book/index", "page.html", context, None)
    assert context["colophon"]["version"] == CITED["version"]
    assert context["colophon"]["cite"] == "../book/cite.html"
    assert 'content="1. A &quot;page&quot; &amp; more"' in context["metatags"]
    assert ("og:image" in context["metatags"]) == bool(address)


def test_the_picture_shows_what_chapter_2_learnt() -> None:
    german, english, weights = social.learnt()
    assert abs(weights.sum(1) - 1).max() < 1e-3
    most = {german[i]: english[j] for i, j in enumerate(weights.argmax(1))}
    assert most["zwei"] == "two" and most["vierzig"] == "forty"
    drawn = social.card()
    widths = [float(width) for width in re.findall(r'stroke-width="([\d.]+)"', drawn)]
    assert len(widths) == (weights > social.LEAST).sum()
    assert max(widths) == pytest.approx(12 * weights.max(), abs=0.01)
    assert all(f">{word}</text>" in drawn for word in [*german, *english])
    assert CITED["title"].split(": ")[0] in drawn


def test_every_page_of_the_site_has_it(site: Path) -> None:
    pages = list((site / "book").rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text("utf-8")
        assert 'class="colophon"' in text and "How to cite</a>" in text, page.name
        assert "BSD 3-Clause" in text and 'name="description"' in text, page.name
        assert ("og:image" in text) == (site / "sitemap.xml").exists(), page.name
    assert (site / "404.html").is_file()


@pytest.mark.parametrize("source", ["", "https://github.com/me/book"])
def test_each_page_names_its_source_where_there_is_one(
    colophon: Any, tmp_path: Path, source: str
) -> None:
    made = app(tmp_path, "")
    made.config.html_theme_options["repository_url"] = source
    context = {"pathto": lambda name: f"{name}.html", "title": "A page"}
    colophon.on_page(made, "page", "", context, None)
    template = (ROOT / "book/_ext/templates/colophon.html").read_text("utf-8")
    said = Template(template).render(context)
    assert ("Source</a>" in said) == bool(source) and f'href="{source}' in said
    assert "How to cite" in said and "CC BY 4.0" in said
