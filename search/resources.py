"""What all routes need: index, encoder, health, feedback, metrics."""

from __future__ import annotations

from dataclasses import dataclass

from search.feedback.list_ids import ListIds
from search.feedback.recorder import Recorder
from search.feedback.store import Feedback
from search.health import Health
from search.metrics import Metrics
from search.ranking.companies import Companies
from search.ranking.encoder import Encoder


@dataclass(frozen=True)
class Resources:
    """Made once for an application, and given to every route."""

    companies: Companies
    encoder: Encoder
    health: Health
    feedback: Feedback
    recorder: Recorder
    list_ids: ListIds
    metrics: Metrics
