r"""A detector of features that a model should not rely on.

Two steps. *Look*: the diagonal of the average gradient outer product says how strongly
the output responds to each coordinate, so the regions of an input can be ranked by the
mass that lies on them. *Check*: put one sample's region in the place of everybody
else's, and count what that costs in accuracy. The first step is cheap and may mislead
(a steep coordinate that never changes costs nothing); the second one is the evidence.
(Radhakrishnan, Beaglehole, Pandit and Belkin, 2024, Figs. 3C and 15B.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from agop._validation import check_integer
from agop.features import agop_finite_difference
from agop.networks import FullyConnected, eval_mode
from agop.progress import first_layer_diagonals, mass_share

Labels = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Finding:
    """What `detect` knows about one region.

    Attributes
    ----------
    region : str
    mass : float
        Share of the importance that lies on the region.
    area : float
        Share of the coordinates. Mass above area is more than an even spread.
    accuracy : float
        With the region replaced in every sample.
    lost : float
        Accuracy on the samples as they are, less ``accuracy``.
    """

    region: str
    mass: float
    area: float
    accuracy: float
    lost: float


def detect(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    regions: Mapping[str, ArrayLike],
    *,
    template: ArrayLike,
    importance: ArrayLike | None = None,
) -> list[Finding]:
    """Rank regions of the input by AGOP mass, and replace each in turn.

    Parameters
    ----------
    model : network, RFM, or anything with ``predict``
        A module is asked for its largest output, a callable must return labels.
    X : array of shape (m, d)
        Samples that the model was not trained on.
    y : array of shape (m,)
        Their labels.
    regions : mapping of names to bool arrays of shape (d,)
        See `patches`; or masks of parts whose meaning is known.
    template : array of shape (d,)
        The sample whose region everybody gets.
    importance : array of shape (d,), optional
        A non-negative weight for each coordinate, such as the diagonal of an NFM or of
        an RFM's M; by default `gradient_mass` of the model at ``X``.

    Returns
    -------
    list of Finding
        The region with most mass first; of equals, the one named first.

    Raises
    ------
    ValueError
        If shapes do not fit, or there is no region.

    Examples
    --------
    A model that looks at the first coordinate alone:

    >>> X = np.array([[1.0, -1.0], [-1.0, 1.0], [2.0, 0.5], [-2.0, -0.5]])
    >>> halves = {"left": [True, False], "right": [False, True]}
    >>> found = detect(lambda X: X[:, 0] > 0, X, X[:, 0] > 0, halves,
    ...                template=X[0], importance=[1.0, 0.0])
    >>> [(f.region, f.mass, f.lost) for f in found]
    [('left', 1.0, 0.5), ('right', 0.0, 0.0)]
    """
    X, y = _check_rows(X), np.asarray(y)
    if y.shape != X.shape[:1]:
        raise ValueError(f"y must have shape ({len(X)},), got {y.shape}")
    if not regions:
        raise ValueError("regions must name at least one region, got none")
    if importance is None:
        importance = gradient_mass(model, X)
    predict = labels_of(model)
    whole = float((predict(X) == y).mean())
    findings = []
    for name, mask in regions.items():
        mask = np.asarray(mask, dtype=bool)
        accuracy = float((predict(replaced(X, mask, template)) == y).mean())
        mass = mass_share(importance, mask)
        findings.append(
            Finding(name, mass, float(mask.mean()), accuracy, whole - accuracy)
        )
    return sorted(findings, key=lambda found: -found.mass)


def gradient_mass(model: Any, X: ArrayLike, *, chunk_size: int = 128) -> NDArray[Any]:
    r"""Return the diagonal of a model's AGOP, without the matrix.

    .. math::
        m_j = \frac1n \sum_{i=1}^n \sum_{c=1}^C
              \Bigl(\frac{\partial f_c}{\partial x_j}(x_i)\Bigr)^2 .

    Parameters
    ----------
    model : FullyConnected, estimator with ``gradient`` (an RFM), nn.Module, or any
        estimator with ``predict_proba`` or ``predict``
        The last kind is differentiated numerically, at 2 d predictions a sample: for
        few coordinates only.
    X : array of shape (n, d)
    chunk_size : int, default=128
        Samples differentiated at once.

    Returns
    -------
    array of shape (d,), float64

    Raises
    ------
    TypeError
        If the model is none of these.
    ValueError
        If ``X`` is no matrix.

    Examples
    --------
    >>> gradient_mass(nn.Linear(2, 1), np.eye(2)).shape
    (2,)
    """
    X = _check_rows(X)
    if isinstance(model, FullyConnected):
        diagonal = first_layer_diagonals(model, torch.as_tensor(X))[1]
        return diagonal.double().cpu().numpy()
    if hasattr(model, "gradient"):
        squares = (np.square(model.gradient(x)) for x in _chunks(X, chunk_size))
    elif isinstance(model, nn.Module):
        squares = (_module_squares(model, x) for x in _chunks(X, chunk_size))
    else:
        predict = getattr(model, "predict_proba", getattr(model, "predict", None))
        if predict is None:
            raise TypeError(
                "model must be a module or an estimator that predicts, got "
                f"{type(model).__name__}; or give importance"
            )
        return agop_finite_difference(predict, X).diagonal().copy()
    total = sum(s.sum((0, 1), dtype=np.float64) for s in squares)  # (d,)
    return np.asarray(total / len(X))


def _module_squares(model: nn.Module, x: NDArray[Any]) -> NDArray[Any]:
    """Squared derivatives of each output at each row, (m, C, d)."""

    def single(row: Tensor) -> Tensor:
        return model(row.unsqueeze(0)).flatten()  # (C,)

    with eval_mode(model):
        rows = torch.as_tensor(x).to(next(model.parameters()))
        J = torch.func.vmap(torch.func.jacrev(single))(rows)
    return J.detach().square().cpu().numpy()


def labels_of(model: Any) -> Labels:
    """Return a function from samples (m, d) to labels (m,).

    Parameters
    ----------
    model : estimator with ``predict``, nn.Module (class of the largest output), or a
        callable that returns labels

    Raises
    ------
    TypeError
        If the model is none of these.

    Examples
    --------
    >>> labels_of(nn.Identity())(np.array([[0.2, 0.8]]))
    array([1])
    """
    if hasattr(model, "predict"):
        return lambda X: np.asarray(model.predict(X))
    if isinstance(model, nn.Module):
        return lambda X: _largest_output(model, X)
    if callable(model):
        return lambda X: np.asarray(model(X))
    raise TypeError(f"model must predict or be callable, got {type(model).__name__}")


@torch.no_grad()
def _largest_output(model: nn.Module, X: NDArray[Any]) -> NDArray[Any]:
    x = torch.as_tensor(X)
    parameter = next(model.parameters(), x)
    with eval_mode(model):
        return model(x.to(parameter)).argmax(1).cpu().numpy()


def replaced(X: ArrayLike, mask: ArrayLike, template: ArrayLike) -> NDArray[Any]:
    """Return copies of samples in which a region is that of one sample.

    Parameters
    ----------
    X : array of shape (m, d)
    mask : bool array of shape (d,)
        The region.
    template : array of shape (d,)

    Raises
    ------
    ValueError
        If shapes do not fit each other.

    Examples
    --------
    >>> replaced([[1, 2], [3, 4]], [False, True], [7, 9])
    array([[1, 9],
           [3, 9]])
    """
    X, mask, template = np.asarray(X), np.asarray(mask, bool), np.asarray(template)
    if X.ndim != 2 or mask.shape != X.shape[1:] or template.shape != X.shape[1:]:
        raise ValueError(
            "X must be (m, d), mask and template (d,), got shapes "
            f"{X.shape}, {mask.shape} and {template.shape}"
        )
    return np.where(mask, template, X)


def patches(shape: tuple[int, ...], side: int) -> dict[str, NDArray[np.bool_]]:
    """Cut an image in squares; those at the right and lower edge may be smaller.

    Parameters
    ----------
    shape : (height, width) or (height, width, channels)
    side : int
        Of a square, in pixels.

    Returns
    -------
    dict of "row-column" to bool arrays of shape (height * width * channels,)
        They are disjoint and cover everything.

    Examples
    --------
    >>> [(name, int(mask.sum())) for name, mask in patches((2, 3), 2).items()]
    [('0-0', 4), ('0-1', 2)]
    """
    side = check_integer(side, "side")
    rows, columns = (np.arange(n) // side for n in shape[:2])
    found = {}
    for i in range(rows[-1] + 1):
        for j in range(columns[-1] + 1):
            mask = np.zeros(shape, dtype=bool)
            mask[np.ix_(rows == i, columns == j)] = True
            found[f"{i}-{j}"] = mask.ravel()
    return found


def top_pixels(
    importance: ArrayLike, shape: tuple[int, int, int], threshold: float = 0.05
) -> NDArray[np.bool_]:
    """Return the coordinates of pixels where some channel is above a threshold.

    Parameters
    ----------
    importance : array of shape (d,), not negative
    shape : (height, width, channels)
    threshold : float in (0, 1), default=0.05
        After the smallest value is set to 0 and the largest to 1. The default is that
        of the released script behind Fig. 15B.

    Returns
    -------
    bool array of shape (d,)
        All channels of a pixel, or none.

    Raises
    ------
    ValueError
        If the threshold is out of range, all values are alike, or the shape is wrong.

    Examples
    --------
    >>> top_pixels([0.0, 1.0, 9.0, 0.1], (1, 2, 2), 0.5)
    array([False, False,  True,  True])
    """
    values = np.asarray(importance, dtype=np.float64)
    if values.shape != (int(np.prod(shape)),):
        raise ValueError(f"importance must fit the shape {shape}, got {values.shape}")
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must be between 0 and 1, got {threshold}")
    span = np.ptp(values)
    if span == 0:
        raise ValueError("importance must not be constant")
    high = ((values - values.min()) / span > threshold).reshape(shape)
    return np.broadcast_to(high.any(2, keepdims=True), shape).ravel()


def _check_rows(X: ArrayLike) -> NDArray[Any]:
    X = np.asarray(X)
    if X.ndim != 2 or len(X) == 0:
        raise ValueError(f"X must be (n, d) with n > 0, got shape {X.shape}")
    return X


def _chunks(X: NDArray[Any], size: int) -> list[NDArray[Any]]:
    size = check_integer(size, "chunk_size")
    return [X[i : i + size] for i in range(0, len(X), size)]
