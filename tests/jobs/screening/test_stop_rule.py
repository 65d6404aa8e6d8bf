"""The stop rule replays from events, and stops too early in few screenings."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.screening.stop_rule import (
    RecallStopRule,
    RecordDrawn,
    RecordLabelled,
    RecordUnlabelled,
    StopEvent,
    StopStatus,
)
from tests.jobs.screening.stop_study import (
    ALPHA,
    RANKERS,
    TARGET,
    real_libraries,
    screening_events,
    simulated_library,
    study,
)

PROVE = "SIFTLOG_PROVE" in os.environ
SEEDS = 50
RECORDS = 40


def replayed(events: list[StopEvent], records: int = RECORDS) -> StopStatus:
    return RecallStopRule(records=records, target=TARGET, alpha=ALPHA).receive_all(
        events
    )


def label(record: int, *, is_relevant: bool) -> RecordLabelled:
    return RecordLabelled(record=str(record), is_relevant=is_relevant)


@st.composite
def screenings(draw: st.DrawFn) -> list[StopEvent]:
    """Reading orders with draws whose labels may come late or change."""
    order = draw(st.permutations(range(RECORDS)))[: draw(st.integers(0, RECORDS))]
    events: list[StopEvent] = []
    late: list[StopEvent] = []
    for read, record in enumerate(order):
        is_relevant = draw(st.booleans())
        if draw(st.booleans()):
            events.append(RecordDrawn(record=str(record), unread=RECORDS - read))
            if draw(st.booleans()):
                late.append(label(record, is_relevant=is_relevant))
                continue
        events.append(label(record, is_relevant=is_relevant))
        if draw(st.integers(0, 9)) == 0:
            events.append(label(record, is_relevant=not is_relevant))
    return events + late


@given(screenings())
def test_looking_changes_nothing(events: list[StopEvent]) -> None:
    rule = RecallStopRule(records=RECORDS, target=TARGET, alpha=ALPHA)
    for event in events:
        rule.receive(event)
        status = rule.status
        assert status.relevant <= status.most_relevant <= RECORDS
        assert 0 <= status.recall <= 1
        assert status.draws_counted <= status.draws
        assert status.should_stop == (status.advice == "stop")
    assert rule.status == replayed(events)


@given(screenings())
def test_only_the_last_label_of_a_record_counts(events: list[StopEvent]) -> None:
    last = {e.record: e.is_relevant for e in events if isinstance(e, RecordLabelled)}
    corrected: list[StopEvent] = []
    for event in events:
        if isinstance(event, RecordDrawn):
            corrected.append(event)
        elif event.record in last:
            corrected.append(
                RecordLabelled(record=event.record, is_relevant=last.pop(event.record))
            )
    one, other = replayed(events), replayed(corrected)
    assert (one.most_relevant, one.recall) == (other.most_relevant, other.recall)


def test_a_draw_without_a_label_holds_up_those_after_it() -> None:
    events: list[StopEvent] = [
        *(label(record, is_relevant=True) for record in range(20)),
        RecordDrawn(record="20", unread=20),
    ]
    for record in range(21, RECORDS):
        drawn = RecordDrawn(record=str(record), unread=RECORDS - record)
        events += [drawn, label(record, is_relevant=False)]
    waiting = replayed(events)
    assert waiting.draws == 20
    assert waiting.draws_counted == 0
    assert waiting.most_relevant == 21
    done = replayed([*events, label(20, is_relevant=False)])
    assert done.draws_counted == 20
    assert done.recall == 1


def test_a_withdrawn_label_counts_for_nothing() -> None:
    events: list[StopEvent] = [label(1, is_relevant=True), label(2, is_relevant=False)]
    status = replayed([*events, RecordUnlabelled(record="1")])
    assert (status.read, status.relevant) == (1, 0)
    again = [*events, RecordUnlabelled(record="1"), label(1, is_relevant=True)]
    assert replayed(again).relevant == replayed(events).relevant == 1


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([RecordDrawn(record="1", unread=39)], "drawn from 39 records, but 40 of 40"),
        (
            [label(1, is_relevant=True), RecordDrawn(record="1", unread=39)],
            "was read before",
        ),
        (
            [label(record, is_relevant=False) for record in range(41)],
            "one more than the library",
        ),
    ],
)
def test_events_that_cannot_be_are_refused(
    events: list[StopEvent], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        replayed(events)


def test_the_advice_is_to_draw_once_the_ranking_is_dry() -> None:
    rule = RecallStopRule(records=1000, target=TARGET, alpha=ALPHA)
    for record in range(50):
        assert rule.status.advice == "ranked"
        rule.receive(label(record, is_relevant=False))
    assert rule.status.advice == "draw"
    rule.receive(RecordDrawn(record="50", unread=950))
    rule.receive(label(50, is_relevant=True))
    assert rule.status.advice == "ranked"


def test_the_draws_that_are_announced_are_enough() -> None:
    library = simulated_library(1000, 0.2, 1)
    order = np.argsort(~library.relevant, kind="stable")
    events = list(
        screening_events(library, lambda unread: int(order[unread[order].argmax()]), 1)
    )
    dry = replayed(events[:250], 1000)
    assert dry.advice == "draw"
    assert dry.draws_needed == sum(isinstance(e, RecordDrawn) for e in events)
    stopped = replayed(events, 1000)
    assert stopped.should_stop
    assert stopped.draws_needed == 0


@pytest.mark.timeout(900)
def test_few_simulated_screenings_stop_below_the_target() -> None:
    sizes = ((1000, 0.05), (3000, 0.05), (10_000, 0.1)) if PROVE else ((400, 0.15),)
    for ranker in ("model", "random"):
        for records, prevalence in sizes:
            rows = study(
                [simulated_library(records, prevalence, 7)],
                ranker,
                SEEDS if PROVE else 6,
            )
            by_rule = {row.rule: row for row in rows}
            slack = 3 * (ALPHA * (1 - ALPHA) / len(rows[0].stops)) ** 0.5
            assert by_rule["guarantee"].failures <= ALPHA + slack
            assert by_rule["oracle"].read <= by_rule["guarantee"].read


@pytest.mark.realdata
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not PROVE, reason="needs SIFTLOG_PROVE: minutes")
@pytest.mark.parametrize("ranker", RANKERS)
def test_few_real_screenings_stop_below_the_target(realdata: Path, ranker: str) -> None:
    libraries = list(real_libraries(realdata))
    (name,) = (one for one in RANKERS if one == ranker)
    rows = {row.rule: row for row in study(libraries, name, SEEDS)}
    assert rows["guarantee"].failures <= ALPHA
    assert rows["5% in a row"].failures > ALPHA
