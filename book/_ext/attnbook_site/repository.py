"""Links into the book's repository, if it has an address."""

import os
import re
from typing import Any
from urllib.parse import quote

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

PUBLIC = re.compile(r"https://(github|gitlab)\.com/[\w.-]+/[\w.-]+")


def address(url: str) -> str | None:
    """The address of a repository in the form for pages and install lines; None if it is malformed.

    tools/course.py uses it, too, so that it writes only addresses that the build accepts.
    """
    url = url.strip().rstrip("/").removesuffix(".git")
    return url if not url or PUBLIC.fullmatch(url) else None


def configure(app: Sphinx, config: Config) -> None:
    options = config.html_theme_options
    # Jupyter Book fills in its own address if _config.yml gives none at all.
    configured = options.get("repository_url") or ""
    if "executablebooks/jupyter-book" in configured:
        configured = ""
    given = os.environ.get("BOOK_REPOSITORY_URL", configured)  # "" turns the links off
    url = address(given)
    if url is None:
        raise ConfigError(
            f"the repository address is {given!r}; it should look like https://github.com/you/book"
        )
    options["repository_url"] = url


def problem_link(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Set `problem_url`: the form for a new issue, else the page that says how to report."""
    url = app.config.html_theme_options["repository_url"]
    if not url:
        help_page = "book/troubleshooting"
        known = help_page in app.env.found_docs
        path = context["pathto"](help_page) if known else ""
        context["problem_url"] = f"{path.removesuffix('#')}#report" if known else ""
        return
    title = app.env.titles[pagename].astext() if pagename in app.env.titles else pagename
    summary = quote(f"Problem on the page \u201c{title}\u201d", safe="")
    form = f"/issues/new?title={summary}&template=fault.yml&place={quote(title, safe='')}"
    if "gitlab.com" in url:
        form = f"/-/issues/new?issue[title]={summary}"
    context["problem_url"] = f"{url}{form}"


def setup(app: Sphinx) -> None:
    app.connect("config-inited", configure, priority=200)
    # Before the theme, which drops templates that render to nothing.
    app.connect("html-page-context", problem_link, priority=300)
