"""Puts a widget's JavaScript and CSS together.

Standard library only and no import of the package: the site's build loads this file by its path.
"""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SHARED = FOLDER / "shared"
IMPORT = re.compile(r'^import\s+\{[^}]*\}\s+from\s+"(\.[\w./]+)";\n', re.MULTILINE)
TEXT = re.compile(r'^import (\w+) from "(\.[\w./]+)" with \{ type: "text" \};\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(async )?function|const|let)", re.MULTILINE)
SHEET = re.compile(r'^@import "([\w./]+)";\n', re.MULTILINE)
DARK = re.compile(r'^html\[data-theme="dark"\][^{]*(\{[^}]*\}\n)', re.MULTILINE)
COMMENT = re.compile(r"^ *//.*\n", re.MULTILINE)  # of whole lines: a sixth of what a page loads
NOTE = re.compile(r"/\*.*?\*/\n?", re.DOTALL)  # the same in a stylesheet
INDENT = re.compile(r"^ +", re.MULTILINE)
GAP = re.compile(r"\s*([{};])\s*")  # in a stylesheet, whose texts hold none of these signs
WORD = re.compile(r"\w+")
FUNCTION = re.compile(  # from the left edge to the next line that begins there with a word
    r"^(?:export )?(?:(?:async )?function (\w+)|const (\w+) = (?:async )?\([^()]*\) =>)"
    r".*?(?=^\w|\Z)",
    re.MULTILINE | re.DOTALL,
)


def classes() -> list[str]:
    """Names of the widget classes that have sources: `["AttentionHeatmap", ...]`."""
    stems = sorted(p.parent.name for p in FOLDER.glob("*/widget.js"))
    return ["".join(word.capitalize() for word in stem.split("_")) for stem in stems]


def stem(name: str) -> str:
    """The folder of widget class `name`: `attention_heatmap`, with widget.py, .js and .css."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def load(name: str, leave: str = "") -> tuple[str, str]:
    """ES module and stylesheet of widget class `name`, each as one text; a worker of the file name
    `leave` stays out."""
    modules: list[Path] = []
    esm = _lean("\n".join(_with_imports(FOLDER / stem(name) / "widget.js", modules, leave)))
    styles = [SHARED / "base.css", *(file.with_suffix(".css") for file in modules)]
    return esm, tight("".join(_style(sheet) for sheet in styles if sheet.is_file()))


def tight(css: str) -> str:
    """A stylesheet without the spaces around braces and semicolons."""
    return GAP.sub(r"\1", css).replace(";}", "}")


def still() -> str:
    """The stylesheet of a drawing by itself, which in a file of its own knows no page's theme."""
    colours, looks = (_style(SHARED / name) for name in ("colours.css", "picture.css"))
    dark = DARK.search(colours)
    assert dark, "colours.css has no dark theme"
    return f"{colours}{looks}@media (prefers-color-scheme: dark) {{\nsvg:root {dark[1]}}}\n"


def stored(name: str) -> dict[str, str]:
    """What a notebook stores of widget class `name` with each state: where it is, its sources.

    The model's worker stays out, as its weights do: a kernel that sends them brings it along.
    """
    esm, css = load(name, leave="worker.js")
    return {"_anywidget_id": f"attnbook.web.{stem(name)}.{name}", "_esm": esm, "_css": css}


def constant(file: str, name: str) -> list[Any]:
    """The list that a module writes down as `const NAME = [...];`, so that it stands once."""
    pattern = re.compile(rf"^const {name} = (\[.*?\]);", re.MULTILINE | re.DOTALL)
    found = pattern.search((FOLDER / file).read_text("utf8"))
    assert found, f"{file} writes no list {name}"
    return json.loads(found[1])


def _style(sheet: Path) -> str:
    """A stylesheet with those that it imports, without comments and what sets lines in."""
    text = INDENT.sub("", NOTE.sub("", sheet.read_text("utf8")))
    return SHEET.sub(lambda found: _style(sheet.parent / found[1]), text)


@cache  # several widgets bring the same worker
def _lean(source: str) -> str:
    """The source without what sets lines in, and without the functions of its modules of which
    nothing else in it speaks.

    Raises:
        ValueError: if a text in backticks has several lines, whose spaces are its own, or code that
            begins with no word follows a function that nothing needs, and would go with it.
    """
    if torn := [line for line in source.splitlines() if line.count("`") % 2]:
        raise ValueError(f"a text in backticks must end on its line: {torn[0]}")
    while idle := _unused(source):
        for text in idle:
            if other := [line for line in text.splitlines()[1:] if line and line[0] not in " })"]:
                raise ValueError(
                    f"code after an unused function must begin with a word: {other[0]}"
                )
            source = source.replace(text, "")
    return INDENT.sub("", source)


def _unused(source: str) -> list[str]:
    """The functions at the left edge whose names stand nowhere else."""
    times = Counter(WORD.findall(source))
    functions = FUNCTION.finditer(source)
    return [found[0] for found in functions if times[found[1] or found[2]] == 1]


def _with_imports(file: Path, seen: list[Path], leave: str = "") -> list[str]:
    """The modules that `file` imports, each once, then its own text, with no import line left.

    A relative import inside a module that travels as text fails in the browser. Comments stay
    at home. A module imported as text, for a worker, becomes a string with all that it imports, and
    exports nothing: a page opened as a file may start a classic script only.
    """
    seen.append(file)
    text = file.read_text("utf8")
    modules: list[str] = []
    for name in IMPORT.findall(text):
        if (other := (file.parent / name).resolve()) not in seen:
            modules += _with_imports(other, seen, leave)

    def quoted(found: re.Match[str]) -> str:
        worker = (file.parent / found[2]).resolve()
        whole = "" if worker.name == leave else _lean("\n".join(_with_imports(worker, [])))
        return f"const {found[1]} = {json.dumps(EXPORT.sub('', whole), ensure_ascii=False)};\n"

    return [*modules, TEXT.sub(quoted, COMMENT.sub("", IMPORT.sub("", text)))]
