"""Attributes the difference of two scorings to causes, changing one at a time.

Nothing is recorded and no model is called. What code that is gone had made of a scoring
stands in its scorecard, which the log holds under its digest; the code's own part is
what the same basis gives today, held against that.

Where a metric's items are the tasks themselves and an item's value is whether its
verdict is right, the verdicts of the old code say what the items were. Whether it is
so is not known but tested: verdicts and items must agree on the side that was replayed,
and the listed items must give the value that was recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from jobs.kit.differences.difference import (
    PARSER,
    SCORER,
    Cause,
    CauseShare,
    ChangedMetric,
    DifferenceStage,
    ItemShare,
    MetricKey,
    ScoringContent,
    ScoringDifference,
    VerdictChange,
    cause_steps,
    code_cause,
    replayed_content,
    stored_content,
    verdict_changes,
)
from jobs.kit.drift import first_snapshot
from jobs.kit.metrics import Term, shares_of_change
from jobs.kit.metrics.columns import exact_ratio
from runner.errors import DatasetError, RunnerError, UsageError
from runner.score.repeat import Rescorer, ScoringBasis
from runner.scorecard import Booking, ItemValues
from store.events import ScoringRecorded
from store.tables import tasks_numbered
from store.verdicts import StoredVerdict

NEAR = Fraction(1, 10**9)
"""By how much shares may miss a metric's change: more is no rounding, and the metric is
something else than the ratio of its items' sums."""


def item_shares(
    before: ItemValues, after: ItemValues, change: Fraction
) -> tuple[tuple[ItemShare, ...], Fraction | None]:
    """The items that moved a metric, and what its own rounding leaves.

    Args:
        before: the items as they were.
        after: as they became.
        change: of the metric, exactly.

    Returns:
        The items, the largest shares first, without shares where the metric is no ratio
        of sums; and what is left of the change.
    """
    old, new = terms(before), terms(after)
    clusters = {
        item: cluster
        for values in (before, after)
        for item, cluster in zip(values.items, values.clusters, strict=True)
    }
    shares = shares_of_change(old, new) if _are_summed(before, after) else None
    rest = None if shares is None else change - sum(shares.values(), Fraction())
    if rest is None or abs(rest) > NEAR:
        shares = rest = None
    moved = (item for item in clusters if old.get(item) != new.get(item))
    item_changes = [
        ItemShare(
            item=item,
            cluster=clusters[item],
            before=_display_value(old.get(item), before),
            after=_display_value(new.get(item), after),
            share=None if shares is None else shares[item],
        )
        for item in (moved if shares is None else shares)
    ]
    return tuple(_largest_first(item_changes)), rest


def _largest_first(items: Iterable[ItemShare]) -> list[ItemShare]:
    return sorted(items, key=lambda item: (-abs(item.share or 0), item.item))


def _are_summed(*sides: ItemValues) -> bool:
    return all(values.kind in {"mean", "ratio"} for values in sides)


def terms(values: ItemValues) -> Mapping[str, Term]:
    """Return numerator and denominator of each item that has a value.

    Of an area, its label and its score.
    """
    second = [1.0] * len(values.items) if values.second is None else values.second
    columns = zip(values.items, values.first, second, strict=True)
    return {
        item: (float(above), float(below))
        for item, above, below in columns
        if above is not None and below is not None
    }


def _display_value(term: Term | None, values: ItemValues) -> float | None:
    """Return the value of an item for display; of an area, its score."""
    if term is None:
        return None
    above, below = term
    if _are_summed(values):
        return above / below if below else None
    return below


def divided_share(
    part: CauseShare,
    verdicts: Sequence[VerdictChange],
    item_values: ItemValues,
    *,
    is_after: bool,
) -> tuple[CauseShare, ...]:
    """A part of the code as its parser's and its scorer's; whole where that fails.

    Args:
        part: what other code has in a metric's change.
        verdicts: of the metric's model that differ, with the keys of their tasks.
        item_values: the metric's items by the code of today.
        is_after: whether that is the side after the change.
    """
    at_hand = terms(item_values)
    other_terms = _terms_from_verdicts(
        item_values, at_hand, verdicts, is_after=is_after
    )
    expected = part.before if is_after else part.after
    if other_terms is None or expected is None or part.change is None:
        return (part,)
    ratio = exact_ratio(other_terms)
    if ratio is None or abs(ratio - Fraction(expected)) > NEAR:
        return (part,)
    old, new = (other_terms, at_hand) if is_after else (at_hand, other_terms)
    shares = shares_of_change(old, new) or {}
    causes = {change.key: change.cause for change in verdicts}
    clusters = dict(zip(item_values.items, item_values.clusters, strict=True))
    shares_by_cause: dict[Cause, list[ItemShare]] = {}
    for item, share in shares.items():
        shares_by_cause.setdefault(causes[item], []).append(
            ItemShare(
                item=item,
                cluster=clusters[item],
                before=_term_value(old.get(item)),
                after=_term_value(new.get(item)),
                share=share,
            )
        )
    return tuple(_parts(part, shares_by_cause))


