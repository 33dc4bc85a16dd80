"""Shift every seed, and record by how much each comparison of an assert holds.

Runs for `make seeds`, inside the process of a chapter or a test."""

import ast
import math
import operator
import random
from collections.abc import Sequence
from numbers import Integral
from typing import Any

OPERATORS: dict[str, tuple] = {
    "Gt": (operator.gt, 1),
    "GtE": (operator.ge, 1),
    "Lt": (operator.lt, -1),
    "LtE": (operator.le, -1),
}


def shift(by: int) -> None:
    """Add a number to every seed that is set from now on, including seeds that are strings."""
    import numpy
    import torch

    def other(seed: Any) -> Any:
        if isinstance(seed, str):
            return f"{seed} {by}"
        if isinstance(seed, Sequence):
            return [other(part) for part in seed]
        return int(seed) + by if isinstance(seed, Integral) else seed

    def shifted(function):
        return lambda *a, **k: function(*map(other, a), **{n: other(v) for n, v in k.items()})

    class Random(random.Random):
        def seed(self, a=None, version=2):  # a new Random also calls it
            super().seed(other(a), version)

    class Generator(torch.Generator):
        def manual_seed(self, seed):
            return super().manual_seed(seed + by)

    torch.manual_seed = torch.random.manual_seed = shifted(torch.manual_seed)
    torch.Generator, random.Random = Generator, Random
    random.seed = shifted(random.seed)
    for name in ("default_rng", "seed"):
        setattr(numpy.random, name, shifted(getattr(numpy.random, name)))


class Margins(ast.NodeTransformer):
    """Rewrites asserts so that each comparison of two single numbers records its margin.

    A chained comparison is split into links; links between two constants are ignored, and so are
    comparisons of whole arrays.
    """

    def __init__(self) -> None:
        self.cell, self.inside = 0, False
        self.least: dict[str, float] = {}

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Number the cells."""
        self.cell += 1
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Rewrite the comparisons of an assert."""
        self.inside = True
        node.test = self.visit(node.test)
        self.inside = False
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Replace a comparison by a call of `compare`."""
        sides = [node.left, *node.comparators]
        links = [
            (type(op).__name__, f"{self.cell}\n{node.lineno}\n{ast.unparse(link)}")
            for op, a, b in zip(node.ops, sides, sides[1:], strict=False)
            for link in [ast.Compare(a, [op], [b])]
        ]
        self.generic_visit(node)
        names = {name for name, _ in links}
        if not self.inside or not names & OPERATORS.keys() or names - {*OPERATORS, "Eq"}:
            return node
        call = ast.parse(f"_compare({links})", mode="eval").body
        assert isinstance(call, ast.Call)
        call.args += [node.left, *node.comparators]
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def compare(self, links: list[tuple[str, str]], *values):
        """The value of the comparison; records each link's least margin so far."""
        said = True
        for (name, key), left, right in zip(links, values, values[1:], strict=False):
            holds, sign = OPERATORS.get(name, (operator.eq, 0))
            said = holds(left, right)
            varies = sign and not _constant(key.split("\n")[2])
            if varies and (margin := _difference(left, right)) is not None:
                margin *= sign
                margin = margin if math.isfinite(margin) else -math.inf
                self.least[key] = min(margin, self.least.get(key, margin))
            if len(links) > 1 and not said:
                break
        return said


def _constant(text: str) -> bool:
    """Whether an expression contains no names."""
    return not any(isinstance(node, ast.Name) for node in ast.walk(ast.parse(text)))


def _difference(left, right) -> float | None:
    try:
        return float(left - right)
    except (TypeError, ValueError, RuntimeError, ArithmeticError):
        return None
