r"""Gradient descent from a first layer of zeros, where the ansatz can be proved.

The setting of propositions 1 to 4 of Radhakrishnan, Beaglehole, Pandit and Belkin
(2024): :math:`f(x) = g(Bx)` is trained on the loss :math:`\frac12 \sum_i (y_i -
f(x_i))^2` from :math:`B = 0`, with g fixed or, in a two-layer linear network, trained
along. The first layer then stays of rank one as long as a proposition holds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from agop._validation import check_integer, check_real, check_samples
from agop.networks import FullyConnected
from agop.training import train


def zero_first_layer(net: FullyConnected) -> FullyConnected:
    """Set W_1 to zero, freeze every other weight and bias, and return ``net``.

    Examples
    --------
    >>> net = zero_first_layer(FullyConnected((3, 8, 1), "tanh"))
    >>> [W.requires_grad for W in net.weights], bool(net.weights[0].any())
    ([True, False], False)
    """
    with torch.no_grad():
        net.weights[0].zero_()
    for parameter in net.parameters():
        parameter.requires_grad_(parameter is net.weights[0])
    return net


class TwoLayerLinear(nn.Module):
    r"""The network :math:`f(x) = \frac1{\sqrt k} A B x` with B = 0, as in Prop. 3.

    Parameters
    ----------
    d, k : int
        Inputs and units.
    train_A : bool, default=False
        Whether A is trained too (proposition 4) or stays fixed (proposition 3).
    spread : float, default=1
        A has independent entries from N(0, spread²); the propositions ask for 1.
    seed : int, default=0
        Of the entries of A.

    Attributes
    ----------
    A, B : nn.Parameter of shapes (1, k) and (k, d), float64

    Examples
    --------
    >>> net = TwoLayerLinear(3, 50)
    >>> net(torch.ones(2, 3, dtype=torch.float64)).shape
    torch.Size([2, 1])
    """

    def __init__(
        self,
        d: int,
        k: int,
        *,
        train_A: bool = False,
        spread: float = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        d, k = check_integer(d, "d"), check_integer(k, "k")
        generator = torch.Generator().manual_seed(seed)
        A = torch.randn(1, k, dtype=torch.float64, generator=generator)
        A *= check_real(spread, "spread")
        self.A = nn.Parameter(A, requires_grad=train_A)
        self.B = nn.Parameter(torch.zeros(k, d, dtype=torch.float64))

    @property
    def mass(self) -> float:
        """The mean of the squared entries of A, which tends to spread² with k."""
        return float(self.A.detach().square().mean())

    def forward(self, X: Tensor) -> Tensor:
        """Map inputs (n, d) to outputs (n, 1)."""
        return X @ self.B.mT @ self.A.mT / self.A.shape[1] ** 0.5


def descend(
    net: nn.Module, X: Any, y: Any, *, lr: float, steps: int
) -> list[dict[str, Tensor]]:
    r"""Return the weights after 0, 1, ..., ``steps`` steps on the propositions' loss.

    The loss is half the *sum* of squared errors, :math:`\frac12 \sum_i (y_i -
    f(x_i))^2`; `agop.training.train` takes their mean, so its step is rescaled here.

    Parameters
    ----------
    net : nn.Module
        Maps (n, d) to (n, 1); left at the last step. Frozen parameters stay.
    X : array or tensor of shape (n, d)
    y : array or tensor of shape (n,)
    lr : float
        η, the step size for that loss.
    steps : int

    Returns
    -------
    list of state dicts, ``steps + 1`` of them

    Examples
    --------
    One sample x = 2, y = 1 and f = b x: the first step is η y x = 0.2.

    >>> net = zero_first_layer(FullyConnected((1, 1, 1), "identity", init=1.0))
    >>> _ = net.weights[1].fill_(1.0)
    >>> path = descend(net, [[2.0]], [1.0], lr=0.1, steps=1)
    >>> path[1]["layers.0.weight"]
    tensor([[0.2000]])
    """
    steps = check_integer(steps, "steps")
    n = len(check_samples(X, "X"))
    lr = check_real(lr, "lr") * n / 2
    history = train(
        net, X, y, lr=lr, steps=steps, record_every=steps, snapshots=range(steps + 1)
    )
    return [history.snapshots[t] for t in range(steps + 1)]


class TwoLayerPath(NamedTuple):
    r"""Where a two-layer linear network started at B = 0 is after t steps.

    Attributes
    ----------
    v : tensor of shape (steps + 1, d)
        :math:`B_t = A_0^\top v_t^\top / \sqrt k` with A_0 the initial A.
    alpha : tensor of shape (steps + 1,)
        :math:`A_t = \alpha_t A_0`; all ones if A is fixed.
    mass : float
        :math:`m = \|A_0\|^2 / k`.
    """

    v: Tensor
    alpha: Tensor
    mass: float

    def nfm(self, t: int) -> Tensor:
        r"""Return :math:`B_t^\top B_t = m\, v_t v_t^\top`, (d, d)."""
        return self.mass * torch.outer(self.v[t], self.v[t])

    def agop(self, t: int) -> Tensor:
        r"""Return :math:`\nabla f \nabla f^\top = \alpha_t^2 m^2 v_t v_t^\top`."""
        return float(self.alpha[t]) ** 2 * self.mass * self.nfm(t)


def two_layer_path(
    X: Any,
    y: Any,
    *,
    lr: float,
    steps: int,
    mass: float = 1.0,
    train_A: bool = False,
    k: float = float("inf"),
) -> TwoLayerPath:
    r"""Return the path of `TwoLayerLinear` under `descend` in closed form.

    With residuals :math:`r_t = y - \alpha_t m X v_t`,

    .. math::
        v_{t+1} = v_t + \eta\, \alpha_t X^\top r_t, \qquad
        \alpha_{t+1} = \alpha_t + \frac{\eta}{k}\, v_t^\top X^\top r_t ,

    from :math:`v_0 = 0` and :math:`\alpha_0 = 1`, exactly, at every width k.

    Parameters
    ----------
    X : array or tensor of shape (n, d), rows are samples
    y : array or tensor of shape (n,)
    lr, steps
        As for `descend`.
    mass : float, default=1
        :math:`m = \|A_0\|^2/k`, its limit 1 if absent.
    train_A : bool, default=False
        Whether A moves; if not, alpha stays 1.
    k : float, default=inf
        The width; infinity gives the limit, in which A does not move.

    Examples
    --------
    >>> path = two_layer_path([[2.0]], [1.0], lr=0.1, steps=2)
    >>> path.v.flatten().tolist()
    [0.0, 0.2, 0.32]
    """
    X = check_samples(X, "X").double()
    y = torch.as_tensor(y, dtype=torch.float64)
    if y.shape != (len(X),):
        raise ValueError(f"y must have shape {(len(X),)}, got {tuple(y.shape)}")
    lr, mass = check_real(lr, "lr"), check_real(mass, "mass")
    v, alpha = [X.new_zeros(X.shape[1])], [X.new_ones(())]
    for _ in range(check_integer(steps, "steps")):
        pull = X.mT @ (y - alpha[-1] * mass * X @ v[-1])  # (d,)
        moved = lr / k * (v[-1] @ pull) if train_A else 0.0
        v.append(v[-1] + lr * alpha[-1] * pull)
        alpha.append(alpha[-1] + moved)
    return TwoLayerPath(torch.stack(v), torch.stack(alpha), mass)


def two_step_limit(X: Any, y: Any, *, lr: float) -> Tensor:
    r"""Return the limit of :math:`B_2^\top B_2` for infinite width (Prop. 4).

    .. math:: 4 M - 2 \eta (M S + S M) + \eta^2 S M S, \qquad
        S = \sum_i x_i x_i^\top, \quad M = \eta^2 b b^\top, \quad b = \sum_i y_i x_i,

    where M is the limit after one step. The printed proof ends in :math:`4 \eta^2 M +
    \eta^2 S M S` instead.

    Examples
    --------
    >>> two_step_limit([[2.0]], [1.0], lr=0.1)  # 0.32 squared
    tensor([[0.1024]], dtype=torch.float64)
    """
    X = check_samples(X, "X").double()
    b = X.mT @ torch.as_tensor(y, dtype=torch.float64)  # (d,)
    S, M = X.mT @ X, lr**2 * torch.outer(b, b)
    return 4 * M - 2 * lr * (M @ S + S @ M) + lr**2 * S @ M @ S
