"""The engine under chaos: every promise holds in every simulated run."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from store.events import RecordedEvent
from tests.replacing import replace
from tests.simulation.__main__ import replay
from tests.simulation.provider import CLASSES, WORKED
from tests.simulation.report import Report
from tests.simulation.says import REFUSALS
from tests.simulation.scenario import ACTS, CRASH, Act, Scenario, scenario_of
from tests.simulation.world import World

PROVE = "SIFTLOG_PROVE" in os.environ
ENDS = {"budget", "cancelled", "crash", "drained", "endpoint", "finished"}
PARTS, SEEDS = (10, 1_000) if PROVE else (3, 100)
STEPS_APART = 1 if PROVE else 5
REAL_SEEDS = 100 if PROVE else 8


@pytest.mark.timeout(3600 if PROVE else 120)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_promise_holds_whatever_happens(part: int) -> None:
    total = Report()
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        total += replay(seed)
    assert total.runs == SEEDS
    # chaos that befalls nobody proves nothing
    assert set(total.fates) >= CLASSES.keys() | set(WORKED) | REFUSALS.keys()
    assert set(total.acts) == set(ACTS)
    assert set(total.ends) >= ENDS


def _small(seed: int) -> Scenario:
    """A few tasks of each kind, at a provider that fails now and then."""
    scenario = scenario_of(seed)
    return replace(
        scenario,
        items=2,
        words=2,
        budget_usd=None,
        replicates=1,
        reask=1,
        lanes=scenario.lanes[:1],
        weather=(),
        is_mild=True,
        disk_s=(1e-4, 0.02),
        acts=(),
    )


@pytest.mark.timeout(600 if PROVE else 120)
@pytest.mark.parametrize("seed", range(10, 20 if PROVE else 12))
def test_a_crash_at_any_step_loses_and_repeats_nothing(seed: int) -> None:
    scenario = _small(seed)
    steps = World(scenario).run().steps
    for step in range(1, steps, STEPS_APART):
        crash = Act(after=step, kind=CRASH, chance=0.0)
        again = Act(after=1 + step % 97, kind=CRASH, chance=0.0)
        report = World(replace(scenario, acts=(crash, again))).run()
        assert report.ends[CRASH]


@pytest.mark.timeout(1200 if PROVE else 120)
@pytest.mark.parametrize("seed", range(REAL_SEEDS))
def test_the_real_log_takes_the_same_course_as_the_one_in_memory(
    seed: int, tmp_path: Path
) -> None:
    real = World(scenario_of(seed), folder=tmp_path)
    model = World(scenario_of(seed))
    assert real.run() == model.run()
    assert real.events == model.events


def _digest(events: list[RecordedEvent]) -> str:
    return hashlib.sha256(repr(events).encode()).hexdigest()


def test_a_seed_takes_the_same_course_in_every_process() -> None:
    world = World(scenario_of(3))
    world.run()
    script = (
        "from tests.simulation.scenario import scenario_of;"
        "from tests.simulation.world import World;"
        "import hashlib; w = World(scenario_of(3)); w.run();"
        "print(hashlib.sha256(repr(w.events).encode()).hexdigest())"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ
        | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == _digest(world.events)
