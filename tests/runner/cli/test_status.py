"""What `status` says of endpoints that ask to be left alone, and of logs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from runner.cli.status import status_json
from runner.cli.status_page import cost_text, logs_text, status_page
from runner.score.render import operations_json
from runner.scorecard import Scorecard
from store.database import open_reader
from store.events import CommandAccepted, CommandApplied, LimitObserved, TaskFailed
from store.read.course import course
from store.read.forecast import progress_text
from store.read.live import live_status
from store.read.tasks import failure_text
from store.runs import RunFolder
from store.served_by import ServedBy
from tests.commands import siftlog
from tests.replacing import replace
from tests.store.logs import COURSE, written
from tests.store.memory_log import START_US, FakeClock
from tests.store.samples import (
    RUN_STARTED,
    completed,
    failed,
    plan,
    plan_first,
    started,
    task,
)
from tests.store.samples import reply as answer


def test_a_wait_that_an_endpoint_asked_for_is_told_until_it_is_over(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    until_us = clock.now_us() + 3_600_000_000
    seen = LimitObserved(
        model="m-large", concurrency=8, in_flight=0, paused_until_us=until_us
    )
    folder = RunFolder(tmp_path)
    with open_reader(written(folder.log, [RUN_STARTED], [seen])) as reader:
        seen = live_status(reader, clock.now_us(), is_held=False)
        past = course(reader)
    line = "limits    m-large: 8 calls at a time"
    lines = status_page(seen, past).splitlines()
    assert f"{line}; it requested a wait of 1 h 00 more" in lines
    assert status_json(seen)["limits"][0]["paused_until_us"] == until_us
    later = replace(seen, now_us=until_us)
    assert line in status_page(later, past).splitlines()


def test_what_readers_should_know_of_replies_is_said_in_the_same_words(
    tmp_path: Path,
) -> None:
    answers = [
        answer(1, b"a", served=ServedBy(fingerprint="fp_1"), kept=True, cached=True),
        answer(2, b"b", served=ServedBy(fingerprint="fp_1"), usage_doubtful=True),
        answer(3, b"c", served=ServedBy(fingerprint="fp_2")),
        answer(4, b"d", cached=True),
    ]
    units = [
        [started(number), each, completed(number)]
        for number, each in enumerate(answers, start=1)
    ]
    tasks = [plan([task(number) for number in range(1, 5)])]
    folder = RunFolder(tmp_path)
    with open_reader(written(folder.log, [RUN_STARTED], tasks, *units)) as reader:
        seen = live_status(reader, FakeClock().now_us(), is_held=False)
        past = course(reader)
        operations = json.loads(
            operations_json(seen.status, [], Scorecard(models={}, summary=""))
        )
    billing, served = seen.status.findings
    assert billing.startswith("1 answer gave a total of tokens below")
    assert served == "m-large: 2 fingerprints (fp_1 1, fp_2 1)"
    text = status_page(seen, past)
    assert f"billing   {billing}\n" in text
    assert f"served    {served}\nserved    siftlog drift r" in text
    assert operations["findings"] == [billing, served]
    # neither of the answers that were there already was a call
    assert (seen.status.attempts.cached, seen.status.attempts.reused) == (1, 1)
    free = "1 of them from the response cache, 1 of them reopened by a retry"
    assert f"4 answered ({free})" in text


def test_of_logs_that_others_have_gone_on_for_nobody_is_told() -> None:
    assert logs_text(5, 3, has_all=True) == "5 logs, all slices ended"
    assert logs_text(2, 1, has_all=False) == "2 logs, 1 ended"
    assert logs_text(1, 0, has_all=False) == "1 log, 0 ended"


def test_a_killed_run_says_what_is_missing_and_how_to_go_on(tmp_path: Path) -> None:
    with open_reader(written(tmp_path / "log.db", *COURSE[:7])) as reader:
        seen = live_status(reader, START_US, is_held=False)
        past = course(reader)
    lines = status_page(seen, past, run="copy").splitlines()
    assert lines[0].endswith("  lost")
    facts = {line[:10].strip(): line[10:] for line in lines[1:]}
    assert facts["state"].startswith("lost: no process works on it any more")
    remaining = seen.progress.remaining.expected
    assert facts["progress"].endswith(progress_text(seen.progress))
    assert facts["missing"].startswith(f"{remaining:.0f} tasks: ")
    lost = f"{seen.status.tasks.running} of unknown outcome"
    assert lost in facts["missing"]
    assert lost in facts["tasks"]
    assert facts["attempts"].endswith(lost)
    assert facts["next"].startswith("siftlog resume copy  # ")
    labels = [line[:10].strip() for line in lines if line]
    assert labels.index("progress") < labels.index("cost") < labels.index("tasks")


def test_status_of_a_finished_run_opens_with_what_its_end_printed(
    tmp_path: Path,
) -> None:
    words = ("run", "paper-investigation", "--run-id=r", "--no-report")
    printed = siftlog(*words, cwd=tmp_path).stdout.splitlines()
    assert printed[0].startswith("Metric, 95% interval  ")
    assert [line[:10].strip() for line in printed[8:]] == [
        *("done", "cost", "files", "next", "")
    ]
    shown = siftlog("status", "r", cwd=tmp_path).stdout.splitlines()
    assert shown[0] == "run r  paper-investigation 2  finished"
    assert shown[2 : 2 + len(printed)] == printed
    # a scoring whose folder is gone has its headline in the log
    shutil.rmtree(tmp_path / "runs/r/scores")
    shown = siftlog("status", "r", cwd=tmp_path).stdout.splitlines()
    assert shown[3].split() == ["avg_paper_score", "0.598"]


def test_a_run_without_an_answer_does_not_blame_the_price(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    units = ([RUN_STARTED], [plan([task(1)])], [started(1)])
    with open_reader(written(folder.log, *units)) as reader:
        seen = live_status(reader, FakeClock().now_us(), is_held=False)
    assert seen.status.cost_usd is None
    assert cost_text(seen).startswith("? (no call was answered)")


def test_limits_that_nobody_set_are_called_learned(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs/r1")
    folder.path.mkdir(parents=True)
    accepted = CommandAccepted(
        command="c1", kind="limits", author="ada", payload='{"tpm": 9000}'
    )
    observed = LimitObserved(
        model="m-large", concurrency=8, in_flight=0, rpm=350, tpm=7000
    )
    applied = CommandApplied(command="c1", effect="")
    written(folder.log, [RUN_STARTED], [accepted], [applied], [observed])
    folder.config.write_text('job = "screening"\n')
    shown = siftlog("limits", "r1", cwd=tmp_path).stdout
    assert shown == (
        "m-large: 8 calls at a time, 350 requests a minute, 7,000 tokens a minute "
        "(requests a minute learned from the endpoint, none set; "
        "at most 9,000 tokens a minute set)\n"
    )
    fields = json.loads(siftlog("limits", "r1", "--json", cwd=tmp_path).stdout)
    assert (fields["set_rpm"], fields["set_tpm"]) == (None, 9000)


@pytest.mark.parametrize(
    ("is_held", "calls"),
    [(True, "calls in flight"), (False, "1 call of unknown outcome")],
)
def test_what_may_still_be_billed_names_its_calls(
    tmp_path: Path, is_held: bool, calls: str
) -> None:
    lost = failed(2, error="Timeout", status=None, possible_usd=0.25)
    units = (
        [plan([task(1), task(2)])],
        [replace(started(1), worst_usd=0.5), started(2)],
    )
    log = written(tmp_path / "log.db", [RUN_STARTED], *units, [lost])
    with open_reader(log) as reader:
        text = cost_text(live_status(reader, START_US, is_held=is_held))
    most = "up to $0.7500 may still be billed"
    assert most in text
    assert calls in text
    assert "failed calls (Timeout 1)" in text


def test_failed_tasks_are_explained_by_their_most_frequent_message(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path)
    messages = ("e answered 400: no plan 17.", "too busy", "e answered 400: no plan 4.")
    ends = (
        [
            started(number),
            failed(number, message=message, retry_in_s=None),
            TaskFailed(task=number, attempt=1, error="BadRequest"),
        ]
        for number, message in enumerate(messages, 1)
    )
    with open_reader(
        written(folder.log, [RUN_STARTED], [plan_first(3)], *ends)
    ) as reader:
        seen, past = live_status(reader, START_US, is_held=False), course(reader)
        failure = failure_text(reader)
    assert failure == "2 of 3 failed tasks: e answered 400: no plan 17."
    shown = status_page(seen, past, failure=failure).splitlines()
    assert f"error     {failure}" in shown
    assert not any(
        line.startswith("error ") for line in status_page(seen, past).splitlines()
    )
