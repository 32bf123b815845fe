import numpy as np
import pytest

from agop.modular import (
    addition_table,
    circulant_deviation,
    random_circulant_map,
    split_table,
)


def test_table_holds_every_pair_and_its_sum():
    p = 5
    X, y = addition_table(p)
    seen = set()
    for x, label in zip(X, y, strict=True):
        a, b = x[:p].argmax(), x[p:].argmax()
        assert x.sum() == 2
        assert x[a] == x[p + b] == 1
        assert label == (a + b) % p
        seen.add((a, b))
    assert len(seen) == p * p


def test_split_is_a_partition_fixed_by_its_seed():
    rows, rest = split_table(7, 0.5, seed=3)
    assert len(rows) == 24  # round(24.5): to even
    assert sorted([*rows, *rest]) == list(range(49))
    np.testing.assert_array_equal(rows, split_table(7, 0.5, seed=3)[0])
    assert not np.array_equal(rows, split_table(7, 0.5, seed=4)[0])


def deviation_by_loop(B):
    """Second implementation: one diagonal at a time."""
    p = len(B)
    within = 0.0
    for s in range(p):
        line = np.array([B[(j + s) % p, j] for j in range(p)])
        within += ((line - line.mean()) ** 2).sum()
    return within / ((B - B.mean()) ** 2).sum()


def test_deviation_equals_the_loop_over_diagonals():
    B = np.random.default_rng(0).standard_normal((9, 9))
    assert circulant_deviation(B) == pytest.approx(deviation_by_loop(B), abs=1e-12)


def test_deviation_tells_circulant_from_reflected_blocks():
    c = np.random.default_rng(0).random(11)
    i, j = np.indices((11, 11))
    assert circulant_deviation(c[(i - j) % 11]) < 1e-12
    assert circulant_deviation(c[(i + j) % 11]) > 0.5


def test_deviation_of_independent_entries():
    rng = np.random.default_rng(0)
    p = 12
    values = [circulant_deviation(rng.standard_normal((p, p))) for _ in range(300)]
    # p² - p of p² - 1 degrees of freedom lie within diagonals
    assert np.mean(values) == pytest.approx(p / (p + 1), abs=0.005)


def test_map_is_the_fourth_root_of_the_clipped_matrix():
    p = 31
    F = random_circulant_map(p, seed=2)
    c = np.random.default_rng(2).random(p)
    c -= c.mean()
    M = np.zeros((2 * p, 2 * p))
    for i in range(p):
        for j in range(p):
            M[i, j] = M[p + i, p + j] = (i == j) - 1 / p
            M[p + i, j] = M[j, p + i] = c[(i - j) % p]
    values, vectors = np.linalg.eigh(M)
    assert values[0] < -0.1  # there is something to clip
    clipped = (vectors * values.clip(0)) @ vectors.T
    np.testing.assert_allclose(F @ F @ F @ F, clipped, atol=1e-10)
    np.testing.assert_allclose(F, F.T, atol=1e-12)


def test_circulant_kernel_tells_sums_apart_on_average():
    """The proposition of the chapter, for one pair of each kind."""
    p, draws = 7, 4000
    rng = np.random.default_rng(0)
    means = []
    for a2, b2 in ((4, 6), (4, 5)):  # sums 3 and 2 modulo 7, against 1 + 2
        values = []
        for _ in range(draws):
            c = rng.standard_normal(p)
            C = np.array([[c[(i - j) % p] for j in range(p)] for i in range(p)])
            A = np.eye(p) - 1 / p
            M = np.block([[A, C.T], [C, A]])
            x, z = np.zeros(2 * p), np.zeros(2 * p)
            x[[1, p + 2]] = z[[a2, p + b2]] = 1
            values.append((x @ M @ z) ** 2)
        means.append(np.mean(values))
    # standard deviations 5.7 and 2.9, so errors of the means .09 and .05
    assert means[0] == pytest.approx(4 / p**2 + 4, abs=0.4)
    assert means[1] == pytest.approx(4 / p**2 + 2, abs=0.2)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="p must be at least 2"):
        addition_table(1)
    with pytest.raises(ValueError, match="share must be below 1"):
        split_table(5, 1.0)
    with pytest.raises(ValueError, match="square"):
        circulant_deviation(np.ones((2, 3)))
    with pytest.raises(ValueError, match="constant"):
        circulant_deviation(np.ones((3, 3)))
