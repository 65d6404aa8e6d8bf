"""Requests joined with their answers: from the file, from the log, or from both."""

from __future__ import annotations

from pathlib import Path

from store.control import (
    Command,
    CommandOutcome,
    CommandRecord,
    Payload,
    command_log,
    recorded_outcomes,
    withdrawals,
)
from store.database import open_reader
from store.events import CommandAccepted, CommandApplied, CommandRejected, Event
from tests.store.logs import written
from tests.store.memory_log import START_US
from tests.store.samples import RUN_STARTED


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
