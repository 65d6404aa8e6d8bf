"""Compares runs in a child process, and lists what can be compared.

The command's output is parsed here, once; costs are read from the logs' projections.

Choices are pure: the list of runs is given.
"""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

from store.database import open_reader
from store.errors import StoreError
from store.query import parse_query
from store.read.status import Status, status
from store.read.tasks import tasks
from store.runs import RunFolder, resolve
from store.task import TaskState
from tui.sources.command import (
    CommandAnswers,
    CommandFailed,
    CommandRunner,
    LogAt,
    log_at,
)
from tui.sources.run_list import ListedRun
from tui.sources.run_snapshot import RunSnapshot

_T = TypeVar("_T")

MAX_ITEMS = 1_000
"""Maximum items listed for a metric, those that differ most."""

Words: TypeAlias = tuple[str, ...]
"""The compared sides as arguments of the command: RUN or RUN:MODEL, once or twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedModel:
    """One model of one run."""

    run: str
    model: str
    seq: int  #: the last scored event of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class WinLossTie:
    """Counts of items by outcome of B."""

    wins: int
    losses: int
    ties: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SignificanceTest:
    """A test of no difference, with Holm's correction."""

    name: str
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPair:
    """One metric of both sides over the items that both have."""

    a: float | None
    b: float | None
    difference: float | None  #: B minus A
    lo: float | None  #: None: no interval
    hi: float | None
    verdict: str  #: verdict on B: better, worse, undecided or too few
    few: bool  #: too few clusters for a winner
    test: SignificanceTest | None
    n: int  #: items with a value on both sides
    clusters: int
    only_a: int
    only_b: int
    undefined: int  #: common items without a value on one side
    standing: WinLossTie | None  #: None: items have no individual values
    cluster: str  #: unit of resampling, such as "paper"
    definition: str
    name: str = ""  #: for people; empty: its path


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPair:
    """One item on both sides."""

    item: str
    a: float
    b: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPair:
    """Two models, metric by metric."""

    a: ComparedModel
    b: ComparedModel
    metrics: dict[str, MetricPair]
    not_compared: dict[str, str]  #: reason by metric
    only_a: tuple[str, ...]  #: metrics that B does not have
    only_b: tuple[str, ...]
    items: tuple[ItemPair, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult:
    """The command's result of a comparison."""

    job: str
    notes: tuple[str, ...]  #: notes that affect the comparison but not its numbers
    level: float  #: level of the intervals
    b: int  #: bootstrap replicates
    family: str  #: the family of Holm's correction
    pairs: tuple[ComparedPair, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCost:
    """Cost of the tasks of one model of a run."""

    usd: float | None  #: None: the price of an answer is unknown
    tasks: int  #: completed or failed tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedComparison:
    """A comparison with the costs of its sides."""

    words: Words
    compared: ComparisonResult
    costs: Mapping[tuple[str, str], TaskCost]  #: by run and model


class ComparisonSource:
    """Runs `siftlog compare`; results are cached until a log grows.

    Cancelling a request ends its process.
    """

    def __init__(
        self, runs_dir: Path, child: CommandRunner, answers: CommandAnswers
    ) -> None:
        self._runs_dir = runs_dir
        self._child = child
        self._answers = answers

    async def compare(self, words: Words) -> PricedComparison:
        """Compare the sides that *words* name.

        Raises:
            CommandFailed: they cannot be compared; the message says why.
        """
        compared = await self._compared(words)
        costs = await self._ask(_costs, words)
        return PricedComparison(words=words, compared=compared, costs=costs)

    async def items(
        self, comparison: PricedComparison, pair: ComparedPair, path: str
    ) -> tuple[ItemPair, ...]:
        """Return the items on which one metric of a pair differs, most first.

        Raises:
            CommandFailed: the computation failed.
        """
        a, b = (run_of(comparison.words[at]) for at in (0, -1))
        both = (f"{a}:{pair.a.model}", f"{b}:{pair.b.model}")
        # items have no intervals, which are most of the work
        more = ("--metric", path, "--items", path, "--top", str(MAX_ITEMS), "--b", "0")
        compared = await self._compared(both, more)
        return tuple(item for pair in compared.pairs for item in pair.items)

    async def fitting(
        self, comparison: PricedComparison, filters: Sequence[str]
    ) -> str:
        """Return the first filter that matches a task of A's run, or the last one.

        Raises:
            CommandFailed: the run cannot be read.
        """

        def view(folders: Sequence[RunFolder]) -> str:
            with open_reader(folders[0].log) as reader:
                for expression in filters:
                    if tasks(reader, parse_query(expression), limit=1):
                        return expression
            return filters[-1]

        return await self._ask(view, comparison.words[:1])

    async def seqs(self, words: Words) -> Mapping[str, int]:
        """Return the current last event of each run's log, by the run's id.

        Raises:
            CommandFailed: one of them cannot be read.
        """
        return {log.run_id: log.seq for log in await self._ask(_logs, words)}

    def close(self) -> None:
        """Stop running computations."""
        self._child.close()

    async def _compared(self, words: Words, more: Words = ()) -> ComparisonResult:
        logs = await self._ask(_logs, words)
        arguments = (
            "compare",
            *words,
            *more,
            "--runs-dir",
            str(self._runs_dir),
            "--json",
        )
        records = self._answers.get(arguments, logs)
        if records is None:
            records = await self._child.records(*arguments)
            self._answers.put(arguments, logs, records)
        if len(records) != 1:
            raise CommandFailed(
                f"siftlog compare printed {len(records)} records: run it yourself"
            )
        try:
            return msgspec.convert(records[0], ComparisonResult)
        except msgspec.ValidationError as error:
            raise CommandFailed(
                f"siftlog compare prints what this monitor cannot read ({error}): use "
                "one version of both"
            ) from error

    async def _ask(self, view: Callable[[Sequence[RunFolder]], _T], words: Words) -> _T:
        """Run *view* on the runs that *words* name, in a separate thread."""

        def work() -> _T:
            folders = (resolve(self._runs_dir, run_of(word)) for word in words)
            return view(tuple(dict.fromkeys(folders)))

        try:
            return await asyncio.to_thread(work)
        except (StoreError, sqlite3.Error, OSError) as error:
            raise CommandFailed(str(error)) from error


def run_of(word: str) -> str:
    """Return the run of RUN or RUN:MODEL, or a run's folder, as the command does.

    >>> run_of("first:openai/x:free"), run_of("first")
    ('first', 'first')
    """
    return word if Path(word).is_dir() else word.partition(":")[0]


def _logs(folders: Sequence[RunFolder]) -> tuple[LogAt, ...]:
    return tuple(map(log_at, folders))


def _costs(folders: Sequence[RunFolder]) -> dict[tuple[str, str], TaskCost]:
    costs: dict[tuple[str, str], TaskCost] = {}
    for folder in folders:
        with open_reader(folder.log) as reader:
            seen = status(reader)
        for model in {queue.model for queue in seen.queues}:
            costs[folder.run_id, model] = _cost(seen, model)
    return costs


_ENDED = (TaskState.COMPLETED, TaskState.FAILED)


def _cost(seen: Status, model: str) -> TaskCost:
    ended = sum(
        queue.states.get(state, 0)
        for queue in seen.queues
        if queue.model == model
        for state in _ENDED
    )
    is_known = seen.cost_usd is not None
    usd = seen.model_cost_usd.get(model, 0.0) if is_known else None
    return TaskCost(usd=usd, tasks=ended)


SUBJECT = "subject"
"""Role of the models whose answers are scored."""
_SIDES = 2


class NothingToCompare(Exception):
    """The typed text is not comparable; the message says what is valid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonChoice:
    """A possible comparison, and its arguments for the command."""

    words: Words
    a: str  #: a model of the run, or their number
    b: str  #: the other run and its model, or how models are paired
    state: str  #: state of the other run, in one word
    ended: int  #: its ended tasks
    planned: int  #: without skipped ones


def comparison_choices(
    snapshot_a: RunSnapshot, name: str, listed_runs: Sequence[ListedRun]
) -> Iterator[ComparisonChoice]:
    """Yield all possible comparisons of a run, the likeliest first.

    Its own models come before other runs, and pairs of the same model before others.

    Args:
        snapshot_a: the run that is A.
        name: A as an argument of the command: its id, or its folder.
        listed_runs: the runs of the folder; those of other jobs are ignored.
    """
    models_a = _models(snapshot_a)
    if len(models_a) > 1:
        yield _choice(
            snapshot_a, (name,), f"its {len(models_a)} models", "each with each"
        )
    for a, b in itertools.combinations(models_a, 2):
        yield _choice(snapshot_a, (f"{name}:{a}", f"{name}:{b}"), a, b)
    others = list(_others(snapshot_a, name, listed_runs))
    for run, seen in others:
        shared = [model for model in models_a if model in _models(seen)]
        if len(shared) > 1:
            meet = f"{run}  each with itself"
            yield _choice(seen, (name, run), f"{len(shared)} models", meet)
        for model in shared:
            yield _pair(seen, (name, model), (run, model))
    for run, seen in others:
        for a, b in itertools.product(models_a, _models(seen)):
            if a != b:
                yield _pair(seen, (name, a), (run, b))


def _others(
    snapshot_a: RunSnapshot, name: str, listed_runs: Sequence[ListedRun]
) -> Iterator[tuple[str, RunSnapshot]]:
    """Yield other runs of the job that can be named to the command."""
    for listed_run in listed_runs:
        run, seen = listed_run.folder.run_id, listed_run.snapshot
        is_other = RunFolder.is_valid_id(run) and run != name
        if (
            is_other
            and isinstance(seen, RunSnapshot)
            and seen.status.job == snapshot_a.status.job
        ):
            yield run, seen


def _pair(
    seen: RunSnapshot, a: tuple[str, str], b: tuple[str, str]
) -> ComparisonChoice:
    """Return the choice of two models, each with its run."""
    return _choice(seen, (":".join(a), ":".join(b)), a[1], "  ".join(b))


def _choice(seen: RunSnapshot, words: Words, a: str, b: str) -> ComparisonChoice:
    return ComparisonChoice(
        words=words,
        a=a,
        b=b,
        state=seen.state,
        ended=seen.ended,
        planned=seen.total_tasks,
    )


def _models(seen: RunSnapshot) -> list[str]:
    return list(seen.status.models.get(SUBJECT, ()))


def choice_typed(name: str, text: str) -> Words:
    """Parse B, or A and B, as typed.

    Args:
        name: A as an argument of the command.
        text: a run or its folder, with or without a model; optionally after A's.

    Raises:
        NothingToCompare: the text is not comparable.
    """
    words = (text,) if Path(text).is_dir() else tuple(text.split())
    if len(words) == 1:
        words = (name, *words)
    # words like this would be options of the command, one of which writes files
    if len(words) != _SIDES or any(word.startswith("-") for word in words):
        raise NothingToCompare(f"{text!r} names no run: type RUN or RUN:MODEL")
    if run_of(words[0]) != name:
        raise NothingToCompare(
            f"A is the run that is watched, so the first of two is {name} or "
            f"{name}:MODEL"
        )
    return words
