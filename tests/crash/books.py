"""A run's log and the ledger of its endpoint, side by side.

The ledger knows requests by the SHA-256 of their body, the log knows them as attempts
of tasks. Here every attempt is given its body, so that the two can be compared: which
of them were answered, and which of the answers the log does not have.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from runner.clients.wire import decode_reply, encode_embed, encode_rerank
from runner.clients.wire_openai import encode_chat
from runner.clients.wire_shared import Shape, Structure
from runner.engine.attempt_events import reask_messages
from runner.errors import Timeout
from runner.job import Dataset, Job
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    Message,
    ParseFailure,
    RerankRequest,
)
from runner.plan import task_of
from runner.simulate.options import RequestOutcome
from store.clock import SystemClock
from store.control import Command, send_command
from store.database import LogReader, open_reader
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    RecordedEvent,
)
from store.read.status import Status, status
from store.read.tasks import events, tasks
from store.runs import RunFolder
from store.tables import payload
from store.task import TaskRow
from tests.ledgers import read_ledger
from tests.replacing import replace

CLOCK = SystemClock()
PAGE = 10_000
HANGS_S = 60.0
"""After which a process is called stuck."""


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A task, as the log has it so far."""

    row: TaskRow
    dialogue: tuple[Message, ...] = ()  #: what a re-ask adds to its request
    is_answered: bool = False  #: nothing more may be asked


@dataclass(slots=True, kw_only=True)
class Served:
    """What the ledger says, by body."""

    requests: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)  #: perhaps sent in full
    hung: Counter[str] = field(default_factory=Counter)  #: until the client gave up


class Books:
    """Reads on in a log, and compares what it says with the ledger."""

    def __init__(
        self, folder: RunFolder, ledger: Path, job: Job, dataset: Dataset
    ) -> None:
        self._folder = folder
        self._ledger = ledger
        self._job = job
        self._dataset = dataset
        self._tasks: list[_Asked] = []
        self._seq = 0
        self.started: Counter[str] = Counter()  #: attempts by body
        self.answered: Counter[str] = Counter()
        self.cached = 0  #: attempts that the response cache answered
        self.timed_out: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()  #: given up by an earlier process
        self.in_flight: dict[tuple[int, int], str] = {}  #: attempt to body

    def read(self) -> None:
        """Read what the log has more than the last time."""
        with open_reader(self._folder.log) as reader:
            while page := tasks(reader, after=len(self._tasks), limit=PAGE):
                self._tasks += [_Asked(row=row) for row in page]
            while recorded := events(reader, after=self._seq, limit=PAGE):
                for each in recorded:
                    self._take(reader, each)
                self._seq = recorded[-1].seq

    def _take(self, reader: LogReader, recorded: RecordedEvent) -> None:
        match recorded.event:
            case AttemptStarted(task=number, attempt=attempt):
                task = self._tasks[number - 1]
                assert not task.is_answered, f"task {number} was asked again"
                body = self._body(task)
                self.started[body] += 1
                self.in_flight[number, attempt] = body
            case AttemptAnswered(task=number, attempt=attempt) as answered:
                body = self.in_flight.pop((number, attempt))
                task = self._tasks[number - 1]
                if answered.cached:
                    # it was never sent: the answer is one that no log had received
                    self.started[body] -= 1
                    self.cached += 1
                else:
                    self.answered[body] += 1
                if answered.reask is None:
                    task.is_answered = True
                    return
                reply = decode_reply(
                    answered.form, payload(reader, recorded.seq) or b""
                )
                task.dialogue += reask_messages(
                    reply,
                    ParseFailure(reason=answered.reask, detail=answered.fault),
                    self._dataset,
                )
            case AttemptFailed(task=number, attempt=attempt, error=error):
                body = self.in_flight.pop((number, attempt))
                self.timed_out[body] += error == Timeout.__name__
            case AttemptsAbandoned(attempts=abandoned):
                for key in abandoned:
                    self.unknown[self.in_flight.pop(key)] += 1
            case _:
                pass

    def _body(self, task: _Asked) -> str:
        request = self._job.request(self._dataset, task_of(task.row))
        match request:
            case ChatRequest():
                said = request.messages + task.dialogue
                content = encode_chat(
                    replace(request, messages=said),
                    task.row.model,
                    Shape(structure=Structure.SCHEMA),
                )
            case EmbedRequest():
                content = encode_embed(request, task.row.model, packed=True)
            case RerankRequest():
                content = encode_rerank(request, task.row.model)
        return hashlib.sha256(content).hexdigest()

    def served(self, *, until_ms: int | None = None) -> Served:
        """What the endpoint served, all of it or up to a moment."""
        found = Served()
        for line in read_ledger(self._ledger):
            if until_ms is not None and line.finished_ms > until_ms:
                continue
            found.requests[line.request] += 1
            found.answered[line.request] += line.outcome is RequestOutcome.ANSWERED
            found.broken[line.request] += line.outcome is RequestOutcome.GONE
            found.hung[line.request] += line.outcome is RequestOutcome.HANG
        return found

    def check(self) -> None:
        """What must hold whenever nobody writes.

        An answer that the log does not have was given to an attempt that it calls
        unknown, or came too late, as on a machine that stood still; so no answer that
        it has was paid for a second time. Nothing was sent
        that it does not know of, and it has no answer that was not given.
        """
        served = self.served()
        unknown = self.unknown + Counter(self.in_flight.values())
        late = self.late(served)
        repeats = served.answered - self.answered - unknown - late
        assert not repeats, f"{repeats.total()} answers in the log were paid for again"
        unrecorded = served.requests - self.started
        assert not unrecorded, f"{unrecorded.total()} requests stand in no log"
        invented = self.answered - served.answered - served.broken
        assert not invented, f"{invented.total()} answers were never given"

    def late(self, served: Served) -> Counter[str]:
        """Attempts that were given up though the endpoint did not let them hang."""
        return self.timed_out - served.hung

    def lost(self, *, until_ms: int) -> int:
        """Answers that were served until then and never came to stand in the log."""
        return (self.served(until_ms=until_ms).answered - self.answered).total()

    def pause(self) -> None:
        """Ask the live run to start nothing more, and wait until it has heard."""
        command = Command(
            id=uuid.uuid4().hex,
            author="tester",
            host="here",
            at_us=CLOCK.now_us(),
            kind="pause",
        )
        send_command(self._folder, command)
        self._until(lambda seen: bool(seen.pauses), "the run does not pause")

    def settle(self) -> None:
        """Wait for the calls in flight of a run that is paused."""
        self._until(lambda seen: not seen.tasks.running, "its calls do not end")

    def _until(self, holds: Callable[[Status], bool], complaint: str) -> None:
        deadline = CLOCK.monotonic() + HANGS_S
        while CLOCK.monotonic() < deadline:
            with open_reader(self._folder.log) as reader:
                if holds(status(reader)):
                    return
            time.sleep(0.02)
        raise AssertionError(complaint)
