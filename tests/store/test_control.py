"""Requests joined with their answers: from the file, from the log, or from both.

Requests from outside: written by anybody, read on from where one was. What a request
would come to, before anybody asks.
"""

from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.control import (
    Command,
    CommandOutcome,
    CommandRecord,
    CommandTail,
    Payload,
    command_log,
    forward_command,
    outcome_sentence,
    preview_command,
    preview_open_tasks,
    preview_retry,
    preview_sentence,
    recorded_outcomes,
    send_command,
    withdrawals,
)
from store.database import open_reader
from store.errors import NoSuchName, QueryError
from store.events import (
    BatchItem,
    BatchPrepared,
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    Entry,
    Event,
    RunPaused,
    TaskFailed,
    batch_bytes,
)
from store.runs import RunFolder
from tests.replacing import replace
from tests.store.logs import written
from tests.store.memory_log import START_US
from tests.store.samples import (
    RUN_STARTED,
    completed,
    failed,
    plan,
    reply,
    started,
    task,
)


def command(name: str, kind: str = "retry", at: int = 1, **payload: object) -> Command:
    return Command(
        id=name,
        author="ops",
        host="h",
        at_us=START_US + at,
        kind=kind,
        payload=payload,  # type: ignore[arg-type]
        expected_state="live",
    )


def _accepted(name: str) -> CommandAccepted:
    return CommandAccepted(
        command=name, kind="limits", author="ops", payload='{"rpm": 5}'
    )


def _read(
    path: Path, *commands: Command, events: tuple[Event, ...] = ()
) -> list[CommandRecord]:
    with open_reader(written(path, [RUN_STARTED, *events])) as reader:
        return command_log(reader, commands)


def test_every_request_has_the_last_answer_that_it_got(tmp_path: Path) -> None:
    found = _read(
        tmp_path / "log.db",
        command("a"),
        command("b", at=2),
        command("c", at=3),
        command("d", at=4),
        command("a", at=9),
        events=(
            _accepted("a"),
            _accepted("b"),
            CommandApplied(command="b", effect="done"),
            CommandRejected(command="c", kind="retry", author="ops", reason="late"),
        ),
    )
    assert [(request.id, request.answer, request.said) for request in found] == [
        ("a", CommandOutcome.ACCEPTED, None),
        ("b", CommandOutcome.APPLIED, "done"),
        ("c", CommandOutcome.REJECTED, "late"),
        ("d", CommandOutcome.WAITING, None),
    ]
    assert found[0].host == "h"
    assert found[0].expected_state == "live"
    assert found[1].accepted_us is not None
    assert found[1].answered_us is not None


def test_a_log_without_its_requests_still_tells_what_was_answered(
    tmp_path: Path,
) -> None:
    found = _read(
        tmp_path / "log.db",
        events=(
            CommandRejected(command="r", kind="pause", author="x", reason="no"),
            _accepted("b"),
            CommandApplied(command="b", effect="done"),
            CommandApplied(command="never asked", effect="?"),
        ),
    )
    assert [(request.words, request.host) for request in found] == [
        ("pause", None),
        ("limits rpm 5", None),
    ]
    assert found[1].began_us == found[1].accepted_us


def test_what_is_taken_back_and_not_yet_answered_is_withdrawn(tmp_path: Path) -> None:
    lines = (
        command("a"),
        command("b", at=2),
        command("w", "withdraw", at=3, id="a"),
        command("v", "withdraw", at=4, id="a"),
    )
    found = _read(tmp_path / "log.db", *lines)
    assert [request.answer for request in found] == [
        CommandOutcome.WITHDRAWN,
        *[CommandOutcome.WAITING] * 3,
    ]
    assert withdrawals(lines)["a"].id == "w"


def test_a_request_is_told_in_a_few_words() -> None:
    said: list[tuple[str, Payload, str]] = [
        ("pause", {"stage": None, "model": "m"}, "pause model m"),
        ("cancel", {"now": True}, "cancel now"),
        ("cancel", {"now": False}, "cancel"),
        ("limits", {"rpm": None, "tpm": 5}, "limits rpm none tpm 5"),
        ("retry", {"filter": "state:failed"}, "retry filter state:failed"),
    ]
    for kind, payload, words in said:
        assert (
            CommandRecord(id="i", kind=kind, author="a", payload=payload).words == words
        )


