"""What must hold after any course of things, asked of the events and of the ledger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby

from runner.bucket import MINUTE_S
from runner.wire import decode_reply
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    Recorded,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
    TasksReopened,
)
from store.fold import touched
from store.task import TaskRow, TaskState
from tests.simulation.broken import Broken
from tests.simulation.disk import Disk
from tests.simulation.oracle import Final, expected
from tests.simulation.provider import Line, Provider
from tests.simulation.scenario import Scenario

IDLE, STARTED, SENT, ANSWERED = "idle", "started", "sent", "answered"
ENDING, FINAL = "ending", "final"

MOVES: dict[tuple[type, bool], tuple[tuple[str, ...], str]] = {
    (AttemptStarted, False): ((IDLE,), STARTED),
    (AttemptAnswered, False): ((SENT,), ANSWERED),
    (AttemptAnswered, True): ((SENT,), IDLE),
    (AttemptFailed, False): ((SENT,), ENDING),
    (AttemptFailed, True): ((SENT,), IDLE),
    (TaskCompleted, False): ((ANSWERED, ENDING), FINAL),
    (TaskFailed, False): ((ENDING,), FINAL),
    (TaskSkipped, False): ((IDLE,), FINAL),
    (AttemptsAbandoned, False): ((STARTED, SENT), IDLE),
    (TasksReopened, False): ((FINAL,), IDLE),
}
"""By event, and whether it says that the task is asked again: from where to where.

Stricter than the log's own table, which knows nothing of what was sent."""


async def check(
    scenario: Scenario,
    disk: Disk,
    provider: Provider,
    events: Sequence[Recorded],
    *,
    gate_s: Sequence[float],
    ends: Sequence[str],
) -> None:
    """All invariants of a run that is over.

    Args:
        scenario: what befell it.
        disk: its log.
        provider: its endpoints.
        events: all that was recorded.
        gate_s: for each process how long a call at most waited for the log between
            the limiter's gate and the wire.
        ends: for each process how it ended.

    Raises:
        Broken: one does not hold.
    """
    rows = await disk.rows()
    _Course(events, provider.ledger).follow()
    deliveries(events, provider.ledger, ends)
    limits(scenario, provider.ledger, gate_s)
    difference = await disk.difference()
    if difference is not None:
        raise Broken("the folded state equals the live state", difference)
    log = disk.open()
    replies = {
        row.task: stored
        for row in rows
        if row.reply_seq is not None
        and (stored := await log.reply(row.task)) is not None
    }
    disk.end(is_crash=False)
    texts = {
        task: decode_reply(stored.answered.form, stored.body).text
        for task, stored in replies.items()
    }
    answers(scenario, provider, rows, texts)


class _Course:
    """Each task's way through the events, with what the provider saw of it."""

    def __init__(self, events: Sequence[Recorded], ledger: Sequence[Line]) -> None:
        self._events = events
        self._ledger = ledger
        self._phase: dict[int, str] = defaultdict(lambda: IDLE)
        self._attempt: Counter[int] = Counter()

    def follow(self) -> None:
        """Replay both, in the order in which they became durable or arrived."""
        lines = iter(self._ledger)
        line = next(lines, None)
        for recorded in self._events:
            while line is not None and line.seq < recorded.seq:
                self._sent(line)
                line = next(lines, None)
            self._moved(recorded)
        while line is not None:
            self._sent(line)
            line = next(lines, None)
        for task, phase in self._phase.items():
            if phase != FINAL:
                raise Broken("each task is final exactly once", f"{task} is {phase}")

    def _sent(self, line: Line) -> None:
        phase = self._phase[line.task]
        if phase != STARTED:
            raise Broken(
                "an answered attempt is never sent again"
                if phase in {ANSWERED, ENDING, FINAL, SENT}
                else "an attempt is durable before it is sent",
                f"task {line.task} was {phase} when a request arrived at "
                f"{line.at_s:.4f} s",
            )
        self._phase[line.task] = SENT

    def _moved(self, recorded: Recorded) -> None:
        event = recorded.event
        again = (
            getattr(event, "reask", None) is not None
            or getattr(event, "retry_in_s", None) is not None
        )
        if (type(event), again) not in MOVES:
            return
        allowed, to = MOVES[type(event), again]
        for task in touched(event):
            phase = self._phase[task]
            if phase not in allowed:
                raise Broken(
                    "each task is final exactly once"
                    if phase == FINAL
                    else "no answer is forgotten",
                    f"{recorded.kind} (event {recorded.seq}) of task {task}, "
                    f"which was {phase}",
                )
            self._phase[task] = to
        if isinstance(event, AttemptStarted):
            self._attempt[event.task] += 1
            if event.attempt != self._attempt[event.task]:
                raise Broken(
                    "attempts are numbered one after another",
                    f"task {event.task}: {event.attempt}, where "
                    f"{self._attempt[event.task]} was next",
                )


