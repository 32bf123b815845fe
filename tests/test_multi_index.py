import pytest
import torch

from agop.features import agop
from agop.multi_index import low_rank_map, multi_index, overlap


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def test_agop_agrees_with_autograd():
    target, X = multi_index(7, 3, seed=2), normal(40, 7)
    torch.testing.assert_close(target.agop(X), agop(target, X), rtol=0, atol=1e-13)


def test_the_target_is_constant_along_the_other_directions():
    target, X = multi_index(7, 3, seed=2), normal(40, 7)
    V = torch.linalg.svd(target.U).Vh[3:]  # (d - r, d), orthogonal to U
    moved = X + normal(40, 4, seed=1) @ V
    torch.testing.assert_close(target(moved), target(X))
    assert (target(X + normal(40, 7, seed=1)) - target(X)).abs().max() > 1
    torch.testing.assert_close(target.U @ target.U.T, torch.eye(3).to(X))


def test_overlap_of_a_subspace():
    target = multi_index(20, 3, seed=2)
    assert overlap(target.U, target.agop(normal(50, 20))) == pytest.approx(1)
    V = torch.linalg.svd(target.U).Vh[3:6]
    assert overlap(target.U, V.T @ V) == pytest.approx(0, abs=1e-12)
    draws = [normal(20, 20, seed=s) for s in range(200)]
    mean = sum(overlap(target.U, G @ G.T) for G in draws) / 200
    assert mean == pytest.approx(3 / 20, abs=0.02)  # r/d for random directions


def test_singular_values_are_those_asked_for():
    J = low_rank_map(6, 4, [3.0, 2.0], seed=1)
    expected = torch.tensor([3.0, 2.0, 0.0, 0.0], dtype=torch.float64)
    torch.testing.assert_close(torch.linalg.svdvals(J), expected, rtol=0, atol=1e-14)
    assert J.shape == (4, 6)
    assert not torch.equal(J, low_rank_map(6, 4, [3.0, 2.0], seed=2))


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="r must be at most"):
        multi_index(2, 3)
    with pytest.raises(ValueError, match="singular_values"):
        low_rank_map(2, 2, [1.0, 1.0, 1.0], seed=0)
