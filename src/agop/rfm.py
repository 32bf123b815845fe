"""Recursive Feature Machines as scikit-learn estimators.

The algorithm is in `agop.recursion`; here are parameters, validation, and the use
of the fitted machine. Arrays go in and come out; tensors stay inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)
from torch import Tensor
from tqdm import tqdm

from ._validation import check_integer, check_real
from .kernel_agop import Expansion, agop_factor, gradients
from .kernels import Kernel, Points, kernel_matmul, resolve_kernel, transform
from .recursion import NORMALISATIONS, Machine, iterate
from .solvers import NystromCG, Solver, default_memory, make_solver

__all__ = ["RFMClassifier", "RFMRegressor"]

_DTYPES = ("float64", "float32")
_Validation = tuple[NDArray[Any], NDArray[Any]]


class _Frame(NamedTuple):
    """What all machines of one fit have in common."""

    kernel: Kernel
    bandwidth: float
    origin: NDArray[Any]  # (d,)
    output_shape: tuple[int, ...]  # () or (C,)


class _BaseRFM(BaseEstimator):
    """What the regressor and the classifier share."""

    def __init__(
        self,
        kernel: str | Kernel = "laplace",
        *,
        bandwidth: float = 10.0,
        ridge: float = 1e-3,
        n_iter: int = 5,
        diagonal: bool = False,
        centred: bool = False,
        normalise: str = "max",
        power: float = 1.0,
        n_gradients: int | None = None,
        validation_fraction: float | None = None,
        solver: str | NystromCG = "auto",
        memory_gb: float | None = None,
        dtype: str = "float64",
        device: str = "auto",
        keep_history: bool = False,
        verbose: bool = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.n_iter = n_iter
        self.diagonal = diagonal
        self.centred = centred
        self.normalise = normalise
        self.power = power
        self.n_gradients = n_gradients
        self.validation_fraction = validation_fraction
        self.solver = solver
        self.memory_gb = memory_gb
        self.dtype = dtype
        self.device = device
        self.keep_history = keep_history
        self.verbose = verbose
        self.random_state = random_state

    # Where the two differ.

    def _encode(self, y: NDArray[Any]) -> NDArray[Any]:
        """Targets of shape (n, C)."""
        raise NotImplementedError

    def _score_outputs(self, F: NDArray[Any], y: NDArray[Any]) -> float:
        """R² or accuracy of the outputs F, of shape (n, C)."""
        raise NotImplementedError

    # Fitting.

    def _fit(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        validation: _Validation | None,
        callback: Callable[[Any], object] | None,
    ) -> None:
        """Run Algorithm 1 on checked data; keep the last machine, or the best."""
        rng = _generator(self.random_state)
        if self.validation_fraction is not None:
            X, y, validation = self._split(X, y, validation, rng)
        kernel = resolve_kernel(self.kernel)
        # Distances do not change with the origin, but keep more digits near it; the
        # mean is subtracted in float64, before any cast.
        origin = X.mean(0) * kernel.translation_invariant
        x, T = self._tensor(X - origin), self._tensor(self._encode(y))
        solver = self._make_solver(x, T, rng)
        frame = _Frame(kernel, self.bandwidth, origin, y.shape[1:])
        history: list[dict[str, Any]] = []
        best, best_score = None, -np.inf
        machines = self._iterate(x, T, kernel, solver, rng)
        try:
            for machine in tqdm(
                machines, "RFM", self.n_iter + 1, disable=not self.verbose
            ):
                self._keep(machine, frame, history, solver.converged)
                outputs = T - self.ridge * machine.A  # = K A: no kernel is needed
                record = self._record(machine.t, outputs, y, validation)
                history.append(record | solver.report)
                # Without validation data the latest is the best.
                score = record.get("val_score", machine.t)
                if score > best_score:
                    best, best_score = machine, score
                if callback is not None and callback(self):
                    break
        finally:  # also when interrupted: what is left behind is a fitted estimator
            if best is not None:
                self._keep(best, frame, history, solver.converged)

    def _iterate(
        self,
        x: Tensor,
        T: Tensor,
        kernel: Kernel,
        solver: Solver,
        rng: np.random.Generator,
    ) -> Iterator[Machine]:
        """Algorithm 1 with the parameters of this estimator."""
        return iterate(
            x,
            T,
            kernel,
            solver,
            rng,
            bandwidth=self.bandwidth,
            ridge=self.ridge,
            n_iter=self.n_iter,
            n_gradients=self.n_gradients,
            diagonal=self.diagonal,
            centred=self.centred,
            power=self.power,
            normalise=self.normalise,
        )

    def _make_solver(self, x: Tensor, T: Tensor, rng: np.random.Generator) -> Solver:
        """The solver, after a check that it and the rest fit in memory."""
        (n, d), C = x.shape, T.shape[1]
        square = 0 if self.diagonal else d * min(d, n * C)  # R, its update, S
        budget = self.memory_gb
        return make_solver(
            self.solver,
            x,
            n,
            C,
            budget=default_memory(x.device) if budget is None else budget * 1e9,
            besides=(4 * n * d + 3 * square) * x.itemsize,
            rng=rng,
        )

    def _keep(
        self,
        machine: Machine,
        frame: _Frame,
        history: list[dict[str, Any]],
        converged: bool,
    ) -> None:
        """Make this machine the fitted one; all at once, as a refit may be stopped."""
        t, R, z, A = machine
        self.__dict__.update(
            _frame=frame,
            history_=history,
            converged_=converged,
            n_iter_=t,
            factor_=_numpy(R),
            Y_fit_=_numpy(z.Y),
            dual_coef_=_numpy(A).reshape(-1, *frame.output_shape),
        )

    def _record(
        self,
        t: int,
        outputs: Tensor,
        y: NDArray[Any],
        validation: _Validation | None,
    ) -> dict[str, Any]:
        """Entry of `history_` for the machine just kept."""
        record: dict[str, Any] = {"iteration": t}
        record["train_score"] = self._score_outputs(_numpy(outputs), y)
        if validation is not None:
            X_val, y_val = validation
            record["val_score"] = self._score_outputs(self._outputs(X_val), y_val)
        if self.keep_history:
            record["M"] = self.M_
        return record

    def _split(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        validation: _Validation | None,
        rng: np.random.Generator,
    ) -> tuple[NDArray[Any], NDArray[Any], _Validation]:
        """Set `validation_fraction` of the samples aside."""
        if validation is not None:
            raise ValueError("give X_val and y_val, or validation_fraction: not both")
        X, X_val, y, y_val = train_test_split(
            X,
            y,
            test_size=self.validation_fraction,
            stratify=y if isinstance(self, ClassifierMixin) else None,
            random_state=int(rng.integers(2**31)),
        )
        return X, y, (X_val, y_val)

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        """A copy of the array in the precision and on the device of the fit."""
        device = self.device
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        return torch.tensor(array, dtype=getattr(torch, self.dtype), device=device)

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, by name."""
        resolve_kernel(self.kernel)
        check_real(self.bandwidth, "bandwidth")
        check_real(self.ridge, "ridge", positive=False)
        check_integer(self.n_iter, "n_iter", minimum=0)
        check_real(self.power, "power")
        if self.n_gradients is not None:
            check_integer(self.n_gradients, "n_gradients")
        if self.memory_gb is not None:
            check_real(self.memory_gb, "memory_gb")
        if self.validation_fraction is not None:
            fraction = check_real(self.validation_fraction, "validation_fraction")
            if fraction >= 1:
                raise ValueError(
                    f"validation_fraction must be less than 1, got {fraction!r}"
                )
        for name, choices in (("normalise", NORMALISATIONS), ("dtype", _DTYPES)):
            if getattr(self, name) not in choices:
                value = getattr(self, name)
                raise ValueError(f"{name} must be one of {choices}, got {value!r}")

    def _check_validation(self, X_val: Any, y_val: Any) -> _Validation | None:
        """The validation set as arrays, or None."""
        if X_val is None and y_val is None:
            return None
        if X_val is None or y_val is None:
            raise ValueError("X_val and y_val must be given together")
        check_array(X_val, input_name="X_val")
        y_val = check_array(y_val, input_name="y_val", ensure_2d=False, dtype=None)
        X_val = validate_data(self, X_val, reset=False, dtype=np.float64)
        check_consistent_length(X_val, y_val)
        return X_val, y_val

    # Using the fitted machine.

    def _expansion(self) -> Expansion:
        """The fitted predictor in the coordinates of its samples."""
        check_is_fitted(self)
        z = Points.of(self._tensor(self.Y_fit_))
        A = self.dual_coef_.reshape(z.n, -1)
        return Expansion(self._frame.kernel, z, self._tensor(A))

    def _points(self, X: NDArray[Any]) -> Points:
        """Samples in the coordinates of the fitted predictor."""
        x, R = self._tensor(X - self._frame.origin), self._tensor(self.factor_)
        return Points.of(transform(x, R, self._frame.bandwidth))

    def _outputs(self, X: NDArray[Any]) -> NDArray[Any]:
        """f(X) of shape (n, C)."""
        kernel, z, A, *_ = self._expansion()
        return _numpy(kernel_matmul(kernel, self._points(X), z, A))

    def _check_samples(self, X: ArrayLike) -> NDArray[Any]:
        """New samples as an array."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64)

    def gradient(self, X: ArrayLike) -> NDArray[Any]:
        """Gradients of the outputs with respect to the input.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, C, d)
            C is 1 for a single target. At a training sample, where the Laplace
            kernel has a kink, that sample's own term counts as zero.
        """
        G = gradients(self._expansion(), self._points(self._check_samples(X)))
        W = self.factor_ / self._frame.bandwidth
        return _numpy(G) * W if W.ndim == 1 else _numpy(G) @ W.T

    def agop(
        self, X: ArrayLike | None = None, *, centred: bool = False
    ) -> NDArray[Any]:
        """Average gradient outer product of the fitted predictor, in closed form.

        (1/n) Σ_p J_pᵀ J_p, where J_p of shape (C, d) is the Jacobian of the outputs at
        sample p. Unnormalised, and of the present predictor: up to normalisation and
        power it is the M of the update that would come next.

        Parameters
        ----------
        X : array-like of shape (n, d), optional
            Samples to average over; the training samples by default.
        centred : bool, default=False
            Subtract the mean gradient of each output.

        Returns
        -------
        ndarray of shape (d, d), symmetric and positive semi-definite
        """
        y = None if X is None else self._points(self._check_samples(X))
        T = _numpy(agop_factor(self._expansion(), y, centred=centred))  # (r, q)
        W = self.factor_ / self._frame.bandwidth
        G = W[:, None] * T if W.ndim == 1 else W @ T  # (d, q)
        return G @ G.T

    @property
    def M_(self) -> NDArray[Any]:
        """The learned matrix M: (d, d), or its diagonal (d,) if `diagonal`."""
        check_is_fitted(self)
        if self.factor_.ndim == 2:
            return self.factor_ @ self.factor_.T
        m = self.factor_**2
        return m if self.diagonal else np.diag(m)

    @property
    def feature_importances_(self) -> NDArray[Any]:
        """Diagonal of M divided by its sum, of shape (d,)."""
        check_is_fitted(self)
        R = self.factor_.reshape(self.n_features_in_, -1)
        m = np.einsum("ij,ij->i", R, R)
        return m / m.sum()


class RFMRegressor(RegressorMixin, _BaseRFM):
    """Recursive Feature Machine for regression.

    Kernel ridge regression under a Mahalanobis matrix M that is learned: after each
    fit M becomes the average gradient outer product (AGOP) of the predictor
    (Radhakrishnan et al., Science 383, 2024, Algorithm 1). Inputs are not scaled
    and targets are not centred.

    Parameters
    ----------
    kernel : str or Kernel, default="laplace"
        "laplace", "gaussian", "quadratic", "ntk1" … "ntk5", or a kernel of
        `agop.kernels`.
    bandwidth : float, default=10.0
        L in exp(−‖x − z‖_M / L); for the other kernels see `agop.kernels`.
    ridge : float, default=1e-3
        λ in (K + λ I) A = Y; not divided or multiplied by n. May be 0.
    n_iter : int, default=5
        Number of updates of M, each followed by a fit: n_iter + 1 systems are
        solved, and 0 is plain kernel ridge regression. This is the count T of
        Algorithm 1; where a source numbers fits, with the plain kernel as the first
        of "5 iterations", its 5 are n_iter=4 here.
    diagonal : bool, default=False
        Learn the diagonal of M only. Nothing of size d × d is formed.
    centred : bool, default=False
        Subtract from the gradients of each output their mean over the samples.
    normalise : {"max", "trace", "none"}, default="max"
        Divide M by its largest entry; or scale it to the trace d of the identity;
        or leave it, so that the effective bandwidth changes with every update.
    power : float, default=1.0
        M is the AGOP to this power (normalised after).
    n_gradients : int, optional
        Average over so many samples only, drawn anew for each update, without
        replacement; all of them by default, or where there are fewer.
    validation_fraction : float, optional
        Share of the samples to set aside in order to keep the best of the n_iter + 1
        machines (the earliest of equals). By default nothing is set aside and the
        last machine is kept.
    solver : {"auto", "cholesky", "iterative"} or NystromCG, default="auto"
        "auto" is Cholesky up to 20,000 samples if two n × n arrays fit in memory, and
        otherwise preconditioned conjugate gradients.
    memory_gb : float, optional
        Memory that a fit may use, in units of 10⁹ bytes; three quarters of what the
        device has by default. The iterative solver keeps what it can of K within it.
    dtype : {"float64", "float32"}, default="float64"
        Precision. Without a ridge float32 fails as soon as M is nearly singular.
    device : str, default="auto"
        A torch device; "auto" is "cuda" where there is one, otherwise "cpu".
    keep_history : bool, default=False
        Store M after every update in `history_`.
    verbose : bool, default=False
        Show a progress bar.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws (gradient samples, validation samples, preconditioner).

    Attributes
    ----------
    M_ : ndarray of shape (d, d), or (d,) if `diagonal`
        The learned matrix, or its diagonal.
    factor_ : ndarray of shape (d, r) or (d,)
        R with M = R Rᵀ; a vector stands for a diagonal matrix.
    dual_coef_ : ndarray of shape (n,) or (n, C)
        Coefficients A of f(x) = Σ_i A_i k_M(x, x_i).
    Y_fit_ : ndarray of shape (n, r)
        Training samples in the coordinates X R / L (origin at their mean for the
        Laplace and Gaussian kernels).
    feature_importances_ : ndarray of shape (d,)
        Diagonal of M divided by its sum.
    history_ : list of dict
        For each machine: "iteration", "train_score", "val_score" if there are
        validation data, "M" if `keep_history`, and, from the iterative solver,
        "solver_iterations" and "residual".
    n_iter_ : int
        Updates of M in the machine that was kept.
    converged_ : bool
        False if the iterative solver fell short in any fit (it also warns).
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Examples
    --------
    >>> import numpy as np
    >>> from agop.rfm import RFMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1.0, 1.0], (400, 20))
    >>> y = X[:, 0] * X[:, 1]
    >>> machine = RFMRegressor(ridge=0.0).fit(X[:300], y[:300])
    >>> round(machine.score(X[300:], y[300:]), 2)
    1.0
    >>> machine.feature_importances_.argsort()[-2:]
    array([0, 1])
    """

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        callback: Callable[[RFMRegressor], object] | None = None,
    ) -> RFMRegressor:
        """Learn M and the coefficients.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, C)
        X_val, y_val : array-like, optional
            Samples by which the best machine is chosen (R²). They must not be test
            samples.
        callback : callable, optional
            Called with this estimator, which is then fitted and usable, after each
            of the n_iter + 1 fits. Return a true value to stop there.

        Returns
        -------
        self : RFMRegressor
            If the fit is interrupted, the machine kept until then stays.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        MemoryError
            Before anything large is allocated, if the fit would not fit.
        KernelSolveError
            If K + λ I is not positive definite in this precision.
        """
        self._check_parameters()
        data: _Validation = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, multi_output=True
        )
        self._fit(*data, self._check_validation(X_val, y_val), callback)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """f(X).

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,) or (n, C)
        """
        F = self._outputs(self._check_samples(X))
        return F.reshape(-1, *self._frame.output_shape)

    def _encode(self, y: NDArray[Any]) -> NDArray[Any]:
        return y.reshape(len(y), -1)

    def _score_outputs(self, F: NDArray[Any], y: NDArray[Any]) -> float:
        return float(r2_score(self._encode(y), F))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class RFMClassifier(ClassifierMixin, _BaseRFM):
    """Recursive Feature Machine for classification.

    An `RFMRegressor` with one output per class, fitted to one-hot targets (zeros and
    ones, also for two classes); the class with the largest output is predicted. See
    `RFMRegressor` for parameters and attributes; scores in `history_` are
    accuracies, and validation samples are drawn stratified by class.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Class labels. A single class is allowed, and then always predicted.

    Examples
    --------
    >>> from agop.rfm import RFMClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = RFMClassifier(n_iter=2).fit(X[::2], y[::2])
    >>> machine.score(X[1::2], y[1::2]) > 0.9
    True
    """

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        callback: Callable[[RFMClassifier], object] | None = None,
    ) -> RFMClassifier:
        """Learn M and the coefficients; see `RFMRegressor.fit`.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Labels.
        X_val, y_val : array-like, optional
            Samples by which the best machine is chosen (accuracy).
        callback : callable, optional

        Returns
        -------
        self : RFMClassifier
        """
        self._check_parameters()
        data: _Validation = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(data[1])
        self.classes_ = np.unique(data[1])
        validation = self._check_validation(X_val, y_val)
        if validation is not None and not np.isin(validation[1], self.classes_).all():
            raise ValueError("y_val contains labels that y does not")
        self._fit(*data, validation, callback)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        """Outputs of shape (n, C); for two classes their difference, (n,)."""
        F = self._outputs(self._check_samples(X))
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class with the largest output, of shape (n,)."""
        return self._decide(self._outputs(self._check_samples(X)))

    def predict_proba(self, X: ArrayLike) -> NDArray[Any]:
        """The probability vector nearest to the outputs, of shape (n, C).

        Outputs fitted by least squares to one-hot targets estimate probabilities,
        but may be negative or not sum to one. Their Euclidean projection on the
        probability simplex repairs that; it keeps the order of the classes, and it
        never increases the Brier score.
        """
        return _project_on_simplex(self._outputs(self._check_samples(X)))

    def _decide(self, F: NDArray[Any]) -> NDArray[Any]:
        return self.classes_[F.argmax(1)]

    def _encode(self, y: NDArray[Any]) -> NDArray[Any]:
        return (y[:, None] == self.classes_).astype(float)

    def _score_outputs(self, F: NDArray[Any], y: NDArray[Any]) -> float:
        return float(accuracy_score(y, self._decide(F)))


def _project_on_simplex(F: NDArray[Any]) -> NDArray[Any]:
    """Nearest point of the probability simplex to each row of F.

    The projection is max(F − τ, 0), with τ such that the row sums to one.
    """
    ordered = -np.sort(-F, axis=1)
    count = np.arange(1, F.shape[1] + 1)
    tau = (ordered.cumsum(1) - 1) / count  # τ if the k largest entries stay positive
    k = (ordered > tau).sum(1)  # as many as that is consistent for
    P = np.maximum(F - tau[np.arange(len(F)), k - 1][:, None], 0)
    return P / P.sum(1, keepdims=True)


def _generator(
    seed: int | np.random.Generator | np.random.RandomState | None,
) -> np.random.Generator:
    """A generator of its own, so that numpy's global one is never touched."""
    if isinstance(seed, np.random.RandomState):
        seed = int(seed.randint(2**31 - 1))
    return np.random.default_rng(seed)


def _numpy(tensor: Tensor) -> NDArray[Any]:
    """The tensor as an array; without a copy on the CPU."""
    return tensor.detach().cpu().numpy()
