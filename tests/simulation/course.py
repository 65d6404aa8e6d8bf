"""Each task's way through the events, held against what the provider saw of it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence

from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    CommandAccepted,
    RecordedEvent,
    RunPaused,
    RunResumed,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
    TasksReopened,
    UnknownEvent,
)
from store.fold import touched
from store.task import Scope, is_within
from tests.runner.toy_jobs import START_US
from tests.simulation.broken import Broken
from tests.simulation.past import Past
from tests.simulation.provider import Line

IDLE, STARTED, SENT, ANSWERED = "idle", "started", "sent", "answered"
ENDING, FINAL = "ending", "final"

MOVES: dict[tuple[type, bool], tuple[tuple[str, ...], str]] = {
    (AttemptStarted, False): ((IDLE,), STARTED),
    (AttemptAnswered, False): ((SENT,), ANSWERED),
    (AttemptAnswered, True): ((SENT,), IDLE),
    (AttemptFailed, False): ((STARTED, SENT), ENDING),
    (AttemptFailed, True): ((SENT,), IDLE),
    (TaskCompleted, False): ((ANSWERED, ENDING), FINAL),
    (TaskFailed, False): ((ENDING,), FINAL),
    (TaskSkipped, False): ((IDLE, ENDING), FINAL),
    (AttemptsAbandoned, False): ((STARTED, SENT), IDLE),
    (TasksReopened, False): ((FINAL,), IDLE),
}
"""By event, and whether it says that the task is asked again: from where to where.

Stricter than the log's own table, which knows nothing of what was sent."""


class Course:
    """All tasks, replayed in the order in which things became durable or arrived."""

    def __init__(self, past: Sequence[Past], *, reask: int) -> None:
        """*past* has one entry a process; *reask* is the setting of that name."""
        self._past = past
        self._reask = reask
        self._phase: dict[int, str] = defaultdict(lambda: IDLE)
        self._attempt: Counter[int] = Counter()
        self._refused: Counter[int] = Counter()  #: answers since the last opening
        self._held: set[int] = set()
        self._not_before_s: dict[int, float] = {}
        self._paused_s: dict[Scope, float] = {}  #: since when

    def follow(self, events: Sequence[RecordedEvent], ledger: Sequence[Line]) -> None:
        """Replay both.

        Raises:
            Broken: something happened that must not.
        """
        lines = iter(ledger)
        line = next(lines, None)
        for recorded in events:
            while line is not None and line.seq < recorded.seq:
                self._sent(line)
                line = next(lines, None)
            if not isinstance(recorded.event, UnknownEvent):
                self._moved(recorded)
        while line is not None:
            self._sent(line)
            line = next(lines, None)
        for task, phase in self._phase.items():
            if phase != FINAL:
                raise Broken("each task is final exactly once", f"{task} is {phase}")

    # -- a request arrives -----------------------------------------------------

    def _sent(self, line: Line) -> None:
        task, past = line.task, self._past[line.process - 1]
        where = f"task {task} at {line.at_s:.4f} s"
        phase = self._phase[task]
        if phase in {ANSWERED, ENDING, FINAL, SENT}:
            raise Broken("an answered attempt is never sent again", f"{where}: {phase}")
        if phase != STARTED:
            raise Broken("an attempt is durable before it is sent", f"{where}: {phase}")
        if line.turn != self._refused[task]:
            raise Broken(
                "an answered attempt is never sent again",
                f"{where}: dialogue of {line.turn} answers, recorded are "
                f"{self._refused[task]}",
            )
        if task in self._held and past.holds:
            raise Broken("what is held waits for a person", where)
        self._held.discard(task)
        due_s = self._not_before_s.pop(task, 0.0)
        if line.at_s < due_s - past.gate_s:
            raise Broken("a retry waits as long as was decided", f"{where}: {due_s}")
        if past.drained_at_s is not None and (
            line.at_s > past.drained_at_s + past.gate_s
        ):
            raise Broken("a drain starts nothing more", where)
        here = line.asked[0], line.asked[2]
        for scope, since_s in self._paused_s.items():
            if is_within(here, scope) and line.at_s > since_s + past.gate_s:
                raise Broken("a pause starts nothing", f"{where}: {scope}")
        self._phase[task] = SENT

    # -- an event is durable ---------------------------------------------------

    def _moved(self, recorded: RecordedEvent) -> None:
        event = recorded.event
        self._pause_or_lift(recorded)
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
        self._remember(recorded)

    def _pause_or_lift(self, recorded: RecordedEvent) -> None:
        match recorded.event:
            case RunPaused(paused=True, stage=stage, model=model):
                self._paused_s[stage, model] = _seconds(recorded)
            case CommandAccepted(kind="resume", payload=payload):
                asked = json.loads(payload)
                lifted = asked.get("stage"), asked.get("model")
                for scope in list(self._paused_s):
                    if is_within(scope, lifted):
                        del self._paused_s[scope]
            case RunResumed():
                self._paused_s.clear()
            case _:
                pass

    def _remember(self, recorded: RecordedEvent) -> None:
        match recorded.event:
            case AttemptStarted():
                self._count(recorded.event)
            case AttemptAnswered(task=task, reask=str()):
                self._refused[task] += 1
                if self._refused[task] > self._reask:
                    raise Broken("a task is asked again as often as set", f"{task}")
            case AttemptFailed(task=task, retry_in_s=float() as retry_in_s):
                self._not_before_s[task] = _seconds(recorded) + retry_in_s
            case TaskFailed(task=task) if self._refused[task]:
                raise Broken("no answer is forgotten", f"{task} failed with a reply")
            case AttemptsAbandoned(attempts=attempts, hold=True):
                self._held.update(task for task, _ in attempts)
            case TasksReopened(tasks=tasks):
                for task in tasks:
                    self._refused[task] = 0
                    self._not_before_s.pop(task, None)
                    self._held.discard(task)
            case _:
                pass

    def _count(self, started: AttemptStarted) -> None:
        self._attempt[started.task] += 1
        if started.attempt != self._attempt[started.task]:
            raise Broken(
                "attempts are numbered one after another",
                f"task {started.task}: {started.attempt}, where "
                f"{self._attempt[started.task]} was next",
            )


def _seconds(recorded: RecordedEvent) -> float:
    """The clock of the run when an event became durable."""
    return (recorded.ts_us - START_US) / 1e6
