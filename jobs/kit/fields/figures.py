"""Declares the figures of typed fields: outcomes by field, accuracy, confusion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from jobs.kit import charts
from jobs.kit.charts import Chart, ChartFigures, rows_panel, stack
from jobs.kit.fields.tables import FieldOutcomes
from jobs.kit.text_format import n_text
from runner.scorecard import Axis, Metric, Panel

Data: TypeAlias = tuple[Sequence[FieldOutcomes], Mapping[str, Metric]]
"""The counts of a model, and its metrics by path."""

Plot: TypeAlias = charts.Plot[None, Data]


def _outcomes(plot: Plot) -> Iterator[Panel]:
    for model in plot.models:
        rows = [row for row in model.data[0] if row.tally.outcomes]
        if not rows:
            continue
        ungrounded = [row.tally.quoted - row.tally.grounded for row in rows]
        yield Panel(
            title=model.name,
            x=Axis(label="items", lo=0),
            y=Axis(names=tuple(row.field for row in rows)),
            marks=stack(
                {
                    "answered": [
                        row.tally.answered - n
                        for row, n in zip(rows, ungrounded, strict=True)
                    ],
                    "quote not in the text": ungrounded,
                    "not reported": [r.tally.states["not reported"] for r in rows],
                    "could not be read": [row.tally.unread for row in rows],
                }
            ),
        )


def _accuracy(plot: Plot) -> Iterator[Panel]:
    paths = dict.fromkeys(
        path
        for model in plot.models
        for path in model.data[1]
        if path.startswith("field.") and path.endswith(".accuracy")
    )
    if paths:
        values = {
            path: [model.data[1].get(path) for model in plot.models] for path in paths
        }
        yield rows_panel(
            [
                f"{path.split('.')[1]}\n{n_text(metrics)}"
                for path, metrics in values.items()
            ],
            zip(plot.models, zip(*values.values(), strict=True), strict=True),
            Axis(label="accuracy", lo=0, hi=1),
        )


CHARTS: tuple[Chart[None, Data], ...] = (
    Chart(
        name="outcomes",
        title="Answers by field",
        caption="Items by the outcome of each field.",
        panels=_outcomes,
    ),
    Chart(
        name="accuracy",
        title="Accuracy by field",
        caption="Share of items with a gold value whose answer is right; n is their "
        "number. Intervals: {intervals}.",
        panels=_accuracy,
    ),
)


def figures(
    counts: Sequence[FieldOutcomes],
    metrics: Mapping[str, Sequence[Metric]],
    intervals: str,
) -> ChartFigures[None, Data]:
    """Return the figures of a scoring; *intervals* says how they were computed."""

    def plot() -> Plot:
        data = {
            model: (
                [row for row in counts if row.model == model],
                {metric.path: metric for metric in listed},
            )
            for model, listed in metrics.items()
        }
        return charts.Plot.of(None, data, intervals)

    return ChartFigures(CHARTS, plot)
