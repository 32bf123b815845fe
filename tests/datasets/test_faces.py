"""Drawn faces: attributes, their pixels, and the independence of all else."""

import numpy as np
import pytest

from agop.datasets import ATTRIBUTES, agreeing, draw_faces, load, load_faces

NONE = dict.fromkeys(ATTRIBUTES, 0.0)


def changed(one, other):
    return (one.images != other.images).any(axis=-1)


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_a_mask_holds_the_pixels_that_the_attribute_changes_and_no_others(attribute):
    faces = draw_faces(6, size=48, noise=0.0, seed=1)
    mask, seen = faces.mask(attribute), changed(faces, faces.switched(attribute))
    assert not (seen & ~mask).any()
    # Of the mask, only pixels whose change is below half a level of 256 stay as they
    # were; they are few unless the two colours happen to be alike.
    assert seen.sum() > 0.8 * mask.sum() > 0


def test_masks_lie_where_the_attribute_is():
    """Centres of the masks of an unmoved face, in half image sides."""
    faces = draw_faces(1, size=64, pose=0.0, attributes=NONE, seed=2)

    def centre(attribute):
        return (np.argwhere(faces.mask(attribute)[0]).mean(0) + 0.5) / 32 - 1

    down = {name: centre(name)[0] for name in ATTRIBUTES}
    assert all(abs(centre(name)[1]) < 0.03 for name in ATTRIBUTES)  # symmetric
    assert (
        down["hat"]
        < down["hair"]
        < down["glasses"]
        < down["rosy_cheeks"]
        < min(down["lipstick"], down["smile"], down["beard"])
    )
    for upper in ("hat", "glasses", "eye_makeup"):
        assert not faces.mask(upper)[0, 36:].any(), upper
    for lower in ("lipstick", "smile", "beard"):
        assert not faces.mask(lower)[0, :32].any(), lower
    eyes, lips = faces.mask("eye_makeup"), faces.mask("lipstick")
    assert not (eyes & lips).any()
    assert (eyes & faces.mask("glasses")).any()


def test_what_a_hat_hides_is_not_in_the_mask_of_the_hair():
    bare = draw_faces(2, size=48, attributes=NONE, seed=0)
    hatted = draw_faces(2, size=48, attributes=NONE | {"hat": 1.0}, seed=0)
    hidden = bare.mask("hair") & ~hatted.mask("hair")
    assert hidden.any()
    assert not (hidden & ~hatted.mask("hat")).any()


def test_noise_is_that_of_the_argument_and_stays_when_an_attribute_is_switched():
    clean = draw_faces(8, size=32, noise=0.0, seed=3)
    noisy = draw_faces(8, size=32, noise=0.05, seed=3)
    inner = (clean.images > 60) & (clean.images < 195)  # 4 deviations from clipping
    difference = (noisy.images / 255.0 - clean.images / 255.0)[inner]
    assert difference.std() == pytest.approx(0.05, rel=0.02)
    other = noisy.switched("glasses")
    assert np.array_equal(
        noisy.images[~noisy.mask("glasses")], other.images[~noisy.mask("glasses")]
    )


def test_attributes_can_be_set_independently_or_jointly():
    faces = draw_faces(2000, size=16, attributes={"hat": 0.2, "smile": 1.0}, seed=4)
    assert faces["hat"].mean() == pytest.approx(0.2, abs=0.04)  # 4 deviations
    assert faces["smile"].all()
    table = faces.attributes[:, [0, 1, 2, 3, 6, 7]]
    correlations = np.corrcoef(table.T)[~np.eye(6, dtype=bool)]
    assert np.abs(correlations).max() < 0.1  # 4 deviations of 1/sqrt(2000)
    joint = {"lipstick": faces["hat"], "eye_makeup": agreeing(faces["hat"], 0.9)}
    tied = draw_faces(2000, size=16, attributes=joint, seed=4)
    assert np.array_equal(tied["lipstick"], faces["hat"])
    agreement = (tied["eye_makeup"] == tied["lipstick"]).mean()
    assert agreement == pytest.approx(0.9, abs=0.03)


def test_nothing_outside_the_mask_tells_the_attribute():
    """No leak: the means of the two classes differ inside the mask alone."""
    only = NONE | {"glasses": 0.5}
    faces = draw_faces(600, size=16, attributes=only, pose=0.0, seed=5)
    has = faces["glasses"]
    a, b = (faces.images[rows].astype(float) for rows in (has, ~has))
    error = np.sqrt(a.var(0) / len(a) + b.var(0) / len(b))
    z = np.abs(a.mean(0) - b.mean(0)) / error  # (16, 16, 3)
    mask = faces.mask("glasses").any(0)
    assert z[~mask].max() < 5  # of some 600 normal values
    assert z[mask].max() > 10


def test_the_same_call_draws_the_same_and_another_seed_does_not():
    one = draw_faces(40, size=16, seed=6)
    assert np.array_equal(one.images, draw_faces(40, size=16, seed=6).images)
    assert not np.array_equal(one.images, draw_faces(40, size=16, seed=7).images)
    bald = draw_faces(40, size=16, attributes={"hair": 0.0}, seed=6)
    rest = [name != "hair" for name in ATTRIBUTES]
    assert np.array_equal(one.attributes[:, rest], bald.attributes[:, rest])
    same = ~one["hair"]
    assert np.array_equal(one.images[same], bald.images[same])  # the same people


def test_a_large_image_averages_to_a_small_one():
    """Antialiasing: coverage at 32 pixels is what 128 pixels average to."""
    small = draw_faces(4, size=32, noise=0.0, seed=8).images / 255.0
    large = draw_faces(4, size=128, noise=0.0, seed=8).images / 255.0
    averaged = large.reshape(4, 32, 4, 32, 4, 3).mean((2, 4))
    assert np.abs(small - averaged).mean() < 0.01  # without antialiasing: 0.02


def test_as_a_data_set():
    data = load("faces", attribute="hat", n_train=30, n_test=20, size=16, seed=9)
    assert (data.X.shape, data.X_test.shape) == ((30, 16, 16, 3), (20, 16, 16, 3))
    faces = draw_faces(50, size=16, seed=9)
    assert np.array_equal(np.concatenate([data.y, data.y_test]), faces["hat"])
    assert np.array_equal(data.X_test, faces.images[30:])
    assert data.provenance.source == "drawn by agop, seed 9"
    assert data.class_names == ("no hat", "hat")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0"),
        ({"size": 8}, "size is 8"),
        ({"noise": -1.0}, "noise is -1.0"),
        ({"attributes": {"hats": 0.5}}, "'hats'; there is hat"),
        ({"attributes": {"hat": 1.5}}, "must be a probability or 3 bools"),
        ({"attributes": {"hat": [True]}}, "must be a probability or 3 bools"),
        ({"attributes": {"hat": [0.1, 0.2, 0.3]}}, "must be a probability"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        draw_faces(**{"n": 3, "size": 16} | options)


def test_unknown_attributes_and_rates():
    with pytest.raises(ValueError, match="glases"):
        load_faces("glases")
    with pytest.raises(ValueError, match="glases"):
        draw_faces(1, size=16).mask("glases")
    with pytest.raises(ValueError, match="rate is 2"):
        agreeing([True], 2)
