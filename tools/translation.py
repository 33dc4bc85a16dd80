"""Build the translated pages of a language beside the English site, which must be built already.

`python -m tools.translation de` puts them into _build/html/de and links both ways; `--renew` only
updates the language's catalogues to the pages' current text.

A page is translated if it has a catalogue, such as `locale/de/LC_MESSAGES/book/02_attention.po`.
Words outside of prose are in `locale/de/widgets.json`.
"""

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tools.notebooks import ROOT
from tools.site import BUILD

LOCALE = ROOT / "locale"
BUILT = ROOT / "_build"
NAMES = {"de": "Auf Deutsch"}  # language: text of the link to it
LINE = re.compile(r'<p class="in-language">.*?</p>\n')


def pages(language: str, locale: Path = LOCALE) -> list[str]:
    """The names, without an ending, of the pages that have a catalogue."""
    folder = locale / language / "LC_MESSAGES"
    return sorted(str(file.relative_to(folder).with_suffix("")) for file in folder.rglob("*.po"))


def configure(language: str, names: list[str], site: Path, folder: Path) -> list[str]:
    """Write a configuration for these pages only; returns the options that select it."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    config["html"]["favicon"] = str(ROOT / config["html"]["favicon"])
    extensions = config["sphinx"]["local_extensions"]
    for name, path in extensions.items():
        extensions[name] = str(ROOT / path)
    config["sphinx"]["config"] |= {
        "attnbook_translated": True,
        "gettext_compact": False,
        "gettext_location": False,
        "include_patterns": [f"{name}.ipynb" for name in names],
        # Pages that are not translated are looked up in the English site, two folders up from a
        # page: MyST writes this address unchanged.
        "intersphinx_mapping": {"english": ["../..", str(site / "objects.inv")]},
        "language": language,
        "locale_dirs": [str(LOCALE)],
    }
    toc: dict[str, Any] = {"format": "jb-book", "root": names[0]}
    if names[1:]:
        toc["chapters"] = [{"file": name} for name in names[1:]]
    folder.mkdir(parents=True, exist_ok=True)
    for name, written in (("_config.yml", config), ("_toc.yml", toc)):
        (folder / name).write_text(yaml.safe_dump(written), "utf-8")
    options = {"--config": folder / "_config.yml", "--toc": folder / "_toc.yml"}
    options["--path-output"] = folder
    return [str(part) for option in options.items() for part in option]


def run(command: list[str], address: str = "") -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "BOOK_SITE_URL": address}
    if subprocess.run(command, cwd=ROOT, env=environment).returncode:
        sys.exit("The translation has problems: see the warnings above.")


def build(language: str, site: Path, folder: Path) -> Path:
    """Build the translated pages in `folder`, linked to the English `site`; returns their site."""
    names = pages(language)
    shutil.rmtree(folder, ignore_errors=True)  # Sphinx would not read an unchanged page again
    address = os.environ.get("BOOK_SITE_URL", "").strip().rstrip("/")
    command = [*BUILD, *configure(language, names, site, folder), str(ROOT)]
    run(command, address and f"{address}/{language}")
    return folder / "_build/html"


def messages(names: list[str], site: Path, folder: Path) -> Path:
    """Extract the text of these pages into templates of catalogues; returns their folder."""
    shutil.rmtree(folder, ignore_errors=True)
    options = configure("en", names, site, folder)
    run([*BUILD, *options, "--builder", "custom", "--custom-builder", "gettext", str(ROOT)])
    return folder / "_build/gettext"


def renew(language: str, site: Path) -> None:
    """Update the catalogues to the pages' current text; new text has no translation yet."""
    found = messages(pages(language), site, BUILT / "messages")
    run(["sphinx-intl", "update", "-p", str(found), "-l", language, "-d", str(LOCALE), "-w", "0"])


def link(page: Path, target: str, language: str, words: str) -> None:
    """Put a link to the same page in another language below the title."""
    text = LINE.sub("", page.read_text("utf-8"))
    line = f'<a href="{html.escape(target)}" hreflang="{language}" lang="{language}">{words}</a>'
    line = f'</h1>\n<p class="in-language">{line}</p>\n'
    page.write_text(text.replace("</h1>\n", line, 1), "utf-8")


def join(language: str, built: Path, site: Path) -> None:
    """Copy the translated pages into the English site, and link each with its original."""
    shutil.rmtree(site / language, ignore_errors=True)
    shutil.copytree(built, site / language)
    for name in pages(language):
        up = "../" * (name.count("/") + 1)
        link(site / f"{name}.html", f"{up[3:]}{language}/{name}.html", language, NAMES[language])
        link(site / language / f"{name}.html", f"{up}{name}.html", "en", "In English")


def main() -> None:
    language, *options = sys.argv[1:]
    site = BUILT / "html"
    if "--renew" in options:
        return renew(language, site)
    join(language, build(language, site, BUILT / language), site)
    print(f"Open {(site / language).relative_to(ROOT)}/index.html")


if __name__ == "__main__":
    main()
