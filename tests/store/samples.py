"""Events for tests: a small plan, and legal courses of a run drawn by hypothesis."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from hypothesis import strategies as st

from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    BatchCancelled,
    BatchCreated,
    BatchEnded,
    BatchPolled,
    BatchPrepared,
    Blob,
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    Entry,
    Event,
    Input,
    LimitObserved,
    RunCancelled,
    RunDrained,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    ScoringRecorded,
    TaskCompleted,
    TaskFailed,
    TaskSkipped,
    TasksPlanned,
    TasksReopened,
)
from store.labels.events import (
    Adjudicated,
    ItemDrawn,
    LabelRecorded,
    LabelsStarted,
    LabelWithdrawn,
    ScreeningPlanned,
    ScreeningStopped,
)
from store.lineage import StageAdded
from store.results import ComparisonDecided, StoppingRule
from store.task import PlannedTask, TaskState, manifest_bytes

STAGES = ("ask", "judge")
MODELS = ("m-large", "m-small")

RUN_STARTED = RunStarted(
    run_id="r1",
    job="sample-job",
    job_version="1",
    code_sha256="0" * 64,
    settings="{}",
    models={"subject": list(MODELS)},
    replicates=1,
    inputs=[Input(setting="items", path="items.jsonl", sha256="1" * 64)],
    siftlog_version="0.1.0",
)


def task(number: int, **changed: object) -> PlannedTask:
    """A first-stage task."""
    fields: dict[str, object] = {
        "stage": "ask",
        "key": f"item-{number}",
        "model": "m-large",
        "replicate": 1,
        "root": number,
    }
    return PlannedTask(**(fields | changed))  # type: ignore[arg-type]


def plan(tasks: Sequence[PlannedTask], *, first: int = 1, consumed: int = 0) -> Entry:
    """The event that plans *tasks* from number *first* on."""
    return Entry(
        event=TasksPlanned(
            first=first, count=len(tasks), consumed=consumed or first + len(tasks) - 1
        ),
        payload=manifest_bytes(tasks),
    )


def plan_first(count: int, **changed: object) -> Entry:
    """The event that plans tasks 1 to *count*."""
    return plan([task(number, **changed) for number in range(1, count + 1)])


def started(number: int, attempt: int = 1) -> AttemptStarted:
    return AttemptStarted(
        task=number, attempt=attempt, request_sha256=f"{number:032x}{attempt:032x}"
    )


def answered(number: int, attempt: int = 1, **changed: object) -> AttemptAnswered:
    fields: dict[str, object] = {
        "task": number,
        "attempt": attempt,
        "form": "chat",
        "status": 200,
        "latency_ms": 100.0 + number,
        "finish_reason": "stop",
        "tokens_in": 50,
        "tokens_out": 7,
    }
    return AttemptAnswered(**(fields | changed))  # type: ignore[arg-type]


def failed(number: int, attempt: int = 1, **changed: object) -> AttemptFailed:
    fields: dict[str, object] = {
        "task": number,
        "attempt": attempt,
        "error": "Overloaded",
        "latency_ms": 30.0,
        "message": "the endpoint is too busy",
        "status": 503,
        "retry_in_s": 2.5,
    }
    return AttemptFailed(**(fields | changed))  # type: ignore[arg-type]


def completed(number: int, attempt: int = 1, unparsed: str | None = None) -> Event:
    return TaskCompleted(task=number, attempt=attempt, unparsed=unparsed)


def blob(data: bytes) -> Blob:
    return Blob(sha256=hashlib.sha256(data).digest(), data=data)


def reply(number: int, body: bytes, attempt: int = 1, **changed: object) -> Entry:
    """An answer with its bytes."""
    return Entry(event=answered(number, attempt, **changed), payload=body)


DECIDED = ComparisonDecided(
    stopping=StoppingRule(metric="accuracy", margin=0.05),
    a="m-large",
    b="m-small",
    verdict="worse",
    clusters=40,
    cluster="paper",
    difference=-0.25,
    lo=-0.5,
    hi=-0.0625,
    seq=9,
)

STAGE = StageAdded(
    stage="support",
    model="m-large",
    form="toml",
    file="/data/support.toml",
    sha256="5" * 64,
    code_sha256="6" * 64,
    siftlog_version="1",
    budget_usd=0.5,
)

BATCHED: tuple[Event, ...] = (
    BatchPrepared(batch="k", model="m-large", form="openai", requests=2),
    BatchCreated(batch="k", id="b1", file="f1"),
    BatchPolled(batch="k", status="in_progress", done=1),
    BatchEnded(batch="k", outcome="completed", requests=2, done=2),
    BatchCancelled(batch="k", by="operator"),
)

LABELLED: tuple[Event, ...] = (
    LabelsStarted(author="ann", siftlog_version="1"),
    ItemDrawn(
        author="ann",
        item="one",
        design="random",
        probability=0.25,
        seed=1,
        position=1,
        expected=1.0,
        population=4,
        population_sha256="4" * 64,
    ),
    LabelRecorded(author="ann", item="one", value="yes", visible=["text"]),
    LabelWithdrawn(author="ann", label="0:1"),
    Adjudicated(author="ann", item="one", value="no", considered=["0:1"]),
    ScreeningPlanned(
        author="ann",
        run="r",
        target=0.95,
        alpha=0.05,
        seed=1,
        records=4,
        population_sha256="4" * 64,
        library=["5" * 64],
        order="tfidf",
        order_sha256="6" * 64,
        models=["m"],
        run_seq=9,
        run_head="7" * 64,
    ),
    ScreeningStopped(
        author="ann",
        run="r",
        number=1,
        certificate_sha256="8" * 64,
        recall=0.96,
        relevant=2,
        read=3,
    ),
)

#: What concerns no task: any of these may stand anywhere.
ASIDE: tuple[Event, ...] = (
    RunResumed(code_sha256="2" * 64, settings="{}", unknown=1),
    RunPaused(by="operator", paused=True),
    RunPaused(by="operator", paused=False),
    RunPaused(by="operator", paused=True, stage="ask"),
    RunPaused(by="operator", paused=False, stage="ask"),
    RunPaused(by="operator", paused=True, model="m-small"),
    RunDrained(by="operator", why="drained on request", open=3),
    RunCancelled(by="operator"),
    RunFinished(completed=1, failed=1, skipped=1),
    DECIDED,
    STAGE,
    *BATCHED,
    *LABELLED,
    LimitObserved(model="m-large", concurrency=8, in_flight=3, rpm=60.0),
    LimitObserved(model="m-small", concurrency=4, in_flight=0, tpm=1000.0),
    CommandAccepted(command="c1", kind="drain", author="someone", payload="{}"),
    CommandRejected(command="c2", kind="retry", author="someone", reason="no"),
    CommandApplied(command="c1", effect="no further task is started"),
    ScoringRecorded(
        number=1,
        job_version="1",
        code_sha256="3" * 64,
        settings="{}",
        inputs=[],
        seq=1,
        digest="4" * 64,
    ),
)

_NEXT = {
    TaskState.QUEUED: ("start", "answer", "skip"),
    TaskState.RUNNING: ("answer", "retry", "fail", "complete", "abandon", "hold"),
    TaskState.WAITING: ("start", "skip", "fail-waiting"),
    TaskState.COMPLETED: ("reopen",),
    TaskState.FAILED: ("reopen",),
    TaskState.SKIPPED: ("reopen",),
}


class _Course:
    """Keeps just enough of each task to choose legal events, and no more."""

    def __init__(self, draw: st.DrawFn, skips: Sequence[str | None]) -> None:
        self.draw = draw
        self.skips = skips
        self.states: list[TaskState] = []
        self.attempts: list[int] = []
        self.answered: list[bool] = []

    def plan(self) -> list[Entry]:
        count = self.draw(st.integers(1, 4))
        first = len(self.states) + 1
        rows = []
        for number in range(first, first + count):
            skip = self.draw(st.sampled_from(self.skips))
            rows.append(
                task(
                    number,
                    stage=self.draw(st.sampled_from(STAGES)),
                    model=self.draw(st.sampled_from(MODELS)),
                    root=self.draw(st.integers(1, number)),
                    skip=skip,
                    group=self.draw(st.sampled_from([None, "g"])),
                )
            )
            self.states.append(TaskState.QUEUED if skip is None else TaskState.SKIPPED)
            self.attempts.append(0)
            self.answered.append(False)
        return [plan(rows, first=first)]

    def move(self) -> list[Entry]:  # noqa: C901, PLR0911 - one return a choice
        at = self.draw(st.integers(0, len(self.states) - 1))
        choice = self.draw(st.sampled_from(_NEXT[self.states[at]]))
        number, attempt = at + 1, max(1, self.attempts[at])
        match choice:
            case "start":
                self.attempts[at] += 1
                self.states[at] = TaskState.RUNNING
                return [Entry(event=started(number, self.attempts[at]))]
            case "answer":
                self.attempts[at] = attempt
                self.states[at] = TaskState.RUNNING
                self.answered[at] = True
                cost = self.draw(st.sampled_from([None, 0.0, 0.0021, 1.3e-7]))
                possible = self.draw(st.sampled_from([None, 0.0, 0.037]))
                reask = self.draw(st.sampled_from([None, None, "no_list"]))
                if reask is not None:
                    self.states[at] = TaskState.QUEUED
                latency = self.draw(st.sampled_from([0.0, 0.4, 12.5, 91_000.0]))
                cached = self.draw(st.sampled_from([False, False, True]))
                return [
                    reply(
                        number,
                        b"body of " + bytes(str(number), "ascii") * 300,
                        attempt,
                        cost_usd=cost,
                        possible_usd=possible if cost is None else None,
                        reask=reask,
                        latency_ms=latency,
                        cached=cached,
                    )
                ]
            case "retry":
                self.states[at] = TaskState.WAITING
                possible = self.draw(st.sampled_from([0.0, 0.037]))
                return [Entry(event=failed(number, attempt, possible_usd=possible))]
            case "fail":
                self.states[at] = TaskState.FAILED
                self.answered[at] = False
                return [
                    Entry(event=failed(number, attempt, retry_in_s=None)),
                    Entry(event=TaskFailed(task=number, attempt=attempt, error="Lost")),
                ]
            case "fail-waiting":
                self.states[at] = TaskState.FAILED
                self.answered[at] = False
                return [
                    Entry(event=TaskFailed(task=number, attempt=attempt, error="Lost"))
                ]
            case "complete":
                if not self.answered[at]:
                    return []
                self.states[at] = TaskState.COMPLETED
                unparsed = self.draw(st.sampled_from([None, "truncated"]))
                return [Entry(event=completed(number, attempt, unparsed))]
            case "skip":
                self.states[at] = TaskState.SKIPPED
                self.answered[at] = False
                return [Entry(event=TaskSkipped(task=number, reason="cancelled"))]
            case "reopen":
                self.states[at] = TaskState.QUEUED
                self.answered[at] = False
                return [Entry(event=TasksReopened(tasks=[number], by="someone"))]
            case _:
                hold = choice == "hold"
                self.states[at] = TaskState.WAITING if hold else TaskState.QUEUED
                event = AttemptsAbandoned(
                    attempts=[(number, attempt)], hold=hold, possible_usd=0.011
                )
                return [Entry(event=event)]


@st.composite
def courses(
    draw: st.DrawFn,
    max_steps: int = 40,
    skips: Sequence[str | None] = (None, None, None, "no text"),
) -> list[Entry]:
    """Entries of a run in a legal order, of every kind.

    *skips* are the reasons with which a task may be planned.
    """
    course = _Course(draw, skips)
    entries = [Entry(event=RUN_STARTED), *course.plan()]
    for _ in range(draw(st.integers(0, max_steps))):
        what = draw(st.sampled_from(["move", "move", "move", "move", "plan", "aside"]))
        if what == "move":
            entries += course.move()
        elif what == "plan":
            entries += course.plan()
        else:
            entries.append(Entry(event=draw(st.sampled_from(ASIDE))))
    return entries
