r"""Deep RFM: collapse layer by layer, without back-propagation.

One layer (Beaglehole, Súkeník, Mondelli and Belkin, 2024) takes samples X (n, d) to

    X ← X / ‖x‖                 each row to norm 1,
    M ← AGOP of the kernel machine fitted to (X, Y), over its largest entry,
    X ← φ(X M^{1/2} W^T)        W (k, d) random: the step that nothing is learned in.

The middle of the layer, X M^{1/2}, is what an RFM would do; the outer step is that of
an untrained layer of a network.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from agop._validation import check_integer, check_samples
from agop.networks import resolve_activation
from agop.rfm import RFMRegressor
from agop.similarity import matrix_power

Floats = NDArray[np.float64]


class DeepRFMLayer(NamedTuple):
    """What one layer makes of the samples, step by step."""

    X: Floats  # its inputs, rows of norm 1, (n, d)
    XM: Floats  # X M^{1/2}, (n, d)
    output: Floats  # φ(X M^{1/2} W^T), (n, k)
    M: Floats  # (d, d)


def deep_rfm(
    X: Any,
    Y: Any,
    *,
    layers: int,
    width: int,
    bandwidth: float = 2.0,
    ridge: float = 0.0,
    activation: str = "relu",
    learn: bool = True,
    seed: int = 0,
) -> list[DeepRFMLayer]:
    r"""Return the samples at every step of a Deep RFM.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows must not be zero.
    Y : array of shape (n, C)
        Targets; the paper's are ±1.
    layers, width : int
        Number of layers, and rows k of each W, of N(0, 1/d) entries.
    bandwidth, ridge : float
        Of the Laplace kernel machine in each layer.
    activation : str, default="relu"
        φ, a name of `agop.networks.resolve_activation`.
    learn : bool, default=True
        Whether to take M^{1/2}; without, M is the identity: a random network.
    seed : int, default=0
        Of the W.

    Raises
    ------
    ValueError
        If ``Y`` has another number of rows, or a row of samples is zero, at the start
        or after a layer (all units off: take more).

    Examples
    --------
    >>> X = np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> found = deep_rfm(X, [[1.0], [-1.0], [-1.0]], layers=2, width=5)
    >>> [layer.output.shape for layer in found], found[0].X[0].tolist()
    ([(3, 5), (3, 5)], [1.0, 0.0])
    """
    X = check_samples(X, "X").double().flatten(1).numpy()
    Y = np.asarray(Y, dtype=np.float64)
    if len(Y) != len(X):
        raise ValueError(f"X and Y must have as many rows, got {len(X)} and {len(Y)}")
    phi, k = resolve_activation(activation).value, check_integer(width, "width")
    rng = np.random.default_rng(seed)
    found = []
    for layer in range(check_integer(layers, "layers")):
        X = _unit_rows(X, layer)
        d = X.shape[1]
        machine = RFMRegressor(n_iter=0, bandwidth=bandwidth, ridge=ridge)
        A = machine.fit(X, Y).agop(X) if learn else np.eye(d)
        M = A / A.max()
        XM = X @ matrix_power(M, 0.5)
        W = rng.standard_normal((k, d)) / np.sqrt(d)
        output = phi(torch.from_numpy(XM @ W.T)).numpy()  # (n, k)
        found.append(DeepRFMLayer(X, XM, output, M))
        X = output
    return found


def _unit_rows(X: Floats, layer: int) -> Floats:
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    if not norms.all():
        raise ValueError(
            f"X must have no zero row, but row {int(norms.argmin())} is zero at the "
            f"input of layer {layer}"
        )
    return X / norms
