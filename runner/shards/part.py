"""Which part of a run a process takes: all of a paper, with all that follows from it.

Everything that descends from an item of the first stage, and all that is gathered with
it, is planned and asked by one shard, so shards need not know of one another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from runner.errors import UsageError
from runner.job import Dataset, Job
from runner.shards.others import Others
from runner.task import TaskSpec
from store.segments.place import Place
from store.slices import SLICES, Shard, Slices, slice_of

_PART = re.compile(r"(\d{1,4})/(\d{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipping:
    """Where a shard's log is carried, beside the work on it."""

    place: Place
    every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A shard of a run as a process finds it."""

    shard: Shard
    shipping: Shipping | None = None  #: None: its log stays where it is
    others: Others = field(default_factory=Others)

    @property
    def share(self) -> Fraction:
        """What it takes of the run's budget."""
        return Fraction(len(Slices.parse(self.shard.slices)), SLICES)


def shard_of(text: str) -> Shard:
    """The shard that is written as "i/n", from 0.

    Raises:
        UsageError: it is written in another way, or there is no such shard.
    """
    found = _PART.fullmatch(text)
    if found is None:
        raise UsageError(f"--shard {text}: write it as i/n, such as 0/4 to 3/4.")
    index, count = int(found[1]), int(found[2])
    try:
        slices = Slices.of(index, count)
    except ValueError as error:
        raise UsageError(f"--shard {text}: {error}.") from error
    return Shard(index=index, count=count, slices=str(slices))


def taking(shard: Shard, job: Job, dataset: Dataset) -> Callable[[TaskSpec], bool]:
    """Whether a shard takes a first-stage spec."""
    slices = frozenset(Slices.parse(shard.slices))

    def takes(spec: TaskSpec) -> bool:
        return slice_of(item_of(job, dataset, spec)) in slices

    return takes


def item_of(job: Job, dataset: Dataset, spec: TaskSpec) -> str:
    """What a first-stage spec is about: one item is never shared by two shards.

    A job says it where it plans several specs of one; else those that are gathered
    together are of one item, and any other is an item by itself.
    """
    item = getattr(job, "item", None)
    if item is not None:
        found: str = item(dataset, spec)
        return found
    return spec.key if spec.group is None else spec.group
