"""A split run is forked like another one, and named by the logs of its shards."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import closing
from pathlib import Path

import pytest

from runner.errors import UsageError
from runner.plan import task_of
from runner.run.fork import fork_origin, parent_answers
from store.database import SQL, connect, open_reader
from store.errors import StoreError
from store.events import AttemptAnswered
from store.read.live import union_progress
from store.read.status import run_started
from store.read.tasks import events, every_task
from store.runs import RunFolder
from store.tables import head, last_seq, payload, started
from store.union.source import LocalLogSource
from tests.runner.run.test_fork import (
    EditedJob,
    Edits,
    World,
    read_by_the_page,
    stored_bodies_of,
)
from tests.store.memory_log import START_US
from tests.store.union.union_logs import (
    merge_in_another_order,
    shard_log,
    shard_started,
)


def test_an_answer_of_a_split_run_is_named_by_its_log(tmp_path: Path) -> None:
    world = World(tmp_path)
    parent, before, _, _ = world.run("a", Edits(), parts=("0/2", "1/2"))
    fork, asked, _, _ = world.run("b", Edits(), parent="a")
    assert (len(before), asked) == (12, [])
    bodies = stored_bodies_of(fork)
    with open_reader(fork.log) as reader:
        origin = run_started(reader).fork
        adopted = [
            row.event.forked
            for row in events(reader, kinds=["attempt_answered"])
            if isinstance(row.event, AttemptAnswered)
        ]
    with open_reader(parent.log) as reader:
        whole = union_progress(reader)
    assert origin is not None
    assert whole is not None
    assert origin.link == whole.digest
    logs = {}
    for shard in parent.shards():
        with open_reader(shard.log) as reader:
            log = LocalLogSource(reader).identity.log.hex()
            logs[log] = (last_seq(reader), head(reader))
            for forked in adopted:
                assert forked is not None
                if forked.log == log:
                    body = payload(reader, forked.seq) or b""
                    assert hashlib.sha256(body).hexdigest() == forked.sha256
    assert {log.log: (log.seq, log.link) for log in origin.logs} == logs
    assert {forked.log for forked in adopted if forked} == set(logs)
    assert read_by_the_page(fork) == bodies
    merge_in_another_order(parent)
    assert read_by_the_page(fork) == stored_bodies_of(fork) == bodies
    parent.log.unlink()
    with pytest.raises(StoreError, match="again with 'siftlog merge a'"):
        stored_bodies_of(fork)


def test_a_split_run_that_asked_again_keeps_the_answers_of_its_fork(
    tmp_path: Path,
) -> None:
    """What a shard records after a fork began is not of the parent."""
    world = World(tmp_path)
    parent, *_ = world.run("a", Edits(), parts=("1/2",))
    with open_reader(parent.log) as reader:
        tasks = len(list(every_task(reader)))
    fork, asked, _, _ = world.run("b", Edits(), parent="a")
    assert len(asked) == 12 - tasks
    with open_reader(fork.log) as reader:
        origin = run_started(reader).fork
    assert origin is not None
    world.run("a", Edits(), parts=("0/2",))
    answers = parent_answers(fork, origin)
    with open_reader(parent.log) as reader:
        now = [
            asyncio.run(answers.again(task_of(row), started(reader, row.task) or ""))
            for row in every_task(reader)
        ]
    assert (len(now), now.count(None)) == (12, 12 - tasks)


def test_shards_at_work_on_other_machines_refuse_a_fork(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a")
    folder.path.mkdir()
    shard_log(folder.path, "0-2", [shard_started(0, 2)])
    folder.refresh()
    with closing(connect(folder.log)) as conn:
        conn.execute(SQL["set_heartbeat"], (START_US, 0, 1, "elsewhere"))
    job, options = EditedJob(Edits()), World(tmp_path).options(Edits())

    def origin(now_us: int) -> object:
        return fork_origin(
            folder, job, options, options, {}, now_us=now_us, from_stage=None
        )

    with pytest.raises(UsageError, match="Run a is running"):
        origin(START_US + 1_000_000)
    assert origin(START_US + 3_600_000_000)
