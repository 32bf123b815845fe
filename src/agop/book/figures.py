"""One look for every figure: colours, maps, sizes.

The same thing has the same colour in every chapter. The hues are Okabe and Ito's,
which stay apart for colour-blind readers and in grey; matrices use perceptually
uniform maps. The card behind a figure stays white so that it reads in dark mode.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = {
    "nfm": "#0072B2",  # trained neural feature matrix
    "agop": "#D55E00",
    "initial": "#999999",  # initial neural feature matrix
    "null": "#000000",
    "network": "#0072B2",
    "rfm": "#009E73",
    "kernel": "#CC79A7",
    "train": "#E69F00",
    "test": "#56B4E9",
    "virtual": "#882255",  # virtual covariance, whitened updates
}
MARKERS = {"nfm": "o", "agop": "s", "initial": "^", "null": "x"}
SEQUENTIAL = "viridis"
DIVERGING = "PuOr"

STYLE: dict[str, Any] = {
    "figure.figsize": (6.4, 3.6),
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "white",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e5e5e5",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "image.cmap": SEQUENTIAL,
    "axes.formatter.useoffset": False,
}


def use_style() -> None:
    """Make the book's style the current one."""
    mpl.rcParams.update(STYLE)  # type: ignore[arg-type]


def show_matrices(
    matrices: Sequence[Any], titles: Sequence[str], *, columns: int | None = None
) -> Figure:
    """Draw symmetric matrices side by side, each scaled to its largest entry.

    Parameters
    ----------
    matrices : sequence of (d, d) arrays or tensors
    titles : sequence of str
    columns : int, optional
        Matrices in a row; all in one row by default.
    """
    columns = columns or len(matrices)
    rows = -(-len(matrices) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(2.1 * columns, 2.2 * rows), squeeze=False
    )
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, matrix, title in zip(axes.flat, matrices, titles, strict=False):
        image = np.asarray(matrix, dtype=float)
        bound = np.abs(image).max() or 1.0
        axis.imshow(image / bound, cmap=DIVERGING, vmin=-1, vmax=1)
        axis.set_title(title)
    return figure


def strip(
    axis: Axes, position: float, values: Sequence[float], kind: str, label: str = ""
) -> None:
    """Draw one point a value and a bar at their median, in the colour of ``kind``.

    Parameters
    ----------
    position : float
        Where on the horizontal axis; points are spread by a fixed pattern around it.
    kind : str
        A key of ``COLOURS``.
    """
    heights = np.sort(np.asarray(values, dtype=float))
    spread = 0.08 * np.cos(2.4 * np.arange(len(heights)))  # fixed: repeatable pictures
    axis.plot(
        position + spread,
        heights,
        MARKERS.get(kind, "o"),
        color=COLOURS[kind],
        markersize=4,
        alpha=0.6,
        linestyle="none",
        label=label,
    )
    axis.hlines(np.median(heights), position - 0.16, position + 0.16, COLOURS[kind])


def violin(
    axis: Axes, position: float, values: Sequence[float], kind: str, label: str = ""
) -> None:
    """Draw the distribution of many values, its quartiles, and its median.

    Parameters
    ----------
    position : float
        Where on the horizontal axis.
    kind : str
        A key of ``COLOURS``.
    """
    heights = np.asarray(values, dtype=float)
    heights = heights[np.isfinite(heights)]
    colour = COLOURS[kind]
    if len(np.unique(heights)) > 1:
        body = axis.violinplot(heights, [position], widths=0.26, showextrema=False)
        for part in body["bodies"]:  # type: ignore[attr-defined]
            part.set(facecolor=colour, edgecolor=colour, alpha=0.35)
    low, middle, high = np.quantile(heights, [0.25, 0.5, 0.75])
    axis.vlines(position, low, high, colour, linewidth=3)
    axis.plot(
        position,
        middle,
        MARKERS.get(kind, "o"),
        color=colour,
        markerfacecolor="white",
        markersize=6,
        linestyle="none",
        label=label,
    )
