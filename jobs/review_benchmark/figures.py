"""Declares the figures of a scoring: recall, losses, thresholds, search, verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jobs.kit import charts
from jobs.kit.charts import (
    Chart,
    ChartFigures,
    Drawing,
    first_rows,
    loss_panel,
    model_rows,
    most_rows,
    thinned_line,
)
from jobs.review_benchmark.agent_results import AgentResults, mean_curve
from jobs.review_benchmark.benchmark import percent
from jobs.review_benchmark.losses import LostAt
from jobs.review_benchmark.results import BenchmarkResults
from jobs.review_benchmark.settings import VerdictKind
from jobs.review_benchmark.verdicts import ConclusionVerdicts
from runner.scorecard import (
    Axis,
    Category,
    LineSeries,
    Number,
    Panel,
    Points,
    ReferenceLine,
    Series,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllResults:
    """Results that figures plot for all agents."""

    benchmark: BenchmarkResults
    concluded: Mapping[str, ConclusionVerdicts]  #: by model; with a similarity

    @property
    def threshold(self) -> tuple[ReferenceLine, ...]:
        """Threshold of a run; empty for an import, whose agents used their own."""
        if self.benchmark.predictions.imported:
            return ()
        least_score = self.benchmark.dataset.settings.least_score
        return (ReferenceLine(way="vertical", at=least_score),)


Plot: TypeAlias = charts.Plot[AllResults, AgentResults]

SEARCHED: Mapping[str, Sequence[LostAt]] = {
    "truth": (),
    "database": ("not_in_database", "near_miss_match", "claimed"),
    "retrieved": ("not_retrieved", "date_filtered"),
    "scored": ("unscored",),
    "included": ("below_threshold", "excluded"),
}
"""Steps of an agent's work, and the losses at each."""

IMPORTED: Mapping[str, Sequence[LostAt]] = {
    "truth": (),
    "records": SEARCHED["database"],
    "included": ("below_threshold", "excluded"),
}
"""Steps that imported results record."""

MOST_REVIEWS = 40
"""Most rows; with more, single reviews are unreadable."""

BREADTH = 0.5
"""Share of a row's height that its models take."""

SIMILARITIES: Mapping[VerdictKind, str] = {
    "direction": "tfidf",
    "tfidf": "tfidf",
    "judge": "judge",
    "embedding": "embedding",
}
"""Source of the similarity, by kind of verdict."""


def _recall(plot: Plot) -> Drawing:
    """Draw a row for each review: each model's recall, with a bar up to its ceiling."""
    settings = plot.results.benchmark.dataset.settings
    lowest: dict[str, float] = {}
    for model in plot.models:
        for review, counts in model.data.benchmarks.items():
            lowest[review] = min(counts.recall, lowest.get(review, 1.0))
    # the first row is at the top
    worst = sorted(lowest, key=lambda review: (lowest[review], review))
    reviews, selected = first_rows(
        worst,
        most_rows(len(plot.models), MOST_REVIEWS),
        " The {n} of {all} reviews with the least recall.",
    )
    marks = []
    for index, model in enumerate(plot.models):
        rows = model_rows(index, len(plot.models), len(reviews), breadth=BREADTH)
        row_benchmarks = [
            (row, model.data.benchmarks[review])
            for row, review in zip(rows, reviews, strict=True)
            if review in model.data.benchmarks
        ]
        recalls = tuple(benchmark.recall for _, benchmark in row_benchmarks)
        marks.append(
            Points(
                x=recalls,
                y=tuple(row for row, _ in row_benchmarks),
                lo=recalls,
                hi=tuple(benchmark.ceiling for _, benchmark in row_benchmarks),
                label=model.name,
                series=model.series,
            )
        )
    panel = Panel(
        x=Axis(label="recall", lo=0, hi=1),
        y=Axis(names=tuple(reviews)),
        marks=(ReferenceLine(way="vertical", at=settings.target_recall), *marks),
    )
    return Drawing(
        panels=[panel] if plot.models else [],
        facts={"target": percent(settings.target_recall), "selected": selected},
    )


def _losses(plot: Plot) -> Iterator[Panel]:
    """Yield a bar for each step: the remaining studies, and those lost there."""
    steps = IMPORTED if plot.results.benchmark.predictions.imported else SEARCHED
    for model in plot.models:
        by_path = model.data.by_path()
        n = int(by_path["count.truth"].value or 0)
        left = {}
        for step, causes in steps.items():
            n -= sum(int(by_path[f"lost.{cause}"].value or 0) for cause in causes)
            left[step] = n
        yield loss_panel(model.name, "studies", left)