def _terms_from_verdicts(
    item_values: ItemValues,
    at_hand: Mapping[str, Term],
    verdicts: Iterable[VerdictChange],
    *,
    is_after: bool,
) -> Mapping[str, Term] | None:
    """Return the items of the other side; None where verdicts do not determine them."""
    if item_values.kind != "mean":
        return None
    items, other_terms, seen = set(item_values.items), dict(at_hand), set()
    for change in verdicts:
        if change.key not in items:
            continue
        side, other = change.sides[::-1] if is_after else change.sides
        if change.key in seen or _term(side) != at_hand.get(change.key):
            return None
        seen.add(change.key)
        term = _term(other)
        if term is None:
            other_terms.pop(change.key, None)
        else:
            other_terms[change.key] = term
    return other_terms


def _term(verdict: StoredVerdict | None) -> Term | None:
    if verdict is None or verdict.correct is None:
        return None
    return float(verdict.correct), 1.0


def _term_value(term: Term | None) -> float | None:
    return None if term is None else term[0]


def _parts(
    part: CauseShare, shares_by_cause: Mapping[Cause, list[ItemShare]]
) -> Iterable[CauseShare]:
    """One for each cause; what the metric's own rounding leaves is the last one's."""
    causes = [cause for cause in (PARSER, SCORER) if cause in shares_by_cause]
    rest = part.change or Fraction()
    for cause in causes:
        items = _largest_first(shares_by_cause[cause])
        total = sum((item.share or Fraction() for item in items), Fraction())
        change = rest if cause == causes[-1] else total
        rest -= change
        yield replace(
            part,
            causes=(cause,),
            change=change,
            items=tuple(items),
            rounding=change - total,
        )
    if not causes:
        yield part


PAGE = 5_000
"""Tasks looked up at a time."""