def test_a_time_that_no_calendar_has_is_no_time(tmp_path: Path) -> None:
    (found,) = _read(tmp_path / "log.db", command("a", at=10**30))
    assert found.asked_us is None
    assert found.began_us == 0


def test_answers_are_read_on_from_an_event(tmp_path: Path) -> None:
    path = written(tmp_path / "log.db", [RUN_STARTED], [_accepted("a"), _accepted("b")])
    with open_reader(path) as reader:
        first, second = recorded_outcomes(reader)
        assert recorded_outcomes(reader, after=first.seq) == [second]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def commands_command(number: int) -> Command:
    return Command(
        id=f"c{number}",
        author="someone",
        host="here",
        at_us=1000 + number,
        kind="retry",
        payload={"filter": "state:failed"},
    )


def test_what_is_written_is_read_once_and_in_order(folder: RunFolder) -> None:
    tail = CommandTail(folder.control)
    assert tail.read() == []
    send_command(folder, commands_command(1))
    send_command(folder, commands_command(2))
    assert tail.read() == [commands_command(1), commands_command(2)]
    assert tail.read() == []
    send_command(folder, commands_command(3))
    assert tail.read() == [commands_command(3)]
    assert CommandTail(folder.control).read() == [
        commands_command(n) for n in (1, 2, 3)
    ]


def test_the_file_has_no_blank_line_even_where_one_was_left_unfinished(
    folder: RunFolder,
) -> None:
    for number in range(3):
        send_command(folder, commands_command(number))
    with folder.control.open("ab") as file:
        file.write(b'{"id": "torn", "auth')
    for number in range(3, 6):
        send_command(folder, commands_command(number))
    lines = folder.control.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == 7
    assert all(lines)


def test_processes_that_write_together_leave_whole_lines(folder: RunFolder) -> None:
    def ask(first: int) -> None:
        for number in range(first, first + 50):
            send_command(folder, commands_command(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(0, 400, 50)))
    tail = CommandTail(folder.control)
    assert {each.id for each in tail.read()} == {f"c{n}" for n in range(400)}
    assert tail.unreadable == 0
    assert folder.control.read_bytes().count(b"\n") == 400


def test_a_request_waits_until_the_one_before_it_is_written(folder: RunFolder) -> None:
    line = msgspec.json.encode(commands_command(1)) + b"\n"
    with ThreadPoolExecutor(1) as pool:
        with folder.control.open("ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(line[:20])
            sending = pool.submit(send_command, folder, commands_command(2))
            with pytest.raises(TimeoutError):
                sending.result(timeout=0.3)
            file.write(line[20:])
        sending.result(timeout=60)
    assert CommandTail(folder.control).read() == [
        commands_command(1),
        commands_command(2),
    ]


def test_a_line_still_being_written_is_left_for_later(folder: RunFolder) -> None:
    send_command(folder, commands_command(1))
    line = folder.control.read_bytes()
    tail = CommandTail(folder.control)
    folder.control.write_bytes(line[:-20])
    assert tail.read() == []
    folder.control.write_bytes(line)
    assert tail.read() == [commands_command(1)]


def test_a_line_left_unfinished_spoils_only_itself(folder: RunFolder) -> None:
    send_command(folder, commands_command(1))
    with folder.control.open("ab") as file:
        file.write(b'{"id": "torn", "auth')
    send_command(folder, commands_command(2))
    tail = CommandTail(folder.control)
    assert tail.read() == [commands_command(1), commands_command(2)]
    assert tail.unreadable == 1


@pytest.mark.parametrize(
    "line", [b"[]", b"\xff\xfe", b"{}", b'{"id": 1}', b"null", b"not json"]
)
def test_lines_that_are_no_command_are_passed_over(
    folder: RunFolder, line: bytes
) -> None:
    folder.control.write_bytes(line + b"\n")
    send_command(folder, commands_command(1))
    tail = CommandTail(folder.control)
    assert tail.read() == [commands_command(1)]
    assert tail.unreadable == 1


@given(cuts=st.lists(st.integers(0, 2000), max_size=8), count=st.integers(0, 6))
def test_reading_at_any_moments_gives_every_command_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], count: int
) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    for number in range(count):
        send_command(folder, commands_command(number))
    whole = folder.control.read_bytes() if count else b""
    tail = CommandTail(folder.control)
    seen: list[Command] = []
    for cut in [*sorted(cuts), len(whole)]:
        folder.control.write_bytes(whole[:cut])
        seen += tail.read()
    assert seen == [commands_command(number) for number in range(count)]


