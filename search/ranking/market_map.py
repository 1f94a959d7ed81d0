"""Projects the vectors of a neighbourhood onto two dimensions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from search.ranking.encoder import Vectors


def positions(vectors: Vectors) -> NDArray[np.float64]:
    """[n, d] to [n, 2], each in [-1, 1]: the two directions in which they differ most, both at one scale.

    The same vectors come out at the same place every time: a direction and its opposite are as good, so the one is
    taken whose largest number is above 0.
    """
    plane = np.zeros((len(vectors), 2))
    if len(vectors) < 2:
        return plane
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)  # [min(n, d), d], the widest first
    directions = directions[:2]
    largest = np.abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    plane[:, : len(directions)] = centred @ (directions * signs[:, None]).T
    reach = np.abs(plane).max()
    return plane / reach if reach > 1e-9 else np.zeros_like(plane)  # equal ones differ by rounding alone
