"""Repetitions: `make test` takes the first of several seeds, `make test-all` takes each."""

from typing import Any

import pytest


def repeats(first: Any, *others: Any) -> list[Any]:
    """The values of a parameter, of which `make test` takes the first."""
    return [first, *(pytest.param(other, marks=pytest.mark.full) for other in others)]
