"""The book's translated pages, built once for all tests, and how their words are looked up."""

import importlib
import shutil
import sys
from pathlib import Path
from typing import Any

from filelock import FileLock

from tools import suite, translation
from tools.notebooks import ROOT

sys.path.insert(0, str(ROOT / "book/_ext"))  # where the book is built, Sphinx does so

extension: Any = importlib.import_module("attnbook_site.translation")
Words = extension.Words

ENTRIES = {language: extension.read(language) for language in translation.NAMES}


def stale(built: Path, site: Path) -> bool:
    sources = [file for file in (ROOT / "locale").rglob("*") if file.is_file()]
    sources += [*(ROOT / "book/_ext").rglob("trans*.*"), ROOT / "tools/translation.py"]
    sources += [site / "objects.inv"]
    newest = max(file.stat().st_mtime for file in sources)
    return not built.is_file() or newest > built.stat().st_mtime


def page_of(site: Path, language: str, name: str) -> Path:
    """A translated page, as it is built beside the English site."""
    folder = suite.SITE / language
    built = folder / "_build/html/searchindex.js"
    with FileLock(suite.SITE / f".{language}.lock"):  # parallel workers share it
        if stale(built, site):
            shutil.rmtree(folder, ignore_errors=True)
            translation.build(language, site, folder)
    return built.parent / f"{name}.html"
