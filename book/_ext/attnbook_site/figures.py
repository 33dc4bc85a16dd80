"""A warning, in the strict build an error, for every picture without alternative text."""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
A_PATH = re.compile(r"\S+\.(png|svg|jpe?g|gif|webp)", re.IGNORECASE)


class CheckAltText(SphinxPostTransform):
    """Warns about pictures without alternative text; notebooks have it in a cell's metadata.

    `"mystnb": {"image": {"alt": "What the figure shows"}}`
    """

    default_priority = 300  # after one form of each output was chosen
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for image in self.document.findall(nodes.image):
            alt = image.get("alt", "").strip()
            if not alt or A_PATH.fullmatch(alt):
                warn(image)


def warn(image: nodes.image) -> None:
    place: nodes.Element | None = image
    while place is not None and place.line is None:
        place = place.parent
    LOGGER.warning(
        "picture without alternative text: say what it shows "
        '(in a notebook: cell metadata "mystnb": {"image": {"alt": "..."}})',
        location=place or image,
        type="attnbook",
        subtype="alt",
    )


def setup(app) -> None:
    app.add_post_transform(CheckAltText)
