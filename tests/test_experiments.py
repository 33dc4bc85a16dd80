import pytest

from attnbook import experiments


def test_the_book_s_own_tables_are_found():
    assert (experiments.folder() / "bottleneck.csv").is_file()


@pytest.fixture
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


def test_a_table_of_one_row_is_still_a_table(folder):
    experiments.store("one", [{"width": 32, "kind": "plain"}])
    assert experiments.load("one")["width"].tolist() == [32]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least one, all with the same columns"),
        ([{"a": 1}, {"b": 1}], r"same columns, got .*\('a',\)"),
        ([{"a": "x,y"}], r"got \['x,y'\]"),
        ([{"learning rate": 1}], r"got \['learning rate'\]"),
    ],
)
def test_rows_that_would_not_come_back_are_refused(folder, rows, message):
    with pytest.raises(ValueError, match=message):
        experiments.store("bad", rows)


def test_a_table_that_is_not_stored(folder):
    experiments.store("widths", [{"width": 32}])
    with pytest.raises(FileNotFoundError, match="one of \\['widths'\\], got 'width'"):
        experiments.load("width")
