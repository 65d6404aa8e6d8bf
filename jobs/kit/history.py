"""The history of a job: what each run reached, beside an earlier or the best one.

Two runs are comparable on an item where what must be the same is the same: for a review
its truth and the way of matching, and what was searched, unless runs over other data
are let in. An unfinished run is compared with nothing. A model is held against itself;
the first run of a new one, against a run of one model by a run of one model.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobs.kit.metrics import mean, ratio
from runner.errors import UsageError
from store.database import open_reader
from store.errors import CorruptLog, StoreError
from store.events import ScoringRecorded
from store.read.status import newest_scoring
from store.results import ItemPart, ItemParts, ItemScore, Milestone, parts_of
from store.runs import RunFolder, list_runs
from store.tables import created_us, payload


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """A line of the history."""

    run: str
    at_us: int  #: when the run was made, microseconds since 1970 UTC
    model: str
    milestone: Milestone

    @property
    def standings(self) -> Mapping[str, ItemScore]:
        """Scores by item."""
        return self.milestone.standings[self.model]

    @property
    def is_alone(self) -> bool:
        """Whether its run has no other model."""
        return len(self.milestone.standings) == 1

    @property
    def cost_usd(self) -> float | None:
        """Cost of its calls; None: unknown, or there were none."""
        return self.milestone.cost_usd.get(self.model)

    @property
    def micro(self) -> float | None:
        """The value over all items together."""
        every = self.standings.values()
        return ratio(
            sum(score.got for score in every), sum(score.of for score in every)
        )

    @property
    def passed(self) -> int:
        """Items that passed."""
        return sum(score.passed for score in self.standings.values())

    @property
    def verdicts(self) -> tuple[int, int] | None:
        """Items that pass what is judged beside, and those that were; None: none."""
        judged = [
            score.verdict
            for score in self.standings.values()
            if score.verdict is not None
        ]
        return (sum(judged), len(judged)) if judged else None

    def macro(self, items: Iterable[str] | None = None) -> float | None:
        """The mean value of some items; of all, where none are named."""
        names = self.standings if items is None else items
        return mean(_value(self.standings[item]) for item in names)

    def replicate_values(self, items: Iterable[str]) -> list[float | None]:
        """The same of each replicate alone; none where there is only one."""
        lists = [
            [ratio(got, score.of) for got in score.tries]
            for score in map(self.standings.__getitem__, items)
        ]
        return [mean(values) for values in zip(*lists, strict=True)]


def _value(score: ItemScore) -> float | None:
    return ratio(score.got, score.of)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRun:
    """A run, and what its newest scoring left behind."""

    folder: RunFolder
    at_us: int
    milestone: Milestone

    def rows(self) -> Iterable[HistoryRow]:
        """A row for each model."""
        return (
            HistoryRow(
                run=self.folder.run_id,
                at_us=self.at_us,
                model=model,
                milestone=self.milestone,
            )
            for model in self.milestone.standings
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRuns:
    """The runs of a job in a folder of runs."""

    runs: tuple[ScoredRun, ...]  #: in order of time
    unread: tuple[str, ...]  #: why logs could not be read, a sentence each


def read_runs(runs_dir: Path, job: str) -> JobRuns:
    """The runs of *job* that were scored and have a history."""
    runs: list[ScoredRun] = []
    unread: list[str] = []
    for folder in list_runs(runs_dir):
        try:
            run = _scored_run(folder)
        except StoreError as error:
            unread.append(f"{error}.")
            continue
        if run is not None and run.milestone.job == job:
            runs.append(run)
    return JobRuns(
        runs=tuple(sorted(runs, key=lambda run: (run.at_us, run.folder.run_id))),
        unread=tuple(unread),
    )


def parts(run: ScoredRun) -> ItemParts:
    """Return the parts of a run's milestone.

    Raises:
        CorruptLog: it cannot be read.
    """
    with open_reader(run.folder.log) as reader:
        scoring = newest_scoring(reader)
        stored = None if scoring is None else payload(reader, scoring.seq)
    try:
        return parts_of(stored or b"")
    except ValueError as error:
        raise CorruptLog(
            f"{run.folder.log} has a damaged scoring ({error}): see 'siftlog verify', "
            "or score the run again"
        ) from error


def _scored_run(folder: RunFolder) -> ScoredRun | None:
    with open_reader(folder.log) as reader:
        scoring = newest_scoring(reader)
        if scoring is None:
            return None
        event, at_us = scoring.event, created_us(reader)
    if not isinstance(event, ScoringRecorded) or event.milestone is None:
        return None
    return ScoredRun(folder=folder, at_us=at_us, milestone=event.milestone)


def rows(runs: Sequence[ScoredRun]) -> tuple[HistoryRow, ...]:
    """The rows of some runs, in their order."""
    return tuple(row for run in runs for row in run.rows())


def shared_items(now: Milestone, then: Milestone) -> tuple[str, ...]:
    """The items that ask for the same in both, whatever was searched."""
    return tuple(
        item for item, same in now.items.items() if then.items.get(item) == same
    )


def common_items(now: HistoryRow, then: HistoryRow, *, across: bool) -> tuple[str, ...]:
    """The items on which two rows are comparable, in the order of *now*.

    Args:
        now: one of them.
        then: the other.
        across: whether other data may have been searched.
    """
    current, other = now.milestone, then.milestone
    if current.partial or other.partial or (current.data != other.data and not across):
        return ()
    return tuple(
        item
        for item in shared_items(current, other)
        if item in now.standings and item in then.standings
    )


def same_model_rows(
    now: HistoryRow, others: Sequence[HistoryRow]
) -> tuple[HistoryRow, ...]:
    """The rows of other models left out, unless there is none of this one's.

    Then runs of one model stay, if *now* is one itself.
    """
    same = tuple(row for row in others if row.model == now.model)
    if same or not now.is_alone:
        return same
    return tuple(row for row in others if row.is_alone)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRows:
    """Rows seen so far, by what a later one could share with them."""

    across: bool
    _by_model: dict[Hashable, tuple[int, HistoryRow]] = field(default_factory=dict)
    _alone: dict[Hashable, tuple[int, HistoryRow]] = field(default_factory=dict)

    def add(self, position: int, row: HistoryRow) -> None:
        """Take in a row that is at *position*, after all before it."""
        for key in self._keys(row):
            self._by_model[row.model, key] = (position, row)
            if row.is_alone:
                self._alone[key] = (position, row)

    def before(self, row: HistoryRow) -> HistoryRow | None:
        """The last comparable row."""
        keys = list(self._keys(row))
        previous = _last(self._by_model.get((row.model, key)) for key in keys)
        if previous is None and row.is_alone:
            return _last(map(self._alone.get, keys))
        return previous

    def _keys(self, row: HistoryRow) -> Iterator[Hashable]:
        milestone = row.milestone
        if not milestone.partial:
            data = "" if self.across else milestone.data
            yield from ((item, milestone.items[item], data) for item in row.standings)


def _last(candidates: Iterable[tuple[int, HistoryRow] | None]) -> HistoryRow | None:
    present = [candidate for candidate in candidates if candidate is not None]
    return max(present, key=lambda candidate: candidate[0])[1] if present else None


def with_previous(
    rows: Sequence[HistoryRow], *, across: bool
) -> Iterator[tuple[HistoryRow, HistoryRow | None]]:
    """Each row with the last comparable one before it; *rows* are in order of time."""
    past = EarlierRows(across=across)
    for position, row in enumerate(rows):
        yield row, past.before(row)
        past.add(position, row)


NOISE = 1e-9
"""A fall of no more is one of rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowComparison:
    """A row beside an earlier one."""

    now: HistoryRow
    then: HistoryRow
    items: tuple[str, ...]  #: those on which they are comparable; at least one

    @property
    def delta(self) -> float | None:
        """Change of the mean value over the common items."""
        return self._delta(self.items)

    @property
    def spread(self) -> float:
        """Spread between replicates of one run, over the common items."""
        return self._spread(self.items)

    @property
    def failed(self) -> tuple[str, ...]:
        """The items that passed and do not any more."""
        now, then = self.now.standings, self.then.standings
        return tuple(
            item for item in self.items if then[item].passed and not now[item].passed
        )

    def alerts(self, max_drop: float) -> Iterator[str]:
        """A sentence for each alert.

        Where a run has replicates, a fall inside of their range is none.

        Args:
            max_drop: by how much the mean value may fall.
        """
        measure, item = self.now.milestone.measure, self.now.milestone.item
        drop = self._drop(self.items)
        if drop > max(max_drop, self.spread) + NOISE:
            yield (
                f"macro {measure} of {self.now.model} fell by {drop:.4f} since "
                f"{self.then.run}, where {max_drop:g} is the most."
            )
        for name in self.failed:
            if self._drop((name,)) > self._spread((name,)) + NOISE:
                yield (
                    f"the {item} {name} passed in {self.then.run} and fails with "
                    f"{self.now.model} in {self.now.run}."
                )

    def _drop(self, items: Sequence[str]) -> float:
        return -(self._delta(items) or 0.0)

    def _delta(self, items: Sequence[str]) -> float | None:
        now, then = self.now.macro(items), self.then.macro(items)
        return None if now is None or then is None else now - then

    def _spread(self, items: Sequence[str]) -> float:
        ranges = [0.0]
        for row in (self.now, self.then):
            replicates = [
                value for value in row.replicate_values(items) if value is not None
            ]
            if replicates:
                ranges.append(max(replicates) - min(replicates))
        return max(ranges)


