"""Draws the headline metrics of a scorecard: the first figure of every report.

It needs nothing but the scorecard, so a job without figures of its own has it too.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from jobs.kit.text_format import UNDEFINED, metric_interval, n_text
from runner.scorecard import (
    Axis,
    Direction,
    Figure,
    Metric,
    Panel,
    Points,
    ReferenceLine,
    Scorecard,
)
from runner.table_rendering import format_number

NAME = "headline"
"""Name of the figure's files."""

MOST_MODELS = 24
"""Rows of a panel; the table has all."""

BETTER: Mapping[Direction, str] = {
    "higher": "higher is better",
    "lower": "lower is better",
    "neither": "",
}
"""Labels of the axes."""


def headline_figure(card: Scorecard, paths: Sequence[str]) -> Figure | None:
    """Return a forest plot: a panel per headline metric, a row per model.

    Models have the order and the styles that they have in all figures of the report.
    For a single model, the rows of one panel are its metrics. Metrics that only
    describe the data, such as counts, are left out unless there are no others.

    Args:
        card: the scorecard.
        paths: of the metrics, in the order of the table beside the figure.

    Returns:
        None if none of the metrics has a value.
    """
    models = {
        model: {metric.path: metric for metric in metrics}
        for model, metrics in list(card.models.items())[:MOST_MODELS]
    }
    by_path = {
        path: [metrics.get(path) for metrics in models.values()] for path in paths
    }
    defined = {path: row for path, row in by_path.items() if any(map(_is_defined, row))}
    judged = {
        path: row for path, row in defined.items() if _first(row).direction != "neither"
    }
    rows = list((judged or defined).values())
    if not rows:
        return None
    panels = _of_models(rows, tuple(models)) if len(models) > 1 else _of_one(rows)
    named = "by model" if len(models) > 1 else f"of {next(iter(models))}"
    sentences = [f"Headline metrics {named} with {_level(card)}; n counts the items."]
    if len(models) < len(card.models):
        sentences.append(f"The first {len(models)} of {len(card.models)} models.")
    return Figure(
        name=NAME,
        title="Headline metrics",
        caption=" ".join(sentences),
        panels=tuple(panels),
        columns=min(2, len(panels)),
    )


NARROW_CHARS = 22
"""Characters in a line of a row's name: more, and a figure takes a page's width."""


def narrow_name(name: str) -> str:
    """The name of the figure for a narrow screen."""
    return f"{name}-narrow"


def narrow_figure(figure: Figure) -> Figure:
    """Return the headline chart for a narrow screen: one column, names in lines.

    The numbers beside the rows are left out: the table above the chart has them.
    """
    panels = (
        replace(
            panel,
            y=replace(panel.y, names=tuple(map(_in_lines, panel.y.names))),
            row_notes=(),
        )
        for panel in figure.panels
    )
    return replace(
        figure, name=narrow_name(figure.name), panels=tuple(panels), columns=1
    )


def _in_lines(name: str) -> str:
    lines = (textwrap.wrap(line, NARROW_CHARS) for line in name.split("\n"))
    return "\n".join(chain.from_iterable(lines))


def _level(card: Scorecard) -> str:
    level = card.settings.get("level")
    return f"{100 * level:.4g}% intervals" if isinstance(level, float) else "intervals"


def _is_defined(metric: Metric | None) -> bool:
    return metric is not None and metric.value is not None


def _first(row: Sequence[Metric | None]) -> Metric:
    return next(metric for metric in row if metric is not None)


def _of_models(
    rows: Sequence[Sequence[Metric | None]], models: Sequence[str]
) -> list[Panel]:
    """Return a panel for each metric."""
    return [
        Panel(
            title=_first(row).label,
            x=_value_axis(row, _below(row)),
            y=Axis(names=tuple(models)),
            row_notes=tuple(map(_value_text, row)),
            marks=(
                *_zero(row),
                *_points(dict(enumerate(row))),
            ),
        )
        for row in rows
    ]


def _of_one(rows: Sequence[Sequence[Metric | None]]) -> list[Panel]:
    """Return a panel of all rates, and one for each metric with another scale."""
    metrics = [_first(row) for row in rows]
    rates = [metric for metric in metrics if _is_rate([metric])]
    groups = [rates] if rates else []
    groups += [[metric] for metric in metrics if not _is_rate([metric])]
    return [
        Panel(
            x=_value_axis(group, "value" if len(group) > 1 else _below(group)),
            y=Axis(
                names=tuple(f"{metric.label}\n{n_text([metric])}" for metric in group)
            ),
            row_notes=tuple(map(_value_text, group)),
            marks=(
                *_zero(group),
                *_points(dict(enumerate(group)), series=0),
            ),
        )
        for group in groups
    ]


def _points(
    rows: Mapping[int, Metric | None], series: int | None = None
) -> Iterator[Points]:
    """Yield the value of each row in the style of its model, or in that of *series*."""
    for row, metric in rows.items():
        # the text beside a row says what has no value
        if metric is not None and metric.value is not None:
            yield Points(
                x=(metric.value,),
                y=(row,),
                lo=(metric.lo,),
                hi=(metric.hi,),
                series=row if series is None else series,
            )


def _value_axis(metrics: Sequence[Metric | None], label: str) -> Axis:
    """Return the axis of the values: from 0 to 1 for rates, so that they compare."""
    if _is_rate(metrics):
        return Axis(label=label, lo=0, hi=1)
    return Axis(label=label, lo=0 if min(_numbers(metrics)) >= 0 else None)


def _below(metrics: Sequence[Metric | None]) -> str:
    """Return what a reader needs below the values of one metric."""
    better = BETTER[_first(metrics).direction]
    return f"{n_text(metrics)}; {better}" if better else n_text(metrics)


def _is_rate(metrics: Sequence[Metric | None]) -> bool:
    return all(
        0 <= number <= 1 and isinstance(number, float) for number in _numbers(metrics)
    )


def _numbers(metrics: Sequence[Metric | None]) -> list[float | int]:
    return [
        number
        for metric in metrics
        if metric is not None
        for number in (metric.value, metric.lo, metric.hi)
        if number is not None
    ]


def _zero(metrics: Sequence[Metric | None]) -> tuple[ReferenceLine, ...]:
    return (ReferenceLine(way="vertical", at=0),) if min(_numbers(metrics)) < 0 else ()


def _value_text(metric: Metric | None) -> str:
    if metric is None:
        return "-"
    if metric.value is None:
        return UNDEFINED
    return f"{format_number(metric.value)} {metric_interval(metric)}".rstrip()