def _by_threshold(plot: Plot) -> Drawing:
    """Draw mean recall and precision at each score that occurs."""
    threshold = plot.results.threshold
    return Drawing(
        panels=[
            Panel(
                title=model.name,
                x=Axis(label="score threshold"),
                y=Axis(label="mean over reviews", lo=0, hi=1),
                # thresholds fall: each value applies down to the next score, exclusive
                marks=(
                    *threshold,
                    _step_line(
                        [(step.threshold, step.recall) for step in model.data],
                        label="recall",
                        series=Category(0),
                    ),
                    _step_line(
                        [(step.threshold, step.precision) for step in model.data],
                        label="precision",
                        series=Category(1),
                    ),
                ),
            )
            for model in plot.select(lambda data: data.overall)
        ],
        facts={
            "dashed": " Dashed: the threshold of this scoring." if threshold else ""
        },
    )


def _by_rank(plot: Plot) -> Iterator[Panel]:
    """Yield the share of the truth among the first candidates."""
    if models := plot.select(lambda data: data.curves):
        yield Panel(
            x=Axis(label="candidates kept", lo=0),
            y=Axis(label="recall of the search", lo=0, hi=1),
            marks=tuple(
                _step_line(
                    ((0, 0.0), *mean_curve(model.data)),
                    label=model.name,
                    series=model.series,
                )
                for model in models
            ),
        )


def _verdicts(plot: Plot) -> Iterator[Panel]:
    """Yield the share of matched and of mismatched pairs above each similarity."""
    for model in plot.models:
        verdicts = plot.results.concluded.get(model.name)
        if verdicts is None:
            continue
        threshold = verdicts.threshold
        pairs = {
            "matched": verdicts.compared.values(),
            "mismatched": verdicts.mismatched.values(),
        }
        yield Panel(
            title=model.name,
            x=Axis(label=f"similarity ({SIMILARITIES[verdicts.kind]})", hi=1),
            y=Axis(label="share of pairs above", lo=0, hi=1),
            marks=(
                *(
                    [ReferenceLine(way="vertical", at=threshold.value)]
                    if threshold
                    else ()
                ),
                *(
                    _step_line(
                        _shares_above(similarities),
                        label=f"{name} ({len(similarities):,})",
                        series=Category(index),
                    )
                    for index, (name, similarities) in enumerate(pairs.items())
                    if similarities
                ),
            ),
        )


def _shares_above(similarities: Collection[float]) -> list[tuple[float, float]]:
    """Return a step down at each similarity that occurs."""
    ordered = sorted(similarities)
    steps = {
        similarity: 1 - rank / len(ordered)
        for rank, similarity in enumerate(ordered, start=1)
    }
    return [(min(0.0, ordered[0]), 1.0), *steps.items()]


def _step_line(
    points: Iterable[tuple[Number, Number]], *, label: str, series: Series
) -> LineSeries:
    x, y = zip(*points, strict=True)
    return thinned_line(x, y, label=label, series=series, steps=True)


CHARTS = (
    Chart(
        name="recall-by-review",
        title="Recall by review",
        caption="Share of a review's included studies that were found and included. "
        "The bar to the right of a mark ends at the ceiling: the studies that the "
        "papers searched have at all. Dashed: the target of {target}.{selected}",
        panels=_recall,
    ),
    Chart(
        name="losses",
        title="Where included studies were lost",
        caption="Studies of all reviews that are left after each step, and those that "
        "were lost at it.",
        panels=_losses,
    ),
    Chart(
        name="threshold",
        title="Recall and precision against the threshold",
        caption="Means over reviews, from the stored scores, if papers were included "
        "from each threshold on; at a step the value on its left is that of the "
        "score itself. A review that includes nothing has no precision.{dashed}",
        panels=_by_threshold,
    ),
    Chart(
        name="retrieval",
        title="Recall against the candidates kept",
        caption="Mean over reviews of the share of included studies among the first "
        "candidates, in the order in which they are scored: what a smaller "
        "max_candidates would lose. A review whose list is shorter stays.",
        panels=_by_rank,
    ),
    Chart(
        name="verdicts",
        title="Conclusions of the same review and of others",
        caption="Share of the pairs of conclusions that are more alike than each "
        "similarity: matched are an agent's and the authors' of one review, mismatched "
        "those of two. The further apart the lines, the more a verdict says. Dashed: "
        "the threshold, if there is one.",
        panels=_verdicts,
    ),
)
"""Charts in the order of the report."""


def figures(
    results: BenchmarkResults, concluded: Sequence[ConclusionVerdicts]
) -> ChartFigures[AllResults, AgentResults]:
    """Return the figures that the input has data for, of models with a review."""
    return ChartFigures(
        CHARTS,
        lambda: Plot.of(
            AllResults(
                benchmark=results,
                concluded={
                    verdicts.model: verdicts
                    for verdicts in concluded
                    if verdicts.compared
                },
            ),
            {
                model: agent if agent.rebuilt else None
                for model, agent in results.columns.items()
            },
        ),
    )
