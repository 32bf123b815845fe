"""What must hold for any data: symmetries of the Recursive Feature Machine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agop.rfm import RFMClassifier, RFMRegressor

INVARIANT = ("laplace", "gaussian")
KERNELS = (*INVARIANT, "quadratic", "ntk1", "ntk3")

# The same examples on every run: a reference that CI can repeat.
quick = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def data(draw, outputs=2):
    """X (n, d) and Y (n, C): Gaussian, of drawn shape, scale and seed."""
    n, d = draw(st.integers(8, 30)), draw(st.integers(2, 12))
    C = draw(st.integers(1, outputs))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    scale = 10.0 ** draw(st.integers(-1, 1))
    return scale * rng.standard_normal((n, d)), rng.standard_normal((n, C))


@st.composite
def machines(draw, kernels=KERNELS, diagonal=None):
    """An estimator with drawn options, well conditioned by its ridge."""
    return RFMRegressor(
        draw(st.sampled_from(kernels)),
        bandwidth=draw(st.sampled_from([1.0, 5.0])),
        ridge=draw(st.sampled_from([0.1, 1.0])),
        n_iter=draw(st.integers(0, 3)),
        diagonal=draw(st.booleans()) if diagonal is None else diagonal,
        centred=draw(st.booleans()),
        normalise=draw(st.sampled_from(["max", "trace"])),
        power=draw(st.sampled_from([0.5, 1.0])),
    )


def full(machine):
    """M as a matrix."""
    return np.diag(machine.M_) if machine.diagonal else machine.M_


def same(a, b, tolerance=1e-6):
    """Equal relative to the largest entry.

    The kernels have kinks and M has powers: rounding errors of 1e-16 are amplified by
    the condition of K + λ I and by the square root, hence not 1e-12.
    """
    assert np.abs(a - b).max() <= tolerance * max(1e-300, np.abs(b).max())


@quick
@given(data(), machines())
def test_m_is_symmetric_and_positive_semidefinite(xy, machine):
    X, Y = xy
    machine.fit(X, Y)
    for M in (full(machine), machine.agop(), machine.agop(X[:3])):
        same(M, M.T, 1e-12)
        values = np.linalg.eigvalsh(M)
        assert values[0] >= -1e-10 * max(values[-1], 1e-300)
    if machine.n_iter_ > 0 and machine.normalise == "max":
        assert full(machine).max() == pytest.approx(1)


@quick
@given(data(), machines(), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(xy, machine, random):
    X, Y = xy
    order = list(range(len(X)))
    random.shuffle(order)
    M, F = full(machine.fit(X, Y)), machine.predict(X)
    machine.fit(X[order], Y[order])
    same(full(machine), M)
    same(machine.predict(X), F)


@quick
@given(data(), machines(INVARIANT), st.floats(-100, 100))
def test_translation_changes_nothing(xy, machine, shift):
    X, Y = xy
    t = shift * np.linspace(-1, 1, X.shape[1])
    M, F = full(machine.fit(X, Y)), machine.predict(X)
    machine.fit(X + t, Y)
    same(full(machine), M)
    same(machine.predict(X + t), F)


@quick
@given(data(), machines(diagonal=False), st.integers(0, 2**31))
def test_an_orthogonal_change_of_coordinates_rotates_m(xy, machine, seed):
    X, Y = xy
    machine.set_params(normalise="trace")  # "max" depends on the coordinates
    d = X.shape[1]
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    M, F = full(machine.fit(X, Y)), machine.predict(X)
    machine.fit(X @ Q, Y)
    same(full(machine), Q.T @ M @ Q)
    same(machine.predict(X @ Q), F)


@quick
@given(data(), machines(), st.permutations(range(12)))
def test_permuted_columns_permute_m(xy, machine, order):
    X, Y = xy
    order = [i for i in order if i < X.shape[1]]
    M = full(machine.fit(X, Y))
    same(full(machine.fit(X[:, order], Y)), M[np.ix_(order, order)])


@quick
@given(data(), machines(INVARIANT), st.floats(0.1, 10))
def test_scaling_x_and_bandwidth_together_changes_nothing(xy, machine, s):
    X, Y = xy
    M, F = full(machine.fit(X, Y)), machine.predict(X)
    machine.set_params(bandwidth=s * machine.bandwidth).fit(s * X, Y)
    same(full(machine), M)
    same(machine.predict(s * X), F)


@quick
@given(data(), machines(), st.sampled_from([-3.0, 0.5, 1e3]))
def test_the_machine_is_linear_in_the_target_once_m_is_normalised(xy, machine, s):
    X, Y = xy
    M, F = full(machine.fit(X, Y)), machine.predict(X)
    machine.fit(X, s * Y)
    same(full(machine), M)
    same(machine.predict(X), s * F)


@quick
@given(data(), machines(), st.integers(1, 8))
def test_duplicated_rows_are_harmless(xy, machine, copies):
    X, Y = xy
    X2, Y2 = np.vstack([X, X[:copies]]), np.vstack([Y, Y[:copies]])
    machine.fit(X2, Y2)
    assert np.isfinite(full(machine)).all()
    F = machine.predict(X2)
    same(F[len(X) :], F[:copies], 1e-9)


@quick
@given(data(), machines(), st.floats(-5, 5))
def test_a_constant_target(xy, machine, value):
    X, _ = xy
    machine.fit(X, np.full(len(X), value))
    assert np.isfinite(full(machine)).all()
    assert np.isfinite(machine.predict(X)).all()
    if value == 0:
        assert (machine.predict(X) == 0).all()


@quick
@given(data(), machines())
def test_one_class(xy, machine):
    X, _ = xy
    options = machine.get_params()
    classifier = RFMClassifier(**options).fit(X, np.ones(len(X), int))
    assert (classifier.predict(X) == 1).all()


@quick
@given(data(), machines(), st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
def test_nan_and_infinity_are_refused_by_name(xy, machine, bad, drawn):
    X, Y = xy
    array, name = drawn.draw(st.sampled_from([(X, "X"), (Y, "y")]))
    array[drawn.draw(st.integers(0, len(X) - 1)), 0] = bad
    with pytest.raises(ValueError, match=f"Input {name} contains (NaN|infinity)"):
        machine.fit(X, Y)


@quick
@given(data(), machines(), st.integers(1, 7))
def test_predictions_in_batches_equal_predictions_at_once(xy, machine, size):
    X, Y = xy
    machine.fit(X, Y)
    batches = [machine.predict(X[i : i + size]) for i in range(0, len(X), size)]
    same(np.concatenate(batches), machine.predict(X), 1e-9)
