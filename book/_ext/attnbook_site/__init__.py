"""The site's extension of Jupyter Book: widgets without a kernel, no requests off the site.

One module for each concern; each has its own `setup`:

- `theme`: templates, page options, removed parts of the theme
- `colophon`: authors, licence and version below each page; 404, sitemap, link previews
- `api`, `package`: the package's pages, read from its files; links from chapters' code to them
- `claims`: links between the list of claims and the cells that show them
- `repository`: the "report a problem" link, from the configured address
- `search`: words with a hyphen are found as one word
- `door`: the package's wheel, the first cells that install it, launch buttons
- `math`: KaTeX at build time, with its stylesheet and fonts from npm
- `widgets`: stored widgets on the pages, one shared script for each class, the `{widget}` directive
- `progress`: pages read and questions answered, marked in the table of contents
- `weights`: models that run in the page, each a script that is fetched on demand
- `published`: a published language model in parts, for widgets that run it
- `bertviz`: bertviz's views, drawn when scrolled to, with nothing from a CDN
- `fonts`: icons, mathematics and text, cut down to what the pages show
- `styles`: one style sheet for all pages, without unused rules
- `figures`: a warning for every picture without alternative text
- `translation`: pages in another language, built separately beside the English site
"""

import hashlib

from sphinx.application import Sphinx
from sphinx.config import Config

from .places import EXT

# isort: split
from attnbook import bundles

from . import (
    api,
    bertviz,
    claims,
    colophon,
    door,
    figures,
    fonts,
    math,
    progress,
    published,
    repository,
    search,
    styles,
    theme,
    translation,
    weights,
    widgets,
)

PARTS = (
    theme,
    translation,
    repository,
    colophon,
    api,
    claims,
    search,
    door,
    math,
    widgets,
    progress,
    weights,
    published,
    bertviz,
    figures,
    fonts,
)
# After all pages are written, in this order: `fonts` cuts all fonts and the theme's sheet, and
# `styles` joins the sheets.
FINISH = (
    door.finish,
    math.finish,
    theme.finish,
    translation.finish,
    colophon.finish,
    fonts.finish,
    styles.finish,
)


def note_sources(app: Sphinx, config: Config) -> None:
    """Rebuild every page when this extension or a widget has changed."""
    digest = hashlib.sha256()
    for folder in (EXT, bundles.FOLDER):
        for file in sorted(folder.rglob("*.*")):
            if file.suffix in (".py", ".js", ".cjs", ".css", ".html"):
                digest.update(file.read_bytes())
    config.attnbook_sources = digest.hexdigest()


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        for step in FINISH:
            step(app)


def setup(app: Sphinx) -> dict[str, object]:
    app.add_config_value("attnbook_sources", "", "env")
    app.connect("config-inited", note_sources)
    for part in PARTS:
        part.setup(app)
    app.connect("build-finished", finish, priority=900)  # after other extensions
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
