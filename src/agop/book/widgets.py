"""Small things to play with: markup, data, and a picture for readers without scripts.

A widget is a ``figure`` that holds a static drawing and its data as JSON; the script
``book/_assets/widgets.js`` replaces the drawing by controls that a keyboard can reach.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

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
            ("cosine of W₁ᵀW₁ and A^(1/L)", "#0072B2", cosines.tolist()),
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
