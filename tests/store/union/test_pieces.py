"""What was counted or observed in one piece of a log still holds after the next."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import msgspec

from store.database import UNION, open_reader
from store.events import LimitObserved, TasksReopened
from store.union.source import LocalLogSource
from tests.replacing import replace
from tests.store.samples import ASIDE, completed, plan, started, task
from tests.store.samples import reply as answer
from tests.store.union.union_logs import (
    Beginning,
    last_seq,
    merge,
    outcome,
    shard_log,
    shard_started,
    union_of,
)

LIMIT = next(event for event in ASIDE if isinstance(event, LimitObserved))
PLAN = plan([task(1)])
PAID = (answer(1, b"paid"), completed(1))


def test_repeats_are_counted_once_and_limits_kept_piece_by_piece(
    tmp_path: Path,
) -> None:
    logs = [
        shard_log(
            tmp_path, "0-1", [shard_started(0, 1), PLAN], [started(1)], PAID,
            [replace(LIMIT, model="m-large")], [replace(LIMIT, model="m-small")],
        ),
        shard_log(
            tmp_path, "0-2", [shard_started(0, 2), PLAN],
            [replace(LIMIT, model="m-large")], [started(1)], PAID,
            [TasksReopened(tasks=[1], by="a person")], [started(1, 2)],
            [answer(1, b"better", 2), completed(1, 2)],
        ),
    ]  # fmt: skip
    union = tmp_path / "union.db"
    with ExitStack() as opened:
        sources = [
            LocalLogSource(opened.enter_context(open_reader(log))) for log in logs
        ]
        for upto in range(1, max(map(last_seq, logs)) + 1):
            for source in sources:
                merge(union, Beginning(source, upto))
    said = outcome(union)
    assert "('answers_repeated', 1)" in str(said["counters"])
    both = LIMIT.concurrency * 2
    assert f"('m-large', {both}," in str(said["limiter"])
    assert f"('m-small', {LIMIT.concurrency}," in str(said["limiter"])


def test_the_stored_limits_of_a_part_have_every_field(tmp_path: Path) -> None:
    """A union that an earlier siftlog wrote has them, and must be found sound."""
    bare = LimitObserved(model="m-large", concurrency=3, in_flight=0)
    log = shard_log(tmp_path, "0-1", [shard_started(0, 1), PLAN], [bare])
    with open_reader(union_of(tmp_path / "union.db", [log])) as reader:
        ((*_, limits),) = reader.execute(UNION["parts"]).fetchall()
    ((stored, _),) = json.loads(limits).values()
    assert list(stored) == [field.name for field in msgspec.structs.fields(bare)]
