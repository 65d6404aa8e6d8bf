"""A log that is lost with its disk: what it had in batches is not paid for again."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from runner import errors as e
from runner.batch.batch import (
    BatchedAttempt,
    BatchEndpoint,
    OrphanItem,
    item_id,
    key_of,
    request_of,
)
from runner.batch.client import open_endpoint
from runner.clients.wire_shared import Shape
from runner.messages import ChatRequest, Message, TextPart
from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from store.events import BatchCreated
from tests.runner.batch.batch_provider import Chances, FakeBatches, Provider
from tests.runner.batch.batch_run import TASKS, BatchRun, Fuse
from tests.store.memory_log import FakeClock
from tests.wire_forms import batches_at

ROUNDS = 60 if "SIFTLOG_PROVE" in os.environ else 1
KINDS = pytest.mark.parametrize("is_labelled", [True, False], ids=["keyed", "keyless"])


def _lose(run: BatchRun, steps: int) -> None:
    """A process that is killed, and whose disk is gone."""
    run.process(Fuse(steps))
    shutil.rmtree(run.folder.path, ignore_errors=True)


@KINDS
def test_a_new_log_takes_over_what_the_lost_one_had_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_labelled: bool
) -> None:
    chance = random.Random(5)
    adopted = 0
    for number in range(ROUNDS):
        provider = Provider(random.Random(number), is_labelled=is_labelled)
        provider.chances = Chances(lost=0.2, broken=0.2, expires=0.1, fails=0.1)
        run = BatchRun(tmp_path / str(number), provider, monkeypatch, batch_adopt=True)
        for _ in range(2):
            _lose(run, chance.randint(20, 90))
        before = provider.bodies
        # killed once more, and resumed: what was taken over stands in the log
        run.process(Fuse(chance.randint(20, 60)))
        ended = run.process()
        assert ended is not None
        assert ended.outcome == "finished"
        assert set(provider.billed.values()) == {1}
        assert len(provider.billed) == TASKS
        seen = run.status()
        assert (seen.tasks.completed, seen.attempts.unknown) == (TASKS, 0)
        assert (seen.possible_usd, seen.in_flight_usd) == (0.0, 0.0)
        assert run.open().count == 0
        adopted += before
    assert adopted


def _paid(run: BatchRun) -> set[int]:
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    return set(run.provider.billed.values())


def test_nothing_is_taken_over_unasked_or_from_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider(random.Random(3))
    assert _paid(BatchRun(tmp_path, provider, monkeypatch)) == {1}
    other = BatchRun(tmp_path, provider, monkeypatch, batch_adopt=True)
    other.folder = type(other.folder)(tmp_path / "r2")
    assert _paid(other) == {2}
    shutil.rmtree(tmp_path / "r1")
    assert _paid(BatchRun(tmp_path, provider, monkeypatch)) == {3}


def test_an_item_is_claimed_once_and_what_is_asked_otherwise_claims_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider(random.Random(3))
    assert _paid(BatchRun(tmp_path, provider, monkeypatch)) == {1}
    shutil.rmtree(tmp_path / "r1")
    run = BatchRun(tmp_path, provider, monkeypatch, batch_adopt=True, replicates=2)
    assert _paid(run) == {2}, "one of the two replicates is asked anew"
    found = [c for c in run.events("batch_created") if isinstance(c, BatchCreated)]
    assert any(event.found for event in found)
    assert any(f"has {TASKS} requests of this run" in said for said in run.told)


def test_a_list_that_fails_is_read_again_and_a_refused_key_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, orphans = Provider(random.Random(3)), FakeBatches.orphans
    errors: list[e.AttemptError] = [e.AuthFailed("no", status=401)] * 9

    async def failing(
        endpoint: FakeBatches, tag: str, *, known: set[str], before_us: int
    ) -> list[OrphanItem] | None:
        if errors:
            raise errors.pop()
        return await orphans(endpoint, tag, known=known, before_us=before_us)

    monkeypatch.setattr(FakeBatches, "orphans", failing)
    run = BatchRun(tmp_path, provider, monkeypatch, batch_adopt=True)
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "endpoint"
    assert not provider.there
    errors[:] = [e.ServerError("away", status=502)] * 3
    assert _paid(run) == {1}
    assert sum("that its log lacks: away" in said for said in run.told) == 1


def test_what_a_killed_process_did_not_come_to_take_over_the_next_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider(random.Random(3))
    assert _paid(BatchRun(tmp_path, provider, monkeypatch, batch_requests=50)) == {1}
    shutil.rmtree(tmp_path / "r1")
    # two of the three items of the first batch are taken over, and recorded
    run = BatchRun(tmp_path, provider, monkeypatch, batch_adopt=True)
    steps = 3
    while not run.folder.log.exists() or not run.events("batch_created"):
        run.process(Fuse(steps))
        steps += 1
    assert _paid(run) == {1}
    assert provider.bodies == TASKS


# -- over a wire ---------------------------------------------------------------

TAG, HASH = "siftlog-0a1b2c3d", "feed" * 16
REQUEST = ChatRequest(
    messages=(Message(role="user", parts=(TextPart(text="Say 'hello'."),)),),
    max_tokens=9,
)


@asynccontextmanager
async def _served(
    form: str, clock: FakeClock, **options: float
) -> AsyncIterator[BatchEndpoint]:
    async with running(SimulateOptions(**options), clock) as url:
        endpoint = open_endpoint(f"{form}/m", batches_at(form, url))
        yield endpoint
        await endpoint.close()


async def _create(endpoint: BatchEndpoint, key: str, *tasks: int) -> str:
    body = endpoint.encode(REQUEST, Shape())
    items = [(item_id(key, BatchedAttempt(task, 1, HASH)), body) for task in tasks]
    return await endpoint.create(key, items, await endpoint.upload(key, items))


@pytest.mark.asyncio
@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_the_batches_of_a_run_are_told_by_its_tag(form: str) -> None:
    clock = FakeClock()
    async with _served(form, clock) as endpoint:
        ours = await _create(endpoint, f"{TAG}-1", 7, 8)
        known = await _create(endpoint, f"{TAG}-2", 9)
        await _create(endpoint, f"{TAG}-3", 10)
        await _create(endpoint, f"{TAG}4-1", 7)
        found = await endpoint.orphans(
            TAG, known={known, f"{TAG}-3"}, before_us=clock.now_us()
        )
    assert found is not None
    assert {orphan.batch for orphan in found} == {ours}
    assert {orphan.item.split("-")[-2] for orphan in found} == {"7", "8"}
    assert {key_of(orphan.item) for orphan in found} == {f"{TAG}-1"}
    assert {request_of(orphan.item) for orphan in found} == {HASH[:16]}


@pytest.mark.asyncio
async def test_a_batch_at_work_is_taken_over_where_its_file_says_what_is_in_it() -> (
    None
):
    clock = FakeClock()
    async with _served("openai", clock, batch_seconds=3600) as endpoint:
        await _create(endpoint, f"{TAG}-1", 7, 8)
        found = await endpoint.orphans(TAG, known=set(), before_us=clock.now_us())
    assert found is not None
    assert len(found) == 2


@pytest.mark.asyncio
async def test_a_batch_at_work_is_waited_for_where_nothing_says_whose_it_is() -> None:
    clock = FakeClock()
    async with _served("anthropic", clock, batch_seconds=3600) as endpoint:
        before_us = clock.now_us()
        batch_id = await _create(endpoint, f"{TAG}-1", 7, 8)
        assert await endpoint.orphans(TAG, known=set(), before_us=before_us) is None
        known = {batch_id}
        assert await endpoint.orphans(TAG, known=known, before_us=before_us) == []
        clock.advance(3600)
        await _create(endpoint, "siftlog-another-1", 7)
        found = await endpoint.orphans(TAG, known=set(), before_us=before_us)
        assert found is not None, "one that is begun later cannot be of a lost log"
        assert {orphan.batch for orphan in found} == {batch_id}


@pytest.mark.asyncio
@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_only_what_was_answered_is_taken_of_a_batch_that_has_ended(
    form: str,
) -> None:
    clock = FakeClock()
    async with _served(
        form, clock, batch_error_rate=0.3, batch_expire_rate=0.3
    ) as endpoint:
        batch_id = await _create(endpoint, f"{TAG}-1", *range(30))
        standing = await endpoint.poll(batch_id)
        found = await endpoint.orphans(TAG, known=set(), before_us=clock.now_us())
    assert found is not None
    assert 0 < len(found) == standing.done < 30
