r"""A small variational autoencoder, and straight paths between its codes.

Encoder and decoder are fully connected. For images x with pixels in [0, 1], codes
:math:`z \sim N(\mu(x), \mathrm{diag}\,\sigma(x)^2)` and decoded means
:math:`\hat x(z)`, it minimises the mean over samples of

.. math::
    -\sum_j \bigl[x_j \log \hat x_j + (1 - x_j) \log(1 - \hat x_j)\bigr]
    + \beta \sum_m \tfrac12 (\mu_m^2 + \sigma_m^2 - 1 - \log \sigma_m^2)

(Kingma and Welling; with a weight β as in Figs. 5 and 10 of Cha et al.).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from agop._validation import check_integer, check_real, check_samples
from agop.networks import FullyConnected


class VAE(nn.Module):
    """Variational autoencoder of two fully connected networks with GELU units.

    Parameters
    ----------
    d : int
        Pixels.
    latent : int, default=32
        Dimension of the codes.
    width : int, default=512
        Units in each hidden layer.
    depth : int, default=2
        Hidden layers of the encoder, and of the decoder.
    seed : int, default=0

    Examples
    --------
    >>> model = VAE(9, latent=2, width=8)
    >>> mu, log_variance = model.encode(torch.rand(5, 9))
    >>> mu.shape, model.decode(mu).shape
    (torch.Size([5, 2]), torch.Size([5, 9]))
    """

    def __init__(
        self,
        d: int,
        *,
        latent: int = 32,
        width: int = 512,
        depth: int = 2,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.latent = check_integer(latent, "latent")
        hidden = (check_integer(width, "width"),) * check_integer(depth, "depth")
        self.encoder = FullyConnected(
            (d, *hidden, 2 * latent), "gelu", bias=True, seed=2 * seed
        )
        self.decoder = FullyConnected(
            (latent, *hidden, d), "gelu", bias=True, seed=2 * seed + 1
        )

    def encode(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the means and the logarithms of the variances of the codes, (n, m)."""
        mu, log_variance = self.encoder(X).chunk(2, dim=1)
        return mu, log_variance

    def decode(self, z: Tensor) -> Tensor:
        """Return the decoded images, (n, d), in (0, 1)."""
        return torch.sigmoid(self.decoder(z))


def elbo_terms(model: VAE, X: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Return cross-entropy and divergence, both summed over entries, (n,) each.

    Parameters
    ----------
    noise : tensor of shape (n, m)
        Standard normal: the codes are mu + sigma * noise. Zeros decode the means.

    Examples
    --------
    >>> X = torch.full((1, 3), 0.5)
    >>> model = VAE(3, latent=2, width=4)
    >>> entropy, divergence = elbo_terms(model, X, torch.zeros(1, 2))
    >>> bool(entropy > 3 * 0.69) and bool(divergence > 0)
    True
    """
    mu, log_variance = model.encode(X)
    logits = model.decoder(mu + (log_variance / 2).exp() * noise)
    entropy = F.binary_cross_entropy_with_logits(logits, X, reduction="none").sum(1)
    divergence = (mu**2 + log_variance.exp() - 1 - log_variance).sum(1) / 2
    return entropy, divergence


def fit_vae(
    model: VAE,
    X: Any,
    *,
    beta: float,
    lr: float = 1e-3,
    batch_size: int = 128,
    epochs: int = 10,
    seed: int = 0,
) -> list[float]:
    """Train by Adam in place; return the mean loss of every epoch.

    Parameters
    ----------
    X : array or tensor of shape (n, d)
        Pixels in [0, 1].
    beta : float, >= 0
        Weight of the divergence.
    seed : int, default=0
        Of the order of the batches and of the noise.

    Raises
    ------
    ValueError
        If a pixel is outside [0, 1] or an argument is out of range.

    Examples
    --------
    >>> X = torch.eye(4).repeat(8, 1)
    >>> losses = fit_vae(VAE(4, latent=2, width=16), X, beta=0.1, lr=1e-2, epochs=30)
    >>> losses[-1] < losses[0]
    True
    """
    X = check_samples(X, "X").to(next(model.parameters())).flatten(1)
    if X.min() < 0 or X.max() > 1:
        raise ValueError(
            f"X must hold pixels in [0, 1], got {float(X.min())} to {float(X.max())}"
        )
    beta = check_real(beta, "beta", positive=False)
    batch = check_integer(batch_size, "batch_size")
    generator = torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(model.parameters(), lr=check_real(lr, "lr"))
    losses = []
    for _ in range(check_integer(epochs, "epochs")):
        total = 0.0
        for rows in torch.randperm(len(X), generator=generator).split(batch):
            noise = torch.randn(len(rows), model.latent, generator=generator).to(X)
            entropy, divergence = elbo_terms(model, X[rows], noise)
            loss = (entropy + beta * divergence).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
            total += float(loss.detach()) * len(rows)
        losses.append(total / len(X))
    return losses


@torch.no_grad()
def reconstruction_error(model: VAE, X: Tensor) -> float:
    """Return the mean squared error per pixel of the decoded mean codes.

    Examples
    --------
    >>> reconstruction_error(VAE(3, latent=2, width=4), torch.zeros(1, 3)) > 0
    True
    """
    return float((model.decode(model.encode(X)[0]) - X).square().mean())


@torch.no_grad()
def decode_path(model: VAE, start: Tensor, end: Tensor, steps: int) -> Tensor:
    """Decode ``steps`` equidistant codes on the straight path between two images'.

    Parameters
    ----------
    start, end : tensors of shape (d,)

    Returns
    -------
    tensor of shape (steps, d)

    Examples
    --------
    >>> decode_path(VAE(3, latent=2, width=4), torch.zeros(3), torch.ones(3), 5).shape
    torch.Size([5, 3])
    """
    mu, _ = model.encode(torch.stack([start, end]))  # (2, m)
    t = torch.linspace(0, 1, check_integer(steps, "steps", minimum=2)).to(mu)[:, None]
    return model.decode((1 - t) * mu[0] + t * mu[1])
