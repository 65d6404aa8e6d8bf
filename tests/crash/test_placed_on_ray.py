"""Several nodes of Ray on one machine: an actor, a node, a disk and the driver die.

About a minute long: it runs in `make prove`, where Ray is installed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store.clock import SystemClock
from store.database import open_reader
from store.read.tasks import events
from tests.crash.placed_runs import Site, calm_run, until
from tests.plugging import plugged
from tests.processes import simulated

pytestmark = [
    pytest.mark.skipif(
        "SIFTLOG_PROVE" not in os.environ, reason="long: it runs in make prove"
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed: pip install 'siftlog[ray]'",
    ),
]

ITEMS = 1260  #: about 6,000 tasks
NODES = 3
SHARDS = 3
CALLS = 9
SHIP_S = 1.0
LATENCY_S = 0.06
STORE_BYTES = 100 * 2**20
CLOCK = SystemClock()


@pytest.fixture
def cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Any, dict[int, Any]]]:
    """A head that takes no work, and three nodes by the number of their raylet."""
    for name, value in _plugged(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster_utils = importlib.import_module("ray.cluster_utils")
    options = {"object_store_memory": STORE_BYTES}
    made = cluster_utils.Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, **options},
    )
    try:
        nodes = [
            made.add_node(num_cpus=SHARDS, env_vars={"A_DISK": str(disk)}, **options)
            for disk in _disks(tmp_path)
        ]
        yield made, {_raylet(node): node for node in nodes}
    finally:
        made.shutdown()


def _disks(folder: Path) -> tuple[Path, ...]:
    """A disk for each node."""
    return tuple(folder / f"disk-{number}" for number in range(NODES))


def _plugged(folder: Path) -> dict[str, str]:
    place = folder / "plugged"
    if place.exists():
        return {"PYTHONPATH": os.environ["PYTHONPATH"]}
    return plugged(place, survey="tests.crash.survey.job:job")


def _raylet(node: Any) -> int:
    pid: int = node.all_processes["raylet"][0].process.pid
    return pid


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _lives(pid: int) -> bool:
    """Whether it can do anything: what nobody has waited for yet cannot."""
    try:
        return _stat(pid)[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _stat(pid: int) -> list[str]:
    """What the system tells of a process: its state, its parent, and more."""
    stat = Path(f"/proc/{pid}/stat").read_text("ascii")
    return stat.rpartition(")")[2].split()


@pytest.fixture
def site(cluster: tuple[Any, dict[int, Any]], tmp_path: Path) -> Iterator[Site]:
    del cluster  # its environment finds the job
    environment = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    calm = calm_run(tmp_path / "calm", environment, ITEMS)
    cwd = tmp_path / "wild"
    cwd.mkdir()
    ledger = cwd / "ledger.jsonl"
    with simulated(
        *("--job=survey", "--seed=5", f"--latency-ms={LATENCY_S * 1000}"),
        *("--ledger", ledger),
        cwd=cwd,
        env=environment,
    ) as url:
        made = Site(cwd, url, ledger, environment, calm, _disks(tmp_path))
        yield made
        made.close()


@pytest.mark.timeout(600)
def test_an_actor_a_node_with_its_disk_and_the_driver_may_die_and_a_node_stand_still(
    cluster: tuple[Any, dict[int, Any]], site: Site
) -> None:
    ray, nodes = cluster
    words = (
        *(f"--address={ray.address}", "--engine=ray", f"--concurrency={CALLS}"),
        *("--local-dir=$A_DISK", "--ship=place", f"--ship-every={SHIP_S}"),
        *("--lease-ttl-s=4", "--grace-s=2"),
    )
    driver = site.run(*words, items=ITEMS, shards=SHARDS)
    pids = [site.pid(index, count=SHARDS) for index in range(SHARDS)]

    # an actor: its shard goes on where its log is
    first, disk = pids[0], site.log(0, SHARDS)
    os.kill(_parent(first), signal.SIGKILL)
    pids[0] = site.pid(0, but=first, count=SHARDS)
    assert not _lives(first)
    assert site.log(0, SHARDS) == disk

    # a node: its shards begin anew with what they had shipped
    raylets = [_parent(_parent(pid)) for pid in pids]
    lost = [index for index in range(SHARDS) if raylets[index] == raylets[1]]
    disk = site.log(1, SHARDS).parent
    ray.remove_node(nodes[raylets[1]], allow_graceful=False)
    until(lambda: not any(_lives(pids[index]) for index in lost))
    shutil.rmtree(disk)
    for index in lost:
        pids[index] = site.pid(index, but=pids[index], count=SHARDS)

    # a node that stands still, and goes on when its shard has long been placed anew
    zombie, disk = pids[2], site.log(2, SHARDS)
    still = (zombie, _parent(zombie), _parent(_parent(zombie)))
    try:
        for pid in still:
            os.kill(pid, signal.SIGSTOP)
        site.pid(2, but=zombie, count=SHARDS)
        went_on_us = CLOCK.now_us()
    finally:
        for pid in still:
            os.kill(pid, signal.SIGCONT)
    until(lambda: not _lives(zombie))
    assert _last_start_us(disk) < went_on_us

    driver.kill()
    driver.wait()
    again = site.resume(*words, shards=SHARDS)
    each = CALLS / SHARDS
    # dead with its log at hand, and dead with what was not shipped, which any other is
    # that does not go on where it was
    unshipped = each * (1 + 2 * SHIP_S / LATENCY_S)
    bound = each + (len(lost) + 1 + SHARDS) * unshipped
    site.check(again.wait(timeout=500), repeats=int(bound))


def _last_start_us(log: Path) -> int:
    with open_reader(log) as reader:
        starts = events(reader, limit=100_000, kinds=["attempt_started"])
    return starts[-1].ts_us
