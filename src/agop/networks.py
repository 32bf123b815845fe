r"""Fully connected and deep linear networks, in the papers' notation.

With :math:`h_1 = x`, a network of L hidden layers is

.. math::
    z_l = W_l h_l + b_l, \qquad h_{l+1} = \varphi(z_l), \qquad f(x) = z_{L+1},

so :math:`W_l` is (k_l, k_{l-1}), with k_0 = d inputs and k_{L+1} = C outputs.
The papers count layers from 1; Python counts from 0: ``net.weights[0]`` is W_1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from agop._validation import check_integer, check_real


class Activation(NamedTuple):
    """An elementwise function and its derivative, both from z."""

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]


def _gelu_slope(z: Tensor) -> Tensor:
    # gelu(z) = z Φ(z), so the slope is Φ(z) + z Φ'(z)
    cdf = 0.5 * (1 + torch.erf(z / math.sqrt(2)))
    return cdf + z * torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)


def _sigmoid_slope(z: Tensor) -> Tensor:
    value = torch.sigmoid(z)
    return value * (1 - value)


# At a kink the slopes are those of PyTorch's autograd: ReLU'(0) = 0.
ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(torch.relu, lambda z: (z > 0).to(z.dtype)),
    "leaky_relu": Activation(
        nn.functional.leaky_relu,
        lambda z: torch.ones_like(z).masked_fill_(z <= 0, 0.01),
    ),
    "tanh": Activation(torch.tanh, lambda z: 1 - torch.tanh(z).square()),
    "sigmoid": Activation(torch.sigmoid, _sigmoid_slope),
    "sine": Activation(torch.sin, torch.cos),
    "gelu": Activation(nn.functional.gelu, _gelu_slope),
    "quadratic": Activation(torch.square, lambda z: 2 * z),
    "identity": Activation(lambda z: z, torch.ones_like),
}


def resolve_activation(activation: str | Callable[[Tensor], Tensor]) -> Activation:
    """Return the value and slope of a named or a callable elementwise activation.

    The slope of a callable comes from autograd, that of a name from its formula.

    Raises
    ------
    ValueError
        If the name is unknown, or the callable does not act elementwise.
    TypeError
        If ``activation`` is neither a name nor a callable.

    Examples
    --------
    >>> resolve_activation(torch.exp).slope(torch.tensor([0.0]))
    tensor([1.])
    """
    if isinstance(activation, str):
        if activation not in ACTIVATIONS:
            known = ", ".join(sorted(ACTIVATIONS))
            raise ValueError(
                f"activation must be a callable or one of {known}, got {activation!r}"
            )
        return ACTIVATIONS[activation]
    if not callable(activation):
        raise TypeError(f"activation must be a name or a callable, got {activation!r}")

    def slope(z: Tensor) -> Tensor:
        # Elementwise, so pulling back a vector of ones gives φ'(z) entry by entry.
        return torch.func.vjp(activation, z)[1](torch.ones_like(z))[0]

    return Activation(activation, slope)


def _check_elementwise(phi: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    """Softmax, layer norm or dropout would make every AGOP silently wrong."""
    z = torch.linspace(-1.5, 2.0, 6, dtype=dtype).reshape(2, 3)
    with torch.no_grad():
        whole = phi(z)
        alone = torch.stack([phi(entry.reshape(1, 1)).sum() for entry in z.flatten()])
    if whole.shape != z.shape or not torch.allclose(whole.flatten(), alone):
        raise ValueError(
            "activation must act elementwise: each output entry may depend on "
            "the same entry of its input only"
        )


class FullyConnected(nn.Module):
    r"""Chain of linear layers and one elementwise activation, bias-free by default.

    Parameters
    ----------
    widths : sequence of int
        ``(d, k_1, ..., k_L, C)``; ``(d, C)`` is a linear model.
    activation : str or callable, default="relu"
        "relu", "leaky_relu" (slope 0.01), "tanh", "sigmoid", "sine", "gelu" (exact),
        "quadratic", "identity", or any elementwise function of a tensor.
    bias : bool, default=False
        Whether layers have biases. The released code of the papers has none.
    seed : int, default=0
        Fixes the initial weights whatever the dtype and device; the global
        generator is neither read nor advanced. Layers are drawn independently.
    init : {"torch", "lecun_normal", "he_normal"} or float, default="torch"
        "torch": U(-a, a), a = 1/sqrt(fan-in), weights and biases, as `nn.Linear`;
        "lecun_normal": N(0, 1/fan-in); "he_normal": N(0, 2/fan-in); a float is the
        standard deviation of every weight. All but "torch" start biases at 0.
    first_layer_std : float, optional
        Draw W_1 from N(0, first_layer_std^2) instead: the papers use 1e-6 to 1e-3,
        so that W_1^T W_1 holds what was learned and not what was drawn.
    dtype, device : optional
        As for `nn.Linear`.

    Attributes
    ----------
    layers : nn.ModuleList of nn.Linear, L + 1 of them
    widths : tuple of int
    activation : str or callable, as given

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range or of the wrong kind.

    References
    ----------
    Radhakrishnan, Beaglehole, Pandit and Belkin (2024), section 2 and appendix B.

    Examples
    --------
    >>> net = FullyConnected((3, 8, 8, 2), "tanh", seed=1)
    >>> net(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    >>> [tuple(W.shape) for W in net.weights]
    [(8, 3), (8, 8), (2, 8)]
    """

    def __init__(
        self,
        widths: Sequence[int],
        activation: str | Callable[[Tensor], Tensor] = "relu",
        bias: bool = False,
        *,
        seed: int = 0,
        init: str | float = "torch",
        first_layer_std: float | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.widths = tuple(check_integer(k, "widths") for k in widths)
        if len(self.widths) < 2:
            raise ValueError(f"widths must be (d, ..., C), got {self.widths}")
        self.activation = activation
        _check_elementwise(self._phi.value, dtype or torch.get_default_dtype())
        # skip_init: nn.Linear's own initialisation would advance the global generator
        self.layers = nn.ModuleList(
            nn.utils.skip_init(
                nn.Linear,
                fan_in,
                fan_out,
                bias=bias,
                dtype=dtype,
                device=device or "cpu",
            )
            for fan_in, fan_out in zip(self.widths, self.widths[1:], strict=False)
        )
        self._initialise(init, first_layer_std, seed)

    @torch.no_grad()
    def _initialise(
        self, init: str | float, first_layer_std: float | None, seed: int
    ) -> None:
        if first_layer_std is not None:
            check_real(first_layer_std, "first_layer_std", positive=False)
        generator = torch.Generator().manual_seed(seed)
        for i, layer in enumerate(self._linears):
            chosen = init if i > 0 or first_layer_std is None else first_layer_std
            layer.weight.copy_(_draw(layer.weight.shape, chosen, generator))
            if layer.bias is not None:
                bound = layer.in_features**-0.5 if init == "torch" else 0.0
                b = torch.empty(layer.out_features, dtype=torch.float64)
                layer.bias.copy_(b.uniform_(-bound, bound, generator=generator))

    @property
    def _phi(self) -> Activation:
        # Looked up, not stored: a stored lambda would make the network unpicklable.
        return resolve_activation(self.activation)

    @property
    def weights(self) -> list[Tensor]:
        """The L + 1 weight matrices, W_1 first, each (k_l, k_{l-1})."""
        return [layer.weight for layer in self._linears]

    @property
    def _linears(self) -> list[nn.Linear]:
        return cast(list[nn.Linear], list(self.layers))

    def forward(self, X: Tensor) -> Tensor:
        """Map inputs (n, d) to outputs (n, C)."""
        return self.forward_from(X, 0)

    def forward_from(self, h: Tensor, layer: int) -> Tensor:
        """Map ``h`` (n, widths[layer]), the input of ``layers[layer]``, to (n, C).

        Examples
        --------
        >>> net = FullyConnected((3, 8, 2))
        >>> X = torch.ones(1, 3)
        >>> bool((net.forward_from(net.hidden(X)[1], 1) == net(X)).all())
        True
        """
        for linear in self.layers[layer:-1]:
            h = self._phi.value(linear(h))  # (n, k_l)
        return self.layers[-1](h)  # (n, C)

    def hidden(self, X: Tensor) -> list[Tensor]:
        """Return the input of every layer: h_1 = X (n, d), ..., h_{L+1} (n, k_L)."""
        h = [X]
        for linear in self.layers[:-1]:
            h.append(self._phi.value(linear(h[-1])))  # (n, k_l)
        return h

    def slopes(self, X: Tensor) -> list[Tensor]:
        """Return φ'(z_l) of the L hidden layers, each (n, k_l)."""
        slopes, h = [], X
        for linear in self.layers[:-1]:
            z = linear(h)  # (n, k_l)
            slopes.append(self._phi.slope(z))
            h = self._phi.value(z)
        return slopes

    def extra_repr(self) -> str:
        return f"widths={self.widths}, activation={self.activation!r}"


@contextmanager
def eval_mode(f: Any) -> Iterator[None]:
    """Put ``f``, if it is a module, in eval mode; then each part back as it was.

    Examples
    --------
    >>> net = nn.Dropout()
    >>> with eval_mode(net):
    ...     net.training
    False
    >>> net.training
    True
    """
    modules = list(f.modules()) if isinstance(f, nn.Module) else []
    training = [module.training for module in modules]
    for module in modules:
        module.training = False
    try:
        yield
    finally:
        for module, mode in zip(modules, training, strict=True):
            module.training = mode


def _draw(
    shape: tuple[int, ...], init: str | float, generator: torch.Generator
) -> Tensor:
    """Draw one weight matrix in float64, so that the dtype doesn't change the draw."""
    fan_in = shape[1]
    W = torch.empty(shape, dtype=torch.float64)
    if init == "torch":
        return W.uniform_(-(fan_in**-0.5), fan_in**-0.5, generator=generator)
    named = {"lecun_normal": fan_in**-0.5, "he_normal": (2 / fan_in) ** 0.5}
    if isinstance(init, str):
        if init not in named:
            raise ValueError(
                "init must be 'torch', 'lecun_normal', 'he_normal' or a "
                f"standard deviation, got {init!r}"
            )
        return W.normal_(0, named[init], generator=generator)
    return W.normal_(0, check_real(init, "init", positive=False), generator=generator)


class DeepLinear(FullyConnected):
    r"""Product of weight matrices, f(x) = W_{L+1} ... W_1 x.

    Parameters
    ----------
    widths : sequence of int
        ``(d, k_1, ..., k_L, C)``. Theorem 3.1 of Tansley, Massart and Cartis counts
        weight matrices: its exponent is 1/len(net.weights).
    init : {"balanced", "torch", "lecun_normal", "he_normal"} or float
        "balanced" (the default): W_{l+1}^T W_{l+1} = W_l W_l^T for every l, up to
        rounding, with random singular vectors and W_l of spectral norm 1 and of rank
        min(widths). The others are those of `FullyConnected`: unbalanced.
    scale : float, default=1.0
        Multiplies every initial weight.
    seed, dtype, device
        As for `FullyConnected`.

    References
    ----------
    Balancedness: Arora, Cohen and Hazan (2018). Tansley, Massart and Cartis (2025),
    definition 3.1.

    Examples
    --------
    >>> net = DeepLinear((4, 6, 5, 3), dtype=torch.float64)
    >>> bool(max(D.abs().max() for D in net.imbalance()) < 1e-14)
    True
    """

    def __init__(
        self,
        widths: Sequence[int],
        *,
        init: str | float = "balanced",
        scale: float = 1.0,
        seed: int = 0,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__(
            widths,
            "identity",
            seed=seed,
            init="torch" if init == "balanced" else init,
            dtype=dtype,
            device=device,
        )
        weights = _balanced(self.widths, seed) if init == "balanced" else self.weights
        scale = check_real(scale, "scale")
        with torch.no_grad():
            for W, initial in zip(self.weights, weights, strict=True):
                W.copy_(scale * initial)

    def product(self) -> Tensor:
        """Return the Jacobian W_{L+1} ... W_1, (C, d), differentiable."""
        J = self.weights[0]
        for W in self.weights[1:]:
            J = W @ J
        return J

    def imbalance(self) -> list[Tensor]:
        r"""Return D_l = W_{l+1}^T W_{l+1} - W_l W_l^T, (k_l, k_l), for l = 1..L.

        Gradient flow keeps D_l; with the penalty (λ/2) Σ ‖W_l‖² it decays as
        exp(-2λt) (lemmas 3.1 and 3.2 of Tansley, Massart and Cartis).
        """
        pairs = zip(self.weights, self.weights[1:], strict=False)
        return [(V.mT @ V - W @ W.mT).detach() for W, V in pairs]


def _balanced(widths: tuple[int, ...], seed: int) -> list[Tensor]:
    r"""Return W_l = U_l Σ U_{l-1}^T: one Σ for all layers, U_l orthonormal.

    The product has the leading singular values of a Gaussian (C, d) matrix divided by
    the largest, whatever the depth, so that depths can be compared.
    """
    generator = torch.Generator().manual_seed(seed)

    def gaussian(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, dtype=torch.float64, generator=generator)

    rank, depth = min(widths), len(widths) - 1
    sigma = torch.linalg.svdvals(gaussian(widths[-1], widths[0]))[:rank]
    sigma = (sigma / sigma[0]) ** (1 / depth)  # (rank,)
    U = [torch.linalg.qr(gaussian(k, rank)).Q for k in widths]  # (k_l, rank)
    return [(U[i + 1] * sigma) @ U[i].mT for i in range(depth)]
