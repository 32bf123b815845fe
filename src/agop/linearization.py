r"""How a gradient step on the weights of a layer acts on its inputs.

A linear layer computes z = W h + b. Over n samples, with inputs H (n, d), outputs
Z = H W^T (n, k) and a loss ℒ whose gradient is G = ∂ℒ/∂Z (n, k),

.. math::
    \nabla_W \mathcal L = G^T H, \qquad
    \nabla_H \mathcal L = G W \quad\text{(through this layer)},

so that the transposed weights take one to the other, whatever the loss and the batch:
the feature learning equation

.. math::
    W^T \nabla_W \mathcal L = (\nabla_H \mathcal L)^T H .

A plain gradient step therefore changes the weight Gram matrix as it would change the
second moment of the inputs, if they could move: that of the virtual inputs
H - γ ∇_H ℒ. Samples are rows; the paper (Cha, Beaglehole, Radhakrishnan and Lee, 2026)
writes them as columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from agop._validation import check_real, check_samples

# Maps outputs (n, C) and targets to a number, as `torch.nn.functional.mse_loss`.
Loss = Callable[[Tensor, Any], Tensor]


class LayerUse(NamedTuple):
    r"""One use of a linear layer in a forward pass, and what came back to it.

    Attributes
    ----------
    layer : nn.Linear
    W : tensor of shape (k, d), a copy of its weights at that moment
    H : tensor of shape (n, d), the inputs; positions of a sequence count as samples
    G : tensor of shape (n, k), :math:`\partial\mathcal L/\partial Z`
    """

    layer: nn.Linear
    W: Tensor
    H: Tensor
    G: Tensor

    @property
    def dH(self) -> Tensor:
        r"""Gradient through this layer, :math:`\nabla_H\mathcal L = G W`, (n, d)."""
        return self.G @ self.W

    @property
    def dW(self) -> Tensor:
        r"""What this use adds to :math:`\nabla_W \mathcal L`, :math:`G^T H`, (k, d)."""
        return self.G.mT @ self.H


def layer_uses(net: nn.Module, X: Tensor, Y: Any, loss: Loss) -> list[LayerUse]:
    """Return every use of an `nn.Linear` in ``net``, from one forward and backward.

    Parameters
    ----------
    net : nn.Module
        Any network. A layer that is called twice has two uses; side paths, such as
        residual connections, are not part of a use.
    X : tensor, the inputs of ``net``
    Y : targets, as ``loss`` takes them
    loss : callable
        ``loss(net(X), Y)`` is a number: `torch.nn.functional.mse_loss` or
        `torch.nn.functional.cross_entropy`, for example.

    Returns
    -------
    list of LayerUse, in the order of the forward pass

    Raises
    ------
    ValueError
        If the forward pass uses no `nn.Linear`.

    Examples
    --------
    >>> from agop.networks import FullyConnected
    >>> net = FullyConnected((3, 8, 2), dtype=torch.float64)
    >>> X, Y = torch.eye(3).double(), torch.ones(3, 2).double()
    >>> first = layer_uses(net, X, Y, nn.functional.mse_loss)[0]
    >>> first.H.shape, first.G.shape, first.dH.shape, first.dW.shape
    (torch.Size([3, 3]), torch.Size([3, 8]), torch.Size([3, 3]), torch.Size([8, 3]))
    """
    calls: list[tuple[nn.Linear, Tensor, Tensor]] = []

    def note(layer: nn.Module, inputs: tuple[Tensor, ...], z: Tensor) -> None:
        assert isinstance(layer, nn.Linear)
        calls.append((layer, inputs[0], z))

    linears = [module for module in net.modules() if isinstance(module, nn.Linear)]
    hooks = [linear.register_forward_hook(note) for linear in linears]
    try:
        with torch.enable_grad():
            value = loss(net(X), Y)
    finally:
        for hook in hooks:
            hook.remove()
    if not calls:
        raise ValueError("net must use at least one nn.Linear on these inputs")
    gradients = torch.autograd.grad(value, [z for _, _, z in calls])
    return [
        LayerUse(
            layer,
            layer.weight.detach().clone(),
            H.detach().flatten(0, -2),
            G.flatten(0, -2),
        )
        for (layer, H, _), G in zip(calls, gradients, strict=True)
    ]


def relative_gap(A: Any, B: Any) -> float:
    r"""Return :math:`\|A - B\|_F / \|B\|_F`, what is left of B when A stands for it.

    Raises
    ------
    ValueError
        If the shapes differ: broadcasting would hide it.

    Examples
    --------
    >>> relative_gap(torch.tensor([3.0, 4.0]), torch.tensor([0.0, 4.0]))
    0.75
    """
    A, B = torch.as_tensor(A).detach(), torch.as_tensor(B).detach()
    if A.shape != B.shape:
        raise ValueError(f"A and B must have the same shape, got {A.shape}, {B.shape}")
    return float((A - B).norm() / B.norm())


def gram_step(use: LayerUse, *, step: float, decay: float = 0.0) -> Tensor:
    r"""Return what one plain gradient step adds to :math:`W^T W`, exactly.

    With :math:`W^+ = (1 - \gamma\lambda) W - \gamma\nabla_W\mathcal L`,

    .. math::
        W^{+T} W^+ - W^T W = (a^2 - 1) W^T W
            - a\gamma \bigl[(\nabla_H\mathcal L)^T H + H^T \nabla_H\mathcal L\bigr]
            + \gamma^2 (\nabla_W\mathcal L)^T \nabla_W\mathcal L,
        \qquad a = 1 - \gamma\lambda .

    Parameters
    ----------
    use : LayerUse, the only one of its layer
    step : float
        The learning rate γ.
    decay : float, default=0
        Weight decay λ, of the penalty (λ/2) ‖W‖² or decoupled: for plain steps they
        are one. Momentum and Adam have no such formula.

    Returns
    -------
    tensor of shape (d, d)

    Examples
    --------
    >>> one = torch.ones(1, 1)
    >>> use = LayerUse(nn.Linear(1, 1), W=one, H=one, G=2 * one)
    >>> gram_step(use, step=0.5)  # W goes from 1 to 0
    tensor([[-1.]])
    """
    step = check_real(step, "step")
    kept = 1 - step * check_real(decay, "decay", positive=False)
    cross = use.dH.mT @ use.H  # (d, d)
    first = (kept**2 - 1) * (use.W.mT @ use.W) - kept * step * (cross + cross.mT)
    return first + step**2 * (use.dW.mT @ use.dW)


def covariance_step(H: Tensor, dH: Tensor, *, step: float) -> Tensor:
    r"""Return :math:`\tilde H^T\tilde H - H^T H` for :math:`\tilde H = H - \gamma dH`.

    The virtual covariance of Cha et al., as an increment: nothing is centred or
    divided by n, so that it can be held against the increment of :math:`W^T W`.

    Parameters
    ----------
    H, dH : tensors of shape (n, d)
        Inputs of a layer and the gradient through it (or a sum of them over steps).
    step : float
        The virtual step γ.

    Returns
    -------
    tensor of shape (d, d)

    Examples
    --------
    >>> covariance_step(torch.ones(1, 1), torch.ones(1, 1), step=0.5)
    tensor([[-0.7500]])
    """
    H = H.detach()
    moved = H - check_real(step, "step") * dH.detach()  # (n, d)
    return moved.mT @ moved - H.mT @ H


class VirtualPath:
    r"""The inputs of a network as they would move, if they were its parameters.

    A callback for `agop.training.train` on full batches with ``record_every=1``. From
    X̃_0 = X on,

    .. math::
        \tilde X_{t+1} = \tilde X_t - \gamma \nabla_X \mathcal L(\theta_t),

    the gradient being taken at the true inputs X and at the weights of step t.

    Parameters
    ----------
    X : tensor of shape (n, d)
    Y : targets, as ``loss`` takes them
    loss : callable
        As for `layer_uses`.
    step : float
        The virtual step γ. It is the network's learning rate in the mathematics;
        the figure of the paper takes a larger one.
    keep : collection of int
        The steps t whose X̃_t is kept.

    Attributes
    ----------
    points : dict of int to tensor of shape (n, d), points[t] = X̃_t

    Examples
    --------
    >>> from agop.networks import FullyConnected
    >>> from agop.training import train
    >>> X = torch.eye(3)
    >>> path = VirtualPath(X, X[:, :1], nn.functional.mse_loss, step=0.1, keep={0, 4})
    >>> net = FullyConnected((3, 8, 1))
    >>> _ = train(net, X, X[:, :1], lr=0.1, steps=4, record_every=1, callback=path)
    >>> sorted(path.points), bool((path.points[0] == X).all())
    ([0, 4], True)
    """

    def __init__(
        self, X: Tensor, Y: Any, loss: Loss, *, step: float, keep: Collection[int]
    ) -> None:
        self.X = check_samples(X, "X").detach()
        self.Y, self.loss = Y, loss
        self.step = check_real(step, "step")
        self.keep = keep
        self.points: dict[int, Tensor] = {}
        self._now = self.X

    def __call__(self, step: int, net: nn.Module) -> None:
        """Keep the virtual inputs if asked to, and move them on."""
        if step in self.keep:
            self.points[step] = self._now
        x = self.X.clone().requires_grad_()
        with torch.enable_grad():
            (dX,) = torch.autograd.grad(self.loss(net(x), self.Y), x)
        self._now = self._now - self.step * dX


def fact(H: Tensor, dH: Tensor, *, decay: float) -> Tensor:
    r"""Return :math:`-\frac1\lambda (\nabla_H\mathcal L)^T H`, equal to W^T W at rest.

    At a critical point of ℒ + (λ/2) Σ ‖W‖² the weight gradient is -λW, and the feature
    learning equation becomes the theorem of Boix-Adserà, Mallinar, Simon and Belkin
    (2025). Elsewhere the matrix need not even be symmetric.

    Parameters
    ----------
    H, dH : tensors of shape (n, d)
        Inputs of the layer and :math:`\nabla_H\mathcal L` through it, of the loss
        without the penalty.
    decay : float
        λ.

    Returns
    -------
    tensor of shape (d, d)

    Examples
    --------
    Least squares with a penalty, (w - 1)² / 2 + λ w² / 2 with λ = 1, rests at 1/2:

    >>> w, h, residual = torch.tensor([[0.5]]), torch.ones(1, 1), torch.tensor([[-0.5]])
    >>> fact(h, residual @ w, decay=1.0)
    tensor([[0.2500]])
    """
    return -(dH.detach().mT @ H.detach()) / check_real(decay, "decay")


def surrogate(H: Tensor, W: Tensor, Y: Tensor) -> float:
    r"""Return :math:`\frac1C \sum_c y_c^T Z Z^T y_c` with :math:`Z = H W^T`.

    How much of the Gram matrix of the next pre-activations points along the targets.

    Parameters
    ----------
    H : tensor of shape (n, d), inputs of the layer
    W : tensor of shape (k, d)
    Y : tensor of shape (n, C)
        Targets; the released code centres their columns.

    Examples
    --------
    >>> surrogate(torch.eye(2), torch.eye(2), torch.tensor([[3.0], [4.0]]))
    25.0
    """
    U = _target_directions(H, Y)  # (d, C)
    return float((W.detach() @ U).square().sum() / U.shape[1])


def surrogate_slope(H: Tensor, dH: Tensor, Y: Tensor) -> float:
    r"""Return the derivative of the `surrogate` in the step γ, exactly.

    With :math:`u_c = H^T y_c` and a plain step on W, it is
    :math:`-\frac2C \sum_c u_c^T (\nabla_H\mathcal L)^T H u_c`: the feature learning
    equation once more. The term in γ² is :math:`\frac1C \sum_c \|\nabla_W u_c\|^2`.

    Parameters
    ----------
    H, dH : tensors of shape (n, d)
    Y : tensor of shape (n, C)
    """
    H, dH = H.detach(), dH.detach()
    U = _target_directions(H, Y)  # (d, C)
    return float(-2 * ((dH @ U) * (H @ U)).sum() / U.shape[1])


def homogeneous_slope(H: Tensor, f: Tensor, g: Tensor, y: Tensor) -> float:
    r"""Return :math:`2 (f^T y)(y^T K g)`, the slope as Theorem 3 of the paper has it.

    Stands for `surrogate_slope` when h_i·∇f(h_j) may be replaced by f(h_i): exact for
    a linear f, and for i = j by Euler's relation if f is 1-homogeneous in h.

    Parameters
    ----------
    H : tensor of shape (n, d), inputs of the layer; K = H H^T
    f, g, y : tensors of shape (n,) or (n, 1)
        Outputs, negative gradients -∂ℒ/∂f, and targets of one output.

    Raises
    ------
    ValueError
        If ``f``, ``g`` or ``y`` does not hold one number a sample.

    Examples
    --------
    >>> one = torch.ones(1)
    >>> homogeneous_slope(torch.ones(1, 1), one, 3 * one, one)
    6.0
    """
    columns = []
    for name, values in (("f", f), ("g", g), ("y", y)):
        if values.numel() != len(H):
            raise ValueError(
                f"{name} must hold one number for each of the {len(H)} samples, "
                f"got shape {tuple(values.shape)}"
            )
        columns.append(values.detach().flatten())
    f, g, y = columns
    H = H.detach()
    return float(2 * (f @ y) * ((H.mT @ y) @ (H.mT @ g)))


def _target_directions(H: Tensor, Y: Tensor) -> Tensor:
    if Y.dim() != 2 or len(Y) != len(H):
        raise ValueError(
            f"Y must have shape ({len(H)}, C) for these inputs, got {tuple(Y.shape)}"
        )
    return H.detach().mT @ Y.detach()  # (d, C)


def linear_readout(H: Tensor, Y: Tensor, *, ridge: float = 0.0) -> Tensor:
    r"""Return the fit :math:`H (H^T H + r I)^{-1} H^T Y` of targets on features.

    Parameters
    ----------
    H : tensor of shape (n, k), features; no intercept is added
    Y : tensor of shape (n, C)
    ridge : float, default=0
        r. With no ridge the fit is that of least norm.

    Returns
    -------
    tensor of shape (n, C)
        Equal to ``Y`` as soon as k ≥ n features are independent: then the fit says
        nothing about the features.

    Examples
    --------
    >>> linear_readout(torch.ones(2, 1), torch.tensor([[0.0], [1.0]]))
    tensor([[0.5000],
            [0.5000]])
    """
    H, Y = H.detach(), Y.detach()
    ridge = check_real(ridge, "ridge", positive=False)
    U, s, _ = torch.linalg.svd(H, full_matrices=False)  # (n, m), (m,)
    floor = s[0] * max(H.shape) * torch.finfo(H.dtype).eps
    shrink = torch.where(s > floor, s.square() / (s.square() + ridge), 0)  # (m,)
    return U @ (shrink[:, None] * (U.mT @ Y))
