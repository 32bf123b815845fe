"""Kernels against scalar formulas that share no code with them."""

import math

import numpy as np
import pytest
import torch

from agop.kernels import (
    GaussianKernel,
    LaplaceKernel,
    NeuralTangentKernel,
    Points,
    PolynomialKernel,
    kernel_diagonal,
    kernel_matmul,
    kernel_matrix,
    resolve_kernel,
    strips,
    transform,
)

KERNELS = [
    LaplaceKernel(),
    GaussianKernel(),
    PolynomialKernel(),
    PolynomialKernel(degree=3, offset=0.5),
    *(NeuralTangentKernel(depth) for depth in range(1, 6)),
    NeuralTangentKernel(depth=2, offset=0.7),
]


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def scalar_kernel(kernel, x, z, M, L):
    """k(x, z) for two vectors, by the formula in the docstring of each kernel."""
    if isinstance(kernel, LaplaceKernel):
        return math.exp(-math.sqrt((x - z) @ M @ (x - z)) / L)
    if isinstance(kernel, GaussianKernel):
        return math.exp(-((x - z) @ M @ (x - z)) / (2 * L**2))
    if isinstance(kernel, PolynomialKernel):
        return (kernel.offset + x @ M @ z / L**2) ** kernel.degree
    xx, zz, xz = (a @ M @ b / L**2 + kernel.offset for a, b in ((x, x), (z, z), (x, z)))
    return math.sqrt(xx * zz) * ntk_by_quadrature(xz / math.sqrt(xx * zz), kernel.depth)


