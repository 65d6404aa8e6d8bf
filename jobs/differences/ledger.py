"""Books what moves from one scoring to the next on the causes between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice

from jobs.differences.causes import PARSER, SCORER, Cause
from jobs.differences.difference import Changed, ItemShare, Part, Stage, VerdictChange
from jobs.differences.items import item_shares
from jobs.differences.recoded import divided
from jobs.differences.seen import Metric, Seen, verdict_changes
from runner.score.repeat import Rescorer
from runner.scorecard import Booking
from store.tables import tasks_numbered

PAGE = 5_000
"""Tasks looked up at a time."""


class Ledger:
    """The parts of all metrics, entered one scoring after the other."""

    def __init__(self, run: Rescorer, first: Seen) -> None:
        """Begin with the first scoring; the run tells what its tasks are about."""
        self._run = run
        self._first = self._last = first
        self._parts: dict[Metric, list[Part]] = defaultdict(list)
        self._defined = {m: x for m, x in first.values.items() if x is not None}
        self.stages: list[Stage] = []

    def enter(self, causes: tuple[Cause, ...], seen: Seen) -> None:
        """Take in the next scoring, which differs from the last one by *causes*."""
        verdicts = self._verdicts(self._last, seen)
        moved = [
            metric
            for metric in dict.fromkeys((*self._last.values, *seen.values))
            if self._last.values.get(metric) != seen.values.get(metric)
        ]
        stage = Stage(
            causes=causes,
            metrics=len(moved),
            verdicts=verdicts,
            bookings=dict(self._bookings(causes, seen)),
        )
        for metric in moved:
            part = self._part(causes, metric, seen)
            if stage.is_of_code and _both(self._last, seen):
                own = verdicts.get(metric[0], ())
                self._parts[metric] += self._of_code(part, metric, own, seen)
            else:
                self._parts[metric].append(part)
        if moved or verdicts or not stage.is_of_code:
            self.stages.append(stage)
        self._last = seen

    def _part(self, causes: tuple[Cause, ...], metric: Metric, seen: Seen) -> Part:
        """What has become of one metric since the last scoring.

        Where it is undefined in between, the value before holds on: what follows is
        held against that, so that parts still add up.
        """
        model, path = metric
        before, after = self._last.values.get(metric), seen.values.get(metric)
        change = Fraction()
        if after is not None:
            held = self._defined.get(metric)
            change = Fraction(after) - Fraction(after if held is None else held)
            self._defined[metric] = after
        items: tuple[ItemShare, ...] = ()
        rounding = None
        makers = [each.comparable.get(model, {}) for each in (self._last, seen)]
        if before is not None and after is not None and all(path in m for m in makers):
            old, new = (made[path]() for made in makers)
            items, rounding = item_shares(old, new, change)
        return Part(
            causes=causes,
            before=before,
            after=after,
            change=change,
            items=items,
            rounding=rounding,
        )

    def _of_code(
        self, part: Part, metric: Metric, verdicts: Sequence[VerdictChange], seen: Seen
    ) -> Sequence[Part]:
        """A part of the code as its parser's and its scorer's, as far as that goes."""
        whole = replace(part, causes=_causes(verdicts))
        model, path = metric
        for side in (self._last, seen):
            make = side.comparable.get(model, {}).get(path)
            if make is not None:
                return divided(whole, verdicts, make(), is_after=side is seen)
        return (whole,)

    def _verdicts(
        self, before: Seen, after: Seen
    ) -> Mapping[str, tuple[VerdictChange, ...]]:
        """By model: the verdicts that differ, with the keys of their tasks."""
        if before.verdicts is None or after.verdicts is None:
            return {}
        found = verdict_changes(before.verdicts, after.verdicts)
        by_model: dict[str, list[VerdictChange]] = defaultdict(list)
        while page := list(islice(found, PAGE)):
            numbers = sorted({each.task for each in page})
            tasks = {row.task: row for row in tasks_numbered(self._run.reader, numbers)}
            for each in page:
                row = tasks[each.task]
                by_model[row.model].append(replace(each, key=row.key))
        return {model: tuple(by_model[model]) for model in sorted(by_model)}

    def _bookings(
        self, causes: tuple[Cause, ...], seen: Seen
    ) -> Iterator[tuple[str, Booking]]:
        """What the job itself says of a change, model by model."""
        book = getattr(self._run.job, "causes", None)
        if book is None:
            return
        names = frozenset(cause.name for cause in causes if cause.name)
        for model, make in seen.bookable.items():
            if model in self._last.bookable:
                made = book(names, self._last.bookable[model](), make())
                if made is not None:
                    yield model, made

    def changed(self) -> tuple[Changed, ...]:
        """Every metric that some cause moved, in the order of the last scorecard."""
        order = dict.fromkeys((*self._last.values, *self._first.values))
        return tuple(self._changed(each) for each in order if each in self._parts)

    def headlines(self) -> tuple[str, ...]:
        """Paths of the metrics to look at first."""
        return tuple(self._last.headlines or self._first.headlines)

    def unchanged(self) -> tuple[str, ...]:
        """Paths of the metrics that no cause moved, once a model."""
        every = dict.fromkeys((*self._last.values, *self._first.values))
        return tuple(path for model, path in every if (model, path) not in self._parts)

    def _changed(self, metric: Metric) -> Changed:
        before = self._first.values.get(metric)
        after = self._last.values.get(metric)
        parts = self._parts[metric]
        if before is None or after is None:
            # there is no number to divide
            parts = [replace(each, change=None) for each in parts]
        return Changed(
            model=metric[0],
            path=metric[1],
            before=before,
            after=after,
            parts=tuple(parts),
        )


def _both(before: Seen, after: Seen) -> bool:
    return before.verdicts is not None and after.verdicts is not None


def _causes(verdicts: Sequence[VerdictChange]) -> tuple[Cause, ...]:
    """Whether a model's metrics moved by how replies are read, or judged.

    Where both changed, no verdict tells how much of a metric is whose: the part is
    one. Where no verdict changed, the metric is computed otherwise.
    """
    found = {each.cause for each in verdicts} or {SCORER}
    return tuple(cause for cause in (PARSER, SCORER) if cause in found)
