"""Templates, theme options, and the parts of the theme that the book removes."""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from .places import BOOK, EXT

# Scripts and style sheets that other extensions put on every page although no page uses them.
UNUSED = ("thebe", "design-tabs.js")

# Files of the theme that no page fetches: 5 MB.
LEFT_OUT = ("scripts/fontawesome.js", "**/*.js.map", "**/*.css.map", "**/*.LICENSE.txt")

# Scripts that fail in a browser without storage: they get layout.html's `bookStorage` instead.
KEEPING = ("scripts/pydata-sphinx-theme.js", "sphinx_highlight.js", "searchtools.js")
STORAGE = ("localStorage.", "bookStorage.")

# Markup that is not accessible to screen readers and voice control, and its replacement.
MENDED = {
    # myst-nb: the label replaces the visible text, "Show code cell source"
    '<summary aria-label="Toggle hidden content">': "<summary>",
    " code cell source</p>": " the code</p>",
    " code cell output</p>": " the output</p>",
    " code cell content</p>": " the code and its output</p>",
    # docutils: a list whose children are not list items
    'role="doc-biblioentry"': 'role="listitem"',
}

HERO = '<div class="hero '  # only on the first page
TOGGLE = '<summary><span class="toctree-toggle"'

# Names and punctuation need no colour of their own: without a span for each, a chapter's page
# has a quarter fewer elements to lay out.
PLAIN_CODE = re.compile(r'<span class="(?:n|nn|p|w)">([^<]*)</span>')

# Each line of a cell's code becomes an element, so that a line that wraps has a hanging indent.
# Pygments closes its spans at the end of each line.
CODE = re.compile(
    r'(<div class="highlight-i?python3? notranslate"><div class="highlight"><pre>)'
    r"(?:<span></span>)?"
    r"(.*?)(?=</pre>)",
    re.DOTALL,
)

# Where a line that is too long wraps first: after an opening bracket, before a dot.
BREAKS = re.compile(r'(?<=[(\[])(?=[^)\]\s])|(?=<span class="o">\.</span>)')

# Scripts that later ones on the page need immediately; the others are deferred.
AT_ONCE = ("documentation_options", "doctools", "translated", "widgets")

REDIRECT = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={target}">
<title>{title}</title>
<p><a href="{target}">{title}</a></p>
</html>
"""


def configure(app: Sphinx, config: Config) -> None:
    # Set here, since Jupyter Book links every script and style sheet below a `_static` of its own
    # on every page, and since `html_theme_options` in _config.yml replaces all of them.
    config.templates_path.insert(0, str(EXT / "templates"))
    config.html_static_path.append(str(BOOK / "_static"))
    config.html_theme_options.update(
        article_footer_items=["report-problem.html", "colophon.html"],
        footer_content_items=[],  # the colophon replaces them
        back_to_top_button=False,  # it covers a line of text
        navbar_persistent=[],  # otherwise the two themes together show two search boxes
        search_bar_text="Search this book",
        show_toc_level=2,
        toc_title="On this page",
        use_fullscreen_button=False,
    )


def hanging(found: re.Match[str]) -> str:
    lines = []
    for line in found[2].splitlines(keepends=True):
        text = re.sub(r"<[^>]*>", "", line)
        deep = len(text) - len(text.lstrip(" "))
        style = f' style="--deep:{deep}"' if deep else ""
        lines.append(f'<span class="line"{style}>{BREAKS.sub("<wbr>", line)}</span>')
    return found[1] + "".join(lines)


def mend(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    def wanted(asset: Any) -> bool:
        name = str(getattr(asset, "filename", "") or "")
        inline = str(getattr(asset, "attributes", {}).get("body", ""))
        return not any(word in name.lower() or word in inline.lower() for word in UNUSED)

    for kind in ("script_files", "css_files"):
        context[kind][:] = [asset for asset in context[kind] if wanted(asset)]
    for script in context["script_files"]:
        name = str(getattr(script, "filename", "") or "")
        if name and not any(word in name for word in AT_ONCE):
            script.attributes["defer"] = "defer"
    context["body"] = PLAIN_CODE.sub(r"\1", context.get("body") or "")
    context["body"] = CODE.sub(hanging, context["body"])
    for found, better in MENDED.items():
        context["body"] = context["body"].replace(found, better)


def finish(app: Sphinx) -> None:
    out = Path(app.outdir)
    for pattern in LEFT_OUT:
        for file in (out / "_static").glob(pattern):
            file.unlink()
    for file in (out / "_static" / name for name in KEEPING):
        file.write_text(file.read_text("utf-8").replace(*STORAGE), "utf-8")
    # The theme has no colours for "auto", which only its script resolves: light is the fallback.
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fixed = text.replace(' data-theme="auto"', ' data-theme="light"', 1)
        for kept in ("mode", "theme"):
            old, new = (f"dataset.{kept} = {each}" for each in STORAGE)
            fixed = fixed.replace(old, new)
        if HERO in fixed:
            fixed = fixed.replace("<body ", '<body class="with-hero" ', 1)
        # The arrow beside a chapter with a second page has no accessible name.
        fixed = fixed.replace(TOGGLE, TOGGLE.replace("<summary", '<summary aria-label="Its pages"'))
        if fixed != text:
            page.write_text(fixed, encoding="utf-8")
    # The table of contents' own redirect lacks a language and a title.
    root = app.config.root_doc
    if root != "index":
        page = REDIRECT.format(target=f"{root}.html", title=app.config.html_title)
        (out / "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> None:
    # Jupyter Book always loads sphinx-thebe, which puts a configuration and scripts on each page
    # whether it is used or not.
    for listeners in list(app.events.listeners.values()):
        for listener in list(listeners):
            if listener.handler.__module__.startswith("sphinx_thebe"):
                app.disconnect(listener.id)
    app.connect("config-inited", configure, priority=100)
    app.connect("html-page-context", mend, priority=900)
    app.add_css_file("book.css", priority=900)
