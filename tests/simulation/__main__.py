"""Simulated runs by seed: `python -m tests.simulation --seeds 10000`.

A seed that breaks a promise is named with the command that replays it; `--trace` shows
such a run step by step.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from store.clock import SystemClock
from tests.simulation.broken import Broken
from tests.simulation.report import Report
from tests.simulation.scenario import scenario_of
from tests.simulation.world import World

SHOWN = 10
"""Broken seeds that are told one by one."""
UNSEEN = "no error comes out of the engine"


def main() -> int:
    """Run what was asked for; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=300, help="how many")
    parser.add_argument("--from", type=int, default=0, dest="first", metavar="SEED")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--trace", action="store_true", help="show every step")
    parser.add_argument("--sqlite", action="store_true", help="on the real log")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    if given.seed is not None:
        seeds = range(given.seed, given.seed + 1)
    clock = SystemClock()
    began = clock.monotonic()
    total, broken = Report(), Counter[str]()
    for seed in seeds:
        try:
            total += replay(
                seed, sqlite=given.sqlite, say=print if given.trace else None
            )
        except KeyboardInterrupt:
            break
        except Broken as error:
            broken[error.invariant] += 1
            if broken.total() <= SHOWN:
                print(f"seed {seed}: {error}")
                print(f"    {command(seed, sqlite=given.sqlite)}")
    print(total.table(clock.monotonic() - began))
    print(f"{'broken':22}{broken.total()}")
    for invariant, n in broken.most_common():
        print(f"  {invariant}: {n}")
    return 1 if broken else 0


def replay(
    seed: int, *, sqlite: bool = False, say: Callable[[str], None] | None = None
) -> Report:
    """One seed's run.

    Raises:
        Broken: a promise was not kept; names the command that shows how.
    """
    scenario = scenario_of(seed)
    if say is not None:
        say(str(scenario))
    with tempfile.TemporaryDirectory() as folder:
        world = World(scenario, folder=Path(folder) if sqlite else None, say=say)
        try:
            return world.run()
        except Exception as error:
            what = error if isinstance(error, Broken) else Broken(UNSEEN, repr(error))
            what.add_note(command(seed, sqlite=sqlite))
            raise what from error


def command(seed: int, *, sqlite: bool) -> str:
    """What shows a seed's run."""
    flag = " --sqlite" if sqlite else ""
    return f"python -m tests.simulation --seed {seed} --trace{flag}"


if __name__ == "__main__":
    sys.exit(main())
