"""What share of a limit many shards use together, and what asking for it costs.

In virtual time, with the real broker, holders and limiters (`tests/lending.py`): 16
shards, 20,000 calls, 100 requests a second. Even parts that never move, as an array job
without a broker has them, stand beside leases.
"""

from __future__ import annotations

from runner.limits.limiter import Limits
from tests.bench.row import Row
from tests.bench.verdict import least, most, shown
from tests.lending import SCENARIOS, Plan, World

CALLS, QUICK_CALLS = 20_000, 10_000
RPM = 6000
LEAST_USED, MOST_ASKED = 97.0, 0.1


def measure(quick: bool) -> list[Row]:
    """Rows of the table."""
    calls = QUICK_CALLS if quick else CALLS
    rows: list[Row] = []
    for name, plans in SCENARIOS.items():
        static = World(plans=plans(calls), limits=_limits(), how="static")
        rows.append(shown(f"{name}: % of the rate, even parts", _used(static)))
        leased = World(plans=plans(calls), limits=_limits())
        rows += _leased(name, leased)
    rows += _leased("64 shards, 12 killed, 2 brokers lost", _through_faults(calls))
    return rows


def _limits() -> Limits:
    return Limits(concurrency=1, rpm=RPM)


def _through_faults(calls: int) -> World:
    return World(
        plans=[Plan(calls=calls // 64)] * 64,
        limits=_limits(),
        kills=[(5.0 + 5 * i, 11 * i % 64) for i in range(12)],
        broker_ends_at=[23.0, 51.0],
    )


def _used(world: World) -> float:
    return 100 * world.share_used()


def _leased(name: str, world: World) -> list[Row]:
    used = _used(world)
    busiest, _ = world.busiest_minute()
    # each of 64 shards has 1.6 calls a second, and has to be heard every 5 s
    asked = MOST_ASKED if len(world.plans) < 64 else None
    return [
        least("shards", f"{name}: % of the rate, leases", used, LEAST_USED),
        most("shards", f"{name}: requests in the busiest minute", busiest, RPM),
        most("shards", f"{name}: lines a call", world.lines / len(world.sent), asked),
    ]
