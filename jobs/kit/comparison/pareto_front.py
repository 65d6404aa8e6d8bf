"""Sets quality beside cost and latency: which models are dominated by another.

A side is dominated by one that is at least as good, as cheap and as fast, and better in
one of these, by what both are known for. Quality is that of the items which all sides
have. That another's quality is higher is a point estimate, so the verdict of the
comparison of the two is given with it.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from jobs.kit.comparison.difference import (
    OPPOSITE,
    SideEstimate,
    SideVerdict,
    side_estimate,
)
from jobs.kit.comparison.models import (
    ComparedModels,
    ComparisonOptions,
    Side,
    compare_all,
)
from jobs.kit.comparison.pairing import Incomparable, PairedItems, pair_items
from jobs.kit.comparison.rescoring import RescoredRun
from jobs.kit.comparison.sides import RunReference
from runner.errors import UsageError
from runner.scorecard import Axis, Figure, ItemValues, LineSeries, Mark, Panel, Points
from store.database import open_reader
from store.read.live import latencies
from store.read.status import Status, status
from store.task import TaskState

_ENDED = (TaskState.COMPLETED, TaskState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expense:
    """Cost and latency of one model in one run, as its log has them now."""

    usd: float | None = None
    """Dollars for each unit: all replies of the model, those of later stages and
    replicates too; None: a price is unknown, answers were made elsewhere, or some came
    from the response cache, which cost nothing here."""
    seconds: float | None = None
    """Median latency of an answer; None: no answer was measured."""


UNKNOWN_EXPENSE = Expense()
TASK = "task"
"""Unit of costs where the job names none: a task that ended."""


def cost_unit(run: RescoredRun) -> str:
    """Return the unit of costs: the first one that the job names."""
    counted = run.scoring.scorecard.units.values()
    return next((name for units in counted for name in units), TASK)


def expenses(run: RescoredRun, by: str) -> Mapping[str, Expense]:
    """By model; *by* is the unit that dollars are for."""
    with open_reader(run.folder.log) as reader:
        seen = status(reader)
        median = {latency.model: latency.p50_ms for latency in latencies(reader)}
    card = run.scoring.scorecard
    expense_by_model = {}
    for model in card.models:
        n = _ended(seen, model) if by == TASK else card.units.get(model, {}).get(by, 0)
        ms = median.get(model)
        expense_by_model[model] = Expense(
            usd=_usd(seen, model, n), seconds=None if ms is None else ms / 1e3
        )
    return expense_by_model


def _usd(seen: Status, model: str, n: int) -> float | None:
    is_unknown = seen.imported or seen.cost_usd is None or seen.attempts.cached > 0
    if is_unknown or not n:
        return None
    return seen.model_cost_usd.get(model, 0.0) / n


def _ended(seen: Status, model: str) -> int:
    return sum(
        queue.states.get(state, 0)
        for queue in seen.queues
        if queue.model == model
        for state in _ENDED
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dominance:
    """Another side is at least as good in everything, and better in something."""

    by: Side
    quality: SideVerdict  #: of that side against this one


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPoint:
    """One side with all that it is judged by."""

    side: Side
    quality: SideEstimate
    expense: Expense
    dominated: tuple[Dominance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParetoFront:
    """All sides of a comparison by quality, cost and latency."""

    path: str  #: the metric that quality is
    unit: str  #: what dollars are for
    cluster: str
    lower_is_better: bool
    n: int  #: items that all sides have a value for
    points: tuple[FrontPoint, ...]

    @property
    def has_expenses(self) -> bool:
        """Whether there is a cost or a latency at all."""
        return any(point.expense != UNKNOWN_EXPENSE for point in self.points)


def quality_metric(matches: Sequence[ComparedModels], headline: str) -> str | None:
    """The metric that quality is: the job's headline if it was compared, or the first.

    None where nothing was.
    """
    paths = [metric.path for match in matches for metric in match.compared]
    return headline if headline in paths else next(iter(paths), None)


def build_front(
    matches: Sequence[ComparedModels],
    path: str,
    spent: Mapping[tuple[str, str], Expense],
    unit: str,
    options: ComparisonOptions,
) -> ParetoFront | None:
    """All sides of *matches* with the metric *path*; None if definitions differ.

    Args:
        matches: every match of the comparison.
        path: the metric that quality is.
        spent: by key of the side.
        unit: what its dollars are for.
        options: how intervals are drawn.
    """
    both = (side for match in matches for side in (match.a, match.b))
    sides = [
        side
        for side in {side.key: side for side in both}.values()
        if path in side.comparable
    ]
    values = _shared([side.comparable[path]() for side in sides])
    try:
        alone = [pair_items(values[0], item_values) for item_values in values]
    except Incomparable:
        return None
    draw = options.maker()
    points = [
        FrontPoint(
            side=side,
            quality=side_estimate(paired, draw(paired.resampled_clusters)),
            expense=spent.get(side.key, UNKNOWN_EXPENSE),
        )
        for side, paired in zip(sides, alone, strict=True)
    ]
    lower_is_better = values[0].lower_is_better

    verdicts = _verdicts(matches, sides, path, options)

    def dominated(index: int) -> tuple[Dominance, ...]:
        return tuple(
            Dominance(
                by=sides[other],
                quality=verdicts.get((sides[index].key, sides[other].key), "undecided"),
            )
            for other in range(len(points))
            if dominates(points[other], points[index], lower_is_better=lower_is_better)
        )

    return ParetoFront(
        path=path,
        unit=unit,
        cluster=values[0].cluster,
        lower_is_better=lower_is_better,
        n=_defined(alone),
        points=tuple(
            replace(point, dominated=dominated(at)) for at, point in enumerate(points)
        ),
    )


_Key: TypeAlias = tuple[str, str]


def _verdicts(
    matches: Sequence[ComparedModels],
    sides: Sequence[Side],
    path: str,
    options: ComparisonOptions,
) -> dict[tuple[_Key, _Key], SideVerdict]:
    """The word on the second side against the first, for every two sides.

    Two sides that were compared keep the comparison's word, so that one pair and
    metric has one verdict. Others, such as different models of two runs, are compared
    here.
    """
    verdicts: dict[tuple[_Key, _Key], SideVerdict] = {}
    side_pairs = [(a, b) for a in sides for b in sides if a.key < b.key]
    compared_pairs = {frozenset((match.a.key, match.b.key)) for match in matches}
    rest = [
        (a, b) for a, b in side_pairs if frozenset((a.key, b.key)) not in compared_pairs
    ]
    more = compare_all(rest, (glob.escape(path),), options)
    for match in (*matches, *more):
        for metric in match.compared:
            if metric.path == path:
                verdicts[match.a.key, match.b.key] = metric.verdict
                verdicts[match.b.key, match.a.key] = OPPOSITE[metric.verdict]
    return verdicts


def dominates(point: FrontPoint, other: FrontPoint, *, lower_is_better: bool) -> bool:
    """Whether *point* is nowhere behind *other*, and somewhere ahead of it.

    Sides without a cost or a latency that both are known for are not set against each
    other: quality alone is what the comparison itself is about.
    """
    quality, other_quality = point.quality.value, other.quality.value
    if quality is None or other_quality is None:
        return False
    expenses = [
        pair
        for pair in (
            (point.expense.usd, other.expense.usd),
            (point.expense.seconds, other.expense.seconds),
        )
        if None not in pair
    ]
    gains = [
        quality - other_quality if not lower_is_better else other_quality - quality,
        *(b - a for a, b in expenses if a is not None and b is not None),
    ]
    return bool(expenses) and min(gains) >= 0 and max(gains) > 0


def _defined(alone: Sequence[PairedItems]) -> int:
    return min((paired.overlap.n for paired in alone), default=0)


def _shared(values: Sequence[ItemValues]) -> list[ItemValues]:
    """The same metric on the items that all sides have.

    An item without a value on one side has none on any; its document is still drawn.
    """
    indices_by_side = [
        {item: at for at, item in enumerate(item_values.items)}
        for item_values in values
    ]
    common = sorted(set.intersection(*(set(indices) for indices in indices_by_side)))
    rows = [[indices[item] for item in common] for indices in indices_by_side]
    defined = [
        all(
            _has_value(item_values, row[n])
            for item_values, row in zip(values, rows, strict=True)
        )
        for n in range(len(common))
    ]
    return [
        replace(
            item_values,
            items=common,
            clusters=[item_values.clusters[at] for at in row],
            first=[
                item_values.first[at] if has else None
                for at, has in zip(row, defined, strict=True)
            ],
            second=None
            if item_values.second is None
            else [item_values.second[at] for at in row],
        )
        for item_values, row in zip(values, rows, strict=True)
    ]


def _has_value(item_values: ItemValues, at: int) -> bool:
    second = 1.0 if item_values.second is None else item_values.second[at]
    return item_values.first[at] is not None and second is not None


def front_with_costs(
    matches: Sequence[ComparedModels],
    runs: Mapping[RunReference, RescoredRun],
    options: ComparisonOptions,
) -> ParetoFront | None:
    """The front of all sides; None where no metric can be put on one axis."""
    first = next(iter(runs.values()))
    path = quality_metric(matches, first.scoring.scorecard.headline)
    if path is None:
        return None
    by = cost_unit(first)
    spent = {
        (run.name, model): expense
        for run in runs.values()
        for model, expense in expenses(run, by).items()
    }
    return build_front(matches, path, spent, by, options)


FIGURE_NAME = "front"
FIGURE_FORMATS = (".png", ".svg")
ROOM = 1.1
"""The end of an axis, by the place of what is farthest: notes stay inside."""

_AXES: Mapping[str, Callable[[Expense], float | None]] = {
    "USD per {unit}": lambda expense: expense.usd,
    "median latency, s": lambda expense: expense.seconds,
}


def check_figure_format(file: Path) -> None:
    """Find out early what could not be drawn.

    Raises:
        UsageError: by its name *file* is neither PNG nor SVG.
    """
    if file.suffix.lower() not in FIGURE_FORMATS:
        raise UsageError(f"{file}: name it .png or .svg.")


def front_figure(front: ParetoFront | None, level: float) -> Figure:
    """Each side as a point; the steps join those that none beats on both axes.

    Raises:
        UsageError: no side has a cost or a latency.
    """
    if front is None:
        raise UsageError(
            "The sides define their headline metric in different ways; "
            "quality cannot be plotted."
        )
    panels = tuple(
        _panel(front, label.format(unit=front.unit), of, level)
        for label, of in _AXES.items()
        if any(of(point.expense) is not None for point in front.points)
    )
    if not panels:
        raise UsageError(
            "No side has a cost or a latency to draw: the answers were made elsewhere, "
            "or their prices are unknown."
        )
    return Figure(
        name=FIGURE_NAME,
        title=f"{front.path} against cost and latency",
        caption=(
            f"Over {front.n} items that all sides have; intervals at {level:.10g} by "
            f"{front.cluster}. The line joins the best to be had for each amount."
        ),
        panels=panels,
        columns=len(panels),
    )


def write_figure(figure: Figure, file: Path) -> None:
    """Draw *figure* into *file*, whose ending says how."""
    # its matplotlib takes half a second to import
    from jobs.kit.report import figures  # noqa: PLC0415

    with TemporaryDirectory(prefix="siftlog-") as folder:
        figures.write_figures([figure], Path(folder))
        file.write_bytes(
            (Path(folder) / f"{figure.name}{file.suffix.lower()}").read_bytes()
        )


def _panel(
    front: ParetoFront, label: str, of: Callable[[Expense], float | None], level: float
) -> Panel:
    far = ROOM * max(of(point.expense) or 0.0 for point in front.points)
    steps = _steps(front, of)
    if steps:
        steps.append((far, steps[-1][1]))
    marks: list[Mark] = [
        LineSeries(
            x=tuple(x for x, _ in steps),
            y=tuple(y for _, y in steps),
            steps=True,
            faint=True,
        )
    ]
    marks += [
        Points(
            x=(of(point.expense),),
            y=(point.quality.value,),
            lo=(point.quality.interval.lo,),
            hi=(point.quality.interval.hi,),
            label=_label(point),
            series=series,
            notes=("dominated" if point.dominated else "",),
        )
        for series, point in enumerate(front.points)
    ]
    return Panel(
        title=f"{front.n} items, {100 * level:.4g}% intervals by {front.cluster}",
        x=Axis(label=label, lo=0, hi=far),
        y=Axis(label=front.path),
        marks=tuple(marks),
    )


def _label(point: FrontPoint) -> str:
    return "  ".join(point.side.key)


def _steps(
    front: ParetoFront, of: Callable[[Expense], float | None]
) -> list[tuple[float, float]]:
    """The best quality to be had for each amount, cheapest first."""
    sign = -1 if front.lower_is_better else 1
    points = [
        (x, y)
        for point in front.points
        if (x := of(point.expense)) is not None
        and (y := point.quality.value) is not None
    ]
    best: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda point: (point[0], -sign * point[1])):
        if not best or sign * y > sign * best[-1][1]:
            best.append((x, y))
    return best
