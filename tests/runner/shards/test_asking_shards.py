"""What was asked of a split run, where one of its logs answers and another joins."""

from __future__ import annotations

from pathlib import Path

from runner.workload import load_workload
from store.control import (
    Command,
    CommandOutcome,
    CommandTail,
    command_log,
    recorded_outcomes,
    send_command,
)
from store.database import open_reader
from store.events import CommandAccepted, CommandApplied, CommandRejected, Entry, Event
from store.read.status import status
from store.runs import RunFolder
from tests.replacing import replace
from tests.runner.shards.sharded import Split
from tests.runner.toy_jobs import ToyJob, ToySettings
from tests.store.union.union_logs import shard_log, shard_started, union_of

ASKED = Command(
    id="c1",
    author="a person",
    host="here",
    at_us=1,
    kind="retry",
    payload={},
)
ACCEPTED = CommandAccepted(command="c1", kind="retry", author="a person", payload="{}")
APPLIED = CommandApplied(command="c1", effect="2 tasks reopened")
REJECTED = CommandRejected(
    command="c1", kind="retry", author="a person", reason="it had ended"
)


def _answers(folder: RunFolder) -> list[str]:
    """Kinds of the answers in a log."""
    with open_reader(folder.log) as reader:
        return [row.kind for row in recorded_outcomes(reader)]


def test_a_new_log_passes_over_what_others_have_answered(tmp_path: Path) -> None:
    """Only limits, which stand nowhere else, hold for it as well."""
    split = Split(tmp_path, load_workload(ToyJob(), ToySettings(items=4)))
    split.folder.path.mkdir()
    send_command(split.folder, ASKED)
    split.part(0, 2)
    assert _answers(split.folder.shard(0, 2)) == ["command_accepted", "command_applied"]
    split.folder.refresh()
    split.part(0, 1)
    assert _answers(split.folder.shard(0, 1)) == []


def test_what_another_answered_since_a_log_began_concerns_that_log_too(
    tmp_path: Path,
) -> None:
    split = Split(tmp_path, load_workload(ToyJob(), ToySettings(items=4)))
    split.part(0, 2)
    split.part(1, 2)
    send_command(split.folder, replace(ASKED, payload={"filter": "stage:read"}))
    for index in range(2):
        split.part(index, 2)
        split.folder.refresh()
        own = split.folder.shard(index, 2)
        assert _answers(own) == ["command_accepted", "command_applied"]


def test_what_one_shard_did_is_done_whatever_another_says(tmp_path: Path) -> None:
    courses: list[list[Entry | Event]] = [[ACCEPTED, APPLIED], [REJECTED], [ACCEPTED]]
    logs = [
        shard_log(tmp_path, f"{i}-3", [shard_started(i, 3)], course)
        for i, course in enumerate(courses)
    ]
    for i, order in enumerate((logs, logs[::-1])):
        with open_reader(union_of(tmp_path / f"union{i}.db", order)) as reader:
            (said,) = command_log(
                reader, CommandTail(tmp_path / "control.jsonl").read()
            )
        assert (said.answer, said.said) == (CommandOutcome.APPLIED, "2 tasks reopened")


def test_what_is_to_be_asked_again_is_taken_over_first(tmp_path: Path) -> None:
    split = Split(tmp_path, load_workload(ToyJob(), ToySettings(items=4)))
    split.part(0, 2)
    split.part(1, 2)
    send_command(
        split.folder,
        replace(ASKED, id="c2", kind="retry", payload={"filter": "stage:read"}),
    )
    split.folder.refresh()
    assert split.part(0, 1).outcome == "finished"
    assert _answers(split.folder.shard(0, 1)) == ["command_accepted", "command_applied"]
    split.folder.refresh()
    with open_reader(split.folder.log) as reader:
        seen = status(reader)
    assert seen.tasks.open == 0
    assert seen.attempts.started > seen.tasks.planned
