"""Methods of the second benchmark, each a grid of fitted predictors.

RFM and Laplace kernel share the code of the first benchmark. The trees are
scikit-learn's, and XGBoost's where it is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from agop.kernels import LaplaceKernel, Points, kernel_matmul, transform
from agop.recursion import Machine

from .kernel_methods import BANDWIDTH, N_FITS, rfm_path

Predictor = Callable[[NDArray[Any]], NDArray[Any]]
Candidates = Iterator[tuple[dict[str, Any], Predictor]]
SEED = 0


class RFMLearner:
    """RFM: 3 ridges, full or diagonal M, up to 5 fits; L = 10, M not normalised."""

    categories: ClassVar[str] = "indicators"
    ridges: ClassVar[tuple[float, ...]] = (0.1, 0.01, 0.001)
    n_fits: ClassVar[int] = N_FITS

    def regress(self, X: NDArray[Any], y: NDArray[Any], coded: Sequence[int]) -> Any:
        """Kernel ridge regression on y, (n,)."""
        return self._grid(X, y[:, None], lambda F: F[:, 0])

    def classify(self, X: NDArray[Any], y: NDArray[Any], coded: Sequence[int]) -> Any:
        """The same on one-hot labels; the largest output is predicted."""
        kinds, codes = np.unique(y, return_inverse=True)
        return self._grid(X, np.eye(len(kinds))[codes], lambda F: kinds[F.argmax(1)])

    def _grid(self, X: NDArray[Any], T: NDArray[Any], read: Predictor) -> Candidates:
        origin = X.mean(0)
        x, targets = torch.from_numpy(X - origin), torch.from_numpy(T)
        path = rfm_path(x, targets, ridges=self.ridges, n_fits=self.n_fits)
        for ridge, diagonal, machine in path:
            chosen = {"ridge": ridge, "diagonal": diagonal, "updates": machine.t}
            yield self._named(chosen), _predictor(machine, origin, read)

    def _named(self, chosen: dict[str, Any]) -> dict[str, Any]:
        return chosen


class LaplaceLearner(RFMLearner):
    """The same without any update of M: kernel ridge regression."""

    n_fits: ClassVar[int] = 1

    def _named(self, chosen: dict[str, Any]) -> dict[str, Any]:
        return {"ridge": chosen["ridge"]}


def _predictor(machine: Machine, origin: NDArray[Any], read: Predictor) -> Predictor:
    def predict(X: NDArray[Any]) -> NDArray[Any]:
        x = torch.from_numpy(X - origin)
        z = Points.of(transform(x, machine.R, BANDWIDTH))
        return read(kernel_matmul(LaplaceKernel(), z, machine.z, machine.A).numpy())

    return predict


class TreeLearner:
    """Trees of another library with a grid of their parameters."""

    categories: ClassVar[str] = "indicators"
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {}

    def regress(self, X: NDArray[Any], y: NDArray[Any], coded: Sequence[int]) -> Any:
        """Least squares on y, (n,)."""
        return self._grid("Regressor", X, y, coded)

    def classify(self, X: NDArray[Any], y: NDArray[Any], coded: Sequence[int]) -> Any:
        """Labels, (n,)."""
        return self._grid("Classifier", X, y, coded)

    def _grid(
        self, kind: str, X: NDArray[Any], y: NDArray[Any], coded: Sequence[int]
    ) -> Candidates:
        for values in product(*self.grid.values()):
            chosen = dict(zip(self.grid, values, strict=True))
            yield chosen, self.build(kind, coded, **chosen).fit(X, y).predict

    def build(self, kind: str, coded: Sequence[int], **parameters: Any) -> Any:
        """The model with these parameters, not yet fitted; one thread, seeded."""
        raise NotImplementedError


class ForestLearner(TreeLearner):
    """Random forest of 200 trees, 6 points."""

    grid: ClassVar = {"max_features": ("sqrt", 0.33, 1.0), "min_samples_leaf": (1, 5)}

    def build(self, kind: str, coded: Sequence[int], **parameters: Any) -> Any:
        """scikit-learn's."""
        from sklearn import ensemble

        model = getattr(ensemble, f"RandomForest{kind}")
        return model(200, random_state=SEED, n_jobs=1, **parameters)


class BoostingLearner(TreeLearner):
    """Histogram gradient boosting, 12 points; splits categories by itself."""

    categories: ClassVar[str] = "codes"
    grid: ClassVar = {
        "learning_rate": (0.03, 0.1, 0.3),
        "max_leaf_nodes": (7, 31),
        "max_iter": (100, 300),
    }

    def build(self, kind: str, coded: Sequence[int], **parameters: Any) -> Any:
        """scikit-learn's, without early stopping."""
        from sklearn import ensemble

        model = getattr(ensemble, f"HistGradientBoosting{kind}")
        return model(
            early_stopping=False,
            categorical_features=list(coded) or None,
            random_state=SEED,
            **parameters,
        )


class XGBoostLearner(TreeLearner):
    """XGBoost, 12 points; an extra, not a dependency."""

    grid: ClassVar = {
        "learning_rate": (0.03, 0.1, 0.3),
        "max_depth": (3, 6),
        "n_estimators": (100, 300),
    }

    def build(self, kind: str, coded: Sequence[int], **parameters: Any) -> Any:
        """Its scikit-learn interface."""
        import xgboost

        return getattr(xgboost, f"XGB{kind}")(n_jobs=1, random_state=SEED, **parameters)


LEARNERS: dict[str, Any] = {
    "rfm": RFMLearner(),
    "laplace": LaplaceLearner(),
    "forest": ForestLearner(),
    "boosting": BoostingLearner(),
    "xgboost": XGBoostLearner(),
}