def deliveries(
    events: Iterable[Recorded], ledger: Iterable[Line], ends: Sequence[str]
) -> None:
    """What a process was given it wrote down, if it came to write."""
    delivered = Counter(line.process for line in ledger if line.is_delivered)
    answered = Counter(
        recorded.epoch
        for recorded in events
        if isinstance(recorded.event, AttemptAnswered)
    )
    for process, end in enumerate(ends, 1):
        lost = delivered[process] - answered[process]
        if lost < 0 or (lost and end != "crash"):
            raise Broken(
                "no answer is forgotten",
                f"process {process} ({end}) took {delivered[process]} answers and "
                f"recorded {answered[process]}",
            )


def limits(scenario: Scenario, ledger: Iterable[Line], gate_s: Sequence[float]) -> None:
    """Limits set by hand, by the provider's count, in each process's time.

    What passed the gate in 60 s arrives in less where the log was slow for a moment, so
    the minute is looked at without that moment.
    """
    by_lane: dict[str, list[Line]] = defaultdict(list)
    for line in ledger:
        by_lane[line.asked[2]].append(line)
    for lane in scenario.lanes:
        for process, lines in groupby(by_lane[lane.model], lambda x: x.process):
            mine = list(lines)
            most = max(line.in_flight for line in mine)
            if most > lane.limits.concurrency:
                raise Broken(
                    "limits set by hand are never passed",
                    f"{most} calls of {lane.model} at a time, "
                    f"{lane.limits.concurrency} allowed",
                )
            minute_s = MINUTE_S - gate_s[process - 1]
            ones = [(line.at_s, 1.0) for line in mine]
            _window(f"requests of {lane.model}", ones, lane.limits.rpm, minute_s)
            tokens = [(line.at_s, float(line.tokens)) for line in mine]
            _window(f"tokens of {lane.model}", tokens, lane.limits.tpm, minute_s)


def _window(
    what: str,
    spent: Sequence[tuple[float, float]],
    per_minute: float | None,
    minute_s: float,
) -> None:
    """Look at every minute that ends with a request."""
    if per_minute is None:
        return
    total, first = 0.0, 0
    for at_s, amount in spent:
        total += amount
        while spent[first][0] <= at_s - minute_s:
            total -= spent[first][1]
            first += 1
        if total > per_minute:
            raise Broken(
                "limits set by hand are never passed",
                f"{total:.0f} {what} in the minute before {at_s:.2f} s, "
                f"{per_minute:.0f} allowed",
            )


def answers(
    scenario: Scenario,
    provider: Provider,
    rows: Iterable[TaskRow],
    texts: dict[int, str],
) -> None:
    """The final answers are those of a run that nothing befell."""
    found = {
        (row.stage, row.key, row.model, row.replicate): Final(
            state=row.state,
            text=texts[row.task] if row.state is TaskState.COMPLETED else None,
            reason=row.reason,
            error=row.error if row.state is TaskState.FAILED else None,
        )
        for row in rows
    }
    if scenario.is_mild:
        wanted = expected(scenario)
        if found != wanted:
            different = [
                f"{asked}: {found.get(asked)}, not {wanted.get(asked)}"
                for asked in sorted(found.keys() | wanted.keys())
                if found.get(asked) != wanted.get(asked)
            ]
            raise Broken("the answers are those of an undisturbed run", different[0])
        return
    for asked, final in found.items():
        said = {provider.says.reply(asked, turn).text for turn in range(3)}
        if final.text is not None and final.text not in said:
            raise Broken("the answers are those of an undisturbed run", f"{asked}")
