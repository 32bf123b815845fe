import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence

from agop.vae import VAE, decode_path, elbo_terms, fit_vae, reconstruction_error


def images(n=64):
    generator = torch.Generator().manual_seed(0)
    centres = torch.rand(4, 16, generator=generator).round()
    return centres[torch.arange(n) % 4] * 0.9


def test_terms_are_those_of_the_distributions():
    """Second implementation: torch's own densities and divergences."""
    X, model = images(10), VAE(16, latent=3, width=8, seed=1)
    noise = torch.randn(10, 3, generator=torch.Generator().manual_seed(1))
    entropy, divergence = elbo_terms(model, X, noise)
    mu, log_variance = model.encode(X)
    codes = Normal(mu, (log_variance / 2).exp())
    z = mu + codes.scale * noise
    likelihood = Bernoulli(model.decode(z), validate_args=False).log_prob(X).sum(1)
    torch.testing.assert_close(entropy, -likelihood)
    prior = kl_divergence(codes, Normal(torch.zeros(3), torch.ones(3))).sum(1)
    torch.testing.assert_close(divergence, prior)


def test_divergence_vanishes_at_the_prior():
    model = VAE(4, latent=2, width=4)
    with torch.no_grad():
        for layer in model.encoder.layers:
            layer.weight.zero_()
            layer.bias.zero_()
    _, divergence = elbo_terms(model, torch.rand(3, 4), torch.zeros(3, 2))
    assert divergence.tolist() == [0, 0, 0]


def test_training_reconstructs_and_a_heavy_divergence_empties_the_codes():
    X = images()
    free, tied = VAE(16, latent=2, width=32), VAE(16, latent=2, width=32)
    start = reconstruction_error(free, X)
    fit_vae(free, X, beta=0.01, lr=5e-3, epochs=60, batch_size=16)
    fit_vae(tied, X, beta=1000.0, lr=5e-3, epochs=60, batch_size=16)
    assert reconstruction_error(free, X) < 0.1 * start
    # codes that say nothing decode to the mean image
    blind = float((X - X.mean(0)).square().mean())
    assert reconstruction_error(tied, X) == pytest.approx(blind, rel=0.1)


def test_path_runs_straight_between_the_codes():
    model = VAE(4, latent=2, width=8)
    start, end = torch.zeros(4), torch.ones(4)
    path = decode_path(model, start, end, 3)
    with torch.no_grad():
        codes = model.encode(torch.stack([start, end]))[0]
        expected = model.decode(torch.stack([codes[0], codes.mean(0), codes[1]]))
    torch.testing.assert_close(path, expected)


def test_seeds_fix_everything_and_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    runs = []
    for s in (0, 0, 1):
        model = VAE(16, latent=2, width=8, seed=s)
        runs.append(fit_vae(model, images(), beta=1.0, epochs=2, seed=s))
    assert runs[0] == runs[1] != runs[2]
    assert (before == torch.random.get_rng_state()).all()


def test_bad_input_is_named():
    model = VAE(4, latent=2, width=8)
    with pytest.raises(ValueError, match=r"pixels in \[0, 1\]"):
        fit_vae(model, 2 * torch.ones(3, 4), beta=1.0)
    with pytest.raises(ValueError, match="beta"):
        fit_vae(model, torch.ones(3, 4), beta=-1.0)
    with pytest.raises(ValueError, match="steps"):
        decode_path(model, torch.ones(4), torch.ones(4), 1)
    with pytest.raises(ValueError, match="latent"):
        VAE(4, latent=0)
