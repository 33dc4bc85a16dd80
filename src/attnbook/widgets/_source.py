"""Puts a widget's JavaScript and CSS together.

Standard library only and no import of the package: the site's build loads this file by its path.
"""

import re
from pathlib import Path

FOLDER = Path(__file__).parent
IMPORT = re.compile(r'^import\s+\{[^}]*\}\s+from\s+"\./([\w.]+)";\n', re.MULTILINE)
WIDGET = "\nexport default { render };"


def classes() -> list[str]:
    """Names of the widget classes that have sources: `["AttentionHeatmap", ...]`."""
    stems = sorted(p.stem for p in FOLDER.glob("*.js") if WIDGET in p.read_text("utf8"))
    return ["".join(word.capitalize() for word in stem.split("_")) for stem in stems]


def load(name: str) -> tuple[str, str]:
    """ES module and stylesheet of widget class `name`, each as one text."""
    stem = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    modules: list[str] = []
    esm = "\n".join(_with_imports(f"{stem}.js", modules))
    styles = [FOLDER / "base.css", *((FOLDER / file).with_suffix(".css") for file in modules)]
    css = "\n".join(style.read_text("utf8") for style in styles if style.is_file())
    return esm, css


def _with_imports(file: str, seen: list[str]) -> list[str]:
    """The modules that `file` imports, each once, then its own text, with no import line left.

    A relative import inside a module that travels as text fails in the browser.
    """
    seen.append(file)
    text = (FOLDER / file).read_text("utf8")
    modules = [
        m for name in IMPORT.findall(text) if name not in seen for m in _with_imports(name, seen)
    ]
    return [*modules, IMPORT.sub("", text)]
