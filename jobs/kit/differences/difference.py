"""The difference between two scorings as a value: causes, metrics, items, verdicts.

Every part is a fraction of the doubles that were recorded. The parts of a metric add up
to its change exactly, and so do the shares of a part's items with what rounding left.

Pure. Two bases define what a cause changes; between them are the bases of the
scorings that are to be made. The order is fixed, for where causes act on one another
the share of each depends on it.
"""

from __future__ import annotations

import enum
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby, zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from jobs.kit.drift import SnapshotChange
from runner.score.render import headlines
from runner.score.repeat import ScoringBasis
from runner.score.scoring import Scoring
from runner.scorecard import Booking, Comparable, Verdict
from store.events import Input
from store.labels.folder import is_label_gold
from store.verdicts import StoredVerdict, all_verdicts, write_verdicts


class CauseKind(enum.StrEnum):
    """Kinds of causes, in the order in which they are applied."""

    ITEMS = "items"  #: answers that came, went or were asked again
    SERVED = "served model"  #: answers that came once another model or build served
    INPUT = "input"  #: a file or folder, such as the gold
    LABEL = "label"  #: a file of truth that was made from labels of people
    SETTING = "setting"
    PARSER = "parser"  #: other code read something else from the replies
    SCORER = "scorer"  #: other code judged what was read otherwise
    CODE = "code"  #: one of these two, or both, and no verdict tells them apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that differs between two scorings."""

    kind: CauseKind
    name: str = ""  #: of the setting, for those that have one
    before: str = ""  #: what it was, as it is shown
    after: str = ""

    @property
    def label(self) -> str:
        """It in two words."""
        return f"{self.kind} {self.name}".rstrip()


PARSER = Cause(kind=CauseKind.PARSER)
SCORER = Cause(kind=CauseKind.SCORER)


def code_cause(before: str, after: str) -> Cause:
    """Other code on an equal basis: whose the two scorings are."""
    return Cause(kind=CauseKind.CODE, before=before, after=after)


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseStep:
    """A basis to be scored, and what it changes in that of the step before."""

    cause: Cause
    basis: ScoringBasis


def cause_steps(
    before: ScoringBasis,
    after: ScoringBasis,
    order: Sequence[str],
    served: SnapshotChange | None = None,
) -> tuple[CauseStep, ...]:
    """The way from one basis to another, one cause at a time.

    Args:
        before: where it begins.
        after: where it ends.
        order: names of all settings, in the order in which they are changed.
        served: the first reply of another model or build between them.
    """
    steps = []
    at = before
    for cause, at in _changes(before, after, order, served):
        steps.append(CauseStep(cause=cause, basis=at))
    if steps:
        # what is equal in content and lies elsewhere is no cause, and comes along
        steps[-1] = replace(steps[-1], basis=after)
    return tuple(steps)


def _changes(
    before: ScoringBasis,
    after: ScoringBasis,
    order: Sequence[str],
    served: SnapshotChange | None,
) -> Iterator[tuple[Cause, ScoringBasis]]:
    at = before
    alike = after.seq if served is None else served.at.seq - 1
    if before.seq != alike:
        at = replace(at, seq=alike)
        yield (
            Cause(
                kind=CauseKind.ITEMS,
                before=f"event {before.seq}",
                after=f"event {alike}",
            ),
            at,
        )
    if served is not None:
        at = replace(at, seq=after.seq)
        yield (
            Cause(
                kind=CauseKind.SERVED,
                name=served.at.model,
                before=served.before,
                after=served.after,
            ),
            at,
        )
    names = [*order, *sorted({*before.settings, *after.settings} - {*order})]
    files = {input_file.setting for input_file in (*before.inputs, *after.inputs)}
    for name in (name for name in names if name in files):
        old, new = _of(before, name), _of(after, name)
        if [input_file.sha256 for input_file in old] == [
            input_file.sha256 for input_file in new
        ]:
            continue
        others = tuple(
            input_file for input_file in at.inputs if input_file.setting != name
        )
        at = replace(_set(at, after, name), inputs=(*others, *new))
        yield (
            Cause(
                kind=CauseKind.LABEL if _are_labels(old, new) else CauseKind.INPUT,
                name=name,
                before=_input_words(old),
                after=_input_words(new),
            ),
            at,
        )
    for name in (name for name in names if name not in files):
        if before.settings.get(name) == after.settings.get(name):
            continue
        at = _set(at, after, name)
        yield (
            Cause(
                kind=CauseKind.SETTING,
                name=name,
                before=_word(before.settings.get(name)),
                after=_word(after.settings.get(name)),
            ),
            at,
        )


