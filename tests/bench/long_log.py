"""A log of millions of events in minutes: what the monitor is measured on.

The writer itself makes it, with its codec, fold and chain. What makes it quick is that
a commit holds tens of thousands of events, and that no disk is waited for; the rows are
those of a run.

    python -m tests.bench.long_log FOLDER [--tasks N]
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from store.clock import SystemClock
from store.database import connect
from store.events import (
    AttemptFailed,
    Entry,
    Event,
    LimitObserved,
    RunStarted,
    TaskFailed,
)
from store.log import opening
from store.log.writer import PreparedEntry, Writer
from store.runs import RunFolder
from store.task import PlannedTask
from tests.bench.prose import prose
from tests.store.samples import MODELS, RUN_STARTED, answered, completed, plan, started

EVENTS_A_TASK = 11
RATE = 300.0
"""Events a second of the run that the log tells of."""
STAGES = ("extract", "judge", "score")
ERRORS = ("RateLimited", "Overloaded", "Timeout", "ServerError", "ConnectionLost")
ABREAST = 64
"""Tasks whose events come in turns, as those of calls under way do."""
FAILED_OF = 25
UNPARSED_OF = 90
BLOCK = 1000
"""Tasks planned by an event, as by the engine."""
COMMIT = 20_000
BODY_BYTES = 200
"""Of an answer's text."""


def build(folder: RunFolder, tasks: int) -> None:
    """A run with ten events a task, some tasks still to be done; nobody works on it."""
    folder.path.mkdir(parents=True)
    clock = SystemClock()
    done = tasks * 10 // EVENTS_A_TASK
    span_us = round(done * EVENTS_A_TASK / RATE * 1e6)
    began_us = clock.now_us() - span_us - 60_000_000
    with closing(connect(folder.log)) as conn:
        opening.create(
            conn,
            folder.log,
            run_id=folder.run_id,
            owner="bench",
            config_sha256=b"",
            now_us=began_us,
        )
        opened = opening.open_for_writing(
            conn, folder.log, owner="bench", now_us=began_us
        )
        conn.execute("PRAGMA synchronous = OFF")
        conn.execute("PRAGMA cache_size = -262144")
        writer = Writer(conn, epoch=opened.epoch, position=opened.position)
        writer.commit(
            [[PreparedEntry.of(event, began_us)] for event in (beginning(folder),)]
        )
        for first in range(1, tasks + 1, BLOCK):
            block = [planned(n) for n in range(first, min(first + BLOCK, tasks + 1))]
            writer.commit([[PreparedEntry.of(plan(block, first=first), began_us)]])
        facts: list[PreparedEntry] = []
        step_us = span_us / (done * EVENTS_A_TASK)
        for at, event in enumerate(work(1, done + 1)):
            facts.append(PreparedEntry.of(event, began_us + round(at * step_us)))
            if len(facts) == COMMIT:
                writer.commit([facts])
                facts = []
        if facts:
            writer.commit([facts])
        writer.write_projections()
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def beginning(folder: RunFolder) -> RunStarted:
    """The first event."""
    return RunStarted(
        run_id=folder.run_id,
        job=RUN_STARTED.job,
        job_version=RUN_STARTED.job_version,
        code_sha256=RUN_STARTED.code_sha256,
        settings="{}",
        models={"subject": list(MODELS)},
        replicates=1,
        inputs=[],
        siftlog_version=RUN_STARTED.siftlog_version,
    )


def planned(number: int) -> PlannedTask:
    """One of the tasks; stages and models take turns."""
    return PlannedTask(
        stage=STAGES[number % len(STAGES)],
        key=f"10.1101/2021.06.{number % 28 + 1:02}.{number:07}",
        model=MODELS[number // len(STAGES) % len(MODELS)],
        replicate=1,
        root=number,
    )


def work(first: int, end: int) -> Iterator[Entry | Event]:
    """What happens to tasks *first* up to *end*, some of them side by side."""
    bodies = [encode_reply(prose(BODY_BYTES, seed).decode()) for seed in range(64)]
    for group in range(first, end, ABREAST):
        courses = [course(n, bodies) for n in range(group, min(group + ABREAST, end))]
        for at in range(EVENTS_A_TASK):
            for each in courses:
                yield each[at]
        yield LimitObserved(
            model=MODELS[group // ABREAST % len(MODELS)],
            concurrency=ABREAST,
            in_flight=ABREAST,
            rpm=5000.0,
            tpm=900_000.0,
        )


def course(number: int, bodies: list[bytes]) -> list[Entry | Event]:
    """Four attempts that fail; the fifth is answered, or is the last failure."""
    rng = random.Random(number)
    events: list[Entry | Event] = []
    for attempt in range(1, 5):
        events += [started(number, attempt), _failed(number, attempt, rng)]
    events.append(started(number, 5))
    if number % FAILED_OF == 0:
        events.append(_failed(number, 5, rng, is_last=True))
        events.append(TaskFailed(task=number, attempt=5, error=ERRORS[0]))
        return events
    answer = answered(
        number,
        5,
        form=OPENAI_CHAT,
        latency_ms=rng.lognormvariate(7.5, 0.6),
        tokens_in=1800,
        tokens_out=210,
        cost_usd=0.0021,
    )
    events.append(Entry(event=answer, payload=bodies[number % len(bodies)]))
    unparsed = "truncated" if number % UNPARSED_OF == 0 else None
    events.append(completed(number, 5, unparsed))
    return events


def _failed(
    number: int, attempt: int, rng: random.Random, *, is_last: bool = False
) -> AttemptFailed:
    return AttemptFailed(
        task=number,
        attempt=attempt,
        error=rng.choice(ERRORS),
        latency_ms=30.0,
        message="the endpoint is too busy",
        status=503,
        retry_in_s=None if is_last else 2.0,
    )


def main() -> None:
    """Make the log that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.long_log")
    parser.add_argument("folder", type=Path, help="the run's folder, to be made")
    parser.add_argument("--tasks", type=int, default=1_000_000)
    given = parser.parse_args()
    build(RunFolder(given.folder), given.tasks)
    print(f"{os.path.getsize(RunFolder(given.folder).log) / 1e9:.2f} GB")  # noqa: PTH202 - in a line


if __name__ == "__main__":
    main()
