"""`make slides`: decks beside the built site, in _build/html/slides; `make slides CHAPTER=05` one.

A deck is made of a story's page as it was built, so that math, drawings and widgets are those of
the site, and work from a file. A section begins with its heading and the map; then each picture,
widget, formula, list and piece of shown code has a slide; prose goes into the speaker's notes (S).
"""

import argparse
import pathlib
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from bs4 import BeautifulSoup, Tag

from attnbook import bundles
from tools import notebooks
from tools.notebooks import ROOT

HTML = ROOT / "_build" / "html"
HERE = pathlib.Path(__file__).parent
REVEAL = ROOT / "node_modules" / "reveal.js" / "dist"
FILES = ("reset.css", "reveal.css", "reveal.js", "plugin/notes.js")
ALIVE = re.compile(r"_static/(widgets/|static-widgets|bertviz-views|vendor/)")
SHOWN = ("ul", "ol", "table", "figure", "dl")
PAGE = """<!doctype html>
<html lang="en" data-theme="light" data-mode="light">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: slides</title>
<link rel="icon" href="../_static/favicon.svg">
{head}
<link rel="stylesheet" href="reveal/reveal.css">
<link rel="stylesheet" href="reveal/deck.css">
</head>
<body>
{states}
<div class="reveal"><div class="slides">
{slides}
</div></div>
<a class="deck-home" href="../book/{name}.html">the chapter</a>
<script src="reveal/reveal.js"></script>
<script src="reveal/notes.js"></script>
<script src="reveal/deck.js"></script>
</body>
</html>
"""


@dataclass
class Slide:
    """A slide: its heading, what it shows, and what the speaker may say."""

    title: str
    body: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    opening: bool = False

    def html(self) -> str:
        kind = "deck opening" if self.opening else "deck"
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        aside = f'<aside class="notes">{notes}</aside>' if notes else ""
        body = "\n".join(self.body)
        return (
            f'<section class="{kind}"><h2>{escape(self.title)}</h2>'
            f'<div class="deck-body">{body}</div>{aside}</section>'
        )


def kinds(tag: Tag) -> set[str]:
    """The classes of an element."""
    return set(tag.get_attribute_list("class")) - {None}


def text(tag: Tag) -> str:
    """The words of an element, a formula as its source."""
    copy = BeautifulSoup(str(tag), "html.parser")
    for formula in copy.select(".katex"):
        source = formula.find("annotation")
        formula.replace_with(source.get_text() if source else "")
    for extra in copy.select(".headerlink, script, style, noscript"):
        extra.decompose()
    return " ".join(copy.get_text().split())


def slides(article: Tag) -> list[Slide]:
    """The slides of a page's article."""
    found = list[Slide]()
    top = article.find("section")
    assert isinstance(top, Tag), "a page has a section"
    _section(top, found)
    return found


def _section(section: Tag, found: list[Slide]) -> None:
    """Add the slides of a section; a question stands above what answers it, and a line above the
    list that it begins."""
    question = ""
    for child in section.find_all(True, recursive=False):
        after = child.find_next_sibling()
        if child.name == "section":
            _section(child, found)
        elif child.name in ("h1", "h2", "h3"):
            found.append(Slide(text(child), opening=True))
        elif child.name == "p":
            found[-1].notes.append(text(child))
            if len(found) == 1 and not found[0].body:  # the question of the chapter
                found[0].body.append(str(child))
            elif text(child).endswith("?") or (after and after.name in ("ul", "ol")):
                question = str(child)
        elif "solution" in kinds(child):
            found[-1].notes.append(text(child))
        elif body := list(_shown(child)):
            opens = found[-1].opening and not found[-1].body and _is_map(child)
            if not opens:
                found.append(Slide(found[-1].title))
            found[-1].body += [question, *body] if question and not opens else body
            question = question if opens else ""
        elif child.name == "div" and "cell" not in kinds(child):
            found[-1].notes.append(text(child))


def _is_map(child: Tag) -> bool:
    """Whether a section begins with this picture, which is then the map of the machine."""
    before = child.find_previous_sibling()
    begins = before is None or before.name in ("h2", "h3")
    return begins and "cell" in kinds(child) and not child.select_one(":scope > .cell_input")


