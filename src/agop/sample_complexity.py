r"""How many samples kernel ridge regression needs, and how the number grows.

For proposition 6 of Radhakrishnan, Beaglehole, Pandit and Belkin (2024): a polynomial
kernel on x against the same kernel on :math:`M^{1/2} x`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.kernel_ridge import KernelRidge

from agop._validation import check_integer, check_real
from agop.similarity import matrix_power

Array = NDArray[np.float64]


def learning_curve(
    target: Callable[[Array], Array],
    d: int,
    sizes: Sequence[int],
    *,
    metric: ArrayLike | None = None,
    kernel: str = "polynomial",
    degree: int = 2,
    ridges: Sequence[float] = (1e-8,),
    noise: float = 0.0,
    n_test: int = 1000,
    seed: int = 0,
) -> Array:
    r"""Return the test error of kernel ridge regression at each sample size.

    Inputs are drawn from N(0, I_d). With s the mean squared length of what the kernel
    sees, it is :math:`(1 + \langle z, z'\rangle / s)^p` or :math:`\exp(-\|z - z'\|^2 /
    2s)`: the scale is fixed by the data and nothing is tuned to the sample size.

    Parameters
    ----------
    target : callable
        Maps (n, d) to (n,).
    d : int
    sizes : sequence of int
        Sample sizes; smaller samples are parts of larger ones.
    metric : array of shape (d, d), optional
        M: the kernel is given :math:`M^{1/2} x`. The inputs themselves if absent.
    kernel : {"polynomial", "gaussian"}, default="polynomial"
    degree : int, default=2
        Of the polynomial kernel.
    ridges : sequence of float, default=(1e-8,)
        Of several, the best *on the test points* is kept at each size: an advantage
        that no real fit has.
    noise : float, default=0
        Standard deviation of noise on the training targets.
    n_test : int, default=1000
    seed : int, default=0
        Of inputs and noise.

    Returns
    -------
    array of shape (len(sizes),)
        Mean squared error over that of the zero function: 1 is no better than that.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range.

    Examples
    --------
    A quadratic of one variable is known from 3 points:

    >>> errors = learning_curve(lambda X: X[:, 0] ** 2, 1, (1, 3))
    >>> bool(errors[1] < 1e-6 < errors[0])
    True
    """
    if kernel not in ("polynomial", "gaussian"):
        raise ValueError(f"kernel must be 'polynomial' or 'gaussian', got {kernel!r}")
    if not ridges:
        raise ValueError("ridges must hold at least one ridge")
    sizes = [check_integer(n, "sizes") for n in sizes]
    noise = check_real(noise, "noise", positive=False)
    rng = np.random.default_rng(seed)
    X_test = rng.standard_normal((check_integer(n_test, "n_test"), d))
    X = rng.standard_normal((max(sizes), d))
    y_test, y = target(X_test), target(X)
    y = y + noise * rng.standard_normal(len(y))
    root = np.eye(d) if metric is None else matrix_power(np.asarray(metric), 0.5)
    options = _kernel(kernel, degree, scale=float((root**2).sum()))
    Z, Z_test = X @ root, X_test @ root

    def error(n: int, ridge: float) -> float:
        model = KernelRidge(alpha=check_real(ridge, "ridges"), **options)
        predicted = model.fit(Z[:n], y[:n]).predict(Z_test)
        return float(np.mean((predicted - y_test) ** 2) / np.mean(y_test**2))

    return np.array([min(error(n, ridge) for ridge in ridges) for n in sizes])


def _kernel(kernel: str, degree: int, scale: float) -> dict[str, Any]:
    """Return KernelRidge's names for the kernel, ``scale`` being E|z|²."""
    if kernel == "gaussian":
        return {"kernel": "rbf", "gamma": 0.5 / scale}
    degree = check_integer(degree, "degree")
    return {"kernel": "poly", "degree": degree, "gamma": 1 / scale, "coef0": 1.0}


def samples_needed(
    sizes: Sequence[int], errors: Sequence[float] | Array, level: float
) -> float:
    """Return the sample size from which the error stays below ``level``.

    Between the two sizes where it falls below for good, the error is taken as linear
    in the logarithm of the size. The first size if it is below from the start;
    infinity if the last error is not below.

    Raises
    ------
    ValueError
        If ``sizes`` don't increase, or ``errors`` has another length.

    Examples
    --------
    >>> round(samples_needed([1, 2, 4, 16], [0.9, 0.4, 0.6, 0.2], level=0.4), 6)
    8.0
    """
    sizes_, errors_ = np.asarray(sizes, dtype=float), np.asarray(errors, dtype=float)
    if sizes_.shape != errors_.shape or (np.diff(sizes_) <= 0).any():
        raise ValueError("sizes must increase, and errors have one value for each")
    above = np.flatnonzero(~(errors_ < level))
    if len(above) == 0:
        return float(sizes_[0])
    last = above[-1]
    if last == len(sizes_) - 1:
        return float("inf")
    share = (errors_[last] - level) / (errors_[last] - errors_[last + 1])
    return float(sizes_[last] * (sizes_[last + 1] / sizes_[last]) ** share)


def growth_exponent(x: Sequence[float], n: Sequence[float]) -> float:
    r"""Return q of the least-squares fit :math:`n \propto x^q`.

    Examples
    --------
    >>> round(growth_exponent([8, 16, 32], [64, 256, 1024]), 6)
    2.0
    """
    return float(np.polyfit(np.log(x), np.log(n), 1)[0])


def geometric_sizes(first: int, last: int, ratio: float = 1.1) -> list[int]:
    """Return increasing sample sizes from ``first`` to ``last``.

    Each is ``ratio`` times the one before, rounded, and at least one more.

    Examples
    --------
    >>> geometric_sizes(2, 20, 1.5)
    [2, 3, 4, 6, 9, 14, 20]
    """
    sizes = [check_integer(first, "first")]
    while sizes[-1] < last:
        sizes.append(min(last, max(sizes[-1] + 1, round(sizes[-1] * ratio))))
    return sizes
