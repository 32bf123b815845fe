import pytest
import torch

from agop.counterexamples import (
    factorial_design,
    quadratic_features,
    quadratic_network,
    solution,
)
from agop.exponents import best_exponent
from agop.features import agop, nfm
from agop.training import train

C = [1.0, 1.0, 2.0]
SCALES = [1.0, 2.0, 1.0]


def target(X, c):
    return X.square() @ torch.tensor(c, dtype=X.dtype)


def test_the_design_has_independent_symmetric_coordinates():
    X = factorial_design(SCALES)
    assert X.shape == (64, 3)
    assert torch.equal(X.mean(0), torch.zeros(3).to(X))
    moments = 5 / 8 * torch.tensor(SCALES).to(X) ** 2
    torch.testing.assert_close(X.mT @ X / 64, torch.diag(moments))
    squares = X.square()
    product = (squares[:, 0] * squares[:, 1]).mean()
    torch.testing.assert_close(product, squares.mean(0)[:2].prod())
    assert squares.var(0).min() > 0


def test_the_closed_form_is_that_of_the_network():
    X, net = factorial_design(SCALES), quadratic_network(solution(C))
    torch.testing.assert_close(net(X)[:, 0], target(X, C))
    gram, moment = quadratic_features(C, X.square().mean(0))
    torch.testing.assert_close(nfm(net.weights[0]), torch.diag(gram))
    torch.testing.assert_close(agop(net, X), torch.diag(moment))


@pytest.mark.parametrize("start", [0.1, 0.3])
def test_gradient_descent_from_a_balanced_start_ends_there(start):
    X = factorial_design(SCALES)
    net = quadratic_network([start] * 3)
    history = train(net, X, target(X, C), lr=0.02, steps=1000)
    assert history.losses[-1] < 1e-24
    torch.testing.assert_close(net.weights[1][0].detach(), solution(C))
    gram, _ = quadratic_features(C, X.square().mean(0))
    torch.testing.assert_close(
        nfm(net.weights[0]), torch.diag(gram), rtol=0, atol=1e-2
    )  # discretisation: the flow conserves |w_j|^2 - 2 a_j^2, descent up to O(η)


def test_no_power_fits_unless_the_moments_are_equal():
    for moments, works in (([1.0, 4.0, 1.0], False), ([3.0, 3.0, 3.0], True)):
        gram, moment = map(torch.diag, quadratic_features(C, moments))
        alpha, value = best_exponent(gram, moment)
        assert (value > 1 - 1e-12) == works
        if works:
            assert alpha == pytest.approx(1 / 3, abs=1e-6)


@pytest.mark.parametrize("d", [2, 10, 50])
def test_the_best_cosine_comes_down_to_one_over_root_d(d):
    c, moments = torch.ones(d), torch.ones(d)
    c[0], moments[0] = 1e9, 1e-24
    gram, moment = map(torch.diag, quadratic_features(c, moments))
    assert best_exponent(gram, moment, low=1e-6)[1] == pytest.approx(d**-0.5, rel=1e-4)


@pytest.mark.parametrize("make", [quadratic_network, solution, factorial_design])
@pytest.mark.parametrize("values", [[], [1.0, -1.0], [[1.0]]])
def test_bad_vectors_are_named(make, values):
    with pytest.raises(ValueError, match="must be a vector of positive numbers"):
        make(values)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="one length"):
        quadratic_features([1.0], [1.0, 2.0])
