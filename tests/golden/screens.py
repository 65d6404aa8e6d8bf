"""The monitor on recorded runs: every screen as text, in a small and a large window.

Keys lead from screen to screen; what stands there once nothing moves any more is
written down, first small, then large. The application is the one that `siftlog watch`
starts: only textual's own `App.run` is replaced, by one without a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.golden.cases import Case, Step
from tests.golden.runs import recorded

PLACES = {
    "run": "",
    "tasks": "t",
    "task": "t j enter",
    "events": "e",
    "metrics": "m",
    "choices": "c",
    "requests": "a",
    "config": "i",
    "help": "question_mark",
    "panels": "tab tab",
    "cost": "m right right right right",
    "headline": "m left",
}
"""Screens of a run, and the keys that lead to them."""
RUNS = ("done", "killed", "failed", "steered", "wide", "old-log-1")
DRIVER = {
    "TEXTUAL_DRIVER": "textual.drivers.headless_driver:HeadlessDriver",
    "TEXTUAL_ANIMATIONS": "none",
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
}


def screen_cases() -> Iterator[Case]:
    """A case for each run, and one for the list of runs."""
    if not recorded():
        return
    for run in RUNS:
        files = {k: v for k, v in recorded().items() if k.startswith(f"runs/{run}")}
        yield Case(
            name=f"screens/{run}",
            files=files,
            steps=[
                _step(f"watch {run} --read-only", place, keys)
                for place, keys in PLACES.items()
            ],
        )
    names = tuple(f"runs/{run}/" for run in ("done", "killed", "steered", "spent"))
    yield Case(
        name="screens/all",
        files={k: v for k, v in recorded().items() if k.startswith(names)},
        steps=[
            _step("watch --read-only", "runs", ""),
            _step("watch --read-only --ascii", "runs in ASCII", ""),
            _step("watch done --ascii", "run in ASCII", ""),
            _step("watch done --replay max", "replayed", ""),
            _step("watch killed --replay max --at 60", "at an event", ""),
        ],
    )


def _step(line: str, place: str, keys: str) -> Step:
    return Step(line=line, label=place, variables=DRIVER, keys=keys)
