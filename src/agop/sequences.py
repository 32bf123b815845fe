r"""A small transformer encoder, and sequence tasks generated for it.

The encoder reads tokens 0..V-1, of a fixed length T, and predicts one label from the
state at the last position, as BERT does from its first (Devlin et al.). Its tasks
cannot be solved from the last token alone: attention has to bring the others.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from agop._validation import check_integer

TASKS = ("sum", "lookup")


def sequence_task(
    task: str, n: int, *, vocabulary: int = 8, length: int = 8, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw sequences and their labels.

    Parameters
    ----------
    task : {"sum", "lookup"}
        "sum": the label is the sum of the last two tokens modulo V. "lookup": one
        token of the sequence, not the last two, is the marker V - 1, all others are
        below it; the label is the token after the marker.
    n : int
    vocabulary, length : int, at least 3
        V and T.
    seed : int, default=0

    Returns
    -------
    tokens : int array of shape (n, T)
    labels : int array of shape (n,), in 0..V-1

    Examples
    --------
    >>> tokens, labels = sequence_task("sum", 4, vocabulary=5)
    >>> bool(((tokens[:, -1] + tokens[:, -2]) % 5 == labels).all())
    True
    >>> tokens, labels = sequence_task("lookup", 4, vocabulary=5)
    >>> [int(row[row.tolist().index(4) + 1]) for row in tokens] == labels.tolist()
    True
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {TASKS}, got {task!r}")
    n, V = check_integer(n, "n"), check_integer(vocabulary, "vocabulary", minimum=3)
    T = check_integer(length, "length", minimum=3)
    rng = np.random.default_rng(seed)
    if task == "sum":
        tokens = rng.integers(0, V, (n, T))
        return tokens, (tokens[:, -1] + tokens[:, -2]) % V
    tokens, rows = rng.integers(0, V - 1, (n, T)), np.arange(n)
    place = rng.integers(0, T - 2, n)
    tokens[rows, place] = V - 1
    return tokens, tokens[rows, place + 1]


class Encoder(nn.Module):
    """Transformer encoder that predicts one label from the state at the last token.

    Blocks normalise before attention and before a two-layer network of GELU units, and
    add both to the state; positions are learned; there is no dropout.

    Parameters
    ----------
    vocabulary, length : int
        V and T.
    width : int, default=64
        Of the states; a multiple of ``heads``.
    depth : int, default=4
        Blocks.
    heads : int, default=4
    seed : int, default=0

    Examples
    --------
    >>> net = Encoder(8, 6, width=16, depth=2)
    >>> tokens = torch.zeros(5, 6, dtype=torch.long)
    >>> net(tokens).shape, [tuple(h.shape) for h in net.hidden(tokens)]
    (torch.Size([5, 8]), [(5, 16), (5, 16), (5, 16)])
    """

    def __init__(
        self,
        vocabulary: int,
        length: int,
        *,
        width: int = 64,
        depth: int = 4,
        heads: int = 4,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if check_integer(width, "width") % check_integer(heads, "heads"):
            raise ValueError(
                f"width must be a multiple of heads = {heads}, got {width}"
            )
        # Torch's layers draw from the global generator: leave it as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.tokens = nn.Embedding(vocabulary, width)
            self.positions = nn.Parameter(torch.randn(length, width))
            self.blocks = nn.ModuleList(
                nn.TransformerEncoderLayer(
                    width,
                    heads,
                    4 * width,
                    dropout=0.0,
                    activation="gelu",
                    batch_first=True,
                    norm_first=True,
                )
                for _ in range(check_integer(depth, "depth"))
            )
            self.norm = nn.LayerNorm(width)
            self.readout = nn.Linear(width, vocabulary)

    def hidden(self, tokens: Tensor) -> list[Tensor]:
        """Return the states at the last position: embedded, and after each block."""
        state = self.tokens(tokens.long()) + self.positions  # (n, T, k)
        states = [state[:, -1]]
        for block in self.blocks:
            state = block(state)
            states.append(state[:, -1])
        return states

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the scores of the labels, (n, V)."""
        return self.readout(self.norm(self.hidden(tokens)[-1]))
