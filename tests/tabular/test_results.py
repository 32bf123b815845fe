"""Reading matrices of results, a reader's own among them."""

import numpy as np
import pytest

from agop.tabular.results import Results, from_rows, read_matrix, read_rows


def write(tmp_path, text):
    path = tmp_path / "results.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_readers_matrix(tmp_path):
    path = write(tmp_path, "table,svm,forest\niris,95.5,--\nwine,,98\n\n")
    results = read_matrix(path)
    assert results.tables == ("iris", "wine")
    assert results.methods == ("svm", "forest")
    assert results.accuracies[0, 0] == pytest.approx(0.955)
    assert np.isnan(results.accuracies[0, 1])
    assert np.isnan(results.accuracies[1, 0])


def test_fractions_stay_fractions(tmp_path):
    results = read_matrix(write(tmp_path, "t;a\nx;0.5\ny;1\n"), delimiter=";")
    assert results.column("a").tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,a,b\nx,0.5\n", "line 2: 1 cells for 2"),
        ("t,a\nx,0.5\ny,good\n", "line 3: 'good' is no number"),
        ("t,a\nx,0.5\nx,0.6\n", "table 'x' comes twice"),
        ("t,a,a\nx,0.5,0.6\n", "method 'a' comes twice"),
    ],
)
def test_faulty_files_name_the_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_matrix(write(tmp_path, text))


def test_rows_make_a_matrix_with_gaps(tmp_path):
    path = write(tmp_path, "table,method,accuracy\nx,a,0.5\ny,a,0.6\ny,b,0.7\n")
    results = from_rows(read_rows(path))
    assert results.methods == ("a", "b")
    assert np.isnan(results.column("b")[0])
    assert results.of(["b", "a"]).accuracies.tolist() == [[0.7, 0.6]]
    assert results.of(["b", "a"], complete=False).tables == ("x", "y")


def test_an_unknown_method_is_named():
    results = Results(("x",), ("a",), np.array([[0.5]]))
    with pytest.raises(ValueError, match="'b'"):
        results.column("b")


def test_all_metrics_of_the_paper():
    X = np.array([[0.9, 0.8], [0.4, 0.6]])
    found = Results(("x", "y"), ("a", "b"), X).metrics()
    assert list(found) == [
        "average accuracy",
        "P90",
        "P95",
        "PMA",
        "Friedman rank",
        "ADTM",
        "ADTM as printed",
    ]
    assert all(values.shape == (2,) for values in found.values())
    assert found["P90"].tolist() == [0.5, 0.5]