def compare_rows(
    now: HistoryRow, then: HistoryRow, *, across: bool
) -> RowComparison | None:
    """Two rows beside each other; None where they share no comparable item."""
    items = common_items(now, then, across=across)
    return RowComparison(now=now, then=then, items=items) if items else None


def compare_with_best(
    now: HistoryRow, earlier: Sequence[HistoryRow], *, across: bool
) -> RowComparison | None:
    """A row beside that which was best on the common items, by the mean value.

    Of equals it is that with most items in common, and then the last.

    Args:
        now: the row.
        earlier: rows of earlier runs, in order of time.
        across: whether other data may have been searched.
    """
    fit = tuple(row for row in earlier if common_items(now, row, across=across))
    comparisons = (
        compare_rows(now, row, across=across)
        for row in reversed(same_model_rows(now, fit))
    )
    return max(
        (comparison for comparison in comparisons if comparison is not None),
        key=lambda comparison: (
            comparison.then.macro(comparison.items) or 0.0,
            len(comparison.items),
        ),
        default=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine:
    """A row with what is said beside it."""

    row: HistoryRow
    previous: RowComparison | None  #: beside the last comparable row
    data_changed: bool  #: other data were searched than by the newest run

    @property
    def delta(self) -> float | None:
        """The change since that row."""
        return None if self.previous is None else self.previous.delta


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that has to do with the newest run of a job."""

    runs: tuple[ScoredRun, ...]  #: oldest first; at least one
    lines: tuple[HistoryLine, ...]  #: a row each
    left_out: int  #: runs that ask for something else on every item

    @property
    def newest(self) -> ScoredRun:
        """The run that is looked at."""
        return self.runs[-1]

    @property
    def now(self) -> Sequence[HistoryLine]:
        """The lines of the newest run."""
        return [line for line in self.lines if line.row.run == self._run]

    @property
    def earlier(self) -> Sequence[HistoryRow]:
        """The rows of all runs before it."""
        return [line.row for line in self.lines if line.row.run != self._run]

    @property
    def series(self) -> Mapping[str, Mapping[str, float]]:
        """By model, the mean value in each run."""
        values_by_model: dict[str, dict[str, float]] = {}
        for line in self.lines:
            value = line.row.macro()
            if value is not None:
                values_by_model.setdefault(line.row.model, {})[line.row.run] = value
        return values_by_model

    @property
    def _run(self) -> str:
        return self.newest.folder.run_id


def job_history(every: Sequence[ScoredRun], *, across: bool) -> History:
    """Return the history that belongs to the newest run.

    Args:
        every: runs of one job, oldest first; at least one.
        across: whether runs over other data are comparable too.
    """
    newest = every[-1].milestone
    runs = tuple(
        run for run in every if run is every[-1] or shared_items(newest, run.milestone)
    )
    return History(
        runs=runs,
        lines=tuple(_lines(rows(runs), newest.data, across=across)),
        left_out=len(every) - len(runs),
    )


def _lines(
    history_rows: Sequence[HistoryRow], data: str, *, across: bool
) -> Iterator[HistoryLine]:
    for row, before in with_previous(history_rows, across=across):
        yield HistoryLine(
            row=row,
            previous=None
            if before is None
            else compare_rows(row, before, across=across),
            data_changed=row.milestone.data != data,
        )


LAST, BEST = "last", "best"


def chosen_comparisons(
    history: History, every: Sequence[ScoredRun], against: str, *, across: bool
) -> Mapping[str, RowComparison | None]:
    """Each model of the newest run beside what is meant; None: nothing comparable.

    Args:
        history: what belongs to the newest run.
        every: all runs of the job, oldest first.
        against: `last`, `best`, the id of a run or its beginning.
        across: whether other data may have been searched.

    Raises:
        UsageError: the word means no run, several, or the newest one.
    """
    if against == LAST:
        return {line.row.model: line.previous for line in history.now}
    earlier = (
        history.earlier
        if against == BEST
        else rows([_named_run(history, every, against)])
    )
    return {
        line.row.model: compare_with_best(line.row, earlier, across=across)
        for line in history.now
    }


def _named_run(history: History, every: Sequence[ScoredRun], name: str) -> ScoredRun:
    newest = history.newest.folder.run_id
    matches = [run for run in every if run.folder.run_id == name] or [
        run for run in every if run.folder.run_id.startswith(name)
    ]
    if len(matches) != 1:
        raise UsageError(
            f"--against {name} names {len(matches)} of the scored runs: type the id of "
            f"one, or {LAST}, or {BEST}."
        )
    if matches[0].folder.run_id == newest:
        raise UsageError(f"{newest} is the newest run itself; name an earlier one.")
    return matches[0]


def no_comparison_reason(history: History) -> str:
    """Return why a model of the newest run has nothing to compare with."""
    if history.newest.milestone.partial:
        return "the run is unfinished (siftlog resume, then siftlog score)"
    if any(line.data_changed for line in history.lines):
        return "runs searched another database (--across-databases lets them in)"
    return "no other finished run sent the same requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """A part that was got by one of two rows only."""

    item: str
    part: str  #: its name
    before: ItemPart
    after: ItemPart

    @property
    def is_lost(self) -> bool:
        """Whether it was got before."""
        return self.before.got


def part_changes(
    comparison: RowComparison, now: ItemParts, then: ItemParts
) -> Iterator[PartChange]:
    """The parts that differ, by item and in the item's order.

    Args:
        comparison: of two rows.
        now: the parts of the run that is looked at.
        then: those of the other run; comparable items have the same ones.
    """
    for item in comparison.items:
        pairs = zip(
            now.names[item],
            then.models[comparison.then.model][item],
            now.models[comparison.now.model][item],
            strict=True,
        )
        yield from (
            PartChange(item=item, part=name, before=before, after=after)
            for name, before, after in pairs
            if before.got != after.got
        )
