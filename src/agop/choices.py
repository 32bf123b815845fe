r"""Which number is "the correlation of NFM and AGOP"? Every choice that papers make.

The similarity of a layer's feature matrix and its AGOP depends on the power of the
AGOP, on whether the initial weights are subtracted, on whether gradients are centred,
on cosine or Pearson, and on whether the diagonal counts. `compare` evaluates any of
these on the same layer, each beside two nulls of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from agop.ansatz import LayerFeatures
from agop.similarity import cosine, haar, matrix_power, pearson

_SIMILARITIES = {"cosine": cosine, "pearson": pearson}
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """One way to measure the ansatz; the defaults are those of the released code.

    Attributes
    ----------
    power : float, alpha on the AGOP.
    subtract_initial : bool, whether W - W_0 is compared, or W.
    centred : bool, whether mean gradients are subtracted.
    similarity : "cosine" or "pearson".
    off_diagonal : bool, whether entries on the diagonal are left out.
    """

    power: float = 1.0
    subtract_initial: bool = True
    centred: bool = False
    similarity: str = "cosine"
    off_diagonal: bool = False

    def __post_init__(self) -> None:
        if self.similarity not in _SIMILARITIES:
            raise ValueError(
                f"similarity must be 'cosine' or 'pearson', got {self.similarity!r}"
            )

    def __str__(self) -> str:
        """Return the choice in words, the same for every power.

        >>> print(Choice(power=0.5, centred=True))
        W - W0, AGOP^0.5, centred, cosine
        """
        power = "" if self.power == 1 else f"^{self.power:.2g}"
        return ", ".join(
            [
                "W - W0" if self.subtract_initial else "W",
                f"AGOP{power}",
                "centred" if self.centred else "raw",
                self.similarity + (" off diagonal" if self.off_diagonal else ""),
            ]
        )

    def of(self, A: Matrix, B: Matrix) -> float:
        """Return the similarity of two matrices under this choice."""
        return _SIMILARITIES[self.similarity](A, B, off_diagonal=self.off_diagonal)


def all_choices(powers: Sequence[float]) -> list[Choice]:
    """Return every combination, the given powers varying slowest.

    >>> len(all_choices((1, 1 / 2, 1 / 6)))
    48
    """
    rest = product((True, False), (False, True), ("cosine", "pearson"), (False, True))
    return [Choice(p, *options) for p, options in product(powers, list(rest))]


def compare(
    layer: LayerFeatures,
    choices: Sequence[Choice],
    *,
    units: int,
    seed: int = 0,
    rotate: bool = True,
) -> dict[str, list[float]]:
    r"""Return the similarity of a layer's two matrices under each choice, and nulls.

    Parameters
    ----------
    layer : LayerFeatures
    choices : sequence of Choice
    units : int
        k, the rows of the layer's weights: the null draws a layer of the same shape.
    seed : int, default=0
        Of the nulls, one draw each.
    rotate : bool, default=True
        Whether to compute "rotated" too, which needs a QR decomposition.

    Returns
    -------
    dict of str to list of float, one entry a choice
        "found": of the layer's own matrices, as `agop.ansatz.ansatz_similarity`.
        "independent": with V^T V for the weights' matrix, V Gaussian (units, d).
        "rotated": with Q A Q^T for the AGOP, Q a random rotation.

    Examples
    --------
    >>> I, D = np.eye(2), np.diag([1.0, 4.0])
    >>> layer = LayerFeatures(D, D, initial=I, agop=D @ D, agop_centred=I)
    >>> found = compare(layer, [Choice(), Choice(power=0.5)], units=8)["found"]
    >>> [round(value, 3) for value in found]
    [0.983, 1.0]
    """
    rng = np.random.default_rng(seed)
    nfm, increment = (np.asarray(m, np.float64) for m in (layer.nfm, layer.increment))
    V = rng.standard_normal((units, len(nfm)))  # (k, d)
    unrelated = V.T @ V
    Q = haar(len(nfm), rng) if rotate else None
    results: dict[str, list[float]] = {"found": [], "independent": []}
    powers: dict[tuple[float, bool], tuple[Matrix, Matrix | None]] = {}
    for choice in choices:
        key = choice.power, choice.centred
        if key not in powers:
            A = _power(layer, choice)
            powers[key] = A, None if Q is None else Q @ A @ Q.T
        A, rotated = powers[key]
        weights = increment if choice.subtract_initial else nfm
        results["found"].append(choice.of(weights, A))
        results["independent"].append(choice.of(unrelated, A))
        if rotated is not None:
            results.setdefault("rotated", []).append(choice.of(weights, rotated))
    return results


def _power(layer: LayerFeatures, choice: Choice) -> Matrix:
    A = layer.agop_centred if choice.centred else layer.agop
    power = A if choice.power == 1 else matrix_power(A, choice.power)
    return np.asarray(power, np.float64)