class ChangeLedger:
    """The parts of all metrics, entered one scoring after the other."""

    def __init__(self, run: Rescorer, first: ScoringContent) -> None:
        """Begin with the first scoring; the run tells what its tasks are about."""
        self._run = run
        self._first = self._last = first
        self._parts: dict[MetricKey, list[CauseShare]] = defaultdict(list)
        self._defined = {m: x for m, x in first.values.items() if x is not None}
        self.stages: list[DifferenceStage] = []

    def enter(self, causes: tuple[Cause, ...], seen: ScoringContent) -> None:
        """Take in the next scoring, which differs from the last one by *causes*."""
        verdicts = self._verdicts(self._last, seen)
        moved = [
            metric
            for metric in dict.fromkeys((*self._last.values, *seen.values))
            if self._last.values.get(metric) != seen.values.get(metric)
        ]
        stage = DifferenceStage(
            causes=causes,
            metrics=len(moved),
            verdicts=verdicts,
            bookings=dict(self._bookings(causes, seen)),
        )
        for metric in moved:
            part = self._part(causes, metric, seen)
            if stage.is_of_code and _both(self._last, seen):
                model_verdicts = verdicts.get(metric[0], ())
                self._parts[metric] += self._of_code(part, metric, model_verdicts, seen)
            else:
                self._parts[metric].append(part)
        if moved or verdicts or not stage.is_of_code:
            self.stages.append(stage)
        self._last = seen

    def _part(
        self, causes: tuple[Cause, ...], metric: MetricKey, seen: ScoringContent
    ) -> CauseShare:
        """Return the change of one metric since the last scoring.

        Where it is undefined in between, the value before holds on: what follows is
        held against that, so that parts still add up.
        """
        model, path = metric
        before, after = self._last.values.get(metric), seen.values.get(metric)
        change = Fraction()
        if after is not None:
            last_defined = self._defined.get(metric)
            change = Fraction(after) - Fraction(
                after if last_defined is None else last_defined
            )
            self._defined[metric] = after
        items: tuple[ItemShare, ...] = ()
        rounding = None
        makers = [content.comparable.get(model, {}) for content in (self._last, seen)]
        if before is not None and after is not None and all(path in m for m in makers):
            old, new = (maker[path]() for maker in makers)
            items, rounding = item_shares(old, new, change)
        return CauseShare(
            causes=causes,
            before=before,
            after=after,
            change=change,
            items=items,
            rounding=rounding,
        )

    def _of_code(
        self,
        part: CauseShare,
        metric: MetricKey,
        verdicts: Sequence[VerdictChange],
        seen: ScoringContent,
    ) -> Sequence[CauseShare]:
        """A part of the code as its parser's and its scorer's, as far as that goes."""
        whole = replace(part, causes=_causes(verdicts))
        model, path = metric
        for side in (self._last, seen):
            make = side.comparable.get(model, {}).get(path)
            if make is not None:
                return divided_share(whole, verdicts, make(), is_after=side is seen)
        return (whole,)

    def _verdicts(
        self, before: ScoringContent, after: ScoringContent
    ) -> Mapping[str, tuple[VerdictChange, ...]]:
        """By model: the verdicts that differ, with the keys of their tasks."""
        if before.verdicts is None or after.verdicts is None:
            return {}
        changes = verdict_changes(before.verdicts, after.verdicts)
        by_model: dict[str, list[VerdictChange]] = defaultdict(list)
        while page := list(islice(changes, PAGE)):
            numbers = sorted({change.task for change in page})
            tasks = {row.task: row for row in tasks_numbered(self._run.reader, numbers)}
            for change in page:
                row = tasks[change.task]
                by_model[row.model].append(replace(change, key=row.key))
        return {model: tuple(by_model[model]) for model in sorted(by_model)}

    def _bookings(
        self, causes: tuple[Cause, ...], seen: ScoringContent
    ) -> Iterator[tuple[str, Booking]]:
        """Return the job's own explanation of a change, by model."""
        names = frozenset(cause.name for cause in causes if cause.name)
        for model, make in seen.bookable.items():
            if model in self._last.bookable:
                last = self._last.bookable[model]()
                booking = self._run.job.causes(names, last, make())
                if booking is not None:
                    yield model, booking

    def changed(self) -> tuple[ChangedMetric, ...]:
        """Every metric that some cause moved, in the order of the last scorecard."""
        order = dict.fromkeys((*self._last.values, *self._first.values))
        return tuple(self._changed(metric) for metric in order if metric in self._parts)

    def headlines(self) -> tuple[str, ...]:
        """Paths of the metrics to look at first."""
        return tuple(self._last.headlines or self._first.headlines)

    def unchanged(self) -> tuple[str, ...]:
        """Paths of the metrics that no cause moved, once a model."""
        every = dict.fromkeys((*self._last.values, *self._first.values))
        return tuple(path for model, path in every if (model, path) not in self._parts)

    def _changed(self, metric: MetricKey) -> ChangedMetric:
        before = self._first.values.get(metric)
        after = self._last.values.get(metric)
        parts = self._parts[metric]
        if before is None or after is None:
            # there is no number to divide
            parts = [replace(part, change=None) for part in parts]
        return ChangedMetric(
            model=metric[0],
            path=metric[1],
            before=before,
            after=after,
            parts=tuple(parts),
        )


def _both(before: ScoringContent, after: ScoringContent) -> bool:
    return before.verdicts is not None and after.verdicts is not None


def _causes(verdicts: Sequence[VerdictChange]) -> tuple[Cause, ...]:
    """Whether a model's metrics moved by how replies are read, or judged.

    Where both changed, no verdict tells how much of a metric is whose: the part is
    one. Where no verdict changed, the metric is computed otherwise.
    """
    causes = {change.cause for change in verdicts} or {SCORER}
    return tuple(cause for cause in (PARSER, SCORER) if cause in causes)


Stop: TypeAlias = tuple[tuple[Cause, ...], ScoringContent]
"""Causes new in this scoring, and its content."""


