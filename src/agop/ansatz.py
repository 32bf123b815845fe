r"""The neural feature ansatz on one trained network, layer by layer.

The ansatz says that :math:`W_\ell^\top W_\ell` is proportional to a power of the
layer's AGOP. What is compared differs between papers and scripts; here every choice
has a name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from agop.features import layer_agops, nfm
from agop.networks import FullyConnected
from agop.similarity import cosine, matrix_power


@dataclass(frozen=True)
class LayerFeatures:
    r"""The feature matrices of one layer, each of shape (d_l, d_l).

    Attributes
    ----------
    nfm : :math:`W^\top W`, the trained neural feature matrix.
    increment : :math:`(W - W_0)^\top (W - W_0)`, what training added.
    initial : :math:`W_0^\top W_0`.
    agop, agop_centred : of the trained network, raw or without its mean gradients.
    """

    nfm: Tensor
    increment: Tensor
    initial: Tensor
    agop: Tensor
    agop_centred: Tensor


def layer_features(
    net: FullyConnected, initial: Sequence[Tensor], X: Any
) -> list[LayerFeatures]:
    """Return the feature matrices of every hidden layer of a trained network.

    Parameters
    ----------
    net : FullyConnected
        The trained network, with L hidden layers.
    initial : sequence of tensors
        Its L + 1 weights before training, in the order of ``net.weights``.
    X : array or tensor of shape (n, d)
        The points that gradients are averaged over; the papers take training points.

    Returns
    -------
    list of LayerFeatures, one a hidden layer
        The output layer is left out: there the ansatz is an identity.

    Raises
    ------
    ValueError
        If ``initial`` does not match the network's weights in number or shape.

    Examples
    --------
    >>> import torch
    >>> net = FullyConnected((3, 8, 8, 1), seed=0)
    >>> start = FullyConnected((3, 8, 8, 1), seed=1)
    >>> [f.agop.shape[0] for f in layer_features(net, start.weights, torch.eye(3))]
    [3, 8]
    """
    shapes = [tuple(W.shape) for W in net.weights]
    if [tuple(W.shape) for W in initial] != shapes:
        raise ValueError(
            f"initial must hold weights of shapes {shapes}, "
            f"got {[tuple(W.shape) for W in initial]}"
        )
    hidden = range(len(shapes) - 1)
    raw = layer_agops(net, X, layers=hidden)
    centred = layer_agops(net, X, layers=hidden, centred=True)
    return [
        LayerFeatures(nfm(W), nfm(W, W0), nfm(W0), A, Ac)
        for W, W0, A, Ac in zip(net.weights, initial, raw, centred, strict=False)
    ]


def ansatz_similarity(
    features: LayerFeatures,
    *,
    power: float = 1.0,
    subtract_initial: bool = True,
    centred: bool = False,
    similarity: Callable[[Any, Any], float] = cosine,
) -> float:
    r"""Return how alike a layer's neural feature matrix and :math:`AGOP^\alpha` are.

    The defaults are those of the code released with arXiv:2212.13881: the increment of
    the weights, the AGOP itself (alpha = 1), raw gradients, cosine.

    Parameters
    ----------
    features : LayerFeatures
    power : float, default=1
        alpha, the exponent on the AGOP.
    subtract_initial : bool, default=True
        Compare ``features.increment``, else ``features.nfm``.
    centred : bool, default=False
        Take the AGOP without mean gradients.
    similarity : callable, default=cosine
        Maps two matrices to a float, such as `agop.pearson`.

    Examples
    --------
    >>> import torch
    >>> I, D = torch.eye(2), torch.diag(torch.tensor([1.0, 4.0]))
    >>> layer = LayerFeatures(D, D, initial=I, agop=D @ D, agop_centred=I)
    >>> [round(ansatz_similarity(layer, power=alpha), 3) for alpha in (1.0, 0.5)]
    [0.983, 1.0]
    """
    W_gram = features.increment if subtract_initial else features.nfm
    A = features.agop_centred if centred else features.agop
    return similarity(W_gram, A if power == 1.0 else matrix_power(A, power))
