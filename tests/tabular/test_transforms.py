"""A target's transform must be undone: the corrected one is, the printed one is not."""

import numpy as np
import pytest

from agop.tabular.transforms import log_as_printed, signed_exp, signed_log

Y = np.concatenate([-np.logspace(-9, 6, 40), [0.0], np.logspace(-9, 6, 40)])


def test_signed_log_is_undone():
    assert signed_exp(signed_log(Y)) == pytest.approx(Y, rel=1e-9)


def test_signed_log_is_odd_and_increasing():
    y = np.sort(Y)
    assert (np.diff(signed_log(y)) > 0).all()
    assert np.array_equal(signed_log(-Y), -signed_log(Y))


def test_the_printed_form_takes_two_targets_to_one_value():
    assert np.array_equal(log_as_printed(-Y), log_as_printed(Y))
    assert log_as_printed([2.0])[0] == pytest.approx(2 * np.log(3))
