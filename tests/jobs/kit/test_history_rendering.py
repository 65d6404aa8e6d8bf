"""tests.jobs.test_history_rendering"""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.history import ScoredRun, job_history
from jobs.kit.history_rendering import (
    HEIGHT,
    MAX_NAMED_RUNS,
    STEP,
    WIDTH,
    history_figure,
    plot,
)
from runner.scorecard import LineSeries, ReferenceLine
from store.runs import RunFolder
from tests.jobs.remembered import milestone

RUNS = [f"r{at}" for at in range(200)]


def test_the_points_of_a_model_are_joined_and_where_two_stand_is_one_mark() -> None:
    drawn = plot(["x", "y"], {"m": {"x": 1.0, "y": 0.6}, "n": {"x": 1.0}})
    lines = drawn.splitlines()
    assert lines[0] == " 1.00 |*"
    assert lines[HEIGHT // 2] == " 0.80 |" + " " * (STEP // 2) + "·"
    assert lines[HEIGHT - 1] == " 0.60 |" + " " * STEP + "a"
    assert lines[-1].strip() == "a m  b n"


@given(
    st.lists(
        st.dictionaries(st.sampled_from(RUNS), st.floats(0, 1), min_size=1), max_size=60
    ),
    st.integers(1, len(RUNS)),
)
def test_every_value_of_a_drawn_run_has_its_place_and_nothing_is_wider(
    series: list[dict[str, float]], n: int
) -> None:
    drawn = plot(RUNS[:n], {f"m{at}": own for at, own in enumerate(series)})
    rows = drawn.splitlines()[:HEIGHT]
    assert len(rows) == HEIGHT
    assert all(len(line) <= WIDTH + len(" 1.00 |") for line in rows)
    runs = {run for own in series[:52] for run in own} & set(RUNS[:n][-WIDTH:])
    step = min(STEP, (WIDTH - 1) // max(min(n, WIDTH) - 1, 1))
    for run in runs:
        column = RUNS[:n][-WIDTH:].index(run) * step + len(" 1.00 |")
        assert any(line[column : column + 1].strip(" ·") for line in rows)


def runs_over(*databases: str) -> list[ScoredRun]:
    return [
        ScoredRun(
            folder=RunFolder(Path(f"r{at}")),
            at_us=at,
            milestone=milestone({"m": {"CD1": [0, 1]}}, data=data),
        )
        for at, data in enumerate(databases)
    ]


def test_the_figure_has_a_line_for_a_model_and_a_rule_where_data_change() -> None:
    drawn = history_figure(job_history(runs_over("d", "d", "e"), across=False))
    (panel,) = drawn.panels
    line, rule = panel.marks
    assert isinstance(line, LineSeries)
    assert isinstance(rule, ReferenceLine)
    assert (line.x, line.y) == ((0, 1, 2), (0.5, 0.5, 0.5))
    assert (rule.at, rule.label) == (1.5, "database changed")
    assert panel.x.names == ("r0", "r1", "r2")
    (panel,) = history_figure(
        job_history(runs_over(*"d" * (MAX_NAMED_RUNS + 1)), across=False)
    ).panels
    assert (panel.x.names, panel.x.hi) == ((), MAX_NAMED_RUNS)
