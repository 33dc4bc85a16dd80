import pytest

from attnbook import tables


def test_the_book_s_own_tables_are_found():
    assert (tables.folder() / "bottleneck.csv").is_file()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "folder", lambda: tmp_path)
    return tmp_path


def test_a_table_comes_back_with_its_types_and_its_making(folder):
    rows = [{"width": 32, "exact": 0.5}, {"width": 64, "exact": 1.0}]
    tables.store("widths", rows)
    table = tables.load("widths")
    assert table["exact"][table["width"] == 64].tolist() == [1.0]
    head = (folder / "widths.csv").read_text().splitlines()[:6]
    assert head[0] == "# command: make experiments NAME=widths"
    assert any(line.startswith("# torch ") for line in head)


def test_a_run_that_fails_leaves_the_old_table_and_what_it_found(folder):
    tables.store("widths", [{"width": 32}])
    before = (folder / "widths.csv").read_text()

    def rows():
        yield {"width": 64}
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError):
        tables.store("widths", rows())
    assert (folder / "widths.csv").read_text() == before
    assert (folder / "widths.csv.partial").read_text() == "width\n64\n"
    tables.store("widths", [{"width": 64}])
    assert [path.name for path in folder.iterdir()] == ["widths.csv"]


def test_columns_may_come_in_any_order_and_a_row_of_others_stops_the_run_at_once(folder):
    rows = iter([{"a": 1, "b": 2}, {"b": 3, "a": 4}, {"a": 5}, {"a": 6, "b": 7}])
    with pytest.raises(ValueError, match=r"same columns, \['a', 'b'\], got \['a'\]"):
        tables.store("pairs", rows)
    assert next(rows) == {"a": 6, "b": 7}
    assert (folder / "pairs.csv.partial").read_text() == "a,b\n1,2\n4,3\n"


def test_a_table_of_one_row_is_still_a_table(folder):
    tables.store("one", [{"width": 32, "kind": "plain"}])
    assert tables.load("one")["width"].tolist() == [32]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least one, got none"),
        ([{"a": 1}, {"b": 1}], r"same columns, \['a'\], got \['b'\]"),
        ([{"a": "x,y"}], r"got \['x,y'\]"),
        ([{"learning rate": 1}], r"got \['learning rate'\]"),
    ],
)
def test_rows_that_would_not_come_back_are_refused(folder, rows, message):
    with pytest.raises(ValueError, match=message):
        tables.store("bad", rows)


def test_a_table_that_is_not_stored(folder):
    tables.store("widths", [{"width": 32}])
    with pytest.raises(FileNotFoundError, match="one of \\['widths'\\], got 'width'"):
        tables.load("width")
