"""Queries that no store can answer, refused before one is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from common.errors import InputError
from index.document import Vector
from index.errors import WrongModel

if TYPE_CHECKING:
    from index.base import Spec


def check_query(url: str, spec: Spec, model: str, vector: Vector, k: int) -> None:
    """Raises for a vector of another model, and for a query that has no nearest companies."""
    if model != spec.model:
        raise WrongModel(url, spec.model, model)
    check_size(k)
    if vector.shape != (spec.dimension,) or not np.isfinite(vector).all() or not vector.any():
        raise InputError(
            f"a query is one vector of {spec.dimension} finite numbers, not all 0; got shape {vector.shape}"
        )


def check_size(k: int) -> None:
    if k < 1:
        raise InputError(f"k, the number of companies to find, must be at least 1, got {k}")
