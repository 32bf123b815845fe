"""The two solvers against numpy, their memory, and their honesty."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from agop.kernels import (
    GaussianKernel,
    LaplaceKernel,
    NeuralTangentKernel,
    Points,
    PolynomialKernel,
    kernel_matmul,
    kernel_matrix,
)
from agop.solvers import (
    CholeskySolver,
    KernelOperator,
    KernelSolveError,
    NystromCG,
    NystromCGSolver,
    conjugate_gradients,
    make_solver,
    nystrom,
    solve_cholesky_,
)

KERNELS = [
    LaplaceKernel(),
    GaussianKernel(),
    PolynomialKernel(),
    NeuralTangentKernel(2),
]


def draw(*shape: int, seed: int = 0, dtype=torch.float64) -> torch.Tensor:
    array = np.random.default_rng(seed).standard_normal(shape)
    return torch.from_numpy(array).to(dtype)


def iterative(cache_bytes=1e9, **settings) -> NystromCGSolver:
    return NystromCGSolver(NystromCG(**settings), cache_bytes, np.random.default_rng(0))


def choose(solver, n, *, budget=1e12, besides=0.0, C=1, dtype=torch.float64):
    like = torch.empty(0, dtype=dtype)
    rng = np.random.default_rng(0)
    return make_solver(solver, like, n, C, budget=budget, besides=besides, rng=rng)


# Cholesky


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_cholesky_agrees_with_numpy(kernel):
    X, T = draw(900, 6), draw(900, 2, seed=1)  # several strips
    solver = CholeskySolver(900, X)
    A = solver.solve(kernel, Points.of(X), T, 0.5)
    K = kernel_matrix(kernel, X).numpy()
    expected = np.linalg.solve(K + 0.5 * np.eye(900), T.numpy())
    np.testing.assert_allclose(A, expected, rtol=1e-8, atol=1e-10)
    y = Points.of(X)
    torch.testing.assert_close(solver.P, kernel.pairwise(y, y), rtol=1e-9, atol=1e-12)


def test_cholesky_reads_the_lower_triangle_only():
    W, T = draw(40, 40), draw(40, 3, seed=1)
    K = W @ W.T
    expected = torch.linalg.solve(K + 0.3 * torch.eye(40), T)
    K[torch.triu_indices(40, 40, 1).unbind()] = torch.nan
    torch.testing.assert_close(solve_cholesky_(K, T, 0.3), expected)


def test_cholesky_works_in_the_memory_it_is_given():
    K = torch.eye(8, dtype=torch.float64) * 3
    solve_cholesky_(K, draw(8, 1), ridge=1.0)
    torch.testing.assert_close(K, 2 * torch.eye(8, dtype=torch.float64))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_failed_factorisation_names_ridge_and_dtype(dtype):
    X = draw(20, 3, dtype=dtype)
    X[10:] = X[:10]  # duplicates: K is singular
    solver = CholeskySolver(20, X)
    name = str(dtype).removeprefix("torch.")
    with pytest.raises(KernelSolveError, match=rf"ridge=0 is not.* in {name}") as error:
        solver.solve(LaplaceKernel(), Points.of(X), draw(20, 1, dtype=dtype), 0.0)
    assert ("dtype='float64'" in str(error.value)) == (dtype == torch.float32)
    assert isinstance(error.value, np.linalg.LinAlgError)


def test_no_ridge_is_added_in_silence():
    X, T = draw(200, 5), draw(200, 1, seed=1)
    for ridge in (0.0, 1e-8):
        A = CholeskySolver(200, X).solve(LaplaceKernel(), Points.of(X), T, ridge)
        K = kernel_matrix("laplace", X)
        assert (K @ A + ridge * A - T).norm() < 1e-12 * T.norm()


MEMORY_PROBE = """
import torch
from agop.rfm import RFMRegressor
import numpy as np

def status(key):
    with open("/proc/self/status") as lines:
        return next(int(x.split()[1]) for x in lines if x.startswith(key)) * 1024

torch.set_num_threads(1)
n, rng = 4000, np.random.default_rng(0)
X, Y = rng.standard_normal((n, 20)), rng.standard_normal((n, 120))
RFMRegressor(n_iter=1).fit(X[:50], Y[:50, 0])  # imports and thread pools
for outputs in (1, 120):  # gradients by the loop, and by the form without it
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")  # start the high-water mark anew
    before = status("VmRSS")
    RFMRegressor(n_iter=1, ridge=0.1).fit(X, Y[:, :outputs])
    print((status("VmHWM") - before) / (8 * n * n))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_fit_holds_two_square_arrays():
    command = [sys.executable, "-c", MEMORY_PROBE]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode and "clear_refs" in run.stderr:
        pytest.skip("the peak of the resident memory cannot be reset here")
    assert run.returncode == 0, run.stderr
    # At most two; beyond them come strips, coordinates and targets, which do not grow
    # like n². A third array would add 1. (By the loop half of K is never touched.)
    by_loop, without_loop = map(float, run.stdout.split())
    assert 1.3 < by_loop < 2.4
    assert 1.8 < without_loop < 2.8


# Conjugate gradients


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_iterative_predictions_agree_with_cholesky(kernel):
    X, T, Z = draw(1200, 5), draw(1200, 3, seed=1), Points.of(draw(300, 5, seed=2))
    z = Points.of(X / 3)
    exact = CholeskySolver(1200, X).solve(kernel, z, T, 0.1)
    solver = iterative(rank=300, tol=1e-8)
    A = solver.solve(kernel, z, T, 0.1)
    assert solver.converged
    assert solver.report["residual"] <= 1e-8
    expected = kernel_matmul(kernel, Z, z, exact)
    difference = kernel_matmul(kernel, Z, z, A) - expected
    # The residual bounds ‖K ΔA‖; on new points it is of the same order.
    assert difference.norm() < 1e-6 * expected.norm()


