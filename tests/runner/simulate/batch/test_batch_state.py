from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.simulate.batches import (
    TRANSITIONS,
    BatchPhase,
    BatchSchedule,
    BatchStep,
    ItemEnding,
    SimulatedBatch,
    SimulatedItem,
)

ENDED = {
    BatchPhase.COMPLETED,
    BatchPhase.EXPIRED,
    BatchPhase.CANCELLED,
    BatchPhase.FAILED,
}


def schedule() -> BatchSchedule:
    return BatchSchedule(
        created_us=100, admitted_us=110, worked_us=190, filed_us=200, winding_us=10
    )


def item(
    number: int, due_us: int, ending: ItemEnding = ItemEnding.SUCCEEDED
) -> SimulatedItem:
    return SimulatedItem(
        custom_id=f"q{number}", digest="", ending=ending, due_us=due_us
    )


def items_of(dues: list[tuple[int, ItemEnding]]) -> list[SimulatedItem]:
    return [
        item(n, 190 if ending is ItemEnding.EXPIRED else due_us, ending)
        for n, (due_us, ending) in enumerate(dues)
    ]


dues = st.lists(
    st.tuples(
        st.integers(110, 190),
        st.sampled_from([ItemEnding.SUCCEEDED, ItemEnding.ERRORED, ItemEnding.EXPIRED]),
    ),
    max_size=8,
)
moments = st.lists(st.integers(100, 260), max_size=12).map(sorted)


@pytest.mark.parametrize("phase", BatchPhase)
def test_a_phase_is_an_end_where_no_step_leads_out_of_it(phase: BatchPhase) -> None:
    assert phase.is_terminal is (phase in ENDED)


def test_every_phase_can_be_reached_and_only_work_can_be_cancelled() -> None:
    reached, seen = {BatchPhase.VALIDATING}, set[BatchPhase]()
    while reached != seen:
        seen = set(reached)
        reached |= {to for (phase, _), to in TRANSITIONS.items() if phase in seen}
    assert reached == set(BatchPhase)
    assert {phase for phase, step in TRANSITIONS if step is BatchStep.CANCEL} == {
        BatchPhase.VALIDATING,
        BatchPhase.IN_PROGRESS,
    }


@pytest.mark.parametrize(
    ("now_us", "phase", "ended"),
    [
        (100, BatchPhase.VALIDATING, 0),
        (110, BatchPhase.IN_PROGRESS, 0),
        (150, BatchPhase.IN_PROGRESS, 1),
        (190, BatchPhase.FINALIZING, 2),
        (200, BatchPhase.COMPLETED, 2),
        (999, BatchPhase.COMPLETED, 2),
    ],
)
def test_a_batch_gets_on_by_its_schedule(
    now_us: int, phase: BatchPhase, ended: int
) -> None:
    batch = SimulatedBatch(schedule(), [item(1, 180), item(2, 150, ItemEnding.ERRORED)])
    assert len(batch.advance(now_us)) == len(batch.ended) == ended
    assert batch.phase is phase


def test_a_batch_with_bad_lines_fails_and_works_on_nothing() -> None:
    batch = SimulatedBatch(schedule(), [], is_sound=False)
    batch.advance(999)
    assert batch.entered == {BatchPhase.VALIDATING: 100, BatchPhase.FAILED: 110}
    assert not batch.cancel(1000)


def test_what_is_not_done_when_the_window_closes_expires() -> None:
    batch = SimulatedBatch(
        schedule(), items_of([(120, ItemEnding.SUCCEEDED), (0, ItemEnding.EXPIRED)])
    )
    batch.advance(999)
    assert (batch.phase, batch.entered[BatchPhase.EXPIRED]) == (BatchPhase.EXPIRED, 190)
    assert (batch.count(ItemEnding.SUCCEEDED), batch.count(ItemEnding.EXPIRED)) == (
        1,
        1,
    )


def test_a_cancelled_batch_keeps_what_was_begun_and_gives_up_the_rest() -> None:
    batch = SimulatedBatch(schedule(), [item(1, 120), item(2, 138), item(3, 180)])
    batch.advance(130)
    assert batch.cancel(130)
    assert batch.phase is BatchPhase.CANCELLING
    assert batch.cancel(135)
    batch.advance(139)
    assert [each.custom_id for each in batch.ended] == ["q1", "q2"]
    (last,) = batch.advance(140)
    assert (last.custom_id, last.ending) == ("q3", ItemEnding.CANCELED)
    assert batch.entered[BatchPhase.CANCELLED] == 140
    assert not batch.cancel(141)


@given(dues, moments, st.booleans(), st.none() | st.integers(0, 11))
def test_how_often_a_batch_is_looked_at_changes_nothing(
    due: list[tuple[int, ItemEnding]],
    looks: list[int],
    is_sound: bool,
    cancelled: int | None,
) -> None:
    found = items_of(due)
    watched = SimulatedBatch(schedule(), found, is_sound=is_sound)
    left = SimulatedBatch(schedule(), found, is_sound=is_sound)
    told = []
    for number, look_us in enumerate(looks):
        told += watched.advance(look_us)
        if number == cancelled:
            left.advance(look_us)
            assert watched.cancel(look_us) is left.cancel(look_us)
    told += watched.advance(1000)
    left.advance(1000)
    assert told == watched.ended == left.ended
    assert watched.entered == left.entered
    assert watched.phase in ENDED
    if watched.phase is not BatchPhase.FAILED:
        ids = [each.custom_id for each in watched.ended]
        assert sorted(ids) == sorted(each.custom_id for each in found)


@given(dues, moments, st.none() | st.integers(0, 11))
def test_phases_follow_one_another_by_the_table_and_in_time(
    due: list[tuple[int, ItemEnding]], looks: list[int], cancelled: int | None
) -> None:
    batch = SimulatedBatch(schedule(), items_of(due))
    for number, look_us in enumerate(looks):
        batch.advance(look_us)
        if number == cancelled:
            batch.cancel(look_us)
    moves = {(phase, to) for (phase, _), to in TRANSITIONS.items()}
    assert all(move in moves for move in pairwise(batch.entered))
    assert list(batch.entered.values()) == sorted(batch.entered.values())
