"""Baselines from scikit-learn, each with a stated grid, under the same protocol.

Grids have 6 to 20 points, as many as those of the kernel methods or fewer; the
ranges are the usual ones for standardised columns. Boosting chooses its number of
rounds on the validation rows, as the RFM does its number of updates.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, ClassVar

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from .protocol import Candidate, Chosen, Method, Score
from .tables import Split

SELECT_ROWS = 4096  # as for the kernel methods
SEED = 0


class Baseline(Method):
    """A scikit-learn classifier with a grid of its parameters."""

    grid: ClassVar[dict[str, tuple[Any, ...]]] = {}

    def build(self, split: Split, **parameters: Any) -> Any:
        """The classifier with these parameters, not yet fitted."""
        raise NotImplementedError

    def candidates(self, split: Split) -> Iterable[Candidate]:
        """Every point of the grid."""
        split = split.at_most(SELECT_ROWS, SELECT_ROWS)
        for values in product(*self.grid.values()):
            chosen = dict(zip(self.grid, values, strict=True))
            yield Candidate(chosen, self._fit(split, **chosen)[1])

    def score(self, chosen: Chosen, fold: Split, selection: Split) -> Score:
        """Fit on all rows of the fold."""
        parameters = {k: v for k, v in chosen.items() if k != "validation"}
        return Score(self._fit(fold, **parameters)[1], {})

    def _fit(self, split: Split, **parameters: Any) -> tuple[Any, float]:
        """The fitted classifier and its accuracy; one class is a constant answer."""
        if len(np.unique(split.y)) == 1:
            return None, float((split.y_test == split.y[0]).mean())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = self.build(split, **parameters).fit(split.X, split.y)
        return model, float((model.predict(split.X_test) == split.y_test).mean())


class NearestNeighbours(Baseline):
    """k nearest neighbours, Euclidean."""

    name: ClassVar[str] = "k-nn"
    grid: ClassVar = {
        "n_neighbors": (1, 3, 5, 7, 11, 15, 25),
        "weights": ("uniform", "distance"),
    }

    def build(self, split: Split, **parameters: Any) -> Any:
        """With no more neighbours than rows."""
        k = min(parameters.pop("n_neighbors"), len(split.y))
        return KNeighborsClassifier(k, algorithm="brute", **parameters)


class Logistic(Baseline):
    """Multinomial logistic regression with an L2 penalty."""

    name: ClassVar[str] = "logistic"
    grid: ClassVar = {"C": (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)}

    def build(self, split: Split, **parameters: Any) -> Any:
        """At most 200 steps of L-BFGS."""
        return LogisticRegression(max_iter=200, **parameters)


class GaussianSVM(Baseline):
    """Support vector machine with a Gaussian kernel; gamma is in units of 1/d."""

    name: ClassVar[str] = "svm"
    max_rows: ClassVar[int] = 10_000
    grid: ClassVar = {
        "C": (0.1, 1.0, 10.0, 100.0, 1000.0),
        "gamma": (0.03, 0.3, 1.0, 3.0),
    }

    def build(self, split: Split, **parameters: Any) -> Any:
        """The kernel is exp(−gamma ‖x − z‖² / d)."""
        gamma = parameters.pop("gamma") / split.X.shape[1]
        return SVC(gamma=gamma, cache_size=500, **parameters)


class Forest(Baseline):
    """Random forest of 200 trees."""

    name: ClassVar[str] = "forest"
    grid: ClassVar = {
        "max_features": ("sqrt", 0.33, 1.0),
        "min_samples_leaf": (1, 3),
    }

    def build(self, split: Split, **parameters: Any) -> Any:
        """Seeded, one thread."""
        return RandomForestClassifier(200, random_state=SEED, n_jobs=1, **parameters)


class Boosting(Baseline):
    """Histogram gradient boosting, up to 200 rounds."""

    name: ClassVar[str] = "boosting"
    rounds: ClassVar[tuple[int, ...]] = (25, 50, 100, 200)
    grid: ClassVar = {"learning_rate": (0.03, 0.1, 0.3), "max_leaf_nodes": (7, 31)}

    def build(self, split: Split, **parameters: Any) -> Any:
        """Seeded; no early stopping, rounds are chosen like all else."""
        return HistGradientBoostingClassifier(
            early_stopping=False, random_state=SEED, **parameters
        )

    def candidates(self, split: Split) -> Iterator[Candidate]:
        """Every point of the grid with every number of rounds, fitted once."""
        split = split.at_most(SELECT_ROWS, SELECT_ROWS)
        for values in product(*self.grid.values()):
            chosen = dict(zip(self.grid, values, strict=True))
            model, accuracy = self._fit(split, max_iter=max(self.rounds), **chosen)
            if model is None:
                yield Candidate({**chosen, "max_iter": self.rounds[0]}, accuracy)
                continue
            for t, labels in enumerate(model.staged_predict(split.X_test), start=1):
                if t in self.rounds:
                    value = float((labels == split.y_test).mean())
                    yield Candidate({**chosen, "max_iter": t}, value)


class MLP(Baseline):
    """A ReLU network trained by Adam, at most 200 passes."""

    name: ClassVar[str] = "mlp"
    max_rows: ClassVar[int] = 10_000
    grid: ClassVar = {
        "hidden_layer_sizes": ((128,), (128, 128)),
        "alpha": (1e-4, 1e-2, 1.0),
    }

    def build(self, split: Split, **parameters: Any) -> Any:
        """Seeded."""
        sizes = tuple(parameters.pop("hidden_layer_sizes"))
        return MLPClassifier(sizes, max_iter=200, random_state=SEED, **parameters)


class XGBoost(Baseline):
    """XGBoost's trees, if it is installed; not a dependency."""

    name: ClassVar[str] = "xgboost"
    grid: ClassVar = {"learning_rate": (0.03, 0.1, 0.3), "max_depth": (3, 6)}

    def build(self, split: Split, **parameters: Any) -> Any:
        """200 rounds, one thread. The labels of a part may skip a class."""
        import xgboost

        model = xgboost.XGBClassifier(
            n_estimators=200, n_jobs=1, random_state=SEED, **parameters
        )
        return _Relabelled(model)


