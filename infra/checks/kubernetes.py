"""The overlays of infra/kubernetes: rendered, held against schemas and the code, and taken by a real API server."""

from __future__ import annotations

from infra.checks.check import Check
from infra.checks.cluster.apiserver import refused_by_server
from infra.checks.cluster.commands import wrong_commands
from infra.checks.cluster.neighbours import unlike_neighbours
from infra.checks.cluster.network import wrong_reach
from infra.checks.cluster.policies import against_policies
from infra.checks.cluster.references import secrets_in_clear, wrong_references
from infra.checks.cluster.render import unrendered
from infra.checks.cluster.schemas import against_definitions, against_kubernetes
from infra.checks.cluster.security import insecure
from infra.checks.cluster.walkthrough import refused_commands
from infra.checks.cluster.wiring import wrong_wiring

CHECKS = [
    Check("kubernetes: overlays render", unrendered),
    Check("kubernetes: schemas", against_kubernetes),
    Check("kubernetes: custom resources", against_definitions),
    Check("kubernetes: selectors and ports", wrong_wiring),
    Check("kubernetes: commands", wrong_commands),
    Check("kubernetes: references", wrong_references),
    Check("kubernetes: no secret in clear", secrets_in_clear),
    Check("kubernetes: restricted pods", insecure),
    Check("kubernetes: policies", against_policies, slow=True),
    Check("kubernetes: who reaches whom", wrong_reach),
    Check("kubernetes: as elsewhere in infra", unlike_neighbours),
    Check("kubernetes: a real API server", refused_by_server, slow=True),
    Check("kubernetes: the README's commands", refused_commands, slow=True),
]
