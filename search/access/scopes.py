"""Whom a route is open to, said where the route is defined. A route that says nothing is open to nobody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from fastapi.routing import RouteContext, iter_route_contexts
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

Access = Literal["read", "feedback", "public"]  # a scope of keys, or everybody, without being counted
READ: Access = "read"
FEEDBACK: Access = "feedback"
PUBLIC: Access = "public"

Target = TypeVar("Target")
_NAME = "pause_access"


class RouteUndeclared(RuntimeError):
    """A mistake in the code: a route that does not say whom it is open to."""


def open_to(access: Access) -> Callable[[Target], Target]:
    """Put under `@router.get(...)`, or around an app that is mounted."""

    def declare(target: Target) -> Target:
        setattr(target, _NAME, access)
        return target

    return declare


class Declared:
    """The access to each route of an app. It is the routes themselves that are asked which of them an address means,
    as the router does it: two readings of one path would leave a gap between them."""

    def __init__(self, routes: Sequence[BaseRoute]):
        contexts = list(iter_route_contexts(routes))
        # To find the method anew for every request costs more than to call it.
        self._routes = [(route.matches, _access(route)) for route in contexts]
        self._silent = [str(route.path) for route in contexts if _access(route) is None]

    def require_all(self) -> None:
        if self._silent:
            raise RouteUndeclared(f"routes without open_to(...), and so open to nobody: {', '.join(self._silent)}")

    def asked(self, scope: Scope) -> tuple[bool, Access | None]:
        """Whether there is such a route, and whom it is open to; with a method that it does not take, too."""
        partly: tuple[bool, Access | None] = (False, None)
        for matches, access in self._routes:
            match, _ = matches(scope)
            if match is Match.FULL:
                return True, access
            if match is Match.PARTIAL and not partly[0]:
                partly = (True, access)
        return partly


def _access(route: RouteContext) -> Access | None:
    target = route.endpoint if route.endpoint is not None else getattr(route.original_route, "app", None)
    return getattr(target, _NAME, None)
