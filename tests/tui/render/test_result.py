"""What a run that has ended opens on: its result, or how to go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.read.next_steps import next_commands
from tests.replacing import replace
from tests.tui.sights import HOSTILE, later, snapshot, with_signs, with_status
from tui.render.glyphs import ASCII, UNICODE
from tui.render.headline import headline_table
from tui.render.layout import LEAD, Room
from tui.render.progress import stage_rows
from tui.render.result import result, result_height, unfinished, unfinished_height
from tui.render.run_panels import ENDINGS, panels_of
from tui.sources.result import (
    AnswerSheet,
    Headline,
    HeadlineMetric,
    ResultFinding,
    ScoringResult,
)
from tui.sources.run_snapshot import RunSnapshot

ROOM = Room(width=90, height=30, glyphs=UNICODE)
HEADLINE = Headline(
    metrics=tuple(
        HeadlineMetric(
            path=path, model=model, value=value, n=n, lo=0.4, hi=0.6, name=path.title()
        )
        for path, value in (("score", 0.5), ("recall", 0.61))
        for model, n in (("x/m-large", 812), ("x/m-small", 40))
    ),
    level=0.95,
    seq=0,
    ended=812,
    is_partial=False,
)
SEEN = ScoringResult(
    number=1,
    folder=Path("runs/r1/scores/1"),
    headline=HEADLINE,
    findings=(
        ResultFinding(severity="warn", where="m-large", message="many refused", n=6),
        ResultFinding(severity="info", where="papers", message="a note", n=1),
    ),
    has_report=True,
    explain="PMC 1",
)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> RunSnapshot:
    return snapshot(tmp_path_factory.mktemp("result") / "r1")


@pytest.fixture(scope="module")
def finished(live: RunSnapshot) -> RunSnapshot:
    over = with_signs(live, phase="run_finished", phase_us=live.now_us + 90_000_000)
    seen = replace(later(over, 3600), result=SEEN)
    return replace(seen, facts=replace(seen.facts, worked_s=90.0))


def test_a_finished_run_shows_metrics_findings_report_and_next_commands(
    finished: RunSnapshot,
) -> None:
    text = result(finished, ROOM).plain
    lines = text.split("\n")
    assert len(lines) == result_height(finished)
    assert "took      90 s · cost $0.7500" in text
    (head,) = [line for line in lines if line.startswith("metric")]
    assert head.split() == [*("metric", "[95", "%]", "m-large", "m-small", "n")]
    (score,) = [line for line in lines if line.startswith("Score")]
    assert score.count("0.500 [0.40, 0.60]") == 2
    assert score.endswith(" 40-812")
    assert "findings  ! warn  m-large: many refused" in text
    assert "and 1 more in the report" in text
    assert "report    runs/r1/scores/1/report.html" in text
    assert "siftlog explain r1 'PMC 1'" in text
    assert "siftlog retry r1 && siftlog resume r1" in text  # one task failed
    assert "siftlog watch" not in text
    assert "too few" not in text


def test_few_items_are_said_to_be_too_few(finished: RunSnapshot) -> None:
    metrics = tuple(replace(metric, n=8) for metric in HEADLINE.metrics)
    few = replace(SEEN, headline=replace(HEADLINE, metrics=metrics))
    text = result(replace(finished, result=few), ROOM).plain
    assert "too few for conclusions: the smallest n is 8" in text


def test_without_a_scoring_it_says_how_to_make_one(finished: RunSnapshot) -> None:
    text = result(replace(finished, result=None), ROOM).plain
    assert "The run is not scored yet: siftlog score r1" in text
    just_now = later(finished, -3000)
    working = result(replace(just_now, result=None, has_process=True), ROOM).plain
    assert "Being scored now; the report follows." in working
    assert "siftlog score" not in working


def test_a_job_without_gold_values_shows_its_answers(finished: RunSnapshot) -> None:
    sheet = AnswerSheet(
        columns=("id", "model", "dose"),
        rows=(("p1", "m", HOSTILE), *((f"p{n}", "m", "5") for n in range(2, 90))),
    )
    seen = replace(finished, result=replace(SEEN, answers=sheet))
    text = result(seen, ROOM).plain
    assert "id  " in text
    assert "p2" in text
    assert "more" in text
    assert "report    runs" in text
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize(
    ("signs", "command"),
    [
        ({"phase": "run_drained", "phase_by": "operator"}, "siftlog resume r1"),
        (
            {"phase": "run_drained", "phase_by": "budget"},
            "siftlog resume r1 --budget USD",
        ),
    ],
)
def test_an_unfinished_run_shows_what_is_missing_and_how_to_go_on(
    live: RunSnapshot, signs: dict[str, str], command: str
) -> None:
    seen = with_signs(live, **signs)
    text = unfinished(seen, ROOM).plain
    assert len(text.split("\n")) == unfinished_height(seen)
    assert "done      2 tasks (19.0 %)" in text
    assert "missing   8 tasks remaining: 6 planned, about 2 not planned yet" in text
    # the denominator of before the stop
    lefts = [[row.left for row in stage_rows(each)] for each in (live, seen)]
    assert lefts[0] == lefts[1]
    assert f"next      {command}" in text
    assert "siftlog score r1" in text


def test_an_unfinished_run_names_its_report_and_how_much_it_covers(
    live: RunSnapshot,
) -> None:
    partial = replace(SEEN, headline=replace(HEADLINE, ended=2, is_partial=True))
    drained = with_signs(live, phase="run_drained", phase_by="operator")
    text = unfinished(replace(drained, result=partial), ROOM).plain
    assert "report    runs/r1/scores/1/report.html" in text
    assert "          partial: 2 of about 10 tasks" in text


def test_each_state_that_has_ended_begins_with_one_of_them(live: RunSnapshot) -> None:
    assert not set(ENDINGS) & set(panels_of(live))
    for phase, name in (
        ("run_finished", "result"),
        ("run_cancelled", "result"),
        ("run_drained", "missing"),
    ):
        seen = with_signs(live, phase=phase, phase_by="operator")
        assert panels_of(seen)[0].name == name
    gone = replace(later(live, 60), is_alive=False)
    assert gone.state == "lost"
    assert panels_of(gone)[0].name == "missing"


@given(
    width=st.integers(20, 200),
    height=st.integers(3, 50),
    is_ascii=st.booleans(),
    name=st.sampled_from([HOSTILE, "m", "m" * 300]),
)
def test_it_stays_in_its_room_whatever_the_texts(
    finished: RunSnapshot, width: int, height: int, name: str, *, is_ascii: bool
) -> None:
    glyphs = ASCII if is_ascii else UNICODE
    metrics = tuple(
        replace(metric, model=name + metric.model, name=name)
        for metric in HEADLINE.metrics
    )
    findings = (ResultFinding(severity=name, where=name, message=name, n=1),) * 9
    seen = replace(
        with_status(finished, run_id=name),
        result=replace(
            SEEN,
            headline=replace(HEADLINE, metrics=metrics),
            findings=findings,
            folder=Path(name.replace("\0", "")),
        ),
    )
    room = Room(width=width, height=height, glyphs=glyphs, has_lead=True)
    for draw in (result, unfinished):
        lines = draw(seen, room).split("\n")
        assert len(lines) <= height
        assert all(line.cell_length <= width + LEAD for line in lines)
        assert all(line.plain.isprintable() for line in lines)


def test_two_models_are_both_shown_in_a_narrow_window(finished: RunSnapshot) -> None:
    metrics = tuple(
        replace(metric, name="A name that takes some room")
        for metric in HEADLINE.metrics
    )
    headline = replace(HEADLINE, metrics=metrics)
    text = result(
        replace(finished, result=replace(SEEN, headline=headline)),
        replace(ROOM, width=60, height=18),
    ).plain
    assert "m-large" in text
    assert "m-small" in text
    assert "more model" not in text
    few = "\n".join(
        line.plain
        for line in headline_table(headline, replace(ROOM, width=60, height=3))
    )
    assert "and 1 more model: see the report" in few


def test_models_stand_side_by_side_where_their_values_fit() -> None:
    room = replace(ROOM, width=68, height=18)
    lines = [line.plain for line in headline_table(HEADLINE, room)]
    assert " ".join(lines[0].split()) == "metric [95 %] m-large m-small n"
    assert not [line for line in lines if "more model" in line]


def test_the_next_commands_are_those_of_the_command_line(
    finished: RunSnapshot, live: RunSnapshot
) -> None:
    for seen, draw in (
        (finished, result),
        (with_signs(live, phase="run_drained"), unfinished),
    ):
        text = draw(seen, ROOM).plain
        explain = seen.result.explain if seen.result else ""
        for command in next_commands(seen.present, "r1", explain):
            assert command.line in text or "watch" in command.line
