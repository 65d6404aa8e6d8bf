"""How often what takes long says how far it is."""

from __future__ import annotations

import io
import sys

import pytest

from runner.cli.console import ERASE
from runner.cli.paced import PLAIN_S, TERMINAL_S, paced_progress
from runner.cli.progress import ProgressFigures, joint_figures, line_parts
from store.read.forecast import ForecastInterval, Progress
from tests.replacing import replace
from tests.store.memory_log import FakeClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stderr", "pause", "said"),
    [
        (io.StringIO(), PLAIN_S, "b␛[2J\nd\n"),
        (Terminal(), TERMINAL_S, f"{ERASE}b␛[2J{ERASE}d{ERASE}"),
    ],
    ids=["file", "terminal"],
)
def test_only_lines_that_are_due_are_shown(
    monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, pause: float, said: str
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    clock = FakeClock()
    with paced_progress(clock) as show:
        show("a")
        clock.advance(pause)
        show("b\x1b[2J")
        show("c")
        clock.advance(pause)
        show("d")
    assert stderr.getvalue() == said


FIGURES = ProgressFigures(
    progress=Progress(
        done=126, remaining=ForecastInterval(low=5200, expected=5874, high=6700)
    ),
    rate=294.0,
    left=ForecastInterval(low=1020, expected=1140, high=1440),
    paused_tasks=0,
    budget_left=None,
    cost_usd=0.12,
    budget_usd=5.0,
    billable_usd=0.02,
    pauses=(),
    counts={"failed": 3, "waiting": 12, "running": 0},
)


def test_a_line_tells_when_the_budget_stops_the_run() -> None:
    stop = ForecastInterval(low=400, expected=480, high=None)
    parts = line_parts(replace(FIGURES, budget_left=stop))
    assert parts[4] == "budget spent in 8.0 min (at least 6.7 min)"


def test_a_line_tells_what_is_done_and_what_remains() -> None:
    assert line_parts(FIGURES) == [
        "2.1 %",
        "126 of about 6,000 done",
        "4.9/s",
        "left 19 min (17 to 24 min)",
        "$0.1200 of $5.0000",
        "3 failed",
        "12 waiting",
        "$0.0200 may still be billed",
    ]


def test_a_line_says_what_waits_for_a_pause_to_end() -> None:
    assert line_parts(replace(FIGURES, paused_tasks=1200))[3] == (
        "left 19 min (17 to 24 min), 1,200 paused tasks not included"
    )


def test_a_line_leaves_out_what_is_not_known_or_zero() -> None:
    start = ProgressFigures(
        progress=Progress(
            done=0, remaining=ForecastInterval(low=9, expected=9, high=None)
        ),
        rate=None,
        left=None,
        paused_tasks=0,
        budget_left=None,
        cost_usd=None,
        budget_usd=None,
        billable_usd=0.0,
        pauses=("paused: the run (by ops)",),
        counts={"failed": 0},
    )
    assert line_parts(start) == [
        "0.0 %",
        "0 of about 9 done",
        "paused: the run (by ops)",
    ]


def test_runs_together_add_up_and_the_slowest_decides() -> None:
    slower = replace(
        FIGURES, left=ForecastInterval(low=10, expected=2000, high=None), rate=6.0
    )
    both = joint_figures([FIGURES, slower], are_all=True, shares_budget=True)
    assert both.progress.done == 252
    assert both.progress.remaining.expected == 2 * 5874
    assert (both.rate, both.cost_usd, both.budget_usd) == (300.0, 0.24, 5.0)
    assert both.left == ForecastInterval(low=1020, expected=2000, high=None)
    assert both.counts["waiting"] == 24
    more = joint_figures([FIGURES, slower], are_all=False, shares_budget=False)
    assert (more.left, more.budget_usd) == (None, 10.0)
