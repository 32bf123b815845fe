"""What several image sets share: the npz files of a local mirror."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_npz(path: Path) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return images (uint8) and labels (n,) of a mirror's npz; nothing is unpickled."""
    with np.load(path, allow_pickle=False) as file:
        return file["images"], file["labels"].astype(np.int64)
