"""Failures of a request as gRPC status codes; REST translates them to HTTP's."""

from __future__ import annotations

from typing import NoReturn

import grpc


class Failure(Exception):
    """Ends a request with this status code and message."""

    def __init__(self, code: grpc.StatusCode, message: str):
        super().__init__(code, message)
        self.code, self.message = code, message

    def __str__(self) -> str:
        return self.message


def refuse(message: str) -> NoReturn:
    """Ends a request for a mistake of whoever sent it."""
    raise Failure(grpc.StatusCode.INVALID_ARGUMENT, message)
