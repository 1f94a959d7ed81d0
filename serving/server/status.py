"""Why a request cannot be answered, in gRPC's terms; REST translates them."""

from __future__ import annotations

import grpc


class Failure(Exception):
    """Ends a request with this status code and message."""

    def __init__(self, code: grpc.StatusCode, message: str):
        super().__init__(code, message)
        self.code, self.message = code, message

    def __str__(self) -> str:
        return self.message
