r"""The AGOP as a released script computes it: three errors, each with a switch.

``verify_deep_NFA.py``, published with arXiv:2212.13881 and again with the later
version of that paper, names the same quantity as `agop.layer_agops` and computes
another one. Written anew from a description of what it does, so that each difference
can be turned off; all off gives the AGOP of the paper.

1. *Subtracted in place.* W_l - W_l^0 is formed in the memory of the network, so
   that the gradients are those of a network whose layer l is the change in weights.
2. *One layer late.* From the third layer on, the inputs handed to layer l are those of
   layer l + 1 (h_{l+1} in place of h_l), which fits because the widths agree.
3. *ReLU inputs.* The last activation on the way to those inputs is ReLU whatever the
   network's own is.

A fourth, in the script that trains: the layers between the first and the last start
as copies of one draw (`copy_middle_layers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from agop._validation import check_samples
from agop.features import layer_agops, nfm
from agop.networks import FullyConnected
from agop.recipes import with_weights
from agop.similarity import cosine

ERRORS = ("subtract_in_place", "one_layer_late", "relu_inputs")


@torch.no_grad()
def released_agop(
    net: FullyConnected,
    initial: Sequence[Tensor],
    X: Any,
    layer: int,
    *,
    subtract_in_place: bool = True,
    one_layer_late: bool = True,
    relu_inputs: bool = True,
    centred: bool = False,
) -> Tensor:
    """Return the AGOP of one hidden layer with the script's errors, or some of them.

    Parameters
    ----------
    net : FullyConnected
        Trained, without biases. It is not changed.
    initial : sequence of tensors
        Its L + 1 weights before training.
    X : array or tensor of shape (n, d)
    layer : int
        Index of a hidden layer, 0..L-1, counted from 0 as the script does.
    subtract_in_place, one_layer_late, relu_inputs : bool, default=True
        The errors in the order of the module's description.
    centred : bool, default=False
        Without mean gradients; the script reports both.

    Returns
    -------
    tensor of shape (d_l, d_l)

    Raises
    ------
    ValueError
        If there is no such hidden layer, or ``net`` has biases.

    Examples
    --------
    >>> net = FullyConnected((3, 8, 8, 8, 1), "tanh", seed=0, dtype=torch.float64)
    >>> X, off = torch.eye(3), dict.fromkeys(ERRORS, False)
    >>> right = layer_agops(net, X)
    >>> bool(torch.allclose(released_agop(net, net.weights, X, 2, **off), right[2]))
    True
    >>> late = released_agop(net, net.weights, X, 2, **off | {"one_layer_late": True})
    >>> bool(torch.allclose(late, right[2]))
    False
    """
    hidden = len(net.weights) - 1
    if not 0 <= layer < hidden:
        raise ValueError(f"layer must be in 0..{hidden - 1}, got {layer}")
    weights = [W.detach().clone() for W in net.weights]
    if subtract_in_place:
        weights[layer] -= initial[layer]
    used = with_weights(net, weights)
    late = one_layer_late and layer >= 2
    H = _inputs(used, check_samples(X, "X"), layer + late, relu_inputs)
    subnet = with_weights(net, weights[layer:])  # from layer l to the output
    return layer_agops(subnet, H, layers=[0], centred=centred)[0]


def _inputs(net: FullyConnected, X: Tensor, layer: int, relu: bool) -> Tensor:
    """Return the inputs of a layer, (n, d_l), the last activation perhaps ReLU."""
    h = net.hidden(X.to(net.weights[0]))
    if layer == 0 or not relu:
        return h[layer]
    return torch.relu(h[layer - 1] @ net.weights[layer - 1].mT)


VARIANTS = {
    "as the paper defines it": (),
    **{error: (error,) for error in ERRORS},
    "as released, all three": ERRORS,
}


def released_similarities(
    net: FullyConnected, initial: Sequence[Tensor], X: Any
) -> dict[str, dict[str, list[float]]]:
    """Return what each error does to the AGOP and to its cosine, layer by layer.

    Parameters
    ----------
    net, initial, X
        As for `released_agop`.

    Returns
    -------
    dict of variant (a key of `VARIANTS`) to a dict of two lists, a number a layer
        "gap": the distance of the variant's AGOP from the right one, in Frobenius
        norm and as a share of the right one's.
        "cosine": of the variant's AGOP with the increment of the weights.

    Examples
    --------
    >>> net = FullyConnected((3, 8, 8, 8, 1), seed=0, dtype=torch.float64)
    >>> found = released_similarities(net, [W / 2 for W in net.weights], torch.eye(3))
    >>> [gap < 1e-12 for gap in found["one_layer_late"]["gap"]]
    [True, True, False]
    """
    right = layer_agops(net, X, layers=range(len(net.weights) - 1))
    increments = [nfm(W, W0) for W, W0 in zip(net.weights, initial, strict=True)]
    found = {}
    for variant, errors in VARIANTS.items():
        switches = {error: error in errors for error in ERRORS}
        agops = [
            released_agop(net, initial, X, layer, **switches)
            for layer in range(len(right))
        ]
        pairs = list(zip(agops, right, increments, strict=False))
        found[variant] = {
            "gap": [float((A - B).norm() / B.norm()) for A, B, _ in pairs],
            "cosine": [cosine(M, A) for A, _, M in pairs],
        }
    return found


@torch.no_grad()
def copy_middle_layers(net: FullyConnected) -> None:
    """Give every layer between the first and the last the weights of the second.

    Changes ``net``. So start the networks of the released training script.

    Raises
    ------
    ValueError
        If hidden layers differ in width.

    Examples
    --------
    >>> net = FullyConnected((3, 8, 8, 8, 1))
    >>> copy_middle_layers(net)
    >>> bool((net.weights[1] == net.weights[2]).all())
    True
    """
    if len(set(net.widths[1:-1])) > 1:
        raise ValueError(f"hidden layers must be equally wide, got {net.widths[1:-1]}")
    for W in net.weights[2:-1]:
        W.copy_(net.weights[1])
