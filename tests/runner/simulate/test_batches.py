"""tests.runner.simulate.test_batches

A batch that the simulated endpoints show late is there, and worked on, meanwhile.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.batch.batch import BatchEndpoint, BatchQuery
from runner.batch.client import open_endpoint
from runner.clients.wire_shared import Shape, Structure
from runner.errors import BadRequest, NotServed, UsageError
from runner.messages import ChatRequest, Message, TextPart
from runner.simulate.batches import (
    TRANSITIONS,
    BatchPhase,
    BatchSchedule,
    BatchStep,
    ItemEnding,
    SimulatedBatch,
    SimulatedItem,
)
from runner.simulate.billing import BatchAct
from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from tests.ledgers import read_batch_ledger
from tests.store.memory_log import FakeClock
from tests.wire_forms import batches_at

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


ASKED = ChatRequest(
    messages=(Message(role="user", parts=(TextPart(text="Say 'hello'."),)),),
    max_tokens=9,
)
KEY = "siftlog-x-y"


async def _create(endpoint: BatchEndpoint) -> str:
    items = [(f"{KEY}-1-a", endpoint.encode(ASKED, Shape(structure=Structure.TEXT)))]
    return await endpoint.create(KEY, items, await endpoint.upload(KEY, items))


@pytest.mark.asyncio
@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_a_new_batch_is_neither_listed_nor_known_by_its_id_for_a_while(
    form: str, tmp_path: Path
) -> None:
    clock, ledger = FakeClock(), tmp_path / "ledger.jsonl"
    options = SimulateOptions(batch_lag_seconds=30.0, ledger=ledger)
    async with running(options, clock) as url:
        endpoint = open_endpoint(f"{form}/m", batches_at(form, url))
        batch_id = await _create(endpoint)
        sought = BatchQuery(key=KEY, requests=1, prepared_us=clock.now_us())
        for _ in range(2):
            assert (await endpoint.find(sought)).id is None
            for ask in (endpoint.poll, endpoint.cancel):
                with pytest.raises((BadRequest, NotServed)) as unknown:
                    await ask(batch_id)
                assert unknown.value.status == 404
            clock.advance(29.9)
        clock.advance(0.2)
        assert (await endpoint.find(sought)).id == batch_id
        assert (await endpoint.poll(batch_id)).outcome == "completed"
        await endpoint.close()
    billed = [line for line in read_batch_ledger(ledger) if line.act is BatchAct.BILLED]
    assert len(billed) == 1


def test_a_lag_is_a_time() -> None:
    with pytest.raises(UsageError, match="--batch-lag-seconds are times"):
        SimulateOptions(batch_lag_seconds=-1.0)
