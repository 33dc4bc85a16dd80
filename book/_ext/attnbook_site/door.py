"""The door: a notebook that leaves the site installs the code that it was built with.

The repository's notebooks begin with one neutral line, which imports the package. Where the package
is missing, the notebooks that readers download or open by a button install it: from the site, which
carries its own wheel and its sdist, or from the repository at its commit. If neither has an
address, they say where the wheel is: in the menu of the download button on each notebook's page.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]
DIST = "_static/dist"
SITE = re.compile(r"https?://[\w.:/~%-]+")
NEUTRAL = re.compile(r'^import attnbook  # .*"\.(\[[\w,]+\])?"$', re.MULTILINE)

# A chapter that needs an extra asks for one of its packages too: another chapter may have
# installed the package without it.
PROBE = {"": "", "[pretrained]": ", gguf", "[bertviz,pretrained]": ", bertviz, gguf"}
# bertviz requires boto3, which draws nothing and installs an older python-dateutil than the one
# that Jupyter's kernel has loaded; everything else that it needs comes with the package.
ALONE = """
    %pip install -q --no-deps bertviz"""
INSTALLS = """try:
    import attnbook{also}
except ImportError:  # the code that this notebook was built with; is it gone? Download it anew
    %pip install -q "attnbook{extra} @ {source}"{alone}
    import attnbook{also}"""
SAYS = """try:
    import attnbook{also}
except ImportError:
    raise ImportError(
        "get {wheel} by the download button of the page that this notebook is from, "
        'and install it: python -m pip install "{wheel}{extra}"'
    ) from None"""


def neutral(extra: str = "") -> str:
    """The first line of each notebook of the repository; `extra`: a key of PROBE."""
    return f'import attnbook  # missing? In a copy of the book: python -m pip install ".{extra}"'


def handed_out(line: str, source: str | None, wheel: str) -> str:
    """A cell's source with the neutral line replaced, for a notebook that leaves the site."""

    def door(found: re.Match[str]) -> str:
        extra = found[1] or ""
        also, file = PROBE[extra], Path(wheel).name
        if not source:
            return SAYS.format(extra=extra, also=also, wheel=file)
        alone, extra = ALONE * ("bertviz" in extra), extra.replace("bertviz,", "")
        return INSTALLS.format(extra=extra, alone=alone, also=also, source=source)

    return NEUTRAL.sub(door, line, count=1)


def commit(root: Path = ROOT) -> str | None:
    """The current commit, if the tree has no uncommitted changes and a remote branch has it."""

    def git(*said: str) -> str | None:
        try:
            done = subprocess.run(["git", *said], cwd=root, capture_output=True, text=True)
        except OSError:
            return None
        return None if done.returncode else done.stdout.strip()

    if git("rev-parse", "--show-prefix") != "" or git("status", "--porcelain") != "":
        return None
    known = git("branch", "--remotes", "--contains", "HEAD")
    return git("rev-parse", "HEAD") if known else None


def configure(app: Sphinx, config: Config) -> None:
    site = os.environ.get("BOOK_SITE_URL", config.html_baseurl or "").strip().rstrip("/")
    if site and not SITE.fullmatch(site):
        raise ConfigError(
            f"the site's address is {site!r}; it should look like https://you.github.io/book"
        )
    config.html_baseurl = site and f"{site}/"
    wheel, sdist = build(Path(app.outdir) / DIST)
    options = config.html_theme_options
    repository, source = options["repository_url"], None
    if site:
        source = f"{site}/{DIST}/{wheel}"
    elif repository and (at := commit()):
        source = f"git+{repository}@{at}"
    config.attnbook_wheel, config.attnbook_sdist = wheel, sdist
    config.attnbook_source = source or ""
    # The buttons open a branch, which only the publisher of the site keeps in step with the site.
    follows = os.environ.get("BOOK_BUTTONS") == "1" and "https://github.com/" in repository
    if not (source and follows):
        options["launch_buttons"] = {}


def build(folder: Path) -> tuple[str, str]:
    """Write the package's wheel and sdist to an empty folder; the same code gives the same bytes.

    Other code gets another address, even with the same version, so that a notebook never installs
    code other than the one it was built with.
    """
    from hatchling.builders.sdist import SdistBuilder
    from hatchling.builders.wheel import WheelBuilder

    shutil.rmtree(folder, ignore_errors=True)
    return placed(WheelBuilder, folder), placed(SdistBuilder, folder)


def placed(builder: Callable[..., Any], folder: Path) -> str:
    """Build one file and move it into a folder named after its hash; returns its path there."""
    (made,) = builder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    file = Path(made)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    (folder / digest).mkdir()
    file.rename(folder / digest / file.name)
    return f"{digest}/{file.name}"


def button(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Add the wheel and the sdist to the menu of the download button."""
    if context.get("page_source_suffix") != ".ipynb":
        return
    config, folder = app.config, context["pathto"](DIST, 1)
    offers = [
        (config.attnbook_wheel, ".whl", "the package that the notebook needs", "wheel"),
        (config.attnbook_sdist, ".tar.gz", "the package's sources, which pip installs", "sdist"),
    ]
    links = [
        {
            "type": "link",
            "url": f"{folder}/{place}",
            "text": ending,
            "icon": "fas fa-file",
            "tooltip": f"Download {what}",
            "label": f"download-{kind}-button",
        }
        for place, ending, what, kind in offers
    ]
    for group in context["header_buttons"]:
        if group.get("label") == "download-buttons":
            group["buttons"][1:1] = links


def finish(app: Sphinx) -> None:
    """Replace the first cell of each notebook that the site hands out."""
    config = app.config
    for name in sorted(app.env.found_docs):
        path = Path(app.env.doc2path(name))
        if path.suffix != ".ipynb":
            continue
        nb = json.loads(path.read_text("utf-8"))
        for cell in [cell for cell in nb["cells"] if cell["cell_type"] == "code"][:1]:
            before = "".join(cell["source"])
            after = handed_out(before, config.attnbook_source, config.attnbook_wheel)
            if after != before:
                cell["source"] = after.splitlines(keepends=True)
                cell["metadata"].get("nbgrader", {}).pop("checksum", None)  # of the neutral line
        text = json.dumps(nb, indent=1, ensure_ascii=False)
        (Path(app.outdir) / "_sources" / f"{name}.ipynb").write_text(f"{text}\n", "utf-8")


def setup(app: Sphinx) -> None:
    app.add_config_value("attnbook_wheel", "", "html")
    app.add_config_value("attnbook_sdist", "", "html")
    app.add_config_value("attnbook_source", "", "html")
    app.connect("config-inited", configure, priority=300)  # after `repository`
    app.connect("html-page-context", button, priority=600)  # after the theme's buttons
