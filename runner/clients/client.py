"""What the engine asks of a client, and what it gets back.

A client sends one attempt and nothing more: it neither retries nor waits for a limit,
writes no log, and tells no time. Whatever ends an attempt without a usable reply is
raised as an `AttemptError` of `runner.errors`; any other exception is a bug.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from runner.errors import AttemptError
from runner.reply import AnyReply
from runner.request import Request
from runner.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt to be sent."""

    task: Task
    request: Request
    attempt: int = 1  #: its number in the task
    asked: str = ""  #: hash of the request, as the log has it
    is_stale: bool = False
    """The log has another request for this attempt, which an earlier process began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A reply that came back whole."""

    body: bytes  #: as received, without its transfer's compression
    form: str  #: wire form of the body, a name of `runner.wire`
    reply: AnyReply  #: what the body says; of the request's kind
    status: int = 200  #: 200 for clients without HTTP
    headers: dict[str, str] | None = None  #: only those that matter, lower case
    adopted: str | None = None
    """Of an answer that another log of the run has: "<writer>:<seq>" of it there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatistics:
    """A client's own figures since it was opened."""

    in_flight: int
    answered: int
    failed: int  #: ended in an `AttemptError`
    bytes_sent: int  #: bodies only
    bytes_received: int
    batches: int = 0  #: of those in flight, open at the provider


class Left(Exception):
    """The provider keeps the call, and a later process gets its outcome."""

    def __init__(self, why: AttemptError | None = None) -> None:
        """With *why* the endpoint is out; without, the process is about to end."""
        super().__init__(*filter(None, [why]))
        self.why = why


class Unsent(Exception):
    """The call never left, and is to be made again as it was."""


class ModelClient(Protocol):
    """Sends attempts to one model."""

    async def call(self, call: Call) -> Received:
        """Send one attempt and return its reply.

        Raises:
            AttemptError: The attempt ended without a usable reply.
            Left: It has not ended, and will not while this process lasts.
            Unsent: It was not sent after all.
        """
        ...

    def statistics(self) -> ClientStatistics:
        """The client's figures."""
        ...

    async def close(self) -> None:
        """Release connections, files and threads; no call may be under way."""
        ...
