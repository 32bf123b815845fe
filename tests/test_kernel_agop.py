"""Closed-form gradients and AGOPs of kernel predictors against autograd."""

import numpy as np
import pytest
import torch
from torch.func import jacrev, vmap

from agop.kernel_agop import (
    Expansion,
    agop_diagonal,
    agop_factor,
    agop_matrix,
    gradients,
    kernel_agop,
    kernel_gradient,
    psd_factor,
)
from agop.kernels import (
    GaussianKernel,
    LaplaceKernel,
    NeuralTangentKernel,
    Points,
    PolynomialKernel,
    kernel_matrix,
)
from agop.solvers import CholeskySolver

KERNELS = [
    LaplaceKernel(),
    GaussianKernel(),
    PolynomialKernel(),
    PolynomialKernel(degree=3, offset=0.5),
    *(NeuralTangentKernel(depth) for depth in range(1, 6)),
    NeuralTangentKernel(depth=2, offset=0.7),
]
BANDWIDTH = 1.5


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def value(kernel, x, Z, M, L=BANDWIDTH):
    """k(x, z_i) for one x, of shape (n,), with an explicit M; differentiable."""
    v = x - Z
    square = (v @ M * v).sum(-1) / L**2
    if isinstance(kernel, LaplaceKernel):
        return torch.exp(-square.sqrt())
    if isinstance(kernel, GaussianKernel):
        return torch.exp(-square / 2)
    inner = Z @ M @ x / L**2 + kernel.offset
    if isinstance(kernel, PolynomialKernel):
        return inner**kernel.degree
    norms = ((x @ M @ x) / L**2 + kernel.offset).sqrt() * (
        (Z @ M * Z).sum(-1) / L**2 + kernel.offset
    ).sqrt()
    sigma = theta = inner / norms
    for _ in range(kernel.depth):
        angle = sigma.acos()
        k0 = (torch.pi - angle) / torch.pi
        sigma = (angle.sin() + (torch.pi - angle) * angle.cos()) / torch.pi
        theta = sigma + theta * k0
    return norms * theta


def autograd(kernel, X, Z, A, M):
    """Jacobians (m, C, d) of x -> Σ_i A_i k(x, z_i)."""
    return vmap(jacrev(lambda x: value(kernel, x, Z, M) @ A))(X)


def outer_mean(G, centred=False):
    """(1/m) Σ_p Σ_c of outer products, from the definition."""
    G = G - G.mean(0) if centred else G
    return torch.einsum("pci,pcj->ij", G, G) / len(G)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("factor", ["none", "vector", "matrix", "thin"])
