"""The code of the book "Worth Some Attention"; one module a concept."""

from attnbook.source import show_source

__version__ = "0.1.0"
__all__ = ["__version__", "show_source"]
