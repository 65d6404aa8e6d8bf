"""Comparisons of runs, as a child process reckons them; and what their tasks cost.

What the command prints is read into values here, once; what a cost comes to is read
from the logs' projections.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from store.errors import StoreError
from store.query import parse_query
from store.runs import RunFolder, resolve
from store.task import TaskState
from store.views import Status, open_reader, status, tasks
from tui.sources.answers import Answers, LogAt, log_at
from tui.sources.child import Child, ChildFailed

_T = TypeVar("_T")

LISTED = 1_000
"""Items that are listed of a metric, those that differ most."""

Words: TypeAlias = tuple[str, ...]
"""What is compared, as the command is told: RUN or RUN:MODEL, once or twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One model of one run."""

    run: str
    model: str
    seq: int  #: the last event of the run that was scored


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Items by outcome of B."""

    wins: int
    losses: int
    ties: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PValue:
    """A test of no difference, with Holm's correction."""

    name: str
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric of both sides over the items that both have."""

    a: float | None
    b: float | None
    difference: float | None  #: B minus A
    lo: float | None  #: None: there is no interval
    hi: float | None
    verdict: str  #: on B: better, worse, undecided or too few
    few: bool  #: too few clusters for a winner
    test: PValue | None
    n: int  #: items with a value on both sides
    clusters: int
    only_a: int
    only_b: int
    undefined: int  #: common items that a side has no value for
    standing: Standing | None  #: None: no item has a value by itself
    cluster: str  #: what intervals are drawn by, such as "paper"
    definition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemGap:
    """One item on both sides."""

    item: str
    a: float
    b: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two models, metric by metric."""

    a: Side
    b: Side
    metrics: dict[str, Metric]
    not_compared: dict[str, str]  #: why, by metric
    only_a: tuple[str, ...]  #: metrics that B does not have
    only_b: tuple[str, ...]
    items: tuple[ItemGap, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What the command says of a comparison."""

    job: str
    notes: tuple[str, ...]  #: what bears on it and does not show in its numbers
    level: float  #: of the intervals
    b: int  #: bootstrap replicates
    family: str  #: what Holm's correction is over
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the tasks of one model of a run have cost."""

    usd: float | None  #: None: the price of an answer is unknown
    tasks: int  #: that were completed or failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison with the costs of its sides."""

    words: Words
    compared: Compared
    costs: Mapping[tuple[str, str], Cost]  #: by run and model


class Comparisons:
    """Asks `siftlog compare`; what it answered is kept until a log goes on.

    Whoever cancels a question thereby ends the process that works on it.
    """

    def __init__(self, runs_dir: Path, child: Child, answers: Answers) -> None:
        self._runs_dir = runs_dir
        self._child = child
        self._answers = answers

    async def compare(self, words: Words) -> Comparison:
        """All metrics of what *words* name.

        Raises:
            ChildFailed: they cannot be compared; the message says why.
        """
        compared = await self._compared(words)
        costs = await self._ask(_costs, words)
        return Comparison(words=words, compared=compared, costs=costs)

    async def items(
        self, comparison: Comparison, pair: Pair, path: str
    ) -> tuple[ItemGap, ...]:
        """The items on which one metric of a pair differs, most first.

        Raises:
            ChildFailed: they cannot be told.
        """
        a, b = (run_of(comparison.words[at]) for at in (0, -1))
        both = (f"{a}:{pair.a.model}", f"{b}:{pair.b.model}")
        # intervals are not shown of items, and are most of the work
        more = ("--metric", path, "--items", path, "--top", str(LISTED), "--b", "0")
        compared = await self._compared(both, more)
        return tuple(item for pair in compared.pairs for item in pair.items)

    async def fitting(self, comparison: Comparison, filters: Sequence[str]) -> str:
        """The first filter that lets a task of A's run through, or else the last.

        Raises:
            ChildFailed: the run cannot be read.
        """

        def view(folders: Sequence[RunFolder]) -> str:
            with open_reader(folders[0].log) as reader:
                for expression in filters:
                    if tasks(reader, parse_query(expression), limit=1):
                        return expression
            return filters[-1]

        return await self._ask(view, comparison.words[:1])

    async def seqs(self, words: Words) -> Mapping[str, int]:
        """The last event of each run's log now, by the run's id.

        Raises:
            ChildFailed: one of them cannot be read.
        """
        return {log.run_id: log.seq for log in await self._ask(_logs, words)}

    def close(self) -> None:
        """End what is running."""
        self._child.close()

    async def _compared(self, words: Words, more: Words = ()) -> Compared:
        logs = await self._ask(_logs, words)
        asked = ("compare", *words, *more, "--runs-dir", str(self._runs_dir), "--json")
        found = self._answers.get(asked, logs)
        if found is None:
            found = await self._child.records(*asked)
            self._answers.put(asked, logs, found)
        if len(found) != 1:
            raise ChildFailed(
                f"siftlog compare printed {len(found)} records: run it yourself"
            )
        try:
            return msgspec.convert(found[0], Compared)
        except msgspec.ValidationError as error:
            raise ChildFailed(
                f"siftlog compare prints what this monitor cannot read ({error}): use "
                "one version of both"
            ) from error

    async def _ask(self, view: Callable[[Sequence[RunFolder]], _T], words: Words) -> _T:
        """What *view* says of the runs that *words* name, in a thread of its own."""

        def work() -> _T:
            named = (resolve(self._runs_dir, run_of(word)) for word in words)
            return view(tuple(dict.fromkeys(named)))

        try:
            return await asyncio.to_thread(work)
        except (StoreError, sqlite3.Error, OSError) as error:
            raise ChildFailed(str(error)) from error


def run_of(word: str) -> str:
    """The run of RUN or RUN:MODEL, or a run's folder, as the command reads it.

    >>> run_of("first:openai/x:free"), run_of("first")
    ('first', 'first')
    """
    return word if Path(word).is_dir() else word.partition(":")[0]


def _logs(folders: Sequence[RunFolder]) -> tuple[LogAt, ...]:
    return tuple(map(log_at, folders))


def _costs(folders: Sequence[RunFolder]) -> dict[tuple[str, str], Cost]:
    found: dict[tuple[str, str], Cost] = {}
    for folder in folders:
        with open_reader(folder.log) as reader:
            seen = status(reader)
        for model in {lane.model for lane in seen.lanes}:
            found[folder.run_id, model] = _cost(seen, model)
    return found


_ENDED = (TaskState.COMPLETED, TaskState.FAILED)


def _cost(seen: Status, model: str) -> Cost:
    ended = sum(
        lane.states.get(state, 0)
        for lane in seen.lanes
        if lane.model == model
        for state in _ENDED
    )
    is_known = seen.cost_usd is not None
    usd = seen.model_cost_usd.get(model, 0.0) if is_known else None
    return Cost(usd=usd, tasks=ended)