def _shown(child: Tag) -> Iterator[str]:
    """What of a block is on a slide: shown code, outputs, lists, formulas, exercises."""
    if "cell" in kinds(child):
        for part in child.find_all("div", recursive=False):
            if {"cell_input", "cell_output"} & kinds(part):
                yield str(part)
    elif child.name in SHOWN or {"math", "exercise", "admonition", "table"} & kinds(child):
        for inner in child.find_all("section"):
            inner.name = "div"  # which is no slide
        if "dropdown" in kinds(child):  # opened by going on
            child.name, child["class"] = "details", "deck-answer"
            if title := child.select_one(".admonition-title"):
                title.name = "summary"
        yield str(child)
    elif child.select_one("table, img, svg:not(.katex svg), .attnbook-widget"):
        yield str(child)


def _settle(soup: BeautifulSoup, name: str) -> None:
    """Links that lead from the deck's folder, and no ids twice."""
    for link in soup.select(".bd-article a[href]"):
        href = str(link["href"])
        if href.startswith("#"):
            link["href"] = f"../book/{name}.html{href}"
        elif not re.match(r"[a-z]+:|\.\./|/", href):
            link["href"] = f"../book/{href}"
    for extra in soup.select(".headerlink, .bd-article button.copybtn"):
        extra.decompose()


def deck(page: str, name: str) -> str:
    """The deck of a built page, as a page of HTML in a folder beside `book`."""
    soup = BeautifulSoup(page, "html.parser")
    _settle(soup, name)
    article = soup.select_one("article.bd-article")
    assert article, f"{name} has no article"
    head = [
        str(tag)
        for tag in soup.select("head link[rel=stylesheet], head script[src]")
        if tag.name == "link" or ALIVE.search(str(tag["src"]))
    ]
    states = soup.select(f'script[type="{bundles.STATE}"]')
    for state in states:
        state.extract()
    found = slides(article)
    return PAGE.format(
        title=escape(found[0].title),
        name=name,
        head="\n".join(head),
        states="\n".join(map(str, states)),
        slides="\n".join(slide.html() for slide in found),
    )


def index(decks: dict[str, str]) -> str:
    """A page that lists the decks."""
    rows = "".join(
        f'<li><a href="{name}.html">{escape(title)}</a>' for name, title in decks.items()
    )
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Slides</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<style>:root { color-scheme: light dark } body { font: 18px/1.6 system-ui, sans-serif;"
        " max-width: 40em; margin: 2em auto; padding: 0 1em }</style><h1>Slides</h1><p>Right arrow"
        " or space goes on, also inside of a walk; S opens the notes, O an overview, F the whole"
        f" screen.<ul>{rows}</ul></html>\n"
    )


def make(html: pathlib.Path, stories: list[pathlib.Path]) -> dict[str, str]:
    """Write the decks of stories into a built site; returns their titles by name."""
    out, titles = html / "slides", dict[str, str]()
    if not REVEAL.is_dir():
        sys.exit("reveal.js is missing: run `make slides`, or `npm ci` at the repository's root")
    (out / "reveal").mkdir(parents=True, exist_ok=True)
    for file in [*(REVEAL / name for name in FILES), HERE / "deck.css", HERE / "deck.js"]:
        shutil.copy(file, out / "reveal" / file.name)
    for story in stories:
        page = html / "book" / f"{story.stem}.html"
        if not page.is_file():
            sys.exit(f"{page} is missing: make book")
        made = deck(page.read_text("utf-8"), story.stem)
        (out / f"{story.stem}.html").write_text(made, "utf-8")
        titles[story.stem] = made.partition("<title>")[2].partition(": slides</title>")[0]
    return titles


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.slides", description=__doc__)
    parser.add_argument("chapter", nargs="?")
    asked = parser.parse_args()
    stories = [path for path in notebooks.every() if notebooks.is_story(path)]
    if asked.chapter:
        stories = [path for path in stories if path.name.startswith(f"{asked.chapter}_")]
    if not stories:
        sys.exit(f"no story book/{asked.chapter}_*.ipynb")
    titles = make(HTML, stories)
    (HTML / "slides" / "index.html").write_text(index(titles), "utf-8")
    print(f"{len(titles)} decks: {HTML / 'slides' / 'index.html'}")


if __name__ == "__main__":
    main()
