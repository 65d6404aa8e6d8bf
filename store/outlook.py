"""How good the estimate was that a run began with; pure.

What a run would come to is told by what it has come to, and by how much of it is done.
Follow-ups of items that are still open are not planned yet: they are taken to be as
many as those of the items that have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from store.expected import Expected
from store.task import TaskState


class Lane(Protocol):
    """Tasks of one stage, by state."""

    @property
    def stage(self) -> str:
        """The stage's name."""
        ...

    @property
    def states(self) -> Mapping[TaskState, int]:
        """Tasks by where they stand."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """One figure: as it was estimated, as it is, and as it would become."""

    low: float
    expected: float
    high: float
    so_far: float
    comes_to: float | None  #: None: nothing is done yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A run's estimate against its course."""

    done: float  #: share of the run, 0 to 1
    calls: Prospect
    tokens_in: Prospect
    tokens_out: Prospect
    cost_usd: Prospect | None  #: None: a price is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class SoFar:
    """What a run has come to."""

    calls: int  #: attempts that an endpoint answered
    tokens_in: int
    tokens_out: int
    cost_usd: float | None


def outlook(
    expected: Expected, items: int, lanes: Iterable[Lane], so_far: SoFar
) -> Outlook:
    """The estimate of a plan of *items* specs beside what has come of it."""
    done = _done(expected, lanes)

    def prospect(each: tuple[float, float, float], now: float) -> Prospect:
        low, middle, high = (figure * items for figure in each)
        return Prospect(
            low=low,
            expected=middle,
            high=high,
            so_far=now,
            comes_to=now / done if done else None,
        )

    return Outlook(
        done=done,
        calls=prospect(expected.calls, so_far.calls),
        tokens_in=prospect(expected.tokens_in, so_far.tokens_in),
        tokens_out=prospect(expected.tokens_out, so_far.tokens_out),
        cost_usd=None
        if expected.cost_usd is None or so_far.cost_usd is None
        else prospect(expected.cost_usd, so_far.cost_usd),
    )


def _done(expected: Expected, lanes: Iterable[Lane]) -> float:
    """The share of all tasks that have ended, those still to be planned included."""
    ended, asked = {True: 0, False: 0}, {True: 0, False: 0}
    for lane in lanes:
        is_first = lane.stage in expected.first
        for state, n in lane.states.items():
            if state is not TaskState.SKIPPED:
                asked[is_first] += n
                ended[is_first] += 0 if state.is_open else n
    if not ended[True]:
        return 0.0
    followed = asked[False] * asked[True] / ended[True]
    return (ended[True] + ended[False]) / (asked[True] + followed)
