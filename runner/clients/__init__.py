"""Model clients behind one protocol; `open_client` chooses by the model's name."""

from runner.clients.client import (
    Call,
    ClientOptions,
    ClientStatistics,
    ModelClient,
    Received,
    Secret,
    Timeouts,
    open_client,
)

__all__ = [
    "Call",
    "ClientOptions",
    "ClientStatistics",
    "ModelClient",
    "Received",
    "Secret",
    "Timeouts",
    "open_client",
]
