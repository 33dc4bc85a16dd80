"""Solutions of the chapters' exercises: `make exercises` runs them, here they are only read."""

import json
import sys

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import exercises, notebooks

PAGES = list(filter(notebooks.is_chapter, notebooks.every()))
SOLVED = """
````{solution} ex-more
:class: dropdown

One more:

```python
x += 1
print("x is", x)
```
````
"""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_each_story_has_solutions_and_all_are_python(path):
    found = exercises.solutions(notebooks.read(path))
    assert found or not notebooks.is_story(path)
    for label, code in found:
        compile(code, label, "exec")


@pytest.mark.parametrize(("more", "status", "last"), [("", 0, "all"), ("\n1 / 0", 1, "1 chapters")])
def test_solutions_run_after_their_chapter(tmp_path, monkeypatch, capsys, more, status, last):
    path = tmp_path / "book" / "01_tiny.ipynb"
    path.parent.mkdir()
    solved = new_markdown_cell(SOLVED.replace("x)", "x)" + more))
    nb = new_notebook(cells=[new_code_cell("x = 2"), solved, new_code_cell("x = 5")])
    path.write_text(json.dumps(nb))
    before = path.read_bytes()
    monkeypatch.setattr(sys, "argv", ["exercises", str(path)])
    with pytest.raises(SystemExit) as end:
        exercises.main()
    said = capsys.readouterr().out
    assert end.value.code == status
    assert "ex-more\n    x is 6" in said and said.splitlines()[-1].startswith(last)
    assert ("FAILS" in said and "ZeroDivisionError" in said) == bool(status)
    assert path.read_bytes() == before
