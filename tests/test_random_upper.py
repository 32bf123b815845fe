import itertools

import numpy as np
import pytest
import torch

from agop.random_upper import averaged_agop, expected_agop, random_upper_agops

D, K = 3, 5


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("c", [1.0, 2.0])
@pytest.mark.parametrize("widths", [(), (4,), (4, 6)])
def test_averaged_agop_is_that_of_autograd_summed_over_last_units(widths, c):
    sizes = (D, K, *widths)
    weights = [normal(k, m, seed=k) for m, k in itertools.pairwise(sizes)]
    X = normal(7, D, seed=9)

    def features(x):
        for W in weights:
            x = torch.relu((c / len(W)) ** 0.5 * W @ x)
        return x

    total = torch.zeros(D, D, dtype=torch.float64)
    for x in X:
        J = torch.autograd.functional.jacobian(features, x)
        for row in J:  # E[a a^T] = I: one gradient a unit
            total += torch.outer(row, row) / len(X)
    torch.testing.assert_close(averaged_agop(weights, X, c=c), total)


def test_networks_in_front_are_networks_one_by_one():
    W, U, X = normal(K, D), normal(6, 4, K, seed=1), normal(6, 7, D, seed=2)
    stacked = averaged_agop([W, U], X)
    single = [averaged_agop([W, u], x) for u, x in zip(U, X, strict=True)]
    torch.testing.assert_close(stacked, torch.stack(single))


def every_layer(rows, k, weight):
    """Every (k, m) matrix whose rows are among ``rows``, with its probability."""
    for chosen in itertools.product(range(len(rows)), repeat=k):
        yield rows[list(chosen)], np.prod([weight[i] for i in chosen])


def mean_over_every_network(W, X, rows, weight=None):
    """The exact expectation for L = 3, widths 2, rows of W_2 and W_3 from ``rows``."""
    weight = [1 / len(rows)] * len(rows) if weight is None else weight
    total = torch.zeros(D, D, dtype=torch.float64)
    for W2, p in every_layer(rows, 2, weight):
        for W3, q in every_layer(rows, 2, weight):
            total += p * q * averaged_agop([W, W2, W3], X)
    return total


def symmetric_rows(seed=0):
    """Four rows, symmetric about zero, with second moment I."""
    Q = 2**0.5 * torch.linalg.qr(normal(2, 2, seed=seed)).Q
    return torch.cat([Q, -Q])


def triangle():
    """Three rows of mean zero and second moment I, not symmetric about zero."""
    angles = torch.tensor([0.3, 0.3 + 2 * np.pi / 3, 0.3 + 4 * np.pi / 3])
    return 2**0.5 * torch.stack([angles.cos(), angles.sin()], dim=1).double()


def test_expectation_is_exact_at_width_two():
    W, X = normal(2, D, seed=1), normal(20, D, seed=2)
    rows = symmetric_rows()
    torch.testing.assert_close(rows.mean(0), torch.zeros(2, dtype=torch.float64))
    torch.testing.assert_close(rows.T @ rows / 4, torch.eye(2, dtype=torch.float64))
    found = mean_over_every_network(W, X, rows)
    torch.testing.assert_close(found, expected_agop(W, X), rtol=0, atol=1e-13)


def test_expectation_needs_symmetric_rows():
    W, X = normal(2, D, seed=1), normal(20, D, seed=2)
    rows = triangle()
    torch.testing.assert_close(rows.mean(0), torch.zeros(2).double(), atol=1e-7, rtol=0)
    torch.testing.assert_close(
        rows.T @ rows / 3, torch.eye(2).double(), atol=1e-6, rtol=0
    )
    target = expected_agop(W, X)
    assert (mean_over_every_network(W, X, rows) - target).norm() > 0.05 * target.norm()


def test_symmetric_inputs_give_the_gram_matrix():
    W, X = normal(K, D, seed=1), normal(30, D, seed=2)
    both = torch.cat([X, -X])
    torch.testing.assert_close(expected_agop(W, both), W.T @ W / K)
    assert (expected_agop(W, X.abs()) - W.T @ W / K).norm() > 0.1


def test_random_networks_average_to_the_expectation():
    W, X = normal(K, D, seed=1), normal(10, D, seed=2)
    agops = random_upper_agops(W, X.expand(2000, 10, D), (6, 6), seed=3)
    error = agops.std(0) / len(agops) ** 0.5
    z = (agops.mean(0) - expected_agop(W, X)) / error
    assert z.abs().max() < 4  # of six entries, each beyond 4 once in 16 000 runs
    skewed = random_upper_agops(
        W, X.expand(2000, 10, D), (6, 6), seed=3, distribution="skewed"
    )
    error = skewed.std(0) / len(skewed) ** 0.5
    assert ((skewed.mean(0) - expected_agop(W, X)) / error).abs().max() > 8


def test_seed_decides_the_draw():
    W, X = normal(K, D), normal(4, 10, D, seed=1)
    first = random_upper_agops(W, X, (6,), seed=0)
    assert torch.equal(first, random_upper_agops(W, X, (6,), seed=0))
    assert not torch.equal(first, random_upper_agops(W, X, (6,), seed=1))
    same = random_upper_agops(W, X[:1].expand(4, 10, D), (6,), seed=0)
    assert not torch.equal(same[0], same[1])  # new upper layers for each network


def test_bad_input_names_the_argument():
    W, X = normal(K, D), normal(4, 10, D)
    with pytest.raises(ValueError, match=r"X must have shape \(R, n, d\)"):
        random_upper_agops(W, X[0], (6,))
    with pytest.raises(ValueError, match="distribution must be one of"):
        random_upper_agops(W, X, (6,), distribution="cauchy")
    with pytest.raises(ValueError, match=r"weights\[1\] must have shape \(k, 5\)"):
        averaged_agop([W, W], X[0])
    with pytest.raises(ValueError, match=r"weights\[0\] must have shape"):
        averaged_agop([W[0]], X[0])
    with pytest.raises(ValueError, match="widths"):
        random_upper_agops(W, X, (0,))