def _are_labels(*sides: Sequence[Input]) -> bool:
    """Return whether an input of either side was made from labels of people."""
    return any(
        is_label_gold(Path(input_file.path)) for side in sides for input_file in side
    )


def _of(basis: ScoringBasis, name: str) -> tuple[Input, ...]:
    return tuple(
        input_file for input_file in basis.inputs if input_file.setting == name
    )


def _set(basis: ScoringBasis, after: ScoringBasis, name: str) -> ScoringBasis:
    return replace(basis, settings={**basis.settings, name: after.settings.get(name)})


_DIGITS = 8
"""Digits of a file's hash that are shown."""


def _input_words(inputs: Sequence[Input]) -> str:
    return ", ".join(input_file.sha256[:_DIGITS] for input_file in inputs) or "none"


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemShare:
    """Share of an item in a part; None: it is on one side alone, or has no value."""

    item: str
    cluster: str  #: the document that it is part of
    before: float | None
    after: float | None
    share: Fraction | None  #: None: the metric is no sum over items


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseShare:
    """Share of one cause, or of inseparable causes, in a metric's change."""

    causes: tuple[Cause, ...]
    before: float | None
    after: float | None
    change: Fraction | None
    """None: the metric was undefined on one side of the whole difference."""
    items: tuple[ItemShare, ...]  #: the largest shares first
    rounding: Fraction | None
    """Remainder of the shares after the metric's own rounding; None: there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedMetric:
    """A metric that is not what it was, or went another way to the same value."""

    model: str
    path: str
    before: float | None
    after: float | None
    parts: tuple[CauseShare, ...]

    @property
    def change(self) -> Fraction | None:
        """After less before, exactly; None where one is undefined."""
        if self.before is None or self.after is None:
            return None
        return Fraction(self.after) - Fraction(self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictChange:
    """A verdict on a task that differs."""

    task: int
    key: str
    before: StoredVerdict | None  #: None: there was none
    after: StoredVerdict | None

    @property
    def cause(self) -> Cause:
        """The cause where only the code changed: parser or scorer."""
        if self.before is None or self.after is None:
            return PARSER
        return PARSER if self.before.value != self.after.value else SCORER

    @property
    def right(self) -> int:
        """1 where it came to be right, -1 where it ceased to be, else 0."""
        was, now = (side is not None and side.correct for side in self.sides)
        return bool(now) - bool(was)

    @property
    def sides(self) -> tuple[StoredVerdict | None, StoredVerdict | None]:
        """Before and after."""
        return self.before, self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceStage:
    """Changes by one step between two scorings."""

    causes: tuple[Cause, ...]
    metrics: int  #: that it moved
    verdicts: Mapping[str, tuple[VerdictChange, ...]]  #: by model
    bookings: Mapping[str, Booking]  #: by model, of jobs that name causes of their own

    @property
    def is_of_code(self) -> bool:
        """Whether nothing but the code changed."""
        return {cause.kind for cause in self.causes} == {CauseKind.CODE}

    def by_cause(
        self,
    ) -> Iterator[tuple[str, tuple[Cause, ...], Sequence[VerdictChange]]]:
        """The verdicts by model, those of the code as its parser's and its scorer's."""
        for model, changes in self.verdicts.items():
            if not self.is_of_code:
                yield model, self.causes, changes
                continue
            for cause in (PARSER, SCORER):
                cause_changes = [change for change in changes if change.cause == cause]
                if cause_changes:
                    yield model, (cause,), cause_changes


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringDifference:
    """All that lies between two scorings of a run."""

    run: str
    job: str
    before: int  #: number of a scoring
    after: int
    digests: tuple[str, str]
    headline: str  #: path of the metric that the scorings are judged by
    headlines: tuple[str, ...]  #: of those that are looked at first
    stages: tuple[DifferenceStage, ...]
    changed: tuple[ChangedMetric, ...]
    unchanged: tuple[str, ...]  #: paths of the other metrics, once a model
    notes: tuple[str, ...]


MetricKey: TypeAlias = tuple[str, str]
"""A model, and the path of one of its metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringContent:
    """The parts of a scoring that a difference uses."""

    values: Mapping[MetricKey, float | None]
    verdicts: Path | None  #: the file that holds them; None: it is gone
    headlines: Sequence[str] = ()  #: paths of the metrics to look at first
    comparable: Mapping[str, Comparable] = field(default_factory=dict)
    bookable: Mapping[str, Callable[[], Any]] = field(default_factory=dict)


