"""The interface to what decides between two models while a run goes on.

What decides is found by entry point (group `siftlog.decisions`), as jobs are: which
statistics it goes by is no business of the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Literal, TypeAlias, cast

from runner.errors import UsageError
from runner.scorecard import Comparable
from store.results import StoppingRule

GROUP = "siftlog.decisions"
NAME = "sequential"

Standing: TypeAlias = Literal["better", "worse", "close", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How B stands to A by what is finished; once decided, as it was then."""

    standing: Standing
    clusters: int  #: documents that it goes by
    cluster: str  #: what such a document is called, such as "paper"
    difference: float | None  #: B minus A, mean over these documents
    lo: float  #: what the mean difference lies between, whenever one looks
    hi: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The items that are answered, from the first one planned on, without a gap."""

    keys: Sequence[str]  #: of the first stage, in the plan's order
    is_whole: bool  #: there are no others


Decide: TypeAlias = Callable[[Comparable, Comparable, Finished, StoppingRule], Look]
"""Compares B with A, given as (a, b, finished, stopping).

Raises `UsageError` where the metric is not one that can be watched.
"""


def load_decide() -> Decide:
    """What is installed for deciding.

    Raises:
        UsageError: nothing is.
    """
    for point in entry_points(group=GROUP, name=NAME):
        return cast("Decide", point.load())
    raise UsageError(
        "Nothing that decides between models is installed; run without "
        "--stop-when-decided."
    )
