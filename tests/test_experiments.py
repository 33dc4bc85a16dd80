import pytest

from attnbook import experiments


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "folder", lambda: tmp_path)
    return tmp_path


def test_a_table_comes_back_with_its_types_and_its_making(folder):
    rows = [{"width": 32, "exact": 0.5}, {"width": 64, "exact": 1.0}]
    experiments.store("widths", rows)
    table = experiments.load("widths")
    assert table["exact"][table["width"] == 64].tolist() == [1.0]
    head = (folder / "widths.csv").read_text().splitlines()[:6]
    assert head[0] == "# command: make experiments NAME=widths"
    assert any(line.startswith("# torch ") for line in head)


def test_a_run_that_fails_leaves_the_old_table(folder):
    experiments.store("widths", [{"width": 32}])
    before = (folder / "widths.csv").read_text()

    def rows():
        yield {"width": 64}
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        experiments.store("widths", rows())
    assert (folder / "widths.csv").read_text() == before
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("rows", [[], [{"a": 1}, {"b": 1}]])
def test_rows_must_agree(rows):
    with pytest.raises(ValueError, match="at least one, all with the same columns"):
        experiments.store("bad", rows)


def test_a_table_that_is_not_stored():
    experiments.store("widths", [{"width": 32}])
    with pytest.raises(FileNotFoundError, match="one of \\['widths'\\], got 'width'"):
        experiments.load("width")