def test_a_request_that_comes_from_elsewhere_stands_here_once(
    folder: RunFolder,
) -> None:
    send_command(folder, commands_command(1))
    for number in (1, 2, 2):
        forward_command(folder, msgspec.json.encode(commands_command(number)))
    assert CommandTail(folder.control).read() == [
        commands_command(1),
        commands_command(2),
    ]


def test_what_is_no_request_is_not_handed_on(folder: RunFolder) -> None:
    with pytest.raises(ValueError, match="no request"):
        forward_command(folder, b'{"id": 1}')
    assert not folder.control.exists()


COURSE = (
    [RUN_STARTED],
    [plan([task(1), task(2), task(3), task(4, model="m-small"), task(5)])],
    [started(1), reply(1, b"one", cost_usd=0.25), completed(1)],
    [started(2), reply(2, b"two", cost_usd=0.75), completed(2, unparsed="truncated")],
    [started(3), failed(3, retry_in_s=None)],
    [TaskFailed(task=3, attempt=1, error="Overloaded")],
    [started(4)],
)


def test_open_tasks_and_calls_in_flight_are_counted_by_stage_and_model(
    tmp_path: Path,
) -> None:
    with open_reader(written(tmp_path / "log.db", *COURSE)) as reader:
        whole = preview_open_tasks(reader)
        large = preview_open_tasks(reader, "ask", "m-large")
        with pytest.raises(NoSuchName, match="there is no stage 'judge' here: use ask"):
            preview_open_tasks(reader, stage="judge")
        with pytest.raises(NoSuchName, match="use m-large, m-small"):
            preview_open_tasks(reader, model="m")
    assert (whole.tasks, whole.in_flight, whole.spent_usd) == (2, 1, 1.0)
    assert (large.tasks, large.in_flight) == (1, 0)


def test_only_paused_tasks_would_go_on(tmp_path: Path) -> None:
    paused = RunPaused(by="ops", paused=True, model="m-small")
    with open_reader(written(tmp_path / "log.db", *COURSE, [paused])) as reader:
        everything = preview_command(reader, "resume", {})
        small = preview_command(reader, "resume", {"model": "m-small"})
        large = preview_command(reader, "resume", {"model": "m-large"})
    assert (everything.tasks, small.tasks, large.tasks) == (1, 1, 0)
    assert everything.with_follow_ups == 1
    more = replace(everything, with_follow_ups=7)
    assert preview_sentence("resume", {}, more, "r") == (
        "1 open task of r (about 7 with follow-ups) would go on."
    )


def test_calls_in_batches_are_not_said_to_finish(tmp_path: Path) -> None:
    prepared = BatchPrepared(batch="k", model="m-large", form="openai", requests=1)
    sent = [
        Entry(event=prepared, payload=batch_bytes([BatchItem(5, 1, "k-5")])),
        replace(started(5), batched=True),
    ]
    with open_reader(written(tmp_path / "log.db", *COURSE, sent)) as reader:
        whole, small = (
            preview_open_tasks(reader),
            preview_open_tasks(reader, model="m-small"),
        )
    assert (whole.in_flight, whole.batched) == (2, 1)
    assert (small.in_flight, small.batched) == (1, 0)
    assert preview_sentence("drain", {}, whole, "r") == (
        "1 call in flight of r would finish and 1 call in batches of r would stay at "
        "the provider; 0 tasks would stay open for siftlog resume."
    )
    assert preview_sentence("cancel", {}, replace(whole, in_flight=1), "r") == (
        "1 open task of r would be skipped; 1 call in batches would be cancelled at "
        "the provider."
    )
    assert preview_sentence("pause", {}, whole, "r").endswith(
        "1 call in batches would be waited for."
    )
    assert "batches" not in preview_sentence("drain", {}, small, "r")


