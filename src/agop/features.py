r"""Neural feature matrices (NFM) and average gradient outer products (AGOP).

For a network f: R^d -> R^C and n samples, the layer with input h_l and
pre-activation z_l = W_l h_l + b_l has

.. math::
    \mathrm{NFM}_l = W_l^T W_l, \qquad
    \mathrm{AGOP}_l = \frac1n \sum_{p=1}^n J_p^T J_p, \qquad
    J_p = \frac{\partial f}{\partial h_l}(x_p) \in R^{C \times d_l}.

The sum over the C outputs is not divided by C. Since J_p = (∂f/∂z_l) W_l, the AGOP
factors exactly:

.. math::
    \mathrm{AGOP}_l = W_l^T K_l W_l, \qquad
    K_l = \frac1n \sum_p \Bigl(\frac{\partial f}{\partial z_l}\Bigr)^T
          \frac{\partial f}{\partial z_l},

so the neural feature ansatz NFM ∝ AGOP says that K_l acts as a multiple of the
identity on the range of W_l. Centred variants subtract from each gradient its mean
over the samples, output by output.

Nothing here changes a model: weights, gradients, modes and ``requires_grad`` are left
as they were. (Radhakrishnan, Beaglehole, Pandit and Belkin, 2024.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from agop._validation import check_integer, check_real, check_samples
from agop.networks import FullyConnected, eval_mode

# (sample, output) rows alive at once: enough for gemm to reach its peak rate, and
# 16 MB per tensor of rows at width 1024 in float32.
CHUNK_SIZE = 4096

# The gradient of f with respect to a layer's pre-activation "z" or its input "h".
Gradient = tuple[str, int]


def nfm(W: Tensor, W0: Tensor | None = None) -> Tensor:
    r"""Return the neural feature matrix :math:`(W - W_0)^T (W - W_0)`.

    Parameters
    ----------
    W : tensor or array of shape (k, d)
        Weights of a layer of k units on d inputs; not modified.
    W0 : tensor or array of shape (k, d), optional
        Initial weights to subtract (the papers' dNFM); zero if absent.

    Returns
    -------
    tensor of shape (d, d)

    Raises
    ------
    ValueError
        If ``W`` is not a matrix or ``W0`` has another shape.

    Examples
    --------
    >>> nfm(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.],
            [2., 4.]])
    """
    W = torch.as_tensor(W).detach()
    if W.dim() != 2:
        raise ValueError(f"W must be a (k, d) matrix, got shape {tuple(W.shape)}")
    if W0 is not None:
        W0 = torch.as_tensor(W0).detach()
        if W0.shape != W.shape:
            raise ValueError(
                f"W0 must have the shape of W, {tuple(W.shape)}, got {tuple(W0.shape)}"
            )
        W = W - W0
    return W.mT @ W


@torch.no_grad()
def layer_agops(
    net: FullyConnected,
    X: Any,
    *,
    layers: Sequence[int] | None = None,
    centred: bool = False,
    chunk_size: int = CHUNK_SIZE,
) -> list[Tensor]:
    r"""Return the AGOP with respect to the input of each layer, in one sweep.

    One forward and one backward pass give all layers; memory depends on
    ``chunk_size`` and the widths, not on n.

    Parameters
    ----------
    net : FullyConnected
        With or without biases, any activation. For other models use `agop`.
    X : array or tensor of shape (n, d)
    layers : sequence of int, optional
        Indices into ``net.weights``: 0 is the layer on the data, -1 the output
        layer. All layers if absent; fewer are cheaper.
    centred : bool, default=False
        Subtract the mean gradient of each output.
    chunk_size : int
        (sample, output) rows alive at once; at least one sample, C rows, is.

    Returns
    -------
    list of tensors of shape (d_l, d_l), one per requested layer, in that order
        In the dtype and on the device of the network.

    Raises
    ------
    TypeError
        If ``net`` is not a `FullyConnected`.
    ValueError
        If ``X`` does not fit the network or a layer does not exist.

    Notes
    -----
    A centred AGOP is a difference, AGOP_l - Σ_c m_c m_c^T with m_c the mean gradient
    of output c, so its absolute error is that of the uncentred one.

    Examples
    --------
    >>> net = FullyConnected((3, 8, 2), dtype=torch.float64)
    >>> first, last = layer_agops(net, torch.eye(3))
    >>> first.shape, bool(torch.allclose(last, nfm(net.weights[1])))
    (torch.Size([3, 3]), True)
    """
    X, chosen = _check_network_arguments(net, X, layers)
    wanted = {_cheaper_gradient(net, i, min(chosen), len(X)) for i in chosen}
    moments = _second_moments(net, X, wanted, centred, chunk_size)
    agops = {}
    for (variable, i), moment in moments.items():
        W = net.weights[i]
        agops[i] = W.mT @ moment @ W if variable == "z" else moment  # (d_i, d_i)
    return [agops[i] for i in chosen]


@torch.no_grad()
def pre_activation_grams(
    net: FullyConnected,
    X: Any,
    *,
    layers: Sequence[int] | None = None,
    centred: bool = False,
    chunk_size: int = CHUNK_SIZE,
) -> list[Tensor]:
    r"""Return the second moments K_l of the gradients with respect to z_l.

    ``AGOP_l = W_l^T K_l W_l`` exactly, and K of the output layer is the identity.
    Parameters and errors are those of `layer_agops`.

    Returns
    -------
    list of tensors of shape (k_l, k_l), one per requested layer, in that order

    Examples
    --------
    >>> net = FullyConnected((3, 8, 2), dtype=torch.float64)
    >>> X, W = torch.eye(3), net.weights[0]
    >>> K, _ = pre_activation_grams(net, X)
    >>> bool(torch.allclose(W.T @ K @ W, layer_agops(net, X)[0]))
    True
    """
    X, chosen = _check_network_arguments(net, X, layers)
    wanted: set[Gradient] = {("z", i) for i in chosen}
    moments = _second_moments(net, X, wanted, centred, chunk_size)
    return [moments["z", i] for i in chosen]


def _check_network_arguments(
    net: FullyConnected, X: Any, layers: Sequence[int] | None
) -> tuple[Tensor, list[int]]:
    if not isinstance(net, FullyConnected):
        raise TypeError(
            f"net must be a FullyConnected, got {type(net).__name__}; "
            "agop() takes any differentiable predictor"
        )
    X = check_samples(X, "X")
    if X.shape[1:] != (net.widths[0],):
        raise ValueError(
            f"X must have shape (n, {net.widths[0]}) for this network, "
            f"got {tuple(X.shape)}"
        )
    every = range(len(net.weights))
    try:
        chosen = list(every) if layers is None else [every[i] for i in layers]
    except IndexError:
        raise ValueError(
            f"layers must be indices below {len(every)}, got {list(layers or [])}"
        ) from None
    if not chosen:
        raise ValueError("layers must name at least one layer, got none")
    return X, chosen


def _cheaper_gradient(net: FullyConnected, i: int, lowest: int, n: int) -> Gradient:
    """Choose by multiplications: W^T (Σ δ δ^T) W against Σ (W^T δ)(W^T δ)^T.

    Gram matrices are symmetric and count half.
    """
    top = len(net.weights) - 2
    if i > top:
        return "z", i  # the output layer, where δ is the identity
    C, k, d = net.widths[-1], net.widths[i + 1], net.widths[i]
    rows = n if i == top else n * C  # the top hidden layer needs no row per output
    further = k * d if i == lowest else 0  # else W^T δ is needed anyway, to go down
    via_z = rows * k * k / 2 + k * k * d + k * d * d
    return ("z", i) if via_z < n * C * (further + d * d / 2) else ("h", i)


def _second_moments(
    net: FullyConnected,
    X: Tensor,
    wanted: set[Gradient],
    centred: bool,
    chunk_size: int,
) -> dict[Gradient, Tensor]:
    """Return (1/n) Σ J^T J for each wanted kind of gradient J, from one sweep."""
    W = [weight.detach() for weight in net.weights]
    C, output = len(W[-1]), ("z", len(W) - 1)
    top = ("z", len(W) - 2)
    sums = {key: _MomentSum(centred) for key in wanted - {output}}
    for x in X.split(_samples_per_chunk(chunk_size, C)):
        slopes = net.slopes(x.to(W[0]))
        if top in sums:
            sums[top].add(slopes[-1].unsqueeze(1))  # (m, 1, k_L): no factor C
        backward = _backward(W, slopes)
        missing = wanted - {top, output}
        while missing:  # the sweep is lazy: it goes no lower than needed
            key, J = next(backward)
            if key in missing:
                sums[key].add(J)
                missing.remove(key)
    moments = {key: total.value() for key, total in sums.items()}
    if top in moments:
        # J = W_out * φ'^T, so J^T J = (W_out^T W_out) * φ' φ'^T, centred or not
        moments[top] *= W[-1].mT @ W[-1]
    if output in wanted:
        moments[output] = torch.eye(C).to(W[-1]) * (not centred)
    return moments


def _backward(
    W: list[Tensor], slopes: list[Tensor]
) -> Iterator[tuple[Gradient, Tensor]]:
    """Yield ∂f/∂z (m, C, k_i) and ∂f/∂h (m, C, d_i) of each layer, top one first."""
    J = W[-1]  # (C, k_L): ∂f/∂h of the output layer, the same for every sample
    for i in reversed(range(len(slopes))):
        J = J * slopes[i].unsqueeze(1)
        yield ("z", i), J
        J = J @ W[i]
        yield ("h", i), J


class _MomentSum:
    """Running sum of J^T J, and of J if it is to be centred, over samples."""

    def __init__(self, centred: bool) -> None:
        self.centred = centred
        self.n = 0

    def add(self, J: Tensor) -> None:
        """Add the gradients of m samples, (m, C, d)."""
        rows = J.flatten(0, 1)  # (m C, d)
        if self.n == 0:
            self.second = J.new_zeros(J.shape[2], J.shape[2])
            self.first = J.new_zeros(J.shape[1:])  # (C, d)
        _add_gram(self.second, rows)
        if self.centred:
            self.first += J.sum(0)
        self.n += len(J)

    def value(self) -> Tensor:
        """Return (1/n) Σ J^T J, less the product of the means if centred, (d, d)."""
        second = (self.second.triu() + self.second.triu(1).mT) / self.n
        if not self.centred:
            return second
        mean = self.first / self.n
        return second - mean.mT @ mean


def _add_gram(S: Tensor, rows: Tensor) -> None:
    """Add rows^T rows to the upper triangle of S (d, d), from rows (N, d).

    BLAS halves the work of a symmetric product by its routine syrk, which PyTorch
    lacks: skipping the blocks below the diagonal comes close.
    """
    half = len(S) // 2
    if half < 128:  # smaller blocks would lose more than they skip
        S.addmm_(rows.mT, rows)
        return
    left, right = rows[:, :half], rows[:, half:]
    _add_gram(S[:half, :half], left)
    _add_gram(S[half:, half:], right)
    S[:half, half:].addmm_(left.mT, right)


def _samples_per_chunk(chunk_size: int, C: int) -> int:
    return max(1, check_integer(chunk_size, "chunk_size") // C)


@torch.no_grad()
def agop(
    f: Callable[[Tensor], Tensor],
    X: Any,
    *,
    centred: bool = False,
    chunk_size: int = CHUNK_SIZE,
) -> Tensor:
    r"""Return the AGOP of any differentiable predictor, by automatic differentiation.

    Parameters
    ----------
    f : callable or nn.Module
        Maps a batch (m, ...) to (m,) or (m, C), row by row: an output may depend on
        its own row only. A module is evaluated in eval mode and put back.
    X : array or tensor of shape (n, ...)
        Points; further axes are flattened to d. A module gets them in the dtype and
        on the device of its parameters.
    centred : bool, default=False
        Subtract the mean gradient of each output.
    chunk_size : int
        (sample, output) rows differentiated at once; memory doesn't grow with n.

    Returns
    -------
    tensor of shape (d, d)

    Raises
    ------
    TypeError
        If ``f`` is not callable, or ``X`` is not floating point.
    ValueError
        If ``X`` has no rows, or ``f`` does not return one row per row.

    Examples
    --------
    The gradient of x_0 x_1 is (x_1, x_0):

    >>> agop(lambda X: X[:, 0] * X[:, 1], torch.tensor([[1.0, 2.0]]))
    tensor([[4., 2.],
            [2., 1.]])
    """
    if not callable(f):
        raise TypeError(f"f must be callable, got {type(f).__name__}")
    X = check_samples(X, "X").detach()
    parameter = next(f.parameters(), X) if isinstance(f, nn.Module) else X
    if not parameter.is_floating_point():
        raise TypeError(f"X must be floating point to differentiate, got {X.dtype}")

    def single(x: Tensor) -> Tensor:
        return f(x.unsqueeze(0)).flatten()  # (C,)

    with eval_mode(f):
        first = f(X[:1].to(parameter))
        if first.dim() == 0 or len(first) != 1:
            raise ValueError(
                "f must return one row per row of X, but a batch of 1 gave shape "
                f"{tuple(first.shape)}"
            )
        C, d = first.numel(), X[0].numel()
        jacobian = torch.func.vmap(torch.func.jacrev(single))
        total = _MomentSum(centred)
        for x in X.split(_samples_per_chunk(chunk_size, C)):
            total.add(jacobian(x.to(parameter)).reshape(-1, C, d))
    return total.value()


def agop_finite_difference(
    predict: Callable[[NDArray[np.float64]], ArrayLike],
    X: ArrayLike,
    *,
    step: float = 0.1,
    scale: ArrayLike | None = None,
    centred: bool = False,
    chunk_size: int = 10_000,
) -> NDArray[np.float64]:
    r"""Return the AGOP of a model that only predicts, by central differences.

    The derivative along feature j at x is estimated by

    .. math::
        \frac{f(x + h_j e_j) - f(x - h_j e_j)}{2 h_j}
        = \frac{1}{2 h_j} \int_{-h_j}^{h_j} \partial_j f(x + t e_j)\, dt,
        \qquad h_j = \mathtt{step} \times \mathtt{scale}_j .

    Parameters
    ----------
    predict : callable
        Maps an array (m, d) to numbers (m,) or (m, C), e.g. ``forest.predict`` of a
        regressor or ``forest.predict_proba``; evaluated at 2 d rows a point.
    X : array of shape (n, d)
    step : float, default=0.1
        Half-width of the difference, in units of ``scale``.
    scale : array of shape (d,), optional
        Unit of each feature; its standard deviation over X if absent (1 for a
        constant feature).
    centred : bool, default=False
        Subtract the mean gradient of each output.
    chunk_size : int, default=10000
        Rows per call of ``predict``; at least 2 d are.

    Returns
    -------
    array of shape (d, d), float64

    Raises
    ------
    ValueError
        If ``X`` is not a finite (n, d) array, ``step`` or ``scale`` isn't positive, or
        ``predict`` does not return one row per row.

    Notes
    -----
    *Bias.* The estimate is the AGOP of slopes averaged over the segment of length
    2 h_j. If f has three derivatives the error is O(h²), and zero if f is quadratic.
    If f is piecewise constant (trees) there is no gradient to converge to: a jump s
    is met with probability ∝ h and contributes (s / 2h)², so the diagonal grows as
    1/h while most entries off the diagonal do not. Choose h of the size of the
    leaves, and report it.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> agop_finite_difference(lambda X: X @ [1.0, -2.0], X).round(6)
    array([[ 1., -2.],
           [-2.,  4.]])
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or len(X) == 0 or not np.isfinite(X).all():
        raise ValueError(f"X must be a finite (n, d) array, got shape {X.shape}")
    n, d = X.shape
    h = check_real(step, "step") * _feature_scale(X, scale)  # (d,)
    offsets = np.concatenate([np.diag(h), -np.diag(h)])  # (2 d, d)
    total, mean = np.zeros((d, d)), 0.0
    size = _samples_per_chunk(chunk_size, 2 * d)
    for x in (X[i : i + size] for i in range(0, n, size)):
        probes = (x[:, None] + offsets).reshape(-1, d)  # (m 2 d, d)
        values = _check_predictions(predict(probes), len(probes))
        values = values.reshape(len(x), 2, d, -1)  # (m, 2, d, C)
        J = (values[:, 0] - values[:, 1]) / (2 * h[:, None])  # (m, d, C)
        total += np.einsum("mdc,mec->de", J, J, optimize=True)
        mean = mean + J.sum(0)  # (d, C)
    total, mean = total / n, mean / n
    return total - mean @ mean.T if centred else total


def _feature_scale(X: NDArray[np.float64], scale: ArrayLike | None) -> NDArray[Any]:
    if scale is None:
        deviation = X.std(axis=0)
        return np.where(deviation > 0, deviation, 1.0)
    given = np.asarray(scale, dtype=np.float64)
    if given.shape != X.shape[1:] or not (np.isfinite(given) & (given > 0)).all():
        raise ValueError(
            f"scale must be {X.shape[1]} finite positive numbers, got {scale!r}"
        )
    return given


def _check_predictions(values: ArrayLike, rows: int) -> NDArray[np.float64]:
    values = np.asarray(values)
    if values.dtype.kind not in "fiub" or values.ndim == 0 or len(values) != rows:
        raise ValueError(
            f"predict must return {rows} rows of numbers for {rows} points, got "
            f"{values.dtype} of shape {values.shape}"
        )
    return values.astype(np.float64)
