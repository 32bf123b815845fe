import pytest

from agop.book.layout import BookError, Chapter
from agop.book.notebooks import prepare
from agop.book.parameters import assignments, write_values

CELL = 'scale = "ci"  # which sizes: é\nn = 3  # how many\nwidths = (8, 4)\n'


def test_values_replace_literals_and_nothing_else(tmp_path):
    values = {"scale": "paper", "n": 10, "widths": [64], "name": 0}
    del values["name"]
    source = write_values(CELL, values, Chapter("one", tmp_path))
    assert source == (
        'scale = "paper"  # which sizes: é\nn = 10  # how many\nwidths = (64,)\n'
    )


def test_unknown_parameter_is_refused_with_the_right_names(tmp_path):
    with pytest.raises(BookError) as caught:
        write_values(CELL, {"scale": "ci", "trialz": 1}, Chapter("one", tmp_path))
    assert "book/params/ci/one.yml: unknown parameters ['trialz']" in str(caught.value)
    assert "['n', 'scale', 'widths']" in str(caught.value)


@pytest.mark.parametrize("source", ["n += 1", "import os", "a, b = 1, 2", "f()"])
def test_only_plain_assignments_are_parameters(source):
    with pytest.raises(BookError, match="not of the form"):
        assignments(source, "book/one.md")


def test_a_multi_line_value_is_replaced_whole(tmp_path):
    source = write_values(
        'scale = "ci"\nsets = (\n    "a",\n    "b",\n)\nn = 1\n',
        {"scale": "ci", "sets": ["c", "d"], "n": 2},
        Chapter("one", tmp_path),
    )
    assert source == 'scale = "ci"\nsets = ("c", "d")\nn = 2\n'


def test_missing_files_are_named(tiny_book):
    chapter = Chapter("one", tiny_book)
    chapter.params("paper").unlink()
    with pytest.raises(BookError, match=r"book/params/paper/one.yml is missing"):
        prepare(chapter, "paper")
    with pytest.raises(BookError, match=r"no such scale: huge"):
        prepare(chapter, "huge")
    chapter.source.unlink()
    with pytest.raises(BookError, match=r"book/one.md is missing"):
        prepare(chapter, "ci")


def test_every_scale_gets_its_own_values(tiny_book):
    nb = prepare(Chapter("one", tiny_book), "paper")
    cell = next(c for c in nb.cells if "parameters" in c.metadata.get("tags", []))
    assert 'scale = "paper"' in cell.source
    assert "n = 5  # how many" in cell.source
    assert "widths = (1024,)  # of the layers" in cell.source
