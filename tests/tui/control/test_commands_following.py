"""What is told of a request, from the moment it was made until nothing more comes."""

from __future__ import annotations

from store.control import CommandOutcome
from tests.store.memory_log import START_US
from tests.tui.fake_requests import request
from tui.control.commands import FollowedCommand
from tui.sources.command_log import CommandRequests

FIRST = FollowedCommand(
    id="c1", words="pause: the run", run_id="r1", requested_us=START_US
)


def _seen(
    followed: FollowedCommand,
    answer: CommandOutcome | None,
    after_s: float = 0.0,
    *,
    alive: bool = True,
) -> tuple[FollowedCommand, str]:
    asked = () if answer is None else (request("c1", answer=answer, said="8 finish"),)
    found = CommandRequests(
        records=asked, heartbeat_us=START_US - 7_000_000, is_alive=alive
    )
    now_us = START_US + round(after_s * 1e6)
    followed, news = followed.see(found, now_us)
    return followed, "" if news is None else news.sentence


def test_each_answer_is_told_once_and_the_last_ends_it() -> None:
    followed, said = _seen(FIRST, CommandOutcome.WAITING, 1)
    assert said == ""
    followed, said = _seen(followed, CommandOutcome.ACCEPTED, 1)
    assert said == "Accepted: pause: the run"
    assert not followed.is_over
    assert _seen(followed, CommandOutcome.ACCEPTED, 60) == (followed, "")
    followed, said = _seen(followed, CommandOutcome.APPLIED, 61)
    assert said == "Applied: 8 finish"
    assert followed.is_over


def test_a_refusal_and_a_withdrawal_end_it_too() -> None:
    for answer, words in (
        (CommandOutcome.REJECTED, "Refused: pause: the run: 8 finish"),
        (CommandOutcome.WITHDRAWN, "Withdrawn: pause: the run"),
    ):
        followed, said = _seen(FIRST, answer)
        assert said == words
        assert followed.is_over


def test_after_five_seconds_it_is_said_once_that_nobody_answers() -> None:
    followed, said = _seen(FIRST, CommandOutcome.WAITING, 4.9)
    assert said == ""
    followed, said = _seen(followed, CommandOutcome.WAITING, 5)
    assert "has not answered (heartbeat 12 s ago)" in said
    assert "a opens the commands log, W withdraws it there" in said
    followed, said = _seen(followed, CommandOutcome.WAITING, 60)
    assert said == ""
    followed, said = _seen(followed, CommandOutcome.APPLIED, 61)
    assert said == "Applied: 8 finish"


def test_without_a_process_it_is_queued_at_once() -> None:
    followed, said = _seen(FIRST, CommandOutcome.WAITING, alive=False)
    assert said == (
        "Waiting: pause: the run: no process works on r1; 'siftlog resume r1' "
        "applies it"
    )
    assert _seen(followed, CommandOutcome.WAITING, 9, alive=False)[1] == ""


def test_a_request_that_is_not_in_the_file_yet_is_waited_for() -> None:
    assert _seen(FIRST, None, 1) == (FIRST, "")
