"""Several nodes of Ray on one machine: an actor, a node and its disk, the driver die.

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
SHARDS = 3
CALLS = 9
SHIP_S = 1.0
LATENCY_S = 0.06
STORE_BYTES = 100 * 2**20


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
        nodes = [made.add_node(num_cpus=2, **options) for _ in range(3)]
        yield made, {_raylet(node): node for node in nodes}
    finally:
        made.shutdown()


def _plugged(folder: Path) -> dict[str, str]:
    place = folder / "plugged"
    if place.exists():
        return {"PYTHONPATH": os.environ["PYTHONPATH"]}
    return plugged(place, survey="tests.crash.survey.job:job")


def _raylet(node: Any) -> int:
    pid: int = node.all_processes["raylet"][0].process.pid
    return pid


def _parent(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text("ascii")
    return int(stat.rpartition(")")[2].split()[1])


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
        made = Site(cwd, url, ledger, environment, calm, disk=cwd / "disk")
        yield made
        made.close()


@pytest.mark.timeout(600)
def test_an_actor_a_node_with_its_disk_and_the_driver_may_die_in_one_run(
    cluster: tuple[Any, dict[int, Any]], site: Site
) -> None:
    ray, nodes = cluster
    words = (
        *(f"--address={ray.address}", "--engine=ray", f"--concurrency={CALLS}"),
        *("--local-dir=disk", "--ship=place", f"--ship-every={SHIP_S}"),
        *("--lease-ttl-s=4", "--grace-s=2"),
    )
    driver = site.run(*words, items=ITEMS, shards=SHARDS)
    first = site.pid(0, count=SHARDS)
    os.kill(_parent(first), signal.SIGKILL)
    pids = [site.pid(0, but=first, count=SHARDS)]
    assert not Path(f"/proc/{first}").exists()

    pids += [site.pid(index, count=SHARDS) for index in range(1, SHARDS)]
    raylets = [_parent(_parent(pid)) for pid in pids]
    ray.remove_node(nodes[raylets[1]], allow_graceful=False)
    on_it = [index for index in range(SHARDS) if raylets[index] == raylets[1]]
    until(lambda: not any(Path(f"/proc/{pids[index]}").exists() for index in on_it))
    for index in on_it:
        for path in (site.disk / "r").glob(f"log.{index}-{SHARDS}.*"):
            path.unlink()
    site.pid(1, but=pids[1], count=SHARDS)

    driver.kill()
    driver.wait()
    shutil.rmtree(site.disk)
    again = site.resume(*words, shards=SHARDS)
    each = CALLS / SHARDS
    # dead with its log at hand; dead with what was not shipped; and all of them so
    unshipped = each * (1 + 2 * SHIP_S / LATENCY_S)
    bound = each + (len(on_it) + SHARDS) * unshipped
    site.check(again.wait(timeout=500), repeats=int(bound))
