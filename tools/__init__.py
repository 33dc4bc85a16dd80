"""What the Makefile's verbs call; each module says its own."""

import sys
from pathlib import Path

# Where the book is built, the package is not installed: what needs no PyTorch is read from here.
sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
