"""Pages in another language, built separately beside the English site by `tools/translation.py`.

Prose comes from the catalogues of sphinx-intl. All other words of a page, those of drawings, stored
widgets, alternative texts and the theme, are looked up in `locale/LANGUAGE/widgets.json` when the
page is written. What a widget writes later is looked up in the browser by `translated.js`, which
only such a page has. In an entry, `{name}` stands for any text, which is looked up in turn, and
`{n}`, with a single letter, for a number.
"""

import html
import json
import posixpath
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms.post_transforms import SphinxPostTransform

from attnbook.bundles import STATE

from .places import BOOK, EXT

LOCALE = BOOK.parent / "locale"
SCRIPT = "translated.js"
# Traits that a widget's code reads, and those with the words that a model reads and writes.
NOT_WORDS = {"name", "weights", "text", "key_tokens", "query_tokens", "parts"}
ENTRY = re.compile(r"\{(\w+)\}")
SENTENCE = re.compile(r"(?<=[.?!…]) (?=\S)")
HEARD = "alt|title|content|placeholder|aria-label|data-bs-title|data-tooltip"
ATTRIBUTE = re.compile(rf"\b({HEARD})=([\"'])(.*?)\2", re.DOTALL)
# Code and tokens stay as they are.
PIECES = re.compile(r"(<(pre|code|script|style|bdi)\b.*?</\2>|<[^>]*>)", re.DOTALL)
STORED = re.compile(rf'(<script type="{re.escape(STATE)}">)(.*?)(</script>)', re.DOTALL)
SOURCES = "## Bibliography\n\n```{bibliography}\n```\n"


def read(language: str) -> dict[str, dict[str, str]]:
    """A language's entries for words outside of prose."""
    return json.loads((LOCALE / language / "widgets.json").read_text("utf-8"))


def pattern(said: str) -> re.Pattern[str]:
    """The regular expression of an entry with placeholders."""
    parts = [
        (r"([\d.,]+)" if len(part) == 1 else "(.+?)") if n % 2 else re.escape(part)
        for n, part in enumerate(ENTRY.split(said))
    ]
    return re.compile("".join(parts), re.DOTALL)


class Words:
    """Looks texts up as a whole, exactly or by an entry with placeholders, or by sentence."""

    def __init__(self, entries: dict[str, str]) -> None:
        self.exact = entries
        self.open = [(pattern(said), said) for said in entries if ENTRY.search(said)]

    def entry(self, text: str) -> tuple[str, tuple[str, ...]] | None:
        """The entry that fits a text, and the values of its placeholders."""
        if text in self.exact:
            return text, ()
        fits = ((said, form.fullmatch(text)) for form, said in self.open)
        return next(((said, found.groups()) for said, found in fits if found), None)

    def find(self, text: str) -> str | None:
        """The translation of a text; None if there is none."""
        if (found := self.entry(text)) is None:
            return None
        values = dict(zip(ENTRY.findall(found[0]), map(self, found[1]), strict=False))
        return ENTRY.sub(lambda place: values[place[1]], self.exact[found[0]])

    def __call__(self, text: str) -> str:
        core = text.strip()
        if not core:
            return text
        found = self.find(re.sub(r"\s*\n\s*", " ", core))
        if found is None and len(sentences := SENTENCE.split(core)) > 1:
            found = " ".join(self.find(each) or each for each in sentences)
        return text.replace(core, found, 1) if found else text

    def state(self, value: Any) -> Any:
        """The state of widgets, with all words that a reader sees translated."""
        if isinstance(value, dict):
            return {k: v if k in NOT_WORDS else self.state(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.state(each) for each in value]
        if not isinstance(value, str):
            return value
        return self.markup(value) if value.startswith("<svg") else self(value)

    def markup(self, text: str) -> str:
        """Markup, with its texts and the attributes that a reader sees or hears translated."""

        def escaped(words: str) -> str:
            found = self(html.unescape(words))
            return words if found == html.unescape(words) else html.escape(found)

        def attribute(found: re.Match[str]) -> str:
            name, quote, words = found.groups()
            return f"{name}={quote}{escaped(words)}{quote}"

        def piece(found: re.Match[str]) -> str:
            return found[0] if found[2] else ATTRIBUTE.sub(attribute, found[0])

        parts, last = [], 0
        for tag in PIECES.finditer(text):
            parts += [escaped(text[last : tag.start()]), piece(tag)]
            last = tag.end()
        return "".join([*parts, escaped(text[last:])])

    def page(self, text: str) -> str:
        """A whole page of the site, translated."""

        def stored(found: re.Match[str]) -> str:
            models = json.loads(found[2])
            for record in models["state"].values():
                record["state"] = self.state(record["state"])
            text = json.dumps(models, separators=(",", ":"))
            return found[1] + text.replace("<", "\\u003c") + found[3]

        return STORED.sub(stored, self.markup(text))


class EnglishPages(SphinxPostTransform):
    """Makes links to untranslated pages lead to the English ones, by their full names."""

    default_priority = 1  # before MyST resolves them

    def run(self, **kwargs: object) -> None:
        if not self.config.attnbook_translated:
            return
        english = getattr(self.env, "intersphinx_inventory", {}).get("std:doc", {})
        for node in self.document.findall(pending_xref):
            here = posixpath.dirname(node.get("refdoc", ""))
            name = posixpath.join(here, node["reftarget"])
            if node["reftype"] == "myst" and name in english:
                node["reftarget"] = name


class NoTitles(SphinxPostTransform):
    """Removes tooltips of links to English pages, which name a project although there is none."""

    default_priority = 20  # after MyST has resolved them

    def run(self, **kwargs: object) -> None:
        if not self.config.attnbook_translated:
            return
        for link in self.document.findall(nodes.reference):
            if link.get("reftitle", "").startswith("Project name"):
                del link["reftitle"]


def add_sources(app: Sphinx, docname: str, source: list[str]) -> None:
    """Add a bibliography to the page, since it is built without the book's."""
    if not app.config.attnbook_translated:
        return
    notebook = json.loads(source[0])
    cell = {"cell_type": "markdown", "metadata": {}, "id": "sources", "source": SOURCES}
    notebook["cells"].append(cell)
    source[0] = json.dumps(notebook)


def configure(app: Sphinx, config: Config) -> None:
    if config.attnbook_translated and config.language != "en":
        app.add_js_file(SCRIPT, priority=100)


def write_script(app: Sphinx) -> None:
    """Write the script before the pages, so that its URL carries a checksum."""
    if not app.config.attnbook_translated or app.builder.format != "html":
        return
    words = json.dumps(read(app.config.language)["running"], ensure_ascii=False)
    text = (EXT / SCRIPT).read_text("utf-8")
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    (static / SCRIPT).write_text(f"globalThis.attnbookWords = {words};\n{text}", "utf-8")


def finish(app: Sphinx) -> None:
    if not app.config.attnbook_translated or app.config.language == "en":
        return
    words = Words(read(app.config.language)["page"])
    for page in Path(app.outdir).rglob("*.html"):
        page.write_text(words.page(page.read_text("utf-8")), "utf-8")


def setup(app: Sphinx) -> None:
    app.add_config_value("attnbook_translated", False, "env")
    app.add_post_transform(EnglishPages)
    app.add_post_transform(NoTitles)
    app.connect("source-read", add_sources)
    app.connect("config-inited", configure)
    app.connect("builder-inited", write_script)
