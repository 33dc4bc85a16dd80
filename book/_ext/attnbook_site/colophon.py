"""Authors, licence and version of the book below each page; previews of links, sitemap and 404.

All of it comes from CITATION.cff. With an address the site has a `sitemap.xml`, and its pages give
their address and a picture for previews; without one `404.html` links to the root of the host.
"""

import html
import re
import shutil
from pathlib import Path
from typing import Any

import yaml
from sphinx.application import Sphinx

from .places import BOOK

PICTURE = "_static/social.png"
LOST = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Not here: {title}</title>
<style>
  :root {{ color-scheme: light dark; }}
  body {{ margin: 20vh auto 0; padding: 0 1rem; max-width: 32rem; }}
  body {{ font: 1.1rem/1.6 system-ui, sans-serif; }}
</style>
<h1>This page is not here</h1>
<p>It may have moved: chapters have become two pages each.
<a href="{home}">The first page</a> leads to all of them.</p>
</html>
"""


def citation() -> dict[str, Any]:
    """The contents of CITATION.cff."""
    return yaml.safe_load((BOOK.parent / "CITATION.cff").read_text("utf-8"))


def named(author: dict[str, str]) -> str:
    return author.get("name") or f"{author['given-names']} {author['family-names']}"


def on_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    said, here = citation(), app.config.html_baseurl
    context["colophon"] = {
        "title": said["title"].split(":")[0],
        "version": said["version"],
        "authors": " and ".join(map(named, said["authors"])),
        "cite": context["pathto"]("book/cite") if "book/cite" in app.env.found_docs else "",
        "source": app.config.html_theme_options["repository_url"],
    }
    title = re.sub(
        "<[^>]*>", "", context.get("title", "")
    )  # it contains a chapter's number in a span
    told = {"og:title": html.unescape(title), "og:type": "book"}
    told["og:description"] = said["abstract"]
    if here:
        told |= {"og:url": f"{here}{pagename}.html", "og:image": here + PICTURE}
    tags = [
        f'<meta property="{name}" content="{html.escape(text)}">' for name, text in told.items()
    ]
    if here:
        tags.append('<meta name="twitter:card" content="summary_large_image">')
    tags.append(f'<meta name="description" content="{html.escape(said["abstract"])}">')
    context["metatags"] = "\n".join([context.get("metatags", ""), *tags])


def finish(app: Sphinx) -> None:
    out, here = Path(app.outdir), app.config.html_baseurl
    lost = LOST.format(title=app.config.html_title, home=here or "/")
    (out / "404.html").write_text(lost, "utf-8")
    sitemap = out / "sitemap.xml"
    sitemap.unlink(missing_ok=True)
    if here:
        shutil.copy(BOOK / "figures/social.png", out / PICTURE)
        pages = sorted(f"{here}{name}.html" for name in app.env.found_docs)
        rows = "\n".join(f"<url><loc>{html.escape(page)}</loc></url>" for page in pages)
        sitemap.write_text(
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}\n</urlset>\n',
            "utf-8",
        )


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", on_page, priority=300)  # before the theme, see `repository`
