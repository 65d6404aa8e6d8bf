"""Requests that are taken back, on a virtual clock: in time, too late, and twice."""

from __future__ import annotations

from pathlib import Path

from store.events import CommandAccepted, CommandApplied, CommandRejected
from tests.runner.control.live import Live, nothing
from tests.runner.toy_jobs import run_virtual


def test_what_is_taken_back_before_it_was_answered_is_never_carried_out(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        live = Live(tmp_path, items=2)
        live.ask("limits", rpm=7000)
        live.ask("limits", rpm=8000)
        live.ask("withdraw", id="limits-0")
        live.ask("withdraw", id="limits-0")
        live.ask("withdraw", id="limits-1")
        await live.run(nothing, found="drained")
        answers = await live.answers()
        dropped, accepted, applied = answers[:3]
        assert isinstance(dropped, CommandRejected)
        assert (dropped.command, dropped.reason) == ("limits-0", "withdrawn by ops")
        assert accepted.command == applied.command == "withdraw-2"
        assert applied.effect == "limits (by ops) dropped"
        assert [a.command for a in answers[3:]] == [
            "limits-1",
            "withdraw-4",
            "withdraw-4",
            "withdraw-3",
        ]
        assert isinstance(answers[-1], CommandRejected)
        assert answers[-1].reason == "there is no unanswered request of that id"
        assert live.told[0] == "Waiting was limits (by ops): withdrawn by ops."
        await live.run(nothing)
        assert await live.answers() == answers, "a restart answers nothing again"

    run_virtual(main())


def test_what_an_earlier_process_began_cannot_be_taken_back(tmp_path: Path) -> None:
    async def main() -> None:
        live = Live(tmp_path, items=2)
        live.ask("limits", rpm=7000)
        live.ask("withdraw", id="limits-0")
        await live.bench.log.append(
            CommandAccepted(
                command="limits-0", kind="limits", author="ops", payload='{"rpm": 7000}'
            )
        )
        await live.run(nothing)
        answers = await live.answers()
        assert isinstance(answers[2], CommandApplied)
        assert answers[2].command == "limits-0"
        assert isinstance(answers[3], CommandRejected)
        assert answers[3].command == "withdraw-1"

    run_virtual(main())
