"""The programs behind the Makefile's verbs."""

import sys
from pathlib import Path

# The package is not installed where the book is built; modules that need no PyTorch load from here.
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