def test_the_preconditioner_saves_iterations():
    X, T = draw(800, 3), draw(800, 1, seed=1)
    counts = []
    for rank in (1, 200):
        solver = iterative(rank=rank, tol=1e-8, max_iter=2000)
        solver.solve(LaplaceKernel(), Points.of(X), T, 1e-3)
        counts.append(solver.report["solver_iterations"])
    assert counts[1] < counts[0] / 3


def test_iterative_says_when_it_falls_short():
    X, T = draw(400, 3), draw(400, 1, seed=1)
    solver = iterative(rank=5, max_iter=3)
    with pytest.warns(ConvergenceWarning, match=r"stopped at .* after 3 iterations"):
        solver.solve(LaplaceKernel(), Points.of(X), T, 1e-6)
    assert not solver.converged
    assert solver.report["residual"] > 1e-6


def test_a_singular_system_without_ridge_is_not_called_solved():
    X = draw(60, 3)
    X[30:] = X[:30]
    solver = iterative(max_iter=50)
    with pytest.warns(ConvergenceWarning):
        solver.solve(LaplaceKernel(), Points.of(X), draw(60, 1, seed=1), 0.0)
    assert not solver.converged


def test_zero_and_solved_columns_do_no_harm():
    X, T = draw(300, 4), draw(300, 3, seed=1)
    T[:, 1] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A = iterative(rank=50).solve(LaplaceKernel(), Points.of(X), T, 0.1)
    assert (A[:, 1] == 0).all()
    assert torch.isfinite(A).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_operator_is_the_matrix_whatever_is_cached(kernel):
    z, V = Points.of(draw(1000, 4)), draw(1000, 2, seed=1)
    expected = kernel_matrix(kernel, z.Y) @ V
    size = 1000**2 * 8
    kept = []
    for cache in (0, size // 4, size):
        K = KernelOperator(kernel, z, cache)
        torch.testing.assert_close(K.matmul(V), expected, rtol=1e-9, atol=1e-9)
        kept.append(sum(strip.numel() * 8 for strip in K._kept))
        assert kept[-1] <= cache
    assert kept[0] == 0 < kept[1] < kept[2]


def test_nystrom_is_exact_at_full_rank_and_skips_duplicates():
    X = draw(40, 3)
    X[20:] = X[:20]
    rng = np.random.default_rng(0)
    U, values = nystrom(LaplaceKernel(), Points.of(X), 40, rng, block=7)
    assert len(values) <= 20
    K = kernel_matrix("laplace", X)
    torch.testing.assert_close(U * values @ U.T, K, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(U.T @ U, torch.eye(len(values), dtype=K.dtype))


def test_nystrom_never_exceeds_the_matrix():
    X = draw(200, 3)
    rng = np.random.default_rng(0)
    U, values = nystrom(GaussianKernel(), Points.of(X), 30, rng)
    gap = torch.linalg.eigvalsh(kernel_matrix("gaussian", X) - U * values @ U.T)
    assert gap.min() > -1e-8
    assert (values.diff() <= 0).all()


def test_conjugate_gradients_without_preconditioner():
    W, T = draw(30, 30), draw(30, 2, seed=1)
    K = W @ W.T + torch.eye(30)
    A, n_iter, residual = conjugate_gradients(
        lambda V: K @ V, T, lambda V: V.clone(), tol=1e-10, max_iter=200
    )
    torch.testing.assert_close(A, torch.linalg.solve(K, T), rtol=1e-7, atol=1e-9)
    assert n_iter < 200
    assert residual <= 1e-10


# Choice of the solver


def test_auto_is_dense_up_to_twenty_thousand():
    # The arrays are virtual memory until they are written.
    assert isinstance(choose("auto", 1000), CholeskySolver)
    assert isinstance(choose("auto", 20_001), NystromCGSolver)
    assert isinstance(choose("auto", 2000, budget=5e7), NystromCGSolver)
    assert isinstance(choose("iterative", 1000), NystromCGSolver)
    assert isinstance(choose("cholesky", 1000), CholeskySolver)
    settings = NystromCG(rank=7)
    assert choose(settings, 1000).settings is settings


def test_what_does_not_fit_is_refused_with_what_would():
    with pytest.raises(MemoryError, match=r"needs 13 GB \(two 28000 x 28000 arrays"):
        choose("cholesky", 28_000, budget=8e9)
    with pytest.raises(MemoryError, match=r"About 22360 samples would fit, or 31622"):
        choose("cholesky", 28_000, budget=8e9)
    with pytest.raises(MemoryError, match=r"About 31622 samples would fit; or use"):
        choose("cholesky", 40_000, budget=8e9, dtype=torch.float32)
    with pytest.raises(MemoryError, match=r"rank=500 needs .*smaller rank"):
        choose("iterative", 10**6, budget=1e9)
    with pytest.raises(MemoryError, match=r"and 7 GB besides"):
        choose("cholesky", 10_000, budget=8e9, besides=7e9)


def test_the_cache_is_what_the_budget_leaves():
    solver = choose("iterative", 30_000, budget=2e9, besides=1e8)
    vectors = (30_000 * (2 * 500 + 6) + 2 * 500**2) * 8
    assert solver.cache_bytes == pytest.approx(2e9 - 1e8 - vectors)


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match=r"solver must be one of .* got 'lu'"):
        choose("lu", 10)
    with pytest.raises(ValueError, match="tol must be finite and positive"):
        NystromCG(tol=0.0)
    with pytest.raises(TypeError, match="rank must be an integer"):
        NystromCG(rank=10.5)
    with pytest.raises(ValueError, match="max_iter must be at least 1"):
        NystromCG(max_iter=0)
