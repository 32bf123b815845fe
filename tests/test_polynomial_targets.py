import itertools

import numpy as np
import pytest
import torch
from numpy.polynomial import hermite_e

from agop.features import agop
from agop.polynomial_targets import HermitePolynomial

CASES = [(3, 1, 1), (4, 2, 2), (4, 3, 3), (3, 3, 4)]


def grid(d, points=9):
    """Nodes and weights that integrate polynomials up to degree 17 exactly."""
    x, w = hermite_e.hermegauss(points)
    nodes = np.array(list(itertools.product(x, repeat=d)))
    weights = np.array(list(map(np.prod, itertools.product(w, repeat=d))))
    return nodes, weights / weights.sum()


def slow(f, x):
    """The sum of products, from numpy's Hermite polynomials."""
    total = 0.0
    for a, c in zip(f.exponents, f.coefficients, strict=True):
        product = c
        for m, u in zip(a, f.U @ x, strict=True):
            norm = np.sqrt(float(np.prod(np.arange(1, m + 1))))
            product *= hermite_e.hermeval(u, np.eye(m + 1)[m]) / norm
        total += product
    return total


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_numpy_s_hermite_polynomials(case):
    f = HermitePolynomial(*case, seed=1)
    X = np.random.default_rng(0).standard_normal((20, case[0]))
    np.testing.assert_allclose(f(X), [slow(f, x) for x in X], rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_standardised_and_without_an_easier_part(case):
    f = HermitePolynomial(*case)
    nodes, weights = grid(case[0])
    values = f(nodes)
    assert weights @ values**2 == pytest.approx(1, abs=1e-10)
    for a in itertools.product(range(case[2]), repeat=case[0]):
        if sum(a) < case[2]:
            monomial = (nodes ** np.array(a)).prod(axis=1)
            assert weights @ (values * monomial) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_agop_is_the_integral_of_finite_differences(case):
    f = HermitePolynomial(*case)
    nodes, weights = grid(case[0])
    h = 1e-4 * np.eye(case[0])
    G = np.array([(f(nodes + e) - f(nodes - e)) / 2e-4 for e in h])  # (d, m)
    np.testing.assert_allclose(f.agop(), (G * weights) @ G.T, atol=1e-6)
    assert np.trace(f.agop()) == pytest.approx(case[2], abs=1e-10)
    assert np.linalg.matrix_rank(f.agop(), tol=1e-9) <= case[1]


def test_agop_is_what_autograd_estimates():
    f = HermitePolynomial(4, 2, 2, seed=3)
    U = torch.from_numpy(f.U)

    def predict(X):
        u = X @ U.T
        h = [torch.ones_like(u), u, (u**2 - 1) / 2**0.5]
        return sum(
            c * h[a[0]][:, 0] * h[a[1]][:, 1]
            for a, c in zip(f.exponents, f.coefficients, strict=True)
        )

    X = torch.randn(
        40_000, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    # the entries of the average have standard deviations of about 0.02
    np.testing.assert_allclose(agop(predict, X), f.agop(), atol=0.1)


def test_seed_decides_target_and_directions():
    one, two = (HermitePolynomial(5, 2, 2, seed=s) for s in (0, 1))
    assert not np.allclose(one.coefficients, two.coefficients)
    assert not np.allclose(one.U, two.U)
    np.testing.assert_allclose(one.U @ one.U.T, np.eye(2), atol=1e-12)


def test_bad_input_names_the_argument():
    with pytest.raises(ValueError, match="rank must be at most d = 2"):
        HermitePolynomial(2, 3, 2)
    with pytest.raises(ValueError, match="degree"):
        HermitePolynomial(2, 1, 0)
    with pytest.raises(ValueError, match=r"X must have shape \(n, 2\)"):
        HermitePolynomial(2, 1, 2)(np.zeros((4, 3)))
