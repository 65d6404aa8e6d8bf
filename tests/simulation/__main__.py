"""Simulated runs by seed: `python -m tests.simulation --seeds 10000`."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter

from store.clock import SystemClock
from tests.simulation.scenario import scenario_of
from tests.simulation.world import Report, World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--trace", action="store_true")
    given = parser.parse_args()
    clock = SystemClock()
    began = clock.monotonic()
    bad = 0
    total = Report(seed=-1)
    seeds = [given.seed] if given.seed is not None else range(given.first, given.first+given.seeds)
    for seed in seeds:
        world = World(scenario_of(seed), say=print if given.trace else None)
        try:
            world.run()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt): raise
            bad += 1
            print(f"seed {seed}: {type(error).__name__} {error}"[:400])
            if given.seed is not None: traceback.print_exc()
        r = world.report
        for name in ("steps","processes","virtual_s"):
            setattr(total, name, getattr(total,name)+getattr(r,name))
        total.acts += r.acts
        total.fates += world.provider.fates
        total.outcomes += r.outcomes
        total.attempts += len(world.provider.ledger)
    took = clock.monotonic()-began
    print(total, bad, f"{took:.1f} s")
    return bad > 0

sys.exit(main())