def find_difference(
    run: Rescorer,
    before: ScoringRecorded,
    after: ScoringRecorded,
    *,
    progress: Callable[[str], None],
) -> ScoringDifference:
    """Return the difference between two recorded scorings of a run.

    Args:
        run: opened for scoring again.
        before: one of its scorings.
        after: another.
        progress: called with each cause whose scoring begins.

    Raises:
        DatasetError: an input is not what it was, and the log does not keep it.
        RunnerError: the code has changed, and a scorecard that it had made is gone.
        UsageError: the job has not all of its settings any more.
    """
    with TemporaryDirectory(prefix="siftlog-") as scratch:
        stops = _stops(run, before, after, Path(scratch), progress)
        _, first = next(stops)
        ledger = ChangeLedger(run, first)
        for causes, seen in stops:
            ledger.enter(causes, seen)
    return ScoringDifference(
        run=run.folder.run_id,
        job=run.job.name,
        before=before.number,
        after=after.number,
        digests=(before.digest, after.digest),
        headline=after.headline or before.headline,
        headlines=ledger.headlines(),
        stages=tuple(ledger.stages),
        changed=ledger.changed(),
        unchanged=ledger.unchanged(),
        notes=tuple(_notes(before, after)),
    )


def _stops(
    run: Rescorer,
    before: ScoringRecorded,
    after: ScoringRecorded,
    scratch: Path,
    progress: Callable[[str], None],
) -> Iterator[Stop]:
    """One scoring after the other, from the first as recorded to the last."""
    begin, end = (ScoringBasis.of(run.job, recorded) for recorded in (before, after))
    if run.is_still_after(min(begin.seq, end.seq)):
        begin = replace(begin, seq=end.seq)  # only scorings and the like came between
    served = first_snapshot(run.reader, begin.seq, end.seq)
    way = cause_steps(begin, end, tuple(run.job.Settings.model_fields), served)
    progress(f"scoring {before.number}")
    rescored = run.scored(begin)
    if rescored.digest == before.digest:
        yield (), replayed_content(rescored, scratch / "0.db")
    else:
        yield (), _as_recorded(run, before)
        label = f"scoring {before.number}"
        for recorded in _between(run, begin, before, after):
            if recorded.digest == rescored.digest:
                break  # what is replayed shows more than what was recorded
            yield (
                (code_cause(label, f"scoring {recorded.number}"),),
                _as_recorded(run, recorded),
            )
            label = f"scoring {recorded.number}"
        yield (
            (code_cause(label, "today"),),
            replayed_content(rescored, scratch / "0.db"),
        )
    waiting: tuple[Cause, ...] = ()
    for number, step in enumerate(way, 1):
        waiting += (step.cause,)
        progress(step.cause.label)
        try:
            rescored = run.scored(step.basis)
        except (DatasetError, UsageError):
            if number == len(way):
                raise
            # settings and inputs that stand or fall together are one step
            continue
        yield waiting, replayed_content(rescored, scratch / f"{number}.db")
        waiting = ()
    if rescored.digest != after.digest:
        now = code_cause("today", f"scoring {after.number}")
        yield (now,), _as_recorded(run, after)


def _between(
    run: Rescorer, begin: ScoringBasis, before: ScoringRecorded, after: ScoringRecorded
) -> Iterator[ScoringRecorded]:
    """Scorings that later code made on the basis of the first.

    They divide the code's part: whose parser changed, scored, and changed the scorer
    then, sees what each did.
    """
    digest = before.digest
    for recorded in run.scorings():
        is_between = before.number < recorded.number <= after.number
        if (
            is_between
            and recorded.digest != digest
            and run.stored(recorded) is not None
        ):
            other = ScoringBasis.of(run.job, recorded)
            if begin.is_like(other) and run.is_still_after(min(begin.seq, other.seq)):
                digest = recorded.digest
                yield recorded


def _as_recorded(run: Rescorer, recorded: ScoringRecorded) -> ScoringContent:
    scorecard = run.stored(recorded)
    if scorecard is None:
        raise RunnerError(
            f"Scoring {recorded.number} was made by other code, and its scorecard.json "
            f"is gone: siftlog score {run.folder.run_id} makes one to hold others "
            "against."
        )
    folder = run.folder.scores / str(recorded.number)
    return stored_content(scorecard, folder / "verdicts.db")


def _notes(before: ScoringRecorded, after: ScoringRecorded) -> Iterator[str]:
    if before.digest == after.digest:
        yield "Both scorecards are the same, byte for byte."
