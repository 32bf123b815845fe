"""Small things to play with: markup, data, and a picture for readers without scripts.

A widget is a ``figure`` that holds a static drawing and its data as JSON; the script
``book/_assets/widgets.js`` replaces the drawing by controls that a keyboard can reach.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# A deep linear network whose layers are diagonal in one basis: three modes.
TARGETS = (3.0, 2.0, 1.0)
STARTS = ((1.4, 0.5, 0.9), (0.6, 1.2, 0.4), (1.0, 0.8, 1.3), (0.7, 1.1, 0.6))
TIME, STEP, EVERY = 20.0, 0.01, 20  # length of the flow; one value is kept in 20


def deep_linear_path(depth: int, decay: float) -> tuple[np.ndarray, ...]:
    """Follow gradient flow with weight decay on 1/2 sum_i (prod_l u_li - s_i)^2.

    Parameters
    ----------
    depth : int
        Number L of layers, 2 to 4.
    decay : float
        Weight decay lambda.

    Returns
    -------
    times, cosines, imbalances : (n,) arrays
        The cosine similarity of W_1^T W_1 and A^(1/L), and the norm of all
        imbalances over its start.
    """
    s, step = np.array(TARGETS), STEP
    u = np.array(STARTS[:depth])  # (L, modes)

    def velocity(u: np.ndarray) -> np.ndarray:
        others = np.stack([np.delete(u, i, 0).prod(0) for i in range(depth)])
        return -(u.prod(0) - s) * others - decay * u

    def measures(u: np.ndarray) -> tuple[float, float]:
        a, b = u[0] ** 2, np.abs(u.prod(0)) ** (2 / depth)
        cosine = a @ b / np.sqrt((a @ a) * (b @ b))
        return float(cosine), float(np.linalg.norm(np.diff(u**2, axis=0)))

    found, first = [], measures(u)[1]
    for number in range(round(TIME / step) + 1):
        if number % EVERY == 0:
            cosine, imbalance = measures(u)
            found.append((number * step, cosine, imbalance / first))
        k1 = velocity(u)
        k2 = velocity(u + step / 2 * k1)
        k3 = velocity(u + step / 2 * k2)
        k4 = velocity(u + step * k3)
        u = u + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return tuple(np.array(found).T)


def line_chart(
    lines: Sequence[tuple[str, str, Sequence[float]]], x_label: str, told: str
) -> str:
    """Return lines with values in [0, 1] over a common axis, as an SVG element.

    Parameters
    ----------
    lines : sequence of (name, colour, values)
    told : str
        What a reader who does not see the drawing is told.
    """
    width, height, left, top = 560, 220, 44, 30
    inner, tall = width - left - 10, height - top - 40
    parts = [
        f'<text x="{left - 6}" y="{top + 5 + tall * (1 - y):g}" text-anchor="end">'
        f"{y:g}</text>"
        f'<line x1="{left}" x2="{width - 10}" y1="{top + tall * (1 - y):g}" '
        f'y2="{top + tall * (1 - y):g}" stroke="currentColor" opacity=".2"/>'
        for y in (0, 0.5, 1)
    ]
    for place, (name, colour, values) in enumerate(lines):
        across = inner / max(len(values) - 1, 1)
        points = " ".join(
            f"{left + across * i:.1f},{top + tall * (1 - v):.1f}"
            for i, v in enumerate(values)
        )
        dash = "" if place == 0 else ' stroke-dasharray="6 4"'
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" '
            f'stroke-width="2.5"{dash}/>'
            f'<line x1="{left + 230 * place}" x2="{left + 26 + 230 * place}" y1="12" '
            f'y2="12" stroke="{colour}" stroke-width="2.5"{dash}/>'
            f'<text x="{left + 32 + 230 * place}" y="16">{escape(name)}</text>'
        )
    parts.append(
        f'<text x="{left + inner / 2:g}" y="{height - 8}" text-anchor="middle">'
        f"{escape(x_label)}</text>"
    )
    return (
        f'<svg class="drawing" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(told)}" xmlns="http://www.w3.org/2000/svg" '
        f'font-size="13" font-family="sans-serif" fill="currentColor">'
        f"{''.join(parts)}</svg>"
    )


def _figure(kind: str, drawing: str, data: Any, caption: str) -> str:
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<figure class="widget" data-widget="{kind}">'
        f'<div class="drawing-frame">{drawing}</div>'
        f'<script type="application/json">{text}</script>'
        f"<figcaption><p>{escape(caption)}</p></figcaption></figure>"
    )


def deep_linear() -> str:
    """Return the widget of the chapter on depth."""
    depth, decay = 3, 0.1
    _, cosines, imbalances = deep_linear_path(depth, decay)
    told = (
        f"{depth} layers, weight decay {decay}: the cosine goes from "
        f"{cosines[0]:.3f} to {cosines[-1]:.3f}, the imbalance from 1 to "
        f"{imbalances[-1]:.2f}."
    )
    drawing = line_chart(
        [
            ("W₁ᵀW₁ against A^(1/L)", "#0072B2", cosines.tolist()),
            ("imbalance, over its start", "#D55E00", imbalances.tolist()),
        ],
        f"time, 0 to {TIME:g}",
        told,
    )
    caption = (
        "A deep linear network with three modes under gradient flow with weight decay. "
        "More decay brings the layers into balance sooner, and with balance the first "
        "layer's Gram matrix becomes the power 1/L of the AGOP; without decay the "
        "imbalance stays where it began."
    )
    data = {
        "targets": TARGETS,
        "starts": STARTS,
        "time": TIME,
        "step": STEP,
        "every": EVERY,
        "depth": depth,
        "decay": decay,
    }
    return _figure("deep-linear", drawing, data, caption)


def scrub(data: Mapping[str, Any]) -> str:
    """Return a widget that steps through training.

    Parameters
    ----------
    data : mapping
        ``title``, ``caption``, ``unit`` ("step", "iteration"), and ``frames``: a list
        of ``{"at": number, "train": share, "test": share, "matrix": rows}``.

    Raises
    ------
    ValueError
        If there are no frames, or a frame lacks one of its four parts.
    """
    frames = data.get("frames") or []
    if not frames:
        raise ValueError("frames must hold at least one frame, got none")
    for number, frame in enumerate(frames):
        if missing := {"at", "train", "test", "matrix"} - set(frame):
            raise ValueError(f"frames[{number}] must have {sorted(missing)}")
    train = [frame["train"] for frame in frames]
    test = [frame["test"] for frame in frames]
    told = (
        f"{data['title']}: from {data['unit']} {frames[0]['at']} to "
        f"{frames[-1]['at']}, training accuracy {train[0]:.2f} to {train[-1]:.2f}, "
        f"test accuracy {test[0]:.2f} to {test[-1]:.2f}."
    )
    drawing = line_chart(
        [("training accuracy", "#E69F00", train), ("test accuracy", "#56B4E9", test)],
        str(data["unit"]),
        told,
    )
    return _figure("scrub", drawing, dict(data), str(data["caption"]))


def training_frames(
    at: Sequence[int],
    train: Sequence[float],
    test: Sequence[float],
    pictures: Sequence[ArrayLike],
    side: int = 32,
) -> list[dict[str, Any]]:
    """Return the frames of `scrub`: accuracies beside small pictures.

    Parameters
    ----------
    at : numbers of the steps or iterations, (T,)
    train, test : accuracies there, (T,)
    pictures : one (height, width) array a frame; its largest entry becomes 99.
    side : int, default=32
        Blocks of pixels are averaged as far as this many rows are left.

    Examples
    --------
    >>> training_frames([0], [1.0], [0.5], [np.eye(4)], side=2)[0]["matrix"]
    [[99, 0], [0, 99]]
    """
    columns = zip(at, train, test, pictures, strict=True)
    return [
        {
            "at": int(step),
            "train": round(float(fit), 4),
            "test": round(float(score), 4),
            "matrix": _small(np.asarray(picture, dtype=np.float64), side).tolist(),
        }
        for step, fit, score, picture in columns
    ]


def _small(picture: NDArray[np.float64], side: int) -> NDArray[np.int64]:
    """Average square blocks down to about ``side`` rows, as integers up to 99."""
    block = max(1, len(picture) // side)
    height, width = (length // block for length in picture.shape)
    kept = picture[: height * block, : width * block]
    means = kept.reshape(height, block, width, block).mean((1, 3))
    return np.rint(99 * means / (np.abs(means).max() or 1)).astype(np.int64)


def choices(
    definitions: Sequence[Any],
    found: ArrayLike,
    nulls: Mapping[str, ArrayLike],
    caption: str,
) -> str:
    """Return a widget in which the reader picks a definition of the similarity.

    Parameters
    ----------
    definitions : sequence of `agop.choices.Choice`, of length m
        The first is the one shown before anything is picked.
    found : array of shape (m, L)
        Similarities of each layer under each.
    nulls : mapping from names to arrays of shape (m, L)

    Raises
    ------
    ValueError
        If the arrays are not of one row a definition.
    """
    values = {
        "found": np.asarray(found),
        **{k: np.asarray(v) for k, v in nulls.items()},
    }
    for name, array in values.items():
        if len(array) != len(definitions):
            raise ValueError(
                f"{name} must have {len(definitions)} rows, one a definition, "
                f"got {len(array)}"
            )
    rows = [
        {
            "choice": _in_words(d),
            **{k: v[i].round(3).tolist() for k, v in values.items()},
        }
        for i, d in enumerate(definitions)
    ]
    null = next(iter(nulls))
    listed = ", ".join(f"{v:.2f}" for v in values["found"][0])
    told = f"{definitions[0]}: per layer {listed}"
    lines = [
        ("trained layers", "#D55E00", values["found"][0].clip(0, 1).tolist()),
        (f"null: {null}", "#0072B2", values[null][0].clip(0, 1).tolist()),
    ]
    last = values["found"].shape[1]
    drawing = line_chart(lines, f"layer, 1 to {last}", told)
    return _figure("choices", drawing, {"rows": rows, "nulls": list(nulls)}, caption)


def _in_words(definition: Any) -> dict[str, str]:
    """Return the five choices of a definition, each in a word or two."""
    d = asdict(definition)
    return {
        "power of the AGOP": _fraction(d["power"]),
        "weights": "W − W₀" if d["subtract_initial"] else "W",
        "gradients": "centred" if d["centred"] else "raw",
        "similarity": d["similarity"].replace("pearson", "Pearson"),
        "entries": "off the diagonal" if d["off_diagonal"] else "all",
    }


def _fraction(power: float) -> str:
    return f"{power:g}" if power >= 1 else f"1/{1 / power:.3g}"


def show(html: str, told: str) -> None:
    """Display a widget in a notebook, and words where HTML does not show."""
    from IPython.display import display

    display({"text/html": html, "text/plain": told}, raw=True)
