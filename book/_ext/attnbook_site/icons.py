"""The theme's icon fonts, cut down to the icons that the site uses (156 kB become a few).

Icons come into a page by class name (`fa-rocket`) or by code point in a style sheet; every page,
script and style sheet of the built site is searched, so pages of an earlier build count too.
"""

import logging
import re
from importlib.resources import files
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx

FONTS = "vendor/fontawesome/webfonts"
THEME = files("pydata_sphinx_theme") / "theme/pydata_sphinx_theme/static"

# .fa-rocket{--fa:"\f135"} names an icon; "\f107" anywhere else uses one.
NAMED = re.compile(r"((?:\.fa-[\w-]+,?)+)\{--fa:\"\\([0-9a-f]+)\"")
CODE = re.compile(r"\\(f[0-9a-f]{3})\b")
# It reports each table at a level that Sphinx prints.
logging.getLogger("fontTools").setLevel(logging.WARNING)

CLASS = re.compile(r"\bfa-[a-z][\w-]*")


def used_icons(static: Path, pages: list[Path]) -> set[int]:
    """Code points of the icons that pages, scripts and style sheets mention."""
    css = (static / "styles/pydata-sphinx-theme.css").read_text(encoding="utf-8")
    names = {
        name: int(code, 16)
        for group, code in NAMED.findall(css)
        for name in re.findall(r"fa-[\w-]+", group)
    }
    sources = [*static.rglob("*.css"), *static.glob("scripts/*.js"), *pages]
    mentioned: set[int] = set()
    for source in sources:
        text = source.read_text(encoding="utf-8")
        if source.suffix == ".css":
            text = NAMED.sub("", text)
            mentioned |= {int(code, 16) for code in CODE.findall(text)}
        else:
            mentioned |= {names[name] for name in CLASS.findall(text) if name in names}
    return mentioned


def cut(source: Path, target: Path, codes: set[int]) -> None:
    """Write the glyphs for `codes` of the font `source` to `target`, as woff2."""
    options = subset.Options(flavor="woff2", layout_features=[], notdef_outline=True)
    font = TTFont(source, recalcTimestamp=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=codes)
    subsetter.subset(font)
    font.flavor = "woff2"
    font.save(target)


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.format != "html":
        return
    out = Path(app.outdir)
    static = out / "_static"
    pages = [page for page in out.rglob("*.html") if static not in page.parents]
    codes = used_icons(static, pages)
    for target in (static / FONTS).glob("*.woff2"):
        cut(Path(str(THEME / FONTS / target.name)), target, codes)
    for old in (static / FONTS).glob("*.ttf"):  # for browsers that cannot run the site anyway
        old.unlink()


def start(app: Sphinx) -> None:
    """Make way for the whole fonts: Sphinx reports each file that it writes over."""
    for old in Path(app.outdir, "_static", FONTS).glob("*"):
        old.unlink()


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", start)
    app.connect("build-finished", finish, priority=800)
