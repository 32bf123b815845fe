"""The table of choices against the one-at-a-time functions."""

import numpy as np
import pytest
import torch

from agop.ansatz import ansatz_similarity, layer_features
from agop.choices import Choice, all_choices, compare
from agop.networks import FullyConnected
from agop.similarity import cosine, independent_gram_null, pearson, rotation_null

POWERS = (1.0, 0.5, 0.25)


@pytest.fixture(scope="module")
def layer():
    net, start = (
        FullyConnected((9, 8, 7, 3), seed=s, dtype=torch.float64) for s in (0, 1)
    )
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(40, 9, dtype=torch.float64, generator=generator)
    return layer_features(net, start.weights, X)[0]


def test_found_is_the_ansatz_similarity_of_each_choice(layer):
    choices = all_choices(POWERS)
    found = compare(layer, choices, units=8)["found"]
    for choice, value in zip(choices, found, strict=True):
        base = {"cosine": cosine, "pearson": pearson}[choice.similarity]
        expected = ansatz_similarity(
            layer,
            power=choice.power,
            subtract_initial=choice.subtract_initial,
            centred=choice.centred,
            similarity=lambda A, B, base=base, choice=choice: base(
                A, B, off_diagonal=choice.off_diagonal
            ),
        )
        assert value == pytest.approx(expected, abs=1e-12)
    assert len(set(np.round(found, 6))) == len(choices) == 48  # none repeats another


def test_the_default_is_the_released_codes(layer):
    (found,) = compare(layer, [Choice()], units=8)["found"]
    assert found == pytest.approx(ansatz_similarity(layer), abs=1e-14)


def test_nulls_are_draws_of_the_two_null_distributions(layer):
    """The mean of many draws, against the means of the package's other functions."""
    draws = [compare(layer, [Choice()], units=8, seed=s) for s in range(400)]
    rotated = np.array([d["rotated"][0] for d in draws])
    expected = rotation_null(layer.increment, layer.agop, draws=400, seed=1)
    error = np.sqrt(2 * expected.var() / 400)
    assert rotated.mean() == pytest.approx(expected.mean(), abs=4 * error)
    # V^T V against a fixed A; with A itself such a Gram matrix it is the known null
    identity = type(layer)(*[torch.eye(9, dtype=torch.float64)] * 5)
    found = [
        compare(identity, [Choice()], units=8, seed=s, rotate=False)["independent"][0]
        for s in range(400)
    ]
    # <V'V, I> / (|V'V| |I|) -> 1/sqrt(1 + d/k), up to O(1/dk)
    assert np.mean(found) == pytest.approx((1 + 10 / 8) ** -0.5, abs=0.02)
    assert np.mean(found) ** 2 == pytest.approx(
        independent_gram_null(9, 8, draws=400).mean(), abs=0.02
    )


def test_the_rotation_null_is_left_out_on_request(layer):
    assert "rotated" not in compare(layer, [Choice()], units=8, rotate=False)


def test_words_tell_choices_apart():
    choices = all_choices(POWERS)
    assert len({str(choice) for choice in choices}) == 48
    with pytest.raises(ValueError, match="similarity must be"):
        Choice(similarity="spearman")