def ntk_by_quadrature(cosine: float, depth: int) -> float:
    """Θ(u) with the Gaussian expectations of the ReLU done numerically.

    For unit Gaussians g, h of correlation s, in polar coordinates, 2 E[relu relu] and
    2 E[step step] are integrals over an angle: no arc cosine is used.
    """
    angle = np.linspace(-math.pi, math.pi, 40_001)[:-1]
    sigma = theta = cosine
    for _ in range(depth):
        g = np.cos(angle)
        h = sigma * g + math.sqrt(1 - sigma**2) * np.sin(angle)
        both = (g > 0) & (h > 0)
        value, slope = 2 * np.mean(g * h * both) * 2, 2 * np.mean(both)
        sigma, theta = value, value + theta * slope
    return theta


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_value_is_the_formula_under_a_mahalanobis_matrix(kernel):
    X, Z, R = draw(4, 3), draw(5, 3, seed=1), draw(3, 2, seed=2)
    K = kernel_matrix(kernel, X, Z, R=R, bandwidth=1.5)
    M = (R @ R.T).numpy()
    expected = [
        [scalar_kernel(kernel, x, z, M, 1.5) for z in Z.numpy()] for x in X.numpy()
    ]
    # The quadrature of a step function is good to one part in its 40,000 nodes.
    tolerance = 3e-4 if isinstance(kernel, NeuralTangentKernel) else 1e-13
    np.testing.assert_allclose(K, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_factor_may_be_missing_or_a_vector(kernel):
    X, r = draw(6, 3), torch.tensor([0.5, 2.0, 0.0], dtype=torch.float64)
    K = kernel_matrix(kernel, X, R=torch.diag(r), bandwidth=3.0)
    torch.testing.assert_close(kernel_matrix(kernel, X, R=r, bandwidth=3.0), K)
    eye = torch.eye(3, dtype=torch.float64)
    torch.testing.assert_close(
        kernel_matrix(kernel, X), kernel_matrix(kernel, X, R=eye)
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_diagonal_and_symmetry(kernel):
    X = draw(30, 4)
    K = kernel_matrix(kernel, X)
    # A cosine of 1 is known to ε, and κ1 has a square-root kink there.
    torch.testing.assert_close(
        K.diagonal(), kernel_diagonal(kernel, X), rtol=1e-6, atol=0
    )
    torch.testing.assert_close(K, K.T)
    assert torch.linalg.eigvalsh(K).min() > -1e-8 * K.diagonal().max()


def test_ntk_is_unnormalised_as_documented():
    x = torch.full((1, 4), 1.5, dtype=torch.float64)
    for depth in range(1, 6):
        K = kernel_matrix(f"ntk{depth}", x)
        assert K.item() == pytest.approx((depth + 1) * 9.0)


def test_distances_of_close_points_keep_their_digits():
    # Differences of 1e-9 beside norms of 1: ‖y‖² + ‖z‖² − 2 y·z has no digit left.
    X = draw(50, 8)
    Z = X + 1e-9 * draw(50, 8, seed=1)
    D = LaplaceKernel().pairwise(Points.of(X), Points.of(Z)).diagonal()
    torch.testing.assert_close(D, (X - Z).norm(dim=1), rtol=1e-12, atol=0)


def test_points_that_agree_to_rounding_have_distance_zero():
    X = draw(50, 8)
    D = LaplaceKernel().pairwise(Points.of(X), Points.of(X * (1 + 2**-52)))
    assert (D.diagonal() == 0).all()
    assert (D + torch.eye(50)).min() > 0.1


def test_far_from_the_origin_nothing_is_lost():
    X = draw(40, 5)
    for kernel in (LaplaceKernel(), GaussianKernel()):
        near, far = kernel_matrix(kernel, X), kernel_matrix(kernel, X + 1e6)
        torch.testing.assert_close(far, near, rtol=1e-8, atol=0)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(
    "X", [torch.zeros(3, 2), torch.ones(3, 2)], ids=["zero", "one"]
)
def test_coinciding_points_and_constant_features(kernel, X):
    X = X.double()
    K = kernel_matrix(kernel, X)
    torch.testing.assert_close(
        K, kernel_diagonal(kernel, X).expand(3, 3), rtol=1e-7, atol=0
    )


@pytest.mark.parametrize("kernel", KERNELS[:5], ids=str)
def test_matmul_in_strips_is_the_product(kernel):
    y, z = Points.of(draw(600, 3)), Points.of(draw(2000, 3, seed=1))
    assert len(list(strips(y.n, z.n))) > 1
    A = draw(2000, 2, seed=2)
    K = kernel.value(kernel.pairwise(y, z), y, z)
    torch.testing.assert_close(kernel_matmul(kernel, y, z, A), K @ A)


def test_names_and_settings():
    assert resolve_kernel("laplace") == LaplaceKernel()
    assert resolve_kernel("quadratic") == PolynomialKernel(degree=2)
    assert resolve_kernel(NeuralTangentKernel(7)) == NeuralTangentKernel(depth=7)
    with pytest.raises(ValueError, match=r"kernel must be one of 'laplace'.*'rbf'"):
        resolve_kernel("rbf")
    with pytest.raises(TypeError, match="depth must be an integer"):
        NeuralTangentKernel(1.5)
    with pytest.raises(ValueError, match="degree must be at least 1"):
        PolynomialKernel(degree=0)
    with pytest.raises(ValueError, match="offset must be finite and non-negative"):
        PolynomialKernel(offset=-1.0)
    with pytest.raises(ValueError, match="bandwidth must be finite and positive"):
        kernel_matrix("laplace", draw(2, 2), bandwidth=0.0)
    with pytest.raises(ValueError, match=r"R must have one row per column of X \(2\)"):
        transform(draw(2, 2), draw(3, 3))


def test_arrays_and_integers_are_accepted_and_bad_data_named():
    X = np.arange(6).reshape(3, 2)
    expected = kernel_matrix("gaussian", torch.from_numpy(X).double())
    torch.testing.assert_close(kernel_matrix("gaussian", X), expected)
    with pytest.raises(ValueError, match="X and Z must have the same number of col"):
        kernel_matrix("gaussian", X, X.T)
    with pytest.raises(ValueError, match="Z must be finite"):
        kernel_matrix("gaussian", X, np.full((1, 2), np.nan))
    with pytest.raises(ValueError, match="X must have one row per sample"):
        kernel_matrix("gaussian", X[0])


@pytest.mark.parametrize("m", [0, 1, 127, 128, 1000])
def test_strips_cover_every_row_once(m):
    rows = [i for s in strips(m, 10_000) for i in range(s.start, s.stop)]
    assert rows == list(range(m))
