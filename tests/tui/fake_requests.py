"""Requests to a run out of thin air, and a control that only remembers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from store.control import CommandOutcome, CommandPreview, CommandRecord, Payload
from tests.store.memory_log import START_US
from tui.sources.command_log import CommandRequests

STAKES = CommandPreview(tasks=301, in_flight=8, usd=3.4, budget_left_usd=287.0)


def request(name: str, kind: str = "pause", **changed: object) -> CommandRecord:
    """A request that waits, or as it was changed."""
    fields: dict[str, object] = {
        "id": name,
        "kind": kind,
        "author": "ops",
        "host": "h",
        "payload": {},
        "asked_us": START_US,
    }
    return CommandRecord(**(fields | changed))  # type: ignore[arg-type]


@dataclass
class FakeRequests:
    """Shows the requests that it is given."""

    asked: list[CommandRecord] = field(default_factory=list)
    stakes_told: CommandPreview = STAKES
    trouble: Exception | None = None
    is_alive: bool = True
    is_closed: bool = False
    reckoned: list[tuple[str, Payload]] = field(default_factory=list)

    async def poll(self) -> CommandRequests:
        if self.trouble is not None:
            raise self.trouble
        return CommandRequests(
            records=tuple(self.asked),
            heartbeat_us=START_US - 7_000_000,
            is_alive=self.is_alive,
        )

    async def preview(self, kind: str, payload: Payload) -> CommandPreview:
        self.reckoned.append((kind, payload))
        if self.trouble is not None:
            raise self.trouble
        return self.stakes_told

    def answer(self, answer: CommandOutcome, said: str | None = None) -> None:
        """Answer the latest request."""
        self.asked[-1] = replace(self.asked[-1], answer=answer, said=said)

    def close(self) -> None:
        self.is_closed = True


@dataclass
class FakeControl:
    """Remembers what was asked, and shows it to *requests*."""

    requests: FakeRequests
    wishes: list[tuple[str, Payload, str | None]] = field(default_factory=list)
    scored: int = 0
    trouble: Exception | None = None

    def ask(self, kind: str, payload: Payload, expected_state: str | None) -> str:
        if self.trouble is not None:
            raise self.trouble
        self.wishes.append((kind, payload, expected_state))
        self.requests.asked.append(request(f"c{len(self.wishes)}", kind))
        return self.requests.asked[-1].id

    async def score(self) -> str:
        if self.trouble is not None:
            raise self.trouble
        self.scored += 1
        return "recorded as scoring 2"

    def close(self) -> None:
        """Nothing is under way."""
