"""A process that looks at a run over and over and says what it saw.

    python -m tests.tui.looking FOLDER

It says "ready", and when its standard input is closed a JSON object for each look at
which the log had moved, the last of them when nothing is written any more.
"""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from store.clock import SystemClock
from store.read.live import MinuteRow
from store.read.status import AttemptCounts, TaskCounts
from store.read.usage import ErrorCount
from store.runs import RunFolder
from store.task import TaskState
from tui.sources.run_snapshot import RunSnapshot, RunSource

EVERY_S = 0.1


def figures(
    *,
    seq: int,
    tasks: TaskCounts,
    attempts: AttemptCounts,
    lanes: Mapping[tuple[str, str], Mapping[TaskState, int]],
    tokens: tuple[int, int],
    errors: Iterable[ErrorCount],
    minutes: Iterable[MinuteRow],
) -> dict[str, object]:
    """What monitors must agree on at an event, as JSON has it."""
    return {
        "seq": seq,
        "tasks": [tasks.planned, tasks.completed, tasks.failed, tasks.open],
        "attempts": [attempts.started, attempts.answered, attempts.failed],
        "lanes": sorted(
            [stage, model, int(state), n]
            for (stage, model), states in lanes.items()
            for state, n in states.items()
            if n
        ),
        "tokens": list(tokens),
        "errors": sorted(
            [e.error, e.stage, e.model, e.n, e.last_seq, e.sample_task] for e in errors
        ),
        "minutes": sorted(
            [m.t, m.stage, m.model, m.started, m.succeeded, m.failed, m.retried]
            for m in minutes
        ),
    }


def seen(snapshot: RunSnapshot) -> dict[str, object]:
    """The figures of a look."""
    status = snapshot.status
    return figures(
        seq=status.last_seq,
        tasks=status.tasks,
        attempts=status.attempts,
        lanes={(lane.stage, lane.model): lane.states for lane in status.queues},
        tokens=(status.tokens_in, status.tokens_out),
        errors=snapshot.facts.errors,
        minutes=snapshot.facts.minutes,
    )


def main() -> None:
    """Look until the other end of the standard input is closed."""
    said: dict[int, dict[str, object]] = {}
    is_last = False
    with RunSource(RunFolder(Path(sys.argv[1])), SystemClock()) as source:
        print("ready", flush=True)
        while not is_last:
            is_last = bool(select.select([sys.stdin], [], [], EVERY_S)[0])
            sight = source.poll()
            if isinstance(sight, RunSnapshot):
                said[sight.status.last_seq] = seen(sight)
    print(*map(json.dumps, said.values()), sep="\n")


if __name__ == "__main__":
    main()