def test_gradient_is_autograd(kernel, factor):
    d = 4
    R = {
        "none": None,
        "vector": draw(d, seed=3),
        "matrix": draw(d, d, seed=3),
        "thin": draw(d, 2, seed=3),
    }[factor]
    W = torch.ones(d, dtype=torch.float64) if R is None else R
    M = torch.diag(W**2) if W.ndim == 1 else W @ W.T
    X, Z, A = draw(7, d), draw(9, d, seed=1), draw(9, 3, seed=2)
    G = kernel_gradient(kernel, X, Z, A, R=R, bandwidth=BANDWIDTH)
    expected = autograd(kernel, X, Z, A, M)
    torch.testing.assert_close(G, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_agop_is_the_mean_outer_product_of_autograd(kernel, centred):
    R = draw(4, 4, seed=3)
    X, Z, A = draw(7, 4), draw(9, 4, seed=1), draw(9, 3, seed=2)
    M = kernel_agop(kernel, X, Z, A, R=R, bandwidth=BANDWIDTH, centred=centred)
    expected = outer_mean(autograd(kernel, X, Z, A, R @ R.T), centred)
    torch.testing.assert_close(M, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradient_is_a_finite_difference(kernel):
    X, Z, A, h = draw(5, 3), draw(6, 3, seed=1), draw(6, 1, seed=2), 1e-5
    steps = [
        (kernel_matrix(kernel, X + h * e, Z) - kernel_matrix(kernel, X - h * e, Z)) @ A
        for e in torch.eye(3, dtype=torch.float64)
    ]
    expected = torch.stack(steps, 2) / (2 * h)
    torch.testing.assert_close(
        kernel_gradient(kernel, X, Z, A), expected, rtol=1e-5, atol=1e-7
    )


def test_laplace_gradient_at_a_training_point_leaves_its_own_term_out():
    Z, A = draw(6, 3), draw(6, 2, seed=1)
    Z[4] = Z[2]  # a duplicate: neither of the two counts at their place
    eye = torch.eye(3, dtype=torch.float64)
    G = kernel_gradient("laplace", Z, Z, A, bandwidth=BANDWIDTH)
    for p in range(6):
        others = (Z - Z[p]).any(1)
        expected = autograd(LaplaceKernel(), Z[p : p + 1], Z[others], A[others], eye)
        torch.testing.assert_close(G[p : p + 1], expected)


@pytest.mark.parametrize("depth", range(1, 6))
def test_ntk_gradient_along_a_training_point_is_radial(depth):
    z = draw(1, 3)
    A = torch.ones(1, 1, dtype=torch.float64)
    G = kernel_gradient(NeuralTangentKernel(depth), 2 * z, z, A)
    # k(t z, z) = t (depth + 1) ‖z‖², hence the derivative along z.
    torch.testing.assert_close(G[0], (depth + 1) * z, rtol=1e-6, atol=0)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("fill", [0.0, 1.0])
def test_identical_points_give_finite_gradients(kernel, fill):
    X = torch.full((5, 3), fill, dtype=torch.float64)
    G = kernel_gradient(kernel, X, X, draw(5, 2))
    assert torch.isfinite(G).all()
    if kernel.translation_invariant or fill == 0:
        assert (G == 0).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_constant_feature_gets_no_gradient_from_distances(kernel):
    X = draw(20, 3)
    X[:, 1] = 5.0
    M = kernel_agop(kernel, X, X, draw(20, 2, seed=1))
    assert torch.isfinite(M).all()
    if kernel.translation_invariant:
        assert M[1].abs().max() == 0


def solved(kernel, X, C):
    """An expansion with what a dense solver lends it."""
    z, solver = Points.of(X), CholeskySolver(len(X), X)
    A = solver.solve(kernel, z, draw(len(X), C, seed=5), ridge=0.1)
    return Expansion(kernel, z, A, solver.P, solver.scratch)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("subset", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_route_gives_the_same_matrix(kernel, subset, centred):
    f = solved(kernel, draw(60, 10), C=20)  # C r > n + r: the loop is dearer
    rows = torch.arange(0, 60, 3) if subset else None
    bare = Expansion(f.kernel, f.z, f.A)  # neither distances nor scratch lent
    y = f.z if rows is None else f.z[rows]
    expected = outer_mean(gradients(bare, y), centred)
    scale = expected.abs().max()
    T = agop_factor(f, rows, centred=centred)
    for S in (
        agop_matrix(f, rows, centred=centred),
        agop_matrix(f, y, centred=centred),
        agop_matrix(bare, rows, centred=centred),
        T @ T.T,
    ):
        assert (S - expected).abs().max() < 1e-11 * scale
    diagonal = agop_diagonal(f, rows, centred=centred)
    assert (diagonal - expected.diagonal()).abs().max() < 1e-12 * scale


@pytest.mark.parametrize("centred", [False, True])
def test_few_rows_give_a_thin_factor(centred):
    f = solved(LaplaceKernel(), draw(8, 30), C=3)
    T = agop_factor(f, centred=centred)
    assert T.shape == (30, 24)
    expected = outer_mean(gradients(f), centred)
    torch.testing.assert_close(T @ T.T, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 0.0])
def test_near_duplicates_do_not_spoil_the_form_without_loop(gap):
    X = draw(60, 10)
    X[30:] = X[:30] + gap * draw(30, 10, seed=1)
    f = solved(LaplaceKernel(), X, C=20)
    expected = outer_mean(gradients(f))
    S = agop_matrix(f)
    assert (S - expected).abs().max() < 1e-10 * expected.abs().max()


def test_float32_keeps_to_the_loop_and_to_its_precision():
    f = solved(LaplaceKernel(), draw(60, 10), C=20)
    single = Expansion(
        f.kernel,
        Points.of(f.z.Y.float()),
        f.A.float(),
        f.P.float(),
        torch.full((60, 60), torch.nan),
    )
    expected = agop_matrix(f)
    error = (agop_matrix(single) - expected).abs().max()
    assert single.scratch.isnan().all()  # not even touched
    assert error < 5e-6 * expected.abs().max()


def test_psd_factor_of_singular_matrices():
    W = draw(6, 2)
    for S in (W @ W.T, torch.zeros(6, 6), torch.eye(6), torch.ones(1, 1)):
        T = psd_factor(S)
        torch.testing.assert_close(T @ T.T, S, atol=1e-14, rtol=1e-14)
    # Cholesky fails outright here: the eigenvectors of the null space are dropped.
    assert psd_factor(torch.diag(torch.tensor([4.0, 0.0, 1.0]))).shape == (3, 2)


def test_coefficients_are_checked():
    X = draw(5, 2)
    for function in (kernel_gradient, kernel_agop):
        with pytest.raises(
            ValueError, match=r"A must have shape \(5, C\).*got \(4, 1\)"
        ):
            function("laplace", X, X, draw(4, 1))
        with pytest.raises(ValueError, match="A must be finite"):
            function("laplace", X, X, torch.full((5, 1), torch.nan))