class XRFM(Baseline):
    """The authors' later tree of RFMs (package xrfm), if it is installed."""

    name: ClassVar[str] = "xrfm"
    max_rows: ClassVar[int] = 10_000
    grid: ClassVar = {"reg": (1.0, 0.1, 0.01, 0.001), "diag": (False, True)}

    def build(self, split: Split, **parameters: Any) -> Any:
        """Laplace kernel with L = 10, 5 iterations, 20 % of the rows for validation.

        The package cannot fit without validation rows and chooses the iteration by
        them; it is given some of the training rows, never the test rows.
        """
        import xrfm

        diag = parameters.pop("diag")
        model = {"kernel": "l2", "bandwidth": 10.0, "diag": diag}
        fit = {**parameters, "iters": 5, "verbose": False}
        machine = xrfm.xRFM({"model": model, "fit": fit}, device="cpu")
        return _Relabelled(_WithValidation(machine))


class _Relabelled:
    """Hands labels 0..c-1 to a model that cannot do with gaps between them."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> _Relabelled:
        self.classes, codes = np.unique(y, return_inverse=True)
        self.model.fit(X, codes)
        return self

    def predict(self, X: Any) -> Any:
        return self.classes[np.asarray(self.model.predict(X)).astype(int).ravel()]


class _WithValidation:
    """Sets every fifth row aside for a model whose `fit` insists on validation."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> None:
        held = np.arange(len(y)) % 5 == 0
        X, y = X.astype(np.float32), y.astype(np.int64)
        self.model.fit(X[~held], y[~held], X[held], y[held])

    def predict(self, X: Any) -> Any:
        return self.model.predict(X.astype(np.float32))


BASELINES: tuple[Callable[[], Method], ...] = (
    NearestNeighbours,
    Logistic,
    Forest,
    Boosting,
    GaussianSVM,
    MLP,
    XGBoost,
    XRFM,
)
