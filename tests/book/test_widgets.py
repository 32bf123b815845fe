"""The widgets' numbers, against the package's own flow of deep linear networks."""

import json
import re

import numpy as np
import pytest
import torch

from agop.book import widgets
from agop.choices import all_choices
from agop.deep_linear import flow, imbalance, product

FRAMES = {
    "title": "Iteration",
    "unit": "iteration",
    "caption": "A test.",
    "frames": [
        {"at": 0, "train": 1.0, "test": 0.5, "matrix": [[1, 0], [0, 1]]},
        {"at": 5, "train": 1.0, "test": 0.9, "matrix": [[4, -2], [-2, 1]]},
    ],
}


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_path_is_that_of_a_deep_linear_network(depth, decay):
    times, cosines, imbalances = widgets.deep_linear_path(depth, decay)
    W = [torch.diag(torch.tensor(row).double())[None] for row in widgets.STARTS[:depth]]
    target = torch.diag(torch.tensor(widgets.TARGETS).double())
    moments = [0.0, 5.0, 20.0]
    path = flow(W, lambda J: J - target, moments, step=0.01, weight_decay=decay)
    start = torch.cat([D.flatten() for D in imbalance(W)]).norm()
    for t, each in zip(moments, path, strict=True):
        place = int(np.searchsorted(times, t - 1e-9))
        J = product(each)[0]
        A, gram = J.T @ J, (each[0].mT @ each[0])[0]
        root = torch.diag(torch.diagonal(A) ** (1 / depth))
        cosine = (root * gram).sum() / root.norm() / gram.norm()
        left = torch.cat([D.flatten() for D in imbalance(each)]).norm() / start
        assert cosines[place] == pytest.approx(float(cosine), abs=1e-6)
        assert imbalances[place] == pytest.approx(float(left), abs=1e-6)


def test_the_imbalance_follows_its_law():
    times, _, imbalances = widgets.deep_linear_path(3, 0.1)
    np.testing.assert_allclose(imbalances, np.exp(-0.2 * times), atol=1e-6)


def test_frames_are_checked():
    with pytest.raises(ValueError, match="at least one frame"):
        widgets.scrub({**FRAMES, "frames": []})
    bad = {k: v for k, v in FRAMES["frames"][0].items() if k != "test"}
    with pytest.raises(ValueError, match=r"frames\[0\] must have \['test'\]"):
        widgets.scrub({**FRAMES, "frames": [bad]})


def test_data_cannot_close_its_script():
    html = widgets.scrub({**FRAMES, "title": "</script><b>"})
    data = re.search(r'json">(.*?)</script>', html)[1]
    assert json.loads(data)["title"] == "</script><b>"


def test_pictures_become_small_frames():
    picture = np.zeros((96, 96))
    picture[3:6, 9:12] = 7.0
    (frame,) = widgets.training_frames([20], [1.0], [0.123456], [picture])
    matrix = np.array(frame["matrix"])
    assert matrix.shape == (32, 32)
    assert np.argwhere(matrix).tolist() == [[1, 3]]
    assert matrix.max() == 99
    assert (frame["at"], frame["test"]) == (20, 0.1235)


def test_every_definition_can_be_chosen():
    definitions = all_choices((1, 1 / 2, 1 / 6))
    found = np.arange(96.0).reshape(48, 2) / 100
    html = widgets.choices(definitions, found, {"unrelated": found / 2}, "A test.")
    data = json.loads(re.search(r'json">(.*?)</script>', html)[1])
    named = {tuple(row["choice"].values()): row["found"] for row in data["rows"]}
    assert len(named) == 48
    asked = ("1/6", "W", "centred", "Pearson", "off the diagonal")
    assert named[asked] == found[-1].tolist()
    with pytest.raises(ValueError, match="unrelated must have 48 rows"):
        widgets.choices(definitions, found, {"unrelated": found[1:]}, "A test.")
