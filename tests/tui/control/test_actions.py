"""What can be asked in which state, and the command line that does the same."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from runner.cli.command_table import cli
from store.control import CommandPreview
from store.read.limits import ObservedLimits
from store.read.status import Pause
from tests.tui.fake_requests import request
from tests.tui.sights import every_state, snapshot, with_status
from tui.control.actions import ACTIONS, NotAValue, withdrawing
from tui.control.commands import (
    FREE_TASKS,
    command_line,
    expected_state,
    is_futile,
    requires_name,
)
from tui.sources.run_snapshot import RunSnapshot

BY_NAME = {action.name: action for action in ACTIONS}
OFFERED = {
    "live": {"pause", "limits", "retry", "cancel"},
    "quiet": {"pause", "limits", "retry", "cancel"},
    "stalled": {"pause", "limits", "retry", "cancel"},
    "paused": {"pause", "limits", "retry", "cancel"},
    "lost": {"pause", "limits", "retry", "cancel"},
    "draining": {"limits", "retry", "cancel"},
    "drained": {"limits", "retry", "cancel", "score"},
    "budget_stop": {"limits", "retry", "cancel", "score"},
    "cancelled": {"retry", "score"},
    "finished": {"retry", "score"},
}
ENDED = {"drained", "budget_stop", "cancelled", "finished"}
M = ObservedLimits(model="m", concurrency=8, rpm=3100.0, tpm=None, paused_until_us=None)


def _words(seen: RunSnapshot, name: str) -> list[str]:
    return [choice.words for choice in BY_NAME[name].choices(seen, "")]


def test_every_state_offers_what_makes_sense_in_it(tmp_path: Path) -> None:
    for state, seen in every_state(tmp_path / "r1"):
        found = replace(seen, is_alive=state not in ENDED)
        offered = {action.name for action in ACTIONS if action.choices(found, "")}
        assert offered == OFFERED[state], state


def test_an_imported_run_can_only_be_scored(tmp_path: Path) -> None:
    imported = with_status(snapshot(tmp_path / "r1"), imported=True)
    ended = replace(imported, is_alive=False)
    assert [a.name for a in ACTIONS if a.choices(ended, "")] == ["score"]


def test_pauses_are_offered_by_what_is_held_already(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    assert _words(live, "pause")[:2] == ["pause: the run", "pause: stage ask"]
    assert "pause: model m-large" in _words(live, "pause")
    part = with_status(live, pauses=(Pause(stage="ask", model=None, by="ops"),))
    assert _words(part, "pause")[:3] == [
        "resume: all that is paused",
        "resume: stage ask (by ops)",
        "pause: the run",
    ]
    assert "pause: stage ask" not in _words(part, "pause")
    whole = with_status(live, pauses=(Pause(stage=None, model=None, by="ops"),))
    assert _words(whole, "pause") == ["resume: all that is paused"]


def test_limits_say_what_holds_now_and_take_values_that_can_be(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    seen = with_status(live, limits=(M,), budget_usd=5.0)
    calls, rpm, tpm, budget = BY_NAME["limits"].choices(seen, "")
    labels = [c.field.label for c in (calls, rpm, tpm, budget) if c.field]
    assert labels == [
        "calls at a time, at most (now: 8)",
        "requests a minute, at most (now: 3.1 k)",
        "tokens a minute, at most (now: none)",
        "dollars to add",
    ]
    # what was set, and what the endpoint leaves of it
    lowered = with_status(live, limits=(replace(M, ceiling=12),))
    field = BY_NAME["limits"].choices(lowered, "")[0].field
    assert field is not None
    assert field.label == "calls at a time, at most (now: 8 of at most 12)"
    assert calls.payload_with(" 16 ") == {"model": "m", "concurrency": 16}
    assert rpm.payload_with("none") == {"model": "m", "rpm": None}
    assert tpm.payload_with("1.5") == {"model": "m", "tpm": 1.5}
    assert budget.payload_with("20") == {"add_usd": 20.0}
    for choice, typed in (
        (calls, "0"),
        (calls, "1.5"),
        (calls, "²"),
        (rpm, "0"),
        (rpm, "-1"),
        (tpm, ""),
        (budget, "none"),
        (budget, "1e9"),
    ):
        with pytest.raises(NotAValue, match="type a "):
            choice.payload_with(typed)


def test_a_retry_begins_with_what_is_looked_at(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    for aim, filters in (("", "state:failed"), ("stage:ask", "stage:ask")):
        (choice,) = BY_NAME["retry"].choices(live, aim)
        assert choice.field is not None
        assert choice.field.value == filters
        assert choice.payload_with(" x ") == {"filter": "x"}


def test_what_cannot_be_taken_back_takes_the_runs_name() -> None:
    def of(tasks: int, usd: float | None) -> CommandPreview:
        return CommandPreview(tasks=tasks, in_flight=0, usd=usd)

    assert requires_name("cancel", of(0, 0.0))
    assert not requires_name("drain", of(9, None))
    assert not requires_name("retry", of(10**6, 9.5))
    assert requires_name("retry", of(1, 10.5))
    assert not requires_name("retry", of(FREE_TASKS, None))
    assert requires_name("retry", of(FREE_TASKS + 1, None))
    assert is_futile("retry", of(0, None))
    assert not is_futile("pause", of(0, None))


def test_the_expected_state_is_what_the_run_is_when_it_reads_the_request(
    tmp_path: Path,
) -> None:
    for state, seen in every_state(tmp_path / "r1"):
        assert expected_state(seen) == ("live" if state in {"quiet", "lost"} else state)
        gone = replace(seen, is_alive=False)
        assert gone.state != "lost" or expected_state(gone) == "lost"


def test_every_command_line_is_one_that_the_command_takes(tmp_path: Path) -> None:
    live = with_status(snapshot(tmp_path / "r1"), limits=(M,), budget_usd=5.0)
    ended = replace(live, is_alive=False)
    choices = [
        *(c for a in ACTIONS for seen in (live, ended) for c in a.choices(seen, "")),
        *withdrawing(request("abc")).choices(live, ""),
    ]
    lines = {
        command_line(c.kind, c.payload_with("7" if c.field else ""), "r1")
        for c in choices
    }
    for line in lines:
        _, verb, *words = shlex.split(line)
        context = cli.make_context("siftlog", [verb])
        command = cli.get_command(context, verb)
        assert command is not None, line
        command.make_context(verb, words, parent=context)
    assert "siftlog limits r1 --model m --rpm 7" in lines
    assert "siftlog cancel r1 --now" in lines
    assert "siftlog commands r1 --withdraw abc" in lines
    assert "siftlog budget r1 --add 7" in lines
    assert (
        command_line("retry", {"filter": "a b"}, "r1")
        == "siftlog retry r1 --filter 'a b'"
    )
