"""Placed shards, hit while they work: nothing is lost, and little is paid twice.

The endpoint keeps a ledger of what it served. A run that is hit is compared with one
that one process carried out undisturbed.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.events import AttemptStarted
from store.views import events, open_reader
from tests.crash.placed_runs import Calm, Site, calm_run
from tests.plugging import plugged
from tests.processes import simulated

PROVE = "SIFTLOG_PROVE" in os.environ
SHARDS = 2
CALLS = 8  #: at a time, of all shards together
TTL_S = 2.0
ITEMS = 800 if PROVE else 40
KILLS = 12 if PROVE else 1
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
def site(calm: Calm, environment: dict[str, str], tmp_path: Path) -> Iterator[Site]:
    ledger = tmp_path / "ledger.jsonl"
    with simulated(
        *("--job=survey", "--seed=5", "--latency-ms=60", "--jitter-ms=20"),
        *("--ledger", ledger),
        cwd=tmp_path,
        env=environment,
    ) as url:
        made = Site(tmp_path, url, ledger, environment, calm, tmp_path / "runs")
        yield made
        made.close()


@pytest.mark.timeout(600)
def test_shards_killed_at_random_moments_repeat_no_more_than_was_in_flight(
    site: Site,
) -> None:
    chance = random.Random(7)
    driver = site.run(*WORDS, items=ITEMS, shards=SHARDS)
    killed: dict[int, int] = {}
    for _ in range(KILLS):
        index = chance.randrange(SHARDS)
        pid = site.pid(index, count=SHARDS, but=killed.get(index, 0))
        time.sleep(chance.uniform(0.0, 0.5))
        os.kill(pid, signal.SIGKILL)
        killed[index] = pid
    site.check(driver.wait(timeout=500), repeats=KILLS * CALLS // SHARDS)


@pytest.mark.timeout(600)
def test_a_shard_that_stood_still_for_longer_than_its_lease_makes_no_call_after_that(
    site: Site,
) -> None:
    driver = site.run(*WORDS, items=ITEMS, shards=SHARDS)
    zombie = site.pid(0, count=SHARDS)
    os.kill(zombie, signal.SIGSTOP)
    time.sleep(TTL_S + 0.5)
    went_on_us = time.time_ns() // 1000
    os.kill(zombie, signal.SIGCONT)
    site.check(driver.wait(timeout=500), repeats=CALLS // SHARDS)
    with open_reader(site.log(0, SHARDS)) as reader:
        starts = events(reader, limit=100_000, kinds=["attempt_started"])
    of_zombie = [start for start in starts if start.epoch == starts[0].epoch]
    assert all(isinstance(start.event, AttemptStarted) for start in of_zombie)
    assert max(start.ts_us for start in of_zombie) < went_on_us
    assert len(of_zombie) < len(starts)


# a task whose answer is to be asked for again is open: another log begins it anew
@pytest.mark.parametrize(
    ("shards", "repeats"), [(SHARDS, 0), (SHARDS + 1, CALLS)][0 if PROVE else 1 :]
)
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
