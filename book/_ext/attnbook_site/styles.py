"""One style sheet for all pages, in place of a dozen and what they import.

A browser shows nothing before the last one has come, and widgets wait for that too. The name
follows from the content, so a page of an earlier build keeps the sheet it was made for.
"""

import hashlib
import re
from os.path import relpath
from pathlib import Path

from sphinx.application import Sphinx

LINK = re.compile(r'<link(?=[^>]* rel="stylesheet")[^>]* href="([^"?]+)[^"]*"[^>]*>\s*')
IMPORT = re.compile(r'@import "([^"]+)";')
ADDRESS = re.compile(r"""url\((["']?)(?!["']|data:|https?:|[/#])([^)]*?)\1\)""")


def text_of(sheet: Path, folder: Path) -> str:
    """The sheet with what it imports, its addresses relative to `folder`."""
    text = sheet.read_text(encoding="utf-8").replace('@charset "UTF-8";', "")
    text = ADDRESS.sub(lambda found: f"url({relpath(sheet.parent / found[2], folder)})", text)
    return IMPORT.sub(lambda found: text_of(sheet.parent / found[1], folder), text)


def finish(app: Sphinx) -> None:
    static = Path(app.outdir, "_static")
    used = set()
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        sheets = LINK.findall(text)
        if static in page.parents or not sheets:
            continue
        if len(sheets) > 1:
            paths = [(page.parent / sheet).resolve() for sheet in sheets]
            whole = "".join(text_of(path, static.resolve()) for path in paths).encode()
            one = static / f"styles-{hashlib.sha256(whole).hexdigest()[:8]}.css"
            one.write_bytes(whole)
            sheets = [relpath(one, page.parent)]
            link = f'<link rel="stylesheet" href="{sheets[0]}">\n'
            text = LINK.sub("", LINK.sub("\0", text, count=1)).replace("\0", link, 1)
            page.write_text(text, encoding="utf-8")
        used.add(Path(sheets[0]).name)
    for old in static.glob("styles-*.css"):
        if old.name not in used:
            old.unlink()
