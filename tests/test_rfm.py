"""The estimators against a slow implementation, the paper, and a peer."""

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch.func import jacrev

import agop.recursion
import agop.solvers
from agop.kernels import NeuralTangentKernel, PolynomialKernel
from agop.recursion import normalise_factor
from agop.rfm import RFMClassifier, RFMRegressor
from agop.solvers import KernelSolveError, NystromCG


def sample(n=60, d=5, C=None, seed=0):
    """Data whose target bends along two directions."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
    return X, (
        y if C is None else np.stack([y * (c + 1) + X[:, c] for c in range(C)], 1)
    )


def hypercube(seed, n=1000):
    """Fig. 13B: y = x_1 x_2 on the corners of a cube in 30 dimensions."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], (n + 10_000, 30))
    y = X[:, 0] * X[:, 1]
    return X[:n], y[:n], X[n:], y[n:]


def hermite(seed, n=1000):
    """Fig. 13C: y = He_2(u·x) + He_4(u·x) in 10 dimensions."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal(10)
    X = rng.standard_normal((n + 10_000, 10))
    z = X @ u / np.linalg.norm(u)
    y = (z**2 - 1) + (z**4 - 6 * z**2 + 3)
    return X[:n], y[:n], X[n:], y[n:]


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@parametrize_with_checks(
    [
        RFMRegressor(),
        RFMRegressor("ntk2", n_iter=1),
        RFMRegressor(diagonal=True, power=0.5),
        RFMRegressor(solver="iterative", n_iter=1, random_state=0),
        RFMClassifier(),
        RFMClassifier("gaussian", bandwidth=3.0, centred=True),
    ]
)
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


# Against an independent implementation


def laplace(x, Z, M, L):
    v = x - Z
    return torch.exp(-torch.sqrt((v @ M * v).sum(1)) / L)


def gaussian(x, Z, M, L):
    v = x - Z
    return torch.exp(-(v @ M * v).sum(1) / (2 * L**2))


def quadratic(x, Z, M, L):
    return (Z @ M @ x / L**2) ** 2


def slow_rfm(X, Y, k, L, ridge, n_iter, centred=False, diagonal=False):
    """Algorithm 1 with explicit M, matrices by loops, gradients by autograd.

    The kernel row of sample p leaves out sample p itself when it is differentiated;
    for the smooth kernels that term is put back.
    """
    X, Y = torch.from_numpy(X), torch.from_numpy(Y)
    n, d = X.shape
    M = torch.eye(d, dtype=X.dtype)
    for t in range(n_iter + 1):
        K = torch.stack([k(x, X, M, L) for x in X])
        A = torch.linalg.solve(K + ridge * torch.eye(n, dtype=K.dtype), Y)
        if t == n_iter:
            return M.numpy(), A.numpy()
        G = []
        for p in range(n):
            keep = torch.arange(n) != p if k is laplace else torch.arange(n) >= 0
            Z, a, metric = X[keep], A[keep], M
            G.append(jacrev(lambda x, Z=Z, a=a, M=metric: k(x, Z, M, L) @ a)(X[p]))
        G = torch.stack(G)  # (n, C, d)
        G = G - G.mean(0) if centred else G
        M = sum(g.T @ g for g in G) / n
        M = torch.diag(M.diagonal()) if diagonal else M
        M = M / M.max()


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("k", [laplace, gaussian, quadratic])
def test_the_slow_implementation_agrees(k, centred, diagonal):
    X, Y = sample(30, 5, C=2)
    options = {"centred": centred, "diagonal": diagonal}
    M, A = slow_rfm(X, Y, k, L=2.0, ridge=0.1, n_iter=3, **options)
    machine = RFMRegressor(k.__name__, bandwidth=2.0, ridge=0.1, n_iter=3, **options)
    machine.fit(X, Y)
    assert machine.M_.shape == ((5,) if diagonal else (5, 5))
    learned = np.diag(machine.M_) if diagonal else machine.M_
    assert relative(learned, M) < 1e-9
    assert relative(machine.dual_coef_, A) < 1e-9


def test_fewer_rows_than_columns_take_the_thin_route_to_the_same_place():
    X, y = sample(12, 40)
    M, A = slow_rfm(X, y[:, None], laplace, L=5.0, ridge=0.1, n_iter=3)
    machine = RFMRegressor(bandwidth=5.0, ridge=0.1, n_iter=3).fit(X, y)
    assert machine.factor_.shape == (40, 12)
    assert relative(machine.M_, M) < 1e-9
    assert relative(machine.dual_coef_, A[:, 0]) < 1e-9


@pytest.mark.parametrize("kernel", ["laplace", "gaussian", "quadratic", "ntk3"])
def test_agop_and_gradient_are_those_of_predict(kernel):
    X, Y = sample(40, 4, C=2)
    machine = RFMRegressor(kernel, bandwidth=2.0, ridge=0.1, n_iter=2).fit(X, Y)
    Z, h = sample(6, 4, seed=1)[0], 1e-5
    G = np.stack(
        [
            (machine.predict(Z + h * e) - machine.predict(Z - h * e)) / (2 * h)
            for e in np.eye(4)
        ],
        2,
    )
    np.testing.assert_allclose(machine.gradient(Z), G, rtol=1e-6, atol=1e-8)
    for centred in (False, True):
        G_c = G - G.mean(0) if centred else G
        expected = np.einsum("pci,pcj->ij", G_c, G_c) / len(Z)
        assert relative(machine.agop(Z, centred=centred), expected) < 1e-6


def test_agop_is_autograd_of_the_prediction():
    X, y = sample(40, 4)
    machine = RFMRegressor(bandwidth=2.0, ridge=0.1, n_iter=2).fit(X, y)
    Z = torch.from_numpy(sample(6, 4, seed=1)[0])
    M, A = torch.from_numpy(machine.M_), torch.from_numpy(machine.dual_coef_)

    def f(x):
        return laplace(x, torch.from_numpy(X), M, 2.0) @ A

    np.testing.assert_allclose([f(z) for z in Z], machine.predict(Z), rtol=1e-9)
    G = torch.stack([jacrev(f)(z) for z in Z]).numpy()
    np.testing.assert_allclose(machine.agop(Z), G.T @ G / len(Z), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("diagonal", [False, True])
def test_agop_of_the_fit_is_the_next_matrix(diagonal):
    X, y = sample()
    first = RFMRegressor(n_iter=1, diagonal=diagonal, centred=True).fit(X, y)
    second = RFMRegressor(n_iter=2, diagonal=diagonal, centred=True).fit(X, y)
    M = first.agop(centred=True)
    M = M.diagonal() if diagonal else M
    np.testing.assert_allclose(M / M.max(), second.M_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(first.agop(X), first.agop(), rtol=1e-9, atol=1e-12)


# Against the paper and a peer


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fig_13b(seed):
    X, y, X_test, y_test = hypercube(seed)
    plain = RFMRegressor(n_iter=0, ridge=0.0).fit(X, y).score(X_test, y_test)
    machine = RFMRegressor(n_iter=5, ridge=0.0).fit(X, y)
    # Reported: the Laplace kernel at .54 to .55 (a draw may give .57), RFM at 1.
    assert 0.52 < plain < 0.58
    assert machine.score(X_test, y_test) > 0.9995
    assert machine.feature_importances_[:2].sum() > 0.99


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("data", [hypercube, hermite])
def test_parity_with_xrfm(data, seed):
    pytest.importorskip("xrfm")
    from xrfm.rfm_src.recursive_feature_machine import RFM

    X, y, X_test, y_test = data(seed)
    own = RFMRegressor(n_iter=5, ridge=0.0).fit(X, y).score(X_test, y_test)
    # In float64 for both: without a ridge the rank-one kernel of Fig. 13C leaves
    # float32 three digits.
    train, test = (
        (torch.from_numpy(a), torch.from_numpy(b)[:, None])
        for a, b in ((X, y), (X_test, y_test))
    )
    peer = RFM("l2", bandwidth=10.0, iters=5, device="cpu", verbose=False)
    peer.fit(
        train,
        test,
        iters=5,
        reg=0.0,
        early_stop_rfm=False,
        return_best_params=False,
        verbose=False,
    )
    assert own == pytest.approx(r2_score(y_test, peer.predict(test[0])), abs=5e-5)


def test_float32_after_five_iterations():
    # A random three-direction index in 500 dimensions, of unit variance. Rounding is
    # amplified by the condition of K (7e4): 6e-5 is usual, 1e-4 the limit. A target
    # of another variance has given 1.1e-4.
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((500, 3)))[0]
    X = rng.standard_normal((1000, 500))
    z = X @ directions
    y = z[:, 0] * z[:, 1] + np.sin(2 * z[:, 2])
    y = (y - y.mean()) / y.std()
    double = RFMRegressor(n_iter=5).fit(X, y)
    single = RFMRegressor(n_iter=5, dtype="float32").fit(X, y)
    assert single.M_.dtype == np.float32
    assert relative(single.M_, double.M_) < 1e-4
    assert (single.M_ == single.M_.T).all()
    values = np.linalg.eigvalsh(single.M_.astype(np.float64))
    assert values[0] > -1e-6 * values[-1]  # float32 entries of a PSD matrix
    np.testing.assert_allclose(single.predict(X), double.predict(X), atol=1e-3)


def test_float32_far_from_the_origin():
    X, y = sample(200, 10)
    near = RFMRegressor(n_iter=2, dtype="float32").fit(X, y)
    far = RFMRegressor(n_iter=2, dtype="float32").fit(X + 1e4, y)
    assert relative(far.M_, near.M_) < 1e-5


def test_points_on_a_line_without_ridge_need_float64():
    X, y = np.random.default_rng(0).standard_normal((1000, 1)), np.arange(1000.0)
    RFMRegressor(ridge=0.0, n_iter=0).fit(X, y)
    with pytest.raises(KernelSolveError, match=r"ridge=0 .*float32.*dtype='float64'"):
        RFMRegressor(ridge=0.0, n_iter=0, dtype="float32").fit(X, y)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_gives_the_same_result():
    X, y = sample(300, 8)
    cpu = RFMRegressor(device="cpu").fit(X, y)
    for solver in ("cholesky", "iterative"):
        gpu = RFMRegressor(device="cuda", solver=solver, random_state=0).fit(X, y)
        np.testing.assert_allclose(gpu.predict(X), cpu.predict(X), atol=1e-4)
        assert relative(gpu.M_, cpu.M_) < 1e-4


# Parameters


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": "gaussian"},
        {"kernel": "quadratic"},
        {"kernel": PolynomialKernel(degree=3, offset=1.0)},
        {"kernel": "ntk1"},
        {"kernel": NeuralTangentKernel(2)},
        {"bandwidth": 3.0},
        {"ridge": 1.0},
        {"n_iter": 1},
        {"diagonal": True},
        {"centred": True},
        {"normalise": "trace"},
        {"normalise": "none"},
        {"power": 0.5},
        {"n_gradients": 10},
        {"validation_fraction": 0.3},
        {"solver": NystromCG(rank=5, tol=0.1)},
        {"dtype": "float32"},
        {"random_state": 1},
    ],
    ids=str,
)
def test_every_parameter_changes_the_result(change):
    X, y = sample()
    base = {"n_iter": 2, "ridge": 0.01, "random_state": 0}
    if "random_state" in change:
        base["n_gradients"] = 20
    one = RFMRegressor(**base).fit(X, y)
    other = RFMRegressor(**base | change).fit(X, y)
    assert relative(other.predict(X), one.predict(X)) > 1e-9


def test_parameters_that_do_not_touch_the_numbers(capsys):
    X, y = sample()
    base = RFMRegressor(n_iter=2).fit(X, y)
    assert "M" not in base.history_[0]
    kept = RFMRegressor(n_iter=2, keep_history=True).fit(X, y)
    assert [h["M"].shape for h in kept.history_] == [(5, 5)] * 3
    np.testing.assert_array_equal(kept.history_[0]["M"], np.eye(5))
    np.testing.assert_array_equal(kept.history_[-1]["M"], base.M_)
    assert capsys.readouterr() == ("", "")
    RFMRegressor(n_iter=2, verbose=True).fit(X, y)
    assert "RFM" in capsys.readouterr().err
    with pytest.raises(MemoryError, match=r"budget is 1e-05 GB"):
        RFMRegressor(memory_gb=1e-5).fit(X, y)
    with pytest.raises((RuntimeError, ValueError), match="nonsense"):
        RFMRegressor(device="nonsense").fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", "rbf"),
        ("bandwidth", 0.0),
        ("bandwidth", np.nan),
        ("ridge", -1.0),
        ("ridge", "small"),
        ("n_iter", -1),
        ("n_iter", 1.5),
        ("normalise", "mean"),
        ("power", 0.0),
        ("n_gradients", 0),
        ("validation_fraction", 1.5),
        ("memory_gb", 0.0),
        ("dtype", "float16"),
        ("solver", "lu"),
    ],
)
@pytest.mark.parametrize("Estimator", [RFMRegressor, RFMClassifier])
def test_bad_parameters_are_refused_by_name(Estimator, name, value):
    X, y = sample()
    with pytest.raises((ValueError, TypeError), match=f"^{name} must be"):
        Estimator(**{name: value}).fit(X, y > 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_refused_by_name(bad):
    X, y = sample()
    broken = X.copy()
    broken[3, 1] = bad
    word = "NaN" if np.isnan(bad) else "infinity"
    for machine in (RFMRegressor(n_iter=1), RFMClassifier(n_iter=1)):
        target = y > 0 if isinstance(machine, RFMClassifier) else y
        with pytest.raises(ValueError, match=f"Input X contains {word}"):
            machine.fit(broken, target)
        with pytest.raises(ValueError, match=f"Input X_val contains {word}"):
            machine.fit(X, target, X_val=broken, y_val=target)
        machine.fit(X, target)
        for method in (machine.predict, machine.gradient, machine.agop):
            with pytest.raises(ValueError, match=f"Input X contains {word}"):
                method(broken)
    y[0] = bad
    with pytest.raises(ValueError, match=f"Input y contains {word}"):
        RFMRegressor().fit(X, y)


def test_normalisations():
    R = torch.from_numpy(sample(6, 4)[0])
    M = R @ R.T
    for name, expected in (
        ("none", M),
        ("max", M / M.max()),
        ("trace", 6 * M / M.trace()),
    ):
        S = normalise_factor(R, name)
        torch.testing.assert_close(S @ S.T, expected)
    X, y = sample()
    assert RFMRegressor(normalise="max").fit(X, y).M_.max() == pytest.approx(1)
    assert RFMRegressor(normalise="trace").fit(X, y).M_.trace() == pytest.approx(5)


@pytest.mark.parametrize("diagonal", [False, True])
def test_power_is_a_matrix_power_of_the_agop(diagonal):
    X, y = sample()
    options = {"n_iter": 1, "normalise": "none", "diagonal": diagonal}
    M = RFMRegressor(power=1.0, **options).fit(X, y).M_
    root = RFMRegressor(power=0.5, **options).fit(X, y).M_
    np.testing.assert_allclose(root**2 if diagonal else root @ root, M, rtol=1e-9)
    if not diagonal:
        assert np.linalg.eigvalsh(root).min() > 0


# History, validation, interruption


def test_train_score_is_that_of_predict():
    X, y = sample()
    scores = []
    machine = RFMRegressor(n_iter=3, ridge=0.1)
    machine.fit(X, y, callback=lambda m: scores.append(m.score(X, y)))
    assert [h["train_score"] for h in machine.history_] == pytest.approx(scores)
    assert [h["iteration"] for h in machine.history_] == [0, 1, 2, 3]
    assert len(set(scores)) == 4


def test_callback_sees_a_fitted_machine_and_may_stop():
    X, y = sample()
    seen = []

    def stop_at_two(machine):
        seen.append(machine.M_)
        return machine.n_iter_ == 2

    machine = RFMRegressor(n_iter=5).fit(X, y, callback=stop_at_two)
    expected = RFMRegressor(n_iter=2).fit(X, y)
    assert len(seen) == 3
    assert machine.n_iter_ == 2
    np.testing.assert_array_equal(machine.M_, expected.M_)
    np.testing.assert_array_equal(machine.predict(X), expected.predict(X))


def test_validation_keeps_the_best_machine():
    X, y = sample(80, 5)
    noise = np.random.default_rng(3).standard_normal(80)
    X, y, X_val, y_val = X[:50], (y + noise)[:50], X[50:], y[50:]
    machine = RFMRegressor(n_iter=6, bandwidth=1.0).fit(X, y, X_val=X_val, y_val=y_val)
    scores = [h["val_score"] for h in machine.history_]
    assert machine.n_iter_ == int(np.argmax(scores)) < 6
    assert machine.score(X_val, y_val) == pytest.approx(max(scores))
    again = RFMRegressor(n_iter=machine.n_iter_, bandwidth=1.0).fit(X, y)
    np.testing.assert_array_equal(again.M_, machine.M_)


def test_validation_fraction_is_seeded_and_exact():
    X, y = sample(100)
    fits = [
        RFMRegressor(n_iter=2, validation_fraction=0.2, random_state=s).fit(X, y)
        for s in (0, 0, 1)
    ]
    assert len(fits[0].dual_coef_) == 80
    np.testing.assert_array_equal(fits[0].predict(X), fits[1].predict(X))
    assert relative(fits[2].predict(X), fits[0].predict(X)) > 1e-6
    labels = np.arange(100) % 4 == 0
    machine = RFMClassifier(n_iter=1, validation_fraction=0.2, random_state=0)
    assert machine.fit(X, labels).history_[0]["val_score"] in np.arange(21) / 20
    with pytest.raises(ValueError, match="class"):  # stratified: one each is needed
        machine.fit(X, np.arange(100) == 0)


def test_the_earliest_of_equally_good_machines_is_kept():
    X = np.r_[np.full((20, 2), -1.0), np.full((20, 2), 1.0)]
    X += 0.1 * np.random.default_rng(0).standard_normal(X.shape)
    y = X[:, 0] > 0
    machine = RFMClassifier(n_iter=3).fit(X, y, X_val=X, y_val=y)
    assert [h["val_score"] for h in machine.history_] == [1.0] * 4
    assert machine.n_iter_ == 0


def test_validation_data_are_checked():
    X, y = sample()
    with pytest.raises(ValueError, match="X_val and y_val must be given together"):
        RFMRegressor().fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="X has 4 features, but RFMRegressor"):
        RFMRegressor().fit(X, y, X_val=X[:, :4], y_val=y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        RFMRegressor().fit(X, y, X_val=X, y_val=y[:-1])
    with pytest.raises(ValueError, match="not both"):
        RFMRegressor(validation_fraction=0.5).fit(X, y, X_val=X, y_val=y)
    with pytest.raises(ValueError, match="y_val contains labels that y does not"):
        RFMClassifier().fit(X, y > 0, X_val=X, y_val=np.full(60, 2))


def test_gradient_sample_is_exact_seeded_and_without_replacement(monkeypatch):
    X, y = sample()
    drawn = []
    original = agop.recursion.agop_factor

    def spy(f, rows, **options):
        drawn.append(rows.numpy())
        return original(f, rows, **options)

    monkeypatch.setattr(agop.recursion, "agop_factor", spy)
    RFMRegressor(n_iter=3, n_gradients=17, random_state=0).fit(X, y)
    assert [len(np.unique(rows)) for rows in drawn] == [17] * 3
    assert not (drawn[0] == drawn[1]).all()  # drawn anew for each update
    again, drawn = drawn, []
    RFMRegressor(n_iter=3, n_gradients=17, random_state=0).fit(X, y)
    np.testing.assert_array_equal(drawn, again)


def test_more_gradients_than_samples_means_all():
    X, y = sample()
    some = RFMRegressor(n_gradients=1000, random_state=0).fit(X, y)
    np.testing.assert_array_equal(some.M_, RFMRegressor().fit(X, y).M_)


def test_numpys_global_generator_is_left_alone():
    X, y = sample()
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    RFMRegressor(n_gradients=10, validation_fraction=0.2).fit(X, y)
    RFMRegressor(solver="iterative", n_iter=1).fit(X, y)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_an_interrupted_fit_leaves_the_last_machine():
    X, y = sample()

    def interrupt(machine):
        if machine.n_iter_ == 2:
            raise KeyboardInterrupt

    machine = RFMRegressor(n_iter=5)
    with pytest.raises(KeyboardInterrupt):
        machine.fit(X, y, callback=interrupt)
    expected = RFMRegressor(n_iter=2).fit(X, y)
    np.testing.assert_array_equal(machine.predict(X), expected.predict(X))
    assert len(machine.history_) == 3


def test_an_interrupted_refit_leaves_the_old_machine(monkeypatch):
    X, y = sample()
    machine = RFMRegressor(n_iter=1).fit(X, y)
    before = machine.predict(X)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(agop.solvers, "solve_cholesky_", interrupt)
    with pytest.raises(KeyboardInterrupt):
        machine.set_params(kernel="quadratic", bandwidth=1.0).fit(X + 5, y)
    np.testing.assert_array_equal(machine.predict(X), before)
    assert len(machine.history_) == 2


# Solvers inside the estimator


def test_iterative_solver_agrees_with_cholesky():
    X, y = sample(400, 6)
    exact = RFMRegressor(n_iter=3, ridge=0.01).fit(X, y)
    machine = RFMRegressor(
        n_iter=3, ridge=0.01, solver=NystromCG(rank=100, tol=1e-8), random_state=0
    ).fit(X, y)
    Z = sample(100, 6, seed=1)[0]
    assert relative(machine.predict(Z), exact.predict(Z)) < 1e-6
    assert relative(machine.M_, exact.M_) < 1e-6
    assert machine.converged_
    assert all(0 < h["solver_iterations"] < 400 for h in machine.history_)


def test_an_unconverged_fit_says_so():
    X, y = sample(200)
    machine = RFMRegressor(n_iter=1, solver=NystromCG(rank=3, max_iter=2))
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    assert not machine.converged_
    assert machine.history_[0]["residual"] > 1e-6


def test_a_small_budget_switches_to_the_iterative_solver():
    X, y = sample(3000, 3)  # two square arrays: 0.144 GB
    machine = RFMRegressor(n_iter=1, memory_gb=0.1, random_state=0).fit(X, y)
    assert "residual" in machine.history_[0]
    assert "residual" not in RFMRegressor(n_iter=0).fit(X, y).history_[0]


# Degenerate data


def test_constant_targets():
    X, _ = sample()
    zero = RFMRegressor().fit(X, np.zeros(60))
    assert zero.n_iter_ == 0  # no gradient: M stays the identity
    np.testing.assert_array_equal(zero.M_, np.eye(5))
    np.testing.assert_array_equal(zero.predict(X), np.zeros(60))
    one = RFMRegressor().fit(X, np.ones(60))
    assert np.isfinite(one.M_).all()
    np.testing.assert_allclose(one.predict(X), 1.0, atol=0.01)


@pytest.mark.parametrize("power", [0.5, 1.0])
@pytest.mark.parametrize("diagonal", [False, True])
def test_gradients_that_underflow_end_the_recursion(diagonal, power):
    # Gaussian values of e⁻⁴⁵⁰ between samples: the squares of gradients have no digits.
    X = 30.0 * np.eye(6)
    machine = RFMRegressor("gaussian", bandwidth=1.0, diagonal=diagonal, power=power)
    machine.fit(X, np.arange(1.0, 7.0))
    assert machine.n_iter_ == 0


def test_constant_features_and_one_sample():
    X, y = sample()
    X[:, 1] = 7.0
    machine = RFMRegressor().fit(X, y)
    assert machine.feature_importances_[1] < 1e-30
    assert np.isfinite(machine.predict(X)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # R² of one sample
        lone = RFMRegressor(ridge=0.0).fit(X[:1], y[:1])
    np.testing.assert_allclose(lone.predict(X[:1]), y[:1])


def test_duplicated_rows():
    X, y = sample(40)
    X2, y2 = np.vstack([X, X]), np.concatenate([y, y])
    machine = RFMRegressor(n_iter=2).fit(X2, y2)
    assert np.isfinite(machine.M_).all()
    # (K + λ I) with every row twice is the system of the distinct rows with λ / 2.
    half = RFMRegressor(n_iter=0, ridge=0.5e-3).fit(X, y)
    twice = RFMRegressor(n_iter=0, ridge=1e-3).fit(X2, y2)
    np.testing.assert_allclose(twice.predict(X), half.predict(X), atol=1e-9)
    with pytest.raises(KernelSolveError, match="ridge=0"):
        RFMRegressor(ridge=0.0).fit(X2, y2)


# Using the machine


def test_predictions_in_batches_equal_predictions_at_once():
    X, y = sample(700)
    machine = RFMRegressor(n_iter=1).fit(X, y)
    Z = sample(3000, 5, seed=1)[0]  # more than one strip
    batches = [machine.predict(Z[i : i + 170]) for i in range(0, 3000, 170)]
    np.testing.assert_allclose(np.concatenate(batches), machine.predict(Z), atol=1e-12)


def test_shapes_follow_the_target():
    X, y = sample()
    for target in (y, y[:, None], sample(C=3)[1]):
        machine = RFMRegressor(n_iter=1).fit(X, target)
        assert machine.predict(X[:7]).shape == (7, *target.shape[1:])
        assert machine.dual_coef_.shape == target.shape
        assert machine.gradient(X[:7]).shape == (7, target[:1].size, 5)
        assert machine.agop().shape == (5, 5)


def test_changing_a_parameter_after_the_fit_does_not_change_the_machine():
    X, y = sample()
    machine = RFMRegressor(n_iter=1).fit(X, y)
    before = machine.predict(X)
    machine.set_params(bandwidth=1.0, kernel="gaussian")
    np.testing.assert_array_equal(machine.predict(X), before)


def test_unfitted_machines_say_so():
    X, _ = sample()
    machine = RFMRegressor()
    for use in (lambda: machine.M_, lambda: machine.predict(X), machine.agop):
        with pytest.raises(NotFittedError):
            use()
    assert not hasattr(machine, "feature_importances_")


def test_clone_pickle_pipeline_and_grid_search():
    X, y = sample(90)
    machine = RFMRegressor(NeuralTangentKernel(2), solver=NystromCG(rank=9), ridge=0.1)
    assert clone(machine).get_params() == machine.get_params()
    fitted = RFMRegressor(n_iter=1).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    pipeline = make_pipeline(StandardScaler(), RFMRegressor(n_iter=1))
    grid = {"rfmregressor__bandwidth": [1.0, 10.0], "rfmregressor__diagonal": [True]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert (
        search.best_score_ > cross_val_score(RFMRegressor(n_iter=0), X, y, cv=3).mean()
    )


# Classification


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_classifier_is_the_regressor_on_one_hot_targets(n_classes):
    X, y = make_classification(
        120, 8, n_informative=5, n_classes=n_classes, random_state=0
    )
    labels = np.array(list("edcba"))[y]  # sorted labels are not in the order of y
    machine = RFMClassifier(n_iter=2).fit(X, labels)
    assert list(machine.classes_) == sorted(set(labels))
    T = (labels[:, None] == machine.classes_) * 1.0
    twin = RFMRegressor(n_iter=2).fit(X, T)
    np.testing.assert_array_equal(machine.M_, twin.M_)
    F = twin.predict(X)
    np.testing.assert_array_equal(machine.predict(X), machine.classes_[F.argmax(1)])
    decision = machine.decision_function(X)
    expected = F[:, 1] - F[:, 0] if n_classes == 2 else F
    np.testing.assert_array_equal(decision, expected)
    assert machine.history_[-1]["train_score"] == accuracy_score(
        labels, machine.predict(X)
    )


def test_probabilities_are_the_nearest_probability_vectors():
    X, y = load_iris(return_X_y=True)
    machine = RFMClassifier(n_iter=1, ridge=1e-4).fit(X[::3], y[::3])
    P, F = machine.predict_proba(X), machine.decision_function(X)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(1), 1)
    np.testing.assert_array_equal(machine.classes_[P.argmax(1)], machine.predict(X))
    assert (F < 0).any()
    # Nearest: no vertex of the simplex lies in the direction F − P from P
    # (the variational inequality of a projection).
    for vertex in np.eye(3):
        assert (((F - P) * (vertex - P)).sum(1) < 1e-12).all()


def test_one_class():
    X, _ = sample()
    machine = RFMClassifier(n_iter=2).fit(X, np.full(60, "only"))
    assert list(machine.classes_) == ["only"]
    assert (machine.predict(X) == "only").all()
    np.testing.assert_array_equal(machine.predict_proba(X), np.ones((60, 1)))


def test_classifier_refuses_continuous_targets():
    X, y = sample()
    with pytest.raises(ValueError, match="Unknown label type"):
        RFMClassifier().fit(X, y)
