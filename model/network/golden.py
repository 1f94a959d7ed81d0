"""Texts with known vectors that travel with an exported model, so that any server can prove it computes the same."""

from __future__ import annotations

import numpy as np

TEXTS = (
    "",
    "Banking.",
    "Brewing. A family-owned brewery that sells craft lager to pubs and shops across northern Europe.",
    "Semiconductors. Designs low-power chips for hearing aids and earbuds, and has them made by contract foundries.",
    "An online market where farmers rent out idle tractors by the hour.",
    "Bietet Versicherungen für Fahrräder und E-Bikes an, abgeschlossen in zwei Minuten per Handy.",
    "为中小企业提供云端会计软件。",
    "🚀 Small rockets for small satellites 🛰️",
    "Runs hospitals and clinics, trains nurses, and operates laboratories for blood and tissue tests. " * 40,
)
AGREEMENT = 0.99999  # the least cosine between a golden vector and its reproduction


def disagreement(expected: np.ndarray, found: np.ndarray) -> str | None:
    """What is wrong with vectors [n, d] of the golden texts, or None."""
    if expected.shape != found.shape:
        return f"shape {found.shape} where {expected.shape} is expected"
    if not np.isfinite(found).all():
        return "a vector is not finite"
    # In double precision: rounding alone moves a float32 cosine by more than the tolerance leaves.
    expected, found = expected.astype(np.float64), found.astype(np.float64)
    norms = np.linalg.norm(expected, axis=1) * np.linalg.norm(found, axis=1)
    cosines = (expected * found).sum(axis=1) / np.maximum(norms, 1e-12)
    worst = int(cosines.argmin())
    if cosines[worst] < AGREEMENT:
        return f"cosine {cosines[worst]:.6f} on golden text {worst} ({TEXTS[worst][:40]!r}), below {AGREEMENT}"
    return None
