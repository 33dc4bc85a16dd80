"""The code of the book "Worth Some Attention", with one module per concept."""

from attnbook import cores

cores.share()  # before anything imports torch

from attnbook.source import show_source  # noqa: E402

__version__ = "0.1.0"
__all__ = ["__version__", "show_source"]
