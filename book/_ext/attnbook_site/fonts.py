"""Fonts, reduced to the glyphs that the pages use (from 400 kB to a few tens).

- icons: by class name (`fa-rocket`) in a page or script, or by code point in a style sheet
- mathematics and text: by the characters of the pages

The whole built site is searched, so pages of an earlier build count too.
"""

import logging
import re
import shutil
from html import unescape
from importlib.resources import files
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from fontTools.varLib import instancer
from sphinx.application import Sphinx

from .places import NPM, pages

THEME = Path(str(files("pydata_sphinx_theme"))) / "theme/pydata_sphinx_theme/static"

# Each: a folder below _static, the folder its fonts come from, and their names.
ICONS = ("vendor/fontawesome/webfonts", THEME / "vendor/fontawesome/webfonts", "*.woff2")
MATH = ("katex/fonts", NPM / "katex/dist/fonts", "*.woff2")
TEXT = ("fonts", NPM / "@fontsource-variable/source-serif-4/files", "*-latin-wght-*.woff2")

# .fa-rocket:before{content:"\f135"} names an icon; a code point anywhere else uses one.
NAMED = re.compile(r'((?:\.fa-[\w-]+:before,?)+)\{content:"\\([0-9a-f]+)"\}')
CODE = re.compile(r"\\([ef][0-9a-f]{3})\b")
PRIVATE = re.compile("[\ue000-\uf8ff]")  # where icon fonts have their glyphs
CLASS = re.compile(r"\bfa-[a-z][\w-]*")

# The theme's style sheet has a rule for each of 1,800 icons.
STYLE = "styles/pydata-sphinx-theme.css"

# Always kept: a page's script may write any of them.
LATIN = {*range(0x20, 0x7F), *map(ord, "–—‘’“”„…′″")}
WEIGHTS = (400, 700)  # from text to bold, as in book.css; nothing is lighter or heavier

# fontTools reports each table at a level that Sphinx prints.
logging.getLogger("fontTools").setLevel(logging.WARNING)


def used_icons(static: Path, pages: list[Path]) -> set[int]:
    """Code points of the icons that pages, scripts and style sheets mention."""
    css = (THEME / STYLE).read_text(encoding="utf-8")
    names = {
        name: int(code, 16)
        for group, code in NAMED.findall(css)
        for name in re.findall(r"fa-[\w-]+", group)
    }
    used: set[int] = set()
    for style in static.rglob("*.css"):
        text = NAMED.sub("", style.read_text(encoding="utf-8"))
        used |= {int(code, 16) for code in CODE.findall(text)}
        used |= {ord(glyph) for glyph in PRIVATE.findall(text)}
    for source in (*static.glob("scripts/*.js"), *pages):
        words = set(CLASS.findall(source.read_text(encoding="utf-8")))
        used |= {names[word] for word in words if word in names}
    return used


def cut(source: Path, target: Path, codes: set[int], features: list[str]) -> None:
    """Write the glyphs for `codes` of the font `source` to `target`, as woff2, in `WEIGHTS`."""
    subsetter = subset.Subsetter(subset.Options(layout_features=features, notdef_outline=True))
    font = TTFont(source, recalcTimestamp=False)
    subsetter.populate(unicodes=codes)
    subsetter.subset(font)
    if "fvar" in font:
        font = instancer.instantiateVariableFont(font, {"wght": WEIGHTS})
    font.flavor = "woff2"
    font.save(target)


def start(app: Sphinx) -> None:
    """Remove the cut files: Sphinx reports each file that it overwrites."""
    static = Path(app.outdir, "_static")
    for old in (static / STYLE, *(static / ICONS[0]).glob("*")):
        old.unlink(missing_ok=True)


def finish(app: Sphinx) -> None:
    out = Path(app.outdir)
    static = out / "_static"
    found = pages(out)
    shown = {ord(char) for page in found for char in unescape(page.read_text(encoding="utf-8"))}
    icons = used_icons(static, found)

    def if_used(rule: re.Match[str]) -> str:
        return rule[0] if int(rule[2], 16) in icons else ""

    style = (THEME / STYLE).read_text(encoding="utf-8")
    (static / STYLE).write_text(NAMED.sub(if_used, style), encoding="utf-8")
    kinds = (
        (ICONS, icons, []),
        (MATH, shown, []),
        (TEXT, shown | LATIN, ["kern", "liga"]),
    )
    for (folder, origin, pattern), codes, features in kinds:
        for source in origin.glob(pattern):
            target = static / folder / source.name
            target.parent.mkdir(parents=True, exist_ok=True)
            if app.config.attnbook_cut_fonts:
                cut(source, target, codes, features)
            else:
                shutil.copy(source, target)
    for old in (static / ICONS[0]).glob("*.ttf"):  # for browsers too old for the site
        old.unlink()


def setup(app: Sphinx) -> None:
    app.add_config_value("attnbook_cut_fonts", True, "html")  # widget tests leave them whole
    app.connect("builder-inited", start)
