"""Placed shards, hit while they work: nothing is lost, and little is paid twice.

The endpoint keeps a ledger of what it served. A run that is hit is compared with one
that one process carried out undisturbed.
"""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.engine.attempts import NOT_SENT
from store.clock import SystemClock
from store.database import open_reader
from store.events import AttemptFailed, AttemptStarted, RecordedEvent
from store.read.tasks import events
from tests.crash.placed_runs import Calm, Site, calm_run
from tests.gates import Gate, gated
from tests.plugging import plugged
from tests.processes import simulated

PROVE = "SIFTLOG_PROVE" in os.environ
PROVEN = pytest.mark.skipif(not PROVE, reason="long: it runs in make prove")
CLOCK = SystemClock()
SHARDS = 2
CALLS = 8  #: at a time, of all shards together
TTL_S = 2.0
ITEMS = 500 if PROVE else 30
KILLS = 12
WORDS = (
    *("--engine=processes", f"--concurrency={CALLS}", "--grace-s=3"),
    f"--lease-ttl-s={TTL_S}",
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("plugged")
    return plugged(folder, survey="tests.crash.survey.job:job")


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Calm:
    return calm_run(tmp_path_factory.mktemp("calm") / "run", environment, ITEMS)


@pytest.fixture
def gate(environment: dict[str, str], tmp_path: Path) -> Iterator[Gate]:
    """An open gate before the endpoint of the run."""
    with (
        simulated(
            *("--job=survey", "--seed=5", "--latency-ms=60", "--jitter-ms=20"),
            *("--ledger", tmp_path / "ledger.jsonl"),
            cwd=tmp_path,
            env=environment,
        ) as url,
        gated(url, passes=math.inf) as made,
    ):
        yield made


@pytest.fixture
def site(
    calm: Calm, environment: dict[str, str], tmp_path: Path, gate: Gate
) -> Iterator[Site]:
    ledger, disks = tmp_path / "ledger.jsonl", (tmp_path / "runs",)
    made = Site(tmp_path, gate.url, ledger, environment, calm, disks)
    yield made
    made.close()


@pytest.mark.timeout(600)
def test_a_shard_that_stood_still_makes_no_call_once_its_lease_is_over_nor_is_one_lost(
    site: Site, gate: Gate
) -> None:
    gate.let(CALLS)
    driver = site.run(*WORDS, items=ITEMS, shards=SHARDS)
    zombie, other = (site.pid(index, count=SHARDS) for index in range(SHARDS))
    os.kill(zombie, signal.SIGSTOP)
    stood_still = CLOCK.monotonic()
    os.kill(other, signal.SIGKILL)
    site.pid(1, count=SHARDS, but=other)
    gate.let(CALLS)  # those of the zombie are the first
    time.sleep(max(0.0, stood_still + TTL_S + 0.5 - CLOCK.monotonic()))
    went_on_us = CLOCK.now_us()
    os.kill(zombie, signal.SIGCONT)
    gate.open()
    site.check(driver.wait(timeout=500), repeats=2 * CALLS // SHARDS)
    with open_reader(site.log(0, SHARDS)) as reader:
        starts = events(reader, limit=100_000, kinds=["attempt_started"])
        failed = events(reader, limit=100_000, kinds=["attempt_failed"])
    # a start that was being written when it was stopped is written as it goes on, and
    # then not sent
    unsent = [_attempt(each) for each in failed if each.event.message == NOT_SENT]
    of_zombie = [
        start
        for start in starts
        if start.epoch == starts[0].epoch and _attempt(start) not in unsent
    ]
    assert max(start.ts_us for start in of_zombie) < went_on_us
    assert len(of_zombie) < len(starts)


def _attempt(recorded: RecordedEvent) -> tuple[int, int]:
    event = recorded.event
    assert isinstance(event, AttemptStarted | AttemptFailed)
    return event.task, event.attempt


@PROVEN
@pytest.mark.timeout(600)
def test_shards_killed_at_random_moments_repeat_no_more_than_was_in_flight(
    site: Site,
) -> None:
    chance = random.Random(7)
    driver = site.run(*WORDS, items=ITEMS, shards=SHARDS)
    killed: dict[int, int] = {}
    for number in range(KILLS):
        index = number % SHARDS
        pid = site.pid(index, count=SHARDS, but=killed.get(index, 0))
        time.sleep(chance.uniform(0.0, 0.5))
        os.kill(pid, signal.SIGKILL)
        killed[index] = pid
    site.check(driver.wait(timeout=500), repeats=KILLS * CALLS // SHARDS)


# a task whose answer is to be asked for again is open: another log begins it anew
@PROVEN
@pytest.mark.parametrize(("shards", "repeats"), [(SHARDS, 0), (SHARDS + 1, CALLS)])
@pytest.mark.timeout(600)
def test_shards_whose_driver_is_killed_finish_their_calls_and_another_goes_on(
    site: Site, shards: int, repeats: int
) -> None:
    driver = site.run(*WORDS, items=ITEMS, shards=SHARDS)
    for index in range(SHARDS):
        site.pid(index, count=SHARDS)
    driver.kill()
    driver.wait()
    again = site.resume(*WORDS, shards=shards)
    site.check(again.wait(timeout=500), repeats=repeats)
