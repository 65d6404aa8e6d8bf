"""When a batch gets on and what becomes of its items, by seed; pure."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from runner.errors import BadRequest
from runner.simulate.asked import Asked
from runner.simulate.batch.state import Ending, Item, Schedule
from runner.simulate.chance import Chance
from runner.simulate.options import SimulateOptions

FAILING: Final = (500, 429, 529)
"""The statuses of items that fail by chance: all worth another try."""

MALFORMED: Final = 400
"""The status of an item that is no request: it never succeeds."""

_ADMITTED, _WORKED = 0.05, 0.95
"""Shares of a batch's time that have gone by when its phases end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One request of a batch as it came."""

    custom_id: str
    body: bytes  #: what a single call would have sent
    digest: str  #: its SHA-256, hex

    @classmethod
    def of(cls, custom_id: str, body: bytes) -> Order:
        """The request with that body."""
        digest = hashlib.sha256(body).hexdigest()
        return cls(custom_id=custom_id, body=body, digest=digest)


def schedule(options: SimulateOptions, number: int, now_us: int) -> Schedule:
    """When batch *number* gets on: it takes between half and all of the time set."""
    share = 0.5 + Chance("batch", options.seed, number).unit() / 2
    lasts_us = options.batch_seconds * share * 1e6
    return Schedule(
        created_us=now_us,
        admitted_us=now_us + int(lasts_us * _ADMITTED),
        worked_us=now_us + int(lasts_us * _WORKED),
        filed_us=now_us + int(lasts_us),
        winding_us=int(lasts_us * _ADMITTED),
    )


def items(
    options: SimulateOptions,
    orders: Iterable[Order],
    times: Schedule,
    seen: Counter[str],
    reader: Callable[[bytes], Asked],
) -> list[Item]:
    """What becomes of *orders*.

    As with single calls that depends on seed, body and how often that body came before
    (counted on in *seen*), so what failed can succeed in another batch.
    """
    found = []
    for order in orders:
        chance = Chance("item", options.seed, order.digest, seen[order.digest])
        seen[order.digest] += 1
        found.append(_item(options, order, times, chance, reader))
    return found


def _item(
    options: SimulateOptions,
    order: Order,
    times: Schedule,
    chance: Chance,
    reader: Callable[[bytes], Asked],
) -> Item:
    draw, moment = chance.unit(), chance.unit()
    due_us = times.admitted_us + int(moment * (times.worked_us - times.admitted_us))
    asked, problem, ending, status = None, "", Ending.SUCCEEDED, 200
    try:
        asked = reader(order.body)
    except BadRequest as error:
        problem, ending, status = str(error), Ending.ERRORED, MALFORMED
    else:
        if draw < options.batch_error_rate:
            problem = "The simulated model failed."
            ending, status = Ending.ERRORED, chance.pick(FAILING)
        elif draw < options.batch_error_rate + options.batch_expire_rate:
            ending, due_us = Ending.EXPIRED, times.worked_us
    return Item(
        custom_id=order.custom_id,
        digest=order.digest,
        ending=ending,
        due_us=due_us,
        asked=asked,
        status=status,
        problem=problem,
    )
