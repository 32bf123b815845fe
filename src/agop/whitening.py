r"""Gradient steps that keep only what changes the weight Gram matrix.

W and O W have the same Gram matrix W^T W for every orthogonal O, so part of a step
W → W^+ may only rotate the outputs of the layer. Gram whitening (Cha, Beaglehole,
Radhakrishnan and Lee, 2026) rotates W^+ back,

.. math::
    W^+ \to Q W^+, \qquad Q = \operatorname{polar}(W W^{+T}),

which is the point nearest to W among all O W^+: the orthogonal Procrustes problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from agop._validation import check_integer

Correction = Callable[[Tensor, Tensor], Tensor]


def polar(A: Tensor) -> Tensor:
    """Return U V^T for A = U Σ V^T: the orthogonal matrix O with the largest tr(O^T A).

    Parameters
    ----------
    A : tensor of shape (k, k)
        If it is singular the factor is not unique; one of them is returned.

    Examples
    --------
    >>> polar(torch.diag(torch.tensor([2.0, -3.0])))
    tensor([[ 1.,  0.],
            [ 0., -1.]])
    """
    U, _, V = torch.linalg.svd(A)
    return U @ V


def polar_newton_schulz(A: Tensor, steps: int = 10) -> Tensor:
    r"""Return an approximation to `polar` that needs no decomposition.

    From :math:`A / \|A\|_F`, each step maps every singular value by
    :math:`s \to s (15 - 10 s^2 + 3 s^4) / 8`, which tends to 1. As small ones grow by
    15/8 a step only, those below :math:`(8/15)^{10} \|A\|_F = 0.002 \|A\|_F` are not
    near 1 after the 10 steps of the released code.

    Parameters
    ----------
    A : tensor of shape (k, k)
    steps : int, default=10

    Examples
    --------
    >>> Q = polar_newton_schulz(torch.diag(torch.tensor([1.0, 0.5, 1e-5])))
    >>> [round(q, 3) for q in Q.diag().tolist()]
    [1.0, 1.0, 0.005]
    """
    X = A / A.norm()
    one = torch.eye(len(A), dtype=A.dtype, device=A.device)
    for _ in range(check_integer(steps, "steps")):
        S = X.mT @ X
        X = X @ (15 * one - 10 * S + 3 * S @ S) / 8
    return X


def whiten(W: Tensor, W_new: Tensor, factor: Callable = polar) -> Tensor:
    r"""Return Q W_new, the nearest to W of all matrices with the Gram matrix of W_new.

    Parameters
    ----------
    W, W_new : tensors of shape (k, d), before and after a step
    factor : callable, default=polar
        Maps a (k, k) matrix to its orthogonal factor.

    Examples
    --------
    A pure rotation is undone:

    >>> W = torch.eye(2)
    >>> whiten(W, torch.tensor([[0.0, -1.0], [1.0, 0.0]]))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return factor(W @ W_new.mT) @ W_new


def rotate_only(W: Tensor, W_new: Tensor) -> Tensor:
    r"""Return Q^T W, the nearest to W_new of all matrices with the Gram matrix of W.

    The other half of a step: what `whiten` drops is kept, and the rest is dropped.

    Examples
    --------
    A change of scale is undone:

    >>> rotate_only(torch.eye(2), 3 * torch.eye(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return polar(W_new @ W.mT) @ W


def horizontal(W: Tensor, dW: Tensor) -> Tensor:
    r"""Return dW - S W: a gradient without the part that only rotates the outputs.

    S is the skew matrix that brings S W closest to dW. With :math:`K = W W^T` it solves
    :math:`S K + K S = dW\, W^T - W\, dW^T`, and a whitened step is
    :math:`W - \gamma (dW - S W)` up to γ².

    Parameters
    ----------
    W, dW : tensors of shape (k, d)

    Returns
    -------
    tensor of shape (k, d)

    Examples
    --------
    >>> W = torch.eye(2)
    >>> horizontal(W, torch.tensor([[1.0, -2.0], [2.0, 0.0]]))
    tensor([[1., 0.],
            [0., 0.]])
    """
    kappa, V = torch.linalg.eigh(W @ W.mT)  # (k,), (k, k)
    N = V.mT @ (dW @ W.mT - W @ dW.mT) @ V  # skew, (k, k)
    total = kappa[:, None] + kappa
    # Where both eigenvalues vanish, so does the right-hand side: S = 0 is free.
    floor = kappa[-1] * len(kappa) * torch.finfo(W.dtype).eps
    S = torch.where(total > floor, N / total, 0)
    return dW - V @ S @ V.mT @ W


class GramSGD(torch.optim.SGD):
    r"""Gradient descent whose steps on weight matrices are corrected afterwards.

    After each step of `torch.optim.SGD`, with or without momentum, every matrix W
    becomes ``correct(W_before, W_after)``. Filters (k, c, q, q) count as matrices
    (k, c q²); biases take the plain step.

    Parameters
    ----------
    params : iterable of parameters
    lr : float, γ
    momentum : float, default=0
        Its buffer is that of the plain gradients, as in the released code.
    correct : callable, default=whiten
        `whiten` keeps what changes the Gram matrix, `rotate_only` what doesn't.

    Examples
    --------
    >>> W = torch.nn.Parameter(torch.eye(2))
    >>> W.grad = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])  # a rotation, to first order
    >>> GramSGD([W], lr=0.1).step()
    >>> bool((W - W.diag().diag()).norm() < 1e-6)
    True
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float,
        momentum: float = 0.0,
        correct: Correction = whiten,
    ) -> None:
        super().__init__(params, lr=lr, momentum=momentum)
        self.correct = correct

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take one step and correct the matrices."""
        parameters = [p for group in self.param_groups for p in group["params"]]
        matrices = [p for p in parameters if p.dim() >= 2 and p.grad is not None]
        before = [W.flatten(1).clone() for W in matrices]
        value = super().step(closure)
        for W, old in zip(matrices, before, strict=True):
            W.copy_(self.correct(old, W.flatten(1)).view_as(W))
        return value
