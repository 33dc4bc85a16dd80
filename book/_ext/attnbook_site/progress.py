"""The progress that a reader's browser stores: chapter pages read to the end, answered questions.

`progress.js` marks both in the table of contents. It gets the pages and their quizzes: if the
questions of a quiz have changed, the quiz forgets its answers, and the mark goes, too.
"""

import json
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from attnbook import bundles

from . import stored
from .widgets import script_json

SCRIPT = "progress.js"
CHAPTER = re.compile(r"(.*/)?\d\d_\w+")


def content(questions: list[object]) -> int:
    """The hash by which a quiz identifies its questions: `hash(JSON.stringify(questions))`."""
    value = 0x811C9DC5
    for byte in json.dumps(questions, ensure_ascii=False, separators=(",", ":")).encode():
        value = (value ^ byte) * 0x01000193 % 2**32
    return value


def asked(path: Path) -> dict[str, tuple[int, int]]:
    """The quizzes of a page, by name: how many questions, and their hash."""
    views = stored.views(path) if path.suffix == ".ipynb" else []
    states = [view.record["state"] for view in views if view.class_name == "Quiz"]
    return {each["name"]: (len(each["questions"]), content(each["questions"])) for each in states}


def write(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Write the script before the pages, so that its URL carries a checksum."""
    names = sorted(filter(CHAPTER.fullmatch, env.found_docs))
    if app.builder.format != "html" or not names:
        return
    pages = {name: asked(Path(env.doc2path(name))) for name in names}
    script = (bundles.FOLDER / "site" / SCRIPT).read_text("utf-8")
    file = Path(app.outdir, "_static", SCRIPT)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"globalThis.attnbookPages={script_json(pages)};\n{script}", "utf-8")
    app.add_js_file(SCRIPT)


def setup(app: Sphinx) -> None:
    app.connect("env-before-read-docs", write)
