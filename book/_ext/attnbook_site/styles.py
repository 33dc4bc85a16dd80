"""One style sheet for all pages, instead of a dozen and their imports.

A browser shows nothing before the last sheet has arrived, and widgets wait for that, too. Six in
ten rules of the themes are left out: they name a class or an id that no page or script contains.
The file's name is a hash of its content, so a page of an earlier build keeps its sheet.
"""

import hashlib
import re
from functools import lru_cache
from os.path import relpath
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from tinycss2 import parse_rule_list, parse_stylesheet, serialize

from .places import pages

LINK = re.compile(r'<link(?=[^>]* rel="stylesheet")[^>]* href="([^"?]+)[^"]*"[^>]*>\s*')
IMPORT = re.compile(r'@import "([^"]+)";')
WORD = re.compile(r"[\w-]+")
PLAIN = {"skip_comments": True, "skip_whitespace": True}
GROUPS = ("container", "media", "supports")
JOINED = re.compile(r"bs-\w+-\w+")  # names that Bootstrap's script assembles
ADDRESS = re.compile(r"""url\((["']?)(?!["']|data:|https?:|[/#])([^)]*?)\1\)""")


def text_of(sheet: Path, folder: Path) -> str:
    """The sheet with its imports inlined and its URLs relative to `folder`."""
    text = sheet.read_text(encoding="utf-8").replace('@charset "UTF-8";', "")
    text = ADDRESS.sub(lambda found: f"url({relpath(sheet.parent / found[2], folder)})", text)
    return IMPORT.sub(lambda found: text_of(sheet.parent / found[1], folder), text)


def of_use(rules: list[Any], words: set[str]) -> str:
    """The rules that can apply if all classes and ids are among `words`."""
    kept = []
    for rule in rules:
        if rule.type == "qualified-rule":
            selectors: list[list[Any]] = [[]]
            for token in rule.prelude:
                if token == ",":
                    selectors.append([])
                else:
                    selectors[-1].append(token)
            able = [serialize(each).strip() for each in selectors if names(each) <= words]
            kept += [f"{','.join(able)}{{{serialize(rule.content).strip()}}}"] * bool(able)
        elif rule.type == "at-rule" and rule.lower_at_keyword in GROUPS:
            inner = of_use(parse_rule_list(rule.content, **PLAIN), words)
            head = f"@{rule.lower_at_keyword}{serialize(rule.prelude)}"
            kept += [f"{head}{{{inner}}}"] * bool(inner)
        elif rule.type == "at-rule":
            kept.append(rule.serialize())
    return "".join(kept)


def names(selector: list[Any]) -> set[str]:
    """The classes and ids that a selector requires; not those in `:not(...)` and similar."""
    pairs = zip([None, *selector], selector, strict=False)
    asked = {b.value for a, b in pairs if b.type == "hash" or (b.type == "ident" and a == ".")}
    return {name for name in asked if not JOINED.fullmatch(name)}


def finish(app: Sphinx) -> None:
    static = Path(app.outdir, "_static")
    found = pages(Path(app.outdir))
    scripts = [file for file in static.rglob("*.js") if file.parent.name != "weights"]
    texts = [file.read_text(encoding="utf-8") for file in (*found, *scripts)]
    words = {word for text in texts for word in WORD.findall(text)}
    cut = lru_cache(lambda css: of_use(parse_stylesheet(css, **PLAIN), words))
    used = set()
    for page in found:
        text = page.read_text(encoding="utf-8")
        sheets = LINK.findall(text)
        if not sheets:
            continue
        if len(sheets) > 1:
            paths = [(page.parent / sheet).resolve() for sheet in sheets]
            whole = cut("".join(text_of(path, static.resolve()) for path in paths)).encode()
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
