r"""Feature matrices of long inputs, kept as factors: M = R^T R with few rows.

An image of 96 x 96 x 3 values has feature matrices of 27648 x 27648 entries, 3 GB
each. The neural feature matrix W^T W and the AGOP W^T K W of a layer of k units have
rank at most k, and their diagonals, eigenvectors and similarities follow from the
(k, d) factors W and K^{1/2} W alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from agop.ansatz import LayerFeatures, layer_features
from agop.features import pre_activation_grams
from agop.networks import FullyConnected
from agop.recipes import with_weights
from agop.similarity import matrix_power


class GramFactor:
    r"""The symmetric PSD matrix M = R^T R, by its factor R of shape (r, d).

    Examples
    --------
    >>> M = GramFactor([[1.0, 2.0, 0.0]])
    >>> M.diagonal().tolist()
    [1.0, 4.0, 0.0]
    >>> M.cosine(GramFactor([[2.0, 4.0, 0.0]]))
    1.0
    """

    def __init__(self, R: Any) -> None:
        R = torch.as_tensor(R).detach()
        if R.dim() != 2:
            raise ValueError(f"R must be an (r, d) matrix, got shape {tuple(R.shape)}")
        self.R = R.to(torch.float64)

    def dense(self) -> Tensor:
        """Return M itself, (d, d)."""
        return self.R.mT @ self.R

    def diagonal(self) -> Tensor:
        """Return the diagonal of M, (d,)."""
        return self.R.square().sum(0)

    def top_eigenvector(self) -> Tensor:
        """Return the unit eigenvector of the largest eigenvalue, (d,).

        Of its two signs, the one whose largest entry in size is positive.
        """
        _, U = torch.linalg.eigh(self.R @ self.R.mT)  # (r, r): R^T u is the vector
        v = self.R.mT @ U[:, -1]
        return v / v.norm() * v[v.abs().argmax()].sign()

    def cosine(self, other: GramFactor, *, off_diagonal: bool = False) -> float:
        """Return `agop.cosine` of the two matrices, in O(r² d)."""
        return self._similarity(other, centred=False, off_diagonal=off_diagonal)

    def pearson(self, other: GramFactor, *, off_diagonal: bool = False) -> float:
        """Return `agop.pearson` of the two matrices, in O(r² d)."""
        return self._similarity(other, centred=True, off_diagonal=off_diagonal)

    def _similarity(
        self, other: GramFactor, *, centred: bool, off_diagonal: bool
    ) -> float:
        if self.R.shape[1] != other.R.shape[1]:
            raise ValueError(
                f"both need as many columns, got {self.R.shape[1]} and "
                f"{other.R.shape[1]}"
            )
        ab, aa, bb = (
            _inner(a, b, centred, off_diagonal)
            for a, b in ((self, other), (self, self), (other, other))
        )
        return float((ab / (aa * bb).sqrt()).clamp(-1, 1))


def _inner(a: GramFactor, b: GramFactor, centred: bool, off_diagonal: bool) -> Tensor:
    """Return <A, B> over the entries compared, less their means if centred."""
    d = a.R.shape[1]
    inner = (a.R @ b.R.mT).square().sum()  # <R'R, S'S> = |R S'|²
    sums = [m.R.sum(1).square().sum() for m in (a, b)]  # of all entries: |R 1|²
    count = d * d
    if off_diagonal:
        inner = inner - a.diagonal() @ b.diagonal()
        sums = [s - m.diagonal().sum() for s, m in zip(sums, (a, b), strict=True)]
        count -= d
    return inner - sums[0] * sums[1] / count if centred else inner


def first_layer_factors(
    net: FullyConnected, initial: Tensor, X: Any, *, centred: bool = False
) -> dict[str, GramFactor]:
    r"""Return the first layer's feature matrices as factors.

    Parameters
    ----------
    net : FullyConnected, trained
    initial : tensor of shape (k, d)
        W_1 before training.
    X : array or tensor of shape (n, d)
        The points that gradients are averaged over.
    centred : bool, default=False
        Take the AGOP without mean gradients.

    Returns
    -------
    dict of "nfm", "increment", "initial" and "agop" to GramFactor
        As the attributes of `agop.ansatz.LayerFeatures`.

    Examples
    --------
    >>> net = FullyConnected((5, 4, 1), seed=1)
    >>> start = FullyConnected((5, 4, 1), seed=0).weights[0]
    >>> first_layer_factors(net, start, torch.eye(5))["agop"].R.shape
    torch.Size([4, 5])
    """
    W, W0 = net.weights[0].detach(), initial.detach()
    (K,) = pre_activation_grams(net, X, layers=[0], centred=centred)
    return {
        "nfm": GramFactor(W),
        "increment": GramFactor(W - W0),
        "initial": GramFactor(W0),
        "agop": GramFactor(matrix_power(K, 0.5) @ W),
    }


@torch.no_grad()
def upper_features(
    net: FullyConnected, initial: Sequence[Tensor], X: Any
) -> list[LayerFeatures]:
    """Return the feature matrices of hidden layers 2 to L: none is d x d.

    The arguments are those of `agop.ansatz.layer_features`, of which it is all but the
    first entry.

    Examples
    --------
    >>> net = FullyConnected((5, 4, 4, 1), seed=1)
    >>> [f.agop.shape[0] for f in upper_features(net, net.weights, torch.eye(5))]
    [4]
    """
    upper = with_weights(net, net.weights[1:])
    h = net.hidden(torch.as_tensor(X).to(net.weights[0]))[1]  # (n, k)
    return layer_features(upper, initial[1:], h)
