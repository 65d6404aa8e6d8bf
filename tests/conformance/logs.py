"""Reads the calls of a run's log, to be compared with the endpoint's ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from store.database import open_reader
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    ParameterRefused,
)
from store.read.tasks import events
from store.runs import RunFolder
from store.tables import payload
from store.task import pico

PAGE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls of one log."""

    started: int
    answered: tuple[AttemptAnswered, ...]
    failed: tuple[AttemptFailed, ...]
    refused: tuple[ParameterRefused, ...]
    attempts: dict[int, int]  #: attempts started, by task
    cost_pico: int  #: known
    possible_pico: int  #: may be billed beyond that; its outcome or usage is unknown

    @property
    def tasks_answered(self) -> frozenset[int]:
        """Tasks that have an answer."""
        return frozenset(answer.task for answer in self.answered)


def calls_in(run: Path) -> Calls:
    """The calls that the log of the folder *run* holds."""
    started: dict[int, int] = {}
    open_pico: dict[tuple[int, int], int] = {}
    answered, failed, refused = [], [], []
    cost = possible = 0
    with open_reader(RunFolder(run).log) as reader:
        seq = 0
        while page := events(reader, after=seq, limit=PAGE):
            seq = page[-1].seq
            for recorded in page:
                match recorded.event:
                    case AttemptStarted() as start:
                        started[start.task] = started.get(start.task, 0) + 1
                        worst = pico(start.worst_usd or 0.0)
                        open_pico[start.task, start.attempt] = worst
                    case AttemptAnswered() as answer:
                        open_pico.pop((answer.task, answer.attempt), None)
                        answered.append(answer)
                        cost += pico(answer.cost_usd or 0.0)
                        possible += pico(answer.possible_usd or 0.0)
                    case AttemptFailed() as failure:
                        open_pico.pop((failure.task, failure.attempt), None)
                        failed.append(failure)
                        possible += pico(failure.possible_usd)
                    case AttemptsAbandoned() as unknown:
                        for key in unknown.attempts:
                            open_pico.pop((key[0], key[1]), None)
                        possible += pico(unknown.possible_usd)
                    case ParameterRefused() as fact:
                        refused.append(fact)
                    case _:
                        pass
    return Calls(
        started=sum(started.values()),
        answered=tuple(answered),
        failed=tuple(failed),
        refused=tuple(refused),
        attempts=started,
        cost_pico=cost,
        possible_pico=possible + sum(open_pico.values()),
    )


def bytes_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """All that a run left behind: its files, and the bodies of its log unpacked."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield file.name, file.read_bytes()
    for log in sorted(folder.rglob("log.db")):
        with open_reader(log) as reader:
            seq = 0
            while page := events(reader, after=seq, limit=PAGE):
                seq = page[-1].seq
                for recorded in page:
                    if recorded.payload_bytes:
                        yield (
                            f"event {recorded.seq}",
                            payload(reader, recorded.seq) or b"",
                        )
