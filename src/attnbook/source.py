"""Package code, shown inside a chapter."""

import ast
import inspect
import textwrap
from typing import Any


def source(obj: Any) -> str:
    """The source code of a function or class without its docstrings.

    Args:
        obj: a function, method, class or module of the package.

    Raises:
        TypeError: if `obj` has no Python source (a built-in, a number, ...).
    """
    try:
        text = textwrap.dedent(inspect.getsource(obj))
    except (TypeError, OSError):
        raise TypeError(f"obj must be a function, class or module, got {obj!r}") from None
    lines = text.splitlines()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            doc = node.body[0]
            for i in range(doc.lineno - 1, doc.end_lineno or doc.lineno):
                lines[i] = ""
            if len(node.body) == 1:
                lines[doc.lineno - 1] = " " * doc.col_offset + "..."
    kept = "\n".join(lines)
    while "\n\n\n" in kept:
        kept = kept.replace("\n\n\n", "\n\n")
    return kept.replace(":\n\n", ":\n").strip()


def show_source(obj: Any) -> None:
    """Show the source code of a function or class in a notebook, without its docstrings.

    Args and raises: as for `source`.
    """
    from IPython.display import Markdown, display

    display(Markdown(f"```python\n{source(obj)}\n```"))