def replayed_content(scoring: Scoring, verdicts: Path) -> ScoringContent:
    """A scoring made again; its verdicts are written to a new file."""
    card = scoring.scorecard
    write_verdicts(
        verdicts,
        (
            StoredVerdict(
                task=detail.task,
                value=detail.value,
                expected=detail.expected,
                correct=detail.correct,
                rule=detail.rule,
                is_grounded=detail.is_grounded,
            )
            for detail in card.details
            if isinstance(detail, Verdict)
        ),
    )
    return ScoringContent(
        values={
            (model, metric.path): metric.value
            for model, metrics in card.models.items()
            for metric in metrics
        },
        verdicts=verdicts,
        headlines=headlines(card),
        comparable=card.comparable,
        bookable=card.bookable,
    )


def stored_content(scorecard: bytes, verdicts: Path) -> ScoringContent:
    """A scoring as it was recorded, by code that may be gone."""
    models = json.loads(scorecard)["models"]
    return ScoringContent(
        values={
            (model, path): metric["value"]
            for model, model_record in models.items()
            for path, metric in model_record["metrics"].items()
        },
        verdicts=verdicts if verdicts.exists() else None,
    )


def verdict_changes(before: Path, after: Path) -> Iterator[VerdictChange]:
    """Verdicts that differ in value, truth or outcome, by task, without their keys.

    Of a task with several, those that are on both sides are no change, wherever they
    stand; the others are held against one another in their order.
    """
    for task, old, new in _side_by_side(all_verdicts(before), all_verdicts(after)):
        common = Counter(map(_verdict_key, old)) & Counter(map(_verdict_key, new))
        for was, now in zip_longest(_without(old, common), _without(new, common)):
            yield VerdictChange(task=task, key="", before=was, after=now)


def _verdict_key(verdict: StoredVerdict) -> tuple[Any, ...]:
    """Return the parts of a verdict that are compared; not the rule that read it."""
    return verdict.value, verdict.expected, verdict.correct


def _without(
    verdicts: Sequence[StoredVerdict], common: Counter[tuple[Any, ...]]
) -> Iterator[StoredVerdict]:
    left = Counter(common)
    for verdict in verdicts:
        if left[_verdict_key(verdict)]:
            left[_verdict_key(verdict)] -= 1
        else:
            yield verdict


def _side_by_side(
    before: Iterator[StoredVerdict], after: Iterator[StoredVerdict]
) -> Iterator[tuple[int, list[StoredVerdict], list[StoredVerdict]]]:
    """The verdicts of both sides, task by task."""
    left, right = _by_task(before), _by_task(after)
    old, new = next(left, None), next(right, None)
    while old is not None or new is not None:
        task = min(side[0] for side in (old, new) if side is not None)
        was: list[StoredVerdict] = []
        now: list[StoredVerdict] = []
        if old is not None and old[0] == task:
            was, old = old[1], next(left, None)
        if new is not None and new[0] == task:
            now, new = new[1], next(right, None)
        yield task, was, now


def _by_task(
    verdicts: Iterator[StoredVerdict],
) -> Iterator[tuple[int, list[StoredVerdict]]]:
    for task, task_verdicts in groupby(verdicts, attrgetter("task")):
        yield task, list(task_verdicts)