def test_a_retry_is_priced_at_what_such_tasks_have_cost(tmp_path: Path) -> None:
    with open_reader(written(tmp_path / "log.db", *COURSE)) as reader:
        plain = preview_retry(reader, "")
        every = preview_retry(reader, "state:completed")
        unread = preview_retry(reader, "reason:truncated")
        still_open = preview_retry(reader, "state:open")
        with pytest.raises(QueryError):
            preview_retry(reader, "nonsense:1")
    assert (plain.tasks, plain.usd) == (1, 0.5)
    assert (every.tasks, every.usd) == (2, 1.0)
    assert (unread.tasks, unread.usd) == (1, 0.5)
    assert (still_open.tasks, still_open.usd) == (0, 0.0), "only final tasks"


def test_what_the_cache_answered_does_not_make_a_retry_cheap(tmp_path: Path) -> None:
    found = reply(5, b"five", cost_usd=0.0, cached=True, latency_ms=None)
    cached = started(5), found, completed(5)
    with open_reader(written(tmp_path / "log.db", *COURSE, cached)) as reader:
        assert preview_retry(reader, "state:completed").usd == 1.5


def test_without_a_price_no_cost_is_told(tmp_path: Path) -> None:
    unpriced = started(5), reply(5, b"five", cost_usd=None), completed(5)
    with open_reader(written(tmp_path / "log.db", *COURSE, unpriced)) as reader:
        assert preview_retry(reader, "state:completed").usd is None
        assert preview_open_tasks(reader).spent_usd is None


def test_a_model_that_completed_nothing_makes_the_cost_unknown(tmp_path: Path) -> None:
    lost = [failed(4, retry_in_s=None), TaskFailed(task=4, attempt=1, error="Timeout")]
    with open_reader(written(tmp_path / "log.db", *COURSE, lost)) as reader:
        assert preview_retry(reader, "state:failed").usd is None
        assert preview_retry(reader, "state:failed model:m-large").usd == 0.5


def test_calls_in_flight_are_no_longer_left_in_a_budget(tmp_path: Path) -> None:
    capped = [replace(RUN_STARTED, budget_usd=2.0)]
    sent = [replace(started(5), worst_usd=0.25)]
    path = written(tmp_path / "log.db", capped, *COURSE[1:], sent)
    with open_reader(path) as reader:
        assert preview_open_tasks(reader).budget_left_usd == 2.0 - 1.0 - 0.25


def test_answers_of_the_response_cache_do_not_make_a_retry_cheap(
    tmp_path: Path,
) -> None:
    hit = {"cost_usd": 0.0, "cached": True, "latency_ms": None}
    found = [started(5), reply(5, b"five", **hit), completed(5)]
    only = [started(4), reply(4, b"four", **hit), completed(4)]
    with open_reader(written(tmp_path / "a.db", *COURSE, found)) as reader:
        assert preview_retry(reader, "state:completed").usd == 3 * 0.5
    with open_reader(written(tmp_path / "b.db", *COURSE[:-1], only)) as reader:
        assert preview_retry(reader, "model:m-small").usd is None


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (CommandOutcome.WAITING, "Sent: pause"),
        (CommandOutcome.ACCEPTED, "Accepted: pause"),
        (CommandOutcome.APPLIED, "Applied: paused: the run"),
        (CommandOutcome.REJECTED, "Refused: pause: paused: the run"),
        (CommandOutcome.WITHDRAWN, "Withdrawn: pause"),
    ],
)
def test_each_outcome_has_one_sentence(answer: CommandOutcome, sentence: str) -> None:
    assert outcome_sentence(answer, "pause", "paused: the run") == sentence
    assert outcome_sentence(CommandOutcome.APPLIED, "drain") == "Applied: drain"
