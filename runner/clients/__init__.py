"""Model clients behind one protocol; `open_client` chooses by the model's name."""

from runner.clients.client import Call, ClientStatistics, ModelClient, Received
from runner.clients.opening import open_client
from runner.clients.options import ClientOptions, Timeouts
from runner.clients.secret import Secret

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
