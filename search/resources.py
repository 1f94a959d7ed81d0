"""What the routes share."""

from __future__ import annotations

from dataclasses import dataclass

from search.companies import Companies
from search.encoder import Encoder
from search.feedback import Feedback
from search.health import Health
from search.list_ids import ListIds
from search.metrics import Metrics
from search.recorder import Recorder


@dataclass(frozen=True)
class Resources:
    companies: Companies
    encoder: Encoder
    health: Health
    feedback: Feedback
    recorder: Recorder
    list_ids: ListIds
    metrics: Metrics
