"""What the site does beyond Jupyter Book: widgets without a kernel, nothing off the site.

One module a concern; each has its own `setup`:

- `theme`: templates, page options, the parts of the theme that are left out
- `repository`: launch buttons and the "report a problem" link, from the configured address
- `icons`: the icon font, cut down to the icons in use
- `math`: KaTeX at build time, with its stylesheet and fonts from npm
- `widgets`: stored widgets on the pages, one shared script a class, the `{widget}` directive
- `figures`: a warning for every picture without alternative text
"""

from sphinx.application import Sphinx

from . import figures, icons, math, repository, theme, widgets


def setup(app: Sphinx) -> dict[str, object]:
    for part in (theme, repository, math, widgets, figures, icons):
        part.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
