"""A log that is lost with its disk: what it had in batches is not paid for again.

What a batch keeps in memory while it is waited for, and what it goes by. A process that
asks by batches may be killed at any step: nothing is billed twice. What is promised of
batches before anything is sent: half the price, and a day.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from weakref import ReferenceType, ref

import pytest

from runner import errors as e
from runner.batch.batch import (
    Batch,
    BatchedAttempt,
    BatchEndpoint,
    BatchStage,
    BatchStatus,
    OrphanItem,
    item_id,
    key_of,
    request_of,
)
from runner.batch.client import open_endpoint
from runner.clients.client import CallLeft
from runner.clients.wire_shared import Shape
from runner.engine import driver
from runner.errors import Expired, UsageError
from runner.estimate.estimate import BATCH_S, preview
from runner.job import Task
from runner.messages import ChatRequest, Message, TextPart
from runner.money.prices import FREE, Price, price_of, scaled
from runner.options import RunOptions, options_from
from runner.simulate.options import SimulateOptions
from runner.simulate.server import running
from runner.workload import load_workload
from store.events import AttemptAnswered, BatchCreated, BatchItem
from tests.runner.batch.batch_provider import Chances, FakeBatches, Provider
from tests.runner.batch.batch_run import TASKS, BatchRun, Fuse
from tests.runner.toy_jobs import ToyJob, ToySettings
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


class _Seen(ChatRequest):
    """A request that can be watched."""


class _Mark:
    """What can be watched of a body, for bytes cannot."""


class _Body(bytes):
    """A body that something of it tells of."""

    mark: _Mark


def test_what_was_sent_is_not_held_while_it_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, encode, look = ToyJob.request, FakeBatches.encode, FakeBatches.poll
    texts: list[ReferenceType[_Seen]] = []
    bodies: list[ReferenceType[_Mark]] = []
    held: list[tuple[int, int]] = []

    def request(job: ToyJob, dataset: ToySettings, task: Task) -> ChatRequest:
        plain = ask(job, dataset, task)
        made = _Seen(messages=plain.messages, max_tokens=plain.max_tokens)
        texts.append(ref(made))
        return made

    def encoded(endpoint: FakeBatches, request: ChatRequest, shape: Shape) -> bytes:
        body = _Body(encode(endpoint, request, shape))
        body.mark = _Mark()
        bodies.append(ref(body.mark))
        return body

    async def count(endpoint: FakeBatches, batch_id: str) -> BatchStatus:
        alive = [sum(each() is not None for each in many) for many in (texts, bodies)]
        held.append((alive[0], alive[1]))
        return await look(endpoint, batch_id)

    monkeypatch.setattr(ToyJob, "request", request)
    monkeypatch.setattr(FakeBatches, "encode", encoded)
    monkeypatch.setattr(FakeBatches, "poll", count)
    ended = BatchRun(tmp_path, Provider(random.Random(3)), monkeypatch).process()
    assert ended is not None
    assert ended.outcome == "finished"
    assert texts
    assert bodies
    assert min(held) == (0, 0)


@pytest.mark.asyncio
async def test_a_batch_of_an_earlier_process_goes_by_the_ids_that_the_log_has() -> None:
    items = [BatchItem(3, 1, "an-id"), BatchItem(5, 2, "another"), BatchItem(4, 1, "x")]
    batch = Batch(BatchStage.OPEN)
    told = batch.take_up(items, [(3, 1), (4, 1), (9, 1)])
    assert (batch.ids, batch.requests) == (["an-id", "another", "x"], 3)
    assert batch.unresolved == [(0, "an-id"), (2, "x")]
    outcome = Expired("no")
    batch.resolve("another", outcome)  # nobody waits for it
    batch.resolve("x", outcome)
    batch.resolve("x", CallLeft())  # some providers say a thing twice
    batch.resolve_rest(CallLeft())
    assert told[4, 1].result() is outcome
    assert isinstance(told[3, 1].result(), CallLeft)


KILLS_ROUNDS = 200 if "SIFTLOG_PROVE" in os.environ else 4


def _check(run: BatchRun) -> None:
    """Each item billed once by the provider, recorded once in the log."""
    answered = Counter(
        event.task
        for event in run.events("attempt_answered")
        if isinstance(event, AttemptAnswered)
    )
    assert set(answered.values()) == {1}, "an answer was recorded twice"
    assert set(run.provider.billed.values()) == {1}, "an item was billed twice"
    assert len(answered) == len(run.provider.billed) == TASKS
    seen = run.status()
    assert (seen.tasks.completed, seen.attempts.unknown) == (TASKS, 0)
    assert (seen.possible_usd, seen.in_flight_usd) == (0.0, 0.0)
    assert seen.cost_usd == pytest.approx(TASKS * (10 * 0.5 + 5 * 1.0) / 1e6)
    assert run.open().count == 0


def test_an_undisturbed_run_asks_everything_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = BatchRun(tmp_path, Provider(random.Random(1)), monkeypatch)
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    _check(run)
    assert run.provider.bodies == TASKS


@pytest.mark.parametrize("is_labelled", [True, False], ids=["keyed", "keyless"])
def test_whatever_step_a_process_is_killed_at_each_item_is_billed_and_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_labelled: bool
) -> None:
    chance = random.Random(7)
    chances = Chances(
        lost=0.2, refused=0.1, broken=0.3, short=0.3, expires=0.1, fails=0.05
    )
    kills = 0
    for number in range(1000):
        provider = Provider(random.Random(number), chances, is_labelled=is_labelled)
        provider.lag_s = chance.choice([0.0, 100.0])
        run = BatchRun(tmp_path / str(number), provider, monkeypatch)
        ended = None
        for _ in range(60):
            # a run that never began cannot be resumed: its first event takes two
            steps = chance.randint(3, 90) if kills < KILLS_ROUNDS else None
            ended = run.process(Fuse(steps))
            if ended is not None:
                break
            kills += 1
        assert ended is not None
        assert ended.outcome == "finished"
        _check(run)
        if kills >= KILLS_ROUNDS:
            return
    pytest.fail("too few processes were killed")


@pytest.mark.parametrize("steps", [20, 30, 40])
def test_the_calls_of_an_earlier_process_are_waited_for_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr(driver, "PAGE", 2)
    run = BatchRun(tmp_path, Provider(random.Random(steps)), monkeypatch)
    run.process(Fuse(steps))
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    _check(run)


STAGES = 3


def _options(**options: object) -> RunOptions:
    return options_from(
        {"model": "m", "base_url": "http://127.0.0.1:9", "price": "1,2", **options}
    )


def test_batches_cost_half_of_whatever_single_calls_cost() -> None:
    single = price_of("m", _options())
    assert single is not None
    assert price_of("m", _options(batch=True)) == scaled(single, 0.5)
    dearer = _options(batch=True, batch_price_factor=0.75)
    assert price_of("m", dearer) == scaled(single, 0.75)


def test_only_what_is_asked_by_batches_is_cheaper() -> None:
    options = _options(batch=True, embed_model="e", judge_model="j")
    assert price_of("j", options) == price_of("m", options)
    assert price_of("e", options) == price_of("e", _options(embed_model="e"))
    assert price_of("baseline/lexical", options) is FREE


def test_longer_prompts_are_cheaper_too() -> None:
    price = Price(
        input_usd=2.0, output_usd=4.0, cached_input_usd=1.0, cache_write_usd=3.0
    )
    both = Price(
        input_usd=1.0,
        output_usd=1.0,
        cached_input_usd=1.0,
        cache_write_usd=1.0,
        longer=((200_000, price),),
    )
    ((tokens, step),) = scaled(both, 0.5).longer
    assert tokens == 200_000
    assert step == Price(
        input_usd=1.0, output_usd=2.0, cached_input_usd=0.5, cache_write_usd=1.5
    )


def test_an_estimate_has_half_the_price_and_a_day_for_each_round(
    tmp_path: Path,
) -> None:
    work = load_workload(ToyJob(), ToySettings(items=40))
    single = preview(work, _options(), tmp_path)
    batched = preview(work, _options(batch=True), tmp_path)
    assert single.total.usd is not None
    assert batched.total.usd is not None
    assert batched.total.usd.expected == pytest.approx(single.total.usd.expected / 2)
    assert (batched.whole_s.low, batched.whole_s.high) == (0.0, STAGES * BATCH_S)
    few = _options(batch=True, batch_requests=2, batch_open=10)
    rounds = preview(work, few, tmp_path).whole_s.expected / BATCH_S
    assert rounds == 2 + 4 + 2, "20 at a time of 40, 80 and 40"


def test_no_more_may_wait_than_can_be_held() -> None:
    with pytest.raises(UsageError, match=r"is more than 100,000 requests"):
        _options(batch=True, batch_requests=50_000, batch_open=3)
    assert _options(batch=True).limits_of("m").concurrency == 10_000
