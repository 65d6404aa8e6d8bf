"""Renders a difference as one HTML file, in the frame of the reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from jobs.kit.differences.difference import (
    CauseShare,
    ChangedMetric,
    DifferenceStage,
    ScoringDifference,
)
from jobs.kit.differences.rendering import (
    extent,
    judged_first,
    labels,
    number,
    selected_metrics,
    sides,
    signed,
    verdict_tally,
)
from jobs.kit.report.html import (
    Child,
    Element,
    element,
    facts_list,
    folded,
    html_page,
    html_table,
)
from jobs.kit.text_format import plural
from runner.scorecard import Booking
from store.document import Numbers, Words

MOST_ITEMS = 50
"""Items of one part on the page; --json has all."""


def page(difference: ScoringDifference, paths: Sequence[str] = ()) -> str:
    """The text of the page.

    Args:
        difference: what to tell.
        paths: of the metrics to show, `*` for any characters; all where none are named.
    """
    metrics = selected_metrics(difference, paths)
    parts = {
        "Causes": _causes(difference.stages),
        "Metrics by cause": _metrics(difference, metrics),
        "Booked": _bookings(difference.stages),
        "Items": _items(difference, metrics),
        "Verdicts": _verdicts(difference.stages),
    }
    facts = {
        "job": difference.job,
        "run": difference.run,
        **{
            f"scoring {number}": f"scorecard.json, SHA-256 {digest[:16]}…"
            for number, digest in zip(
                (difference.before, difference.after), difference.digests, strict=True
            )
        },
    }
    title = (
        f"{difference.job}: scoring {difference.before} to {difference.after} "
        f"of run {difference.run}"
    )
    notices = (element("p", note, class_="notice") for note in difference.notes)
    return html_page(title, (facts_list(facts), notices), parts, _footer(difference))


def _causes(stages: Sequence[DifferenceStage]) -> Iterator[Element]:
    if not stages:
        yield element("p", "No input of the scorings differs.")
        return
    rows: list[tuple[Child, ...]] = [
        (
            labels(stage.causes),
            "; ".join(cause.before for cause in stage.causes),
            "; ".join(cause.after for cause in stage.causes),
            f"{stage.metrics:,}",
            f"{sum(map(len, stage.verdicts.values())):,}",
        )
        for stage in stages
    ]
    yield html_table(
        "What differs, in the order in which it was changed, one at a time.",
        [
            Words("cause"),
            Words("before"),
            Words("after"),
            Numbers("metrics moved"),
            Numbers("verdicts changed"),
        ],
        rows,
    )


def _metrics(
    difference: ScoringDifference, metrics: Sequence[ChangedMetric]
) -> Iterator[Element]:
    """For each model a table: a metric a row, a cause a column."""
    for model in dict.fromkeys(metric.model for metric in metrics):
        model_metrics = [metric for metric in metrics if metric.model == model]
        first = [
            metric
            for metric in model_metrics
            if metric.path in {difference.headline, *difference.headlines}
        ]
        rest = [metric for metric in model_metrics if metric not in first]
        yield element("h3", model)
        if first:
            yield _table(first, "The headline metrics.")
        if rest:
            caption = "n/a: undefined on a side, so that no number is divided."
            yield folded(plural(len(rest), "further metric"), _table(rest, caption))


def _table(changed: Sequence[ChangedMetric], caption: str) -> Element:
    causes = tuple(
        dict.fromkeys(
            labels(part.causes) for metric in changed for part in metric.parts
        )
    )
    headers = ("before", "after", "change", *causes)
    return html_table(
        caption,
        [Words("metric"), *(Numbers(name) for name in headers)],
        [
            (
                metric.path,
                number(metric.before),
                number(metric.after),
                signed(metric.change),
                *(_by(metric, cause) for cause in causes),
            )
            for metric in changed
        ],
    )


def _by(metric: ChangedMetric, cause: str) -> str:
    cause_parts = [part for part in metric.parts if labels(part.causes) == cause]
    if not cause_parts:
        return ""
    changes = [part.change for part in cause_parts if part.change is not None]
    return signed(sum(changes, Fraction()) if changes else None)


def _items(
    difference: ScoringDifference, metrics: Sequence[ChangedMetric]
) -> Iterator[Element]:
    for metric in metrics:
        for part in metric.parts:
            if part.items:
                yield folded(
                    f"{metric.path} of {metric.model}, {labels(part.causes)}: "
                    f"{signed(part.change)} by {plural(len(part.items), 'item')}",
                    _shares(part),
                    is_open=metric.path == difference.headline,
                )


def _shares(part: CauseShare) -> Element:
    left = len(part.items) - MOST_ITEMS
    caption = f"The largest; {left:,} more are in --json." if left > 0 else "All items."
    return html_table(
        caption,
        [Words("item"), Numbers("before"), Numbers("after"), Numbers("share")],
        [
            (item.item, number(item.before), number(item.after), signed(item.share))
            for item in part.items[:MOST_ITEMS]
        ],
    )


def _verdicts(stages: Sequence[DifferenceStage]) -> Iterator[Element]:
    for stage in stages:
        for model, causes, changes in stage.by_cause():
            yield folded(
                f"{model}, {labels(causes)}: {verdict_tally(changes)}",
                html_table(
                    f"The first {MOST_ITEMS} at most.",
                    [Words(name) for name in ("task", "before", "after")],
                    [
                        (change.key, *sides(change))
                        for change in judged_first(changes)[:MOST_ITEMS]
                    ],
                ),
            )


def _bookings(stages: Sequence[DifferenceStage]) -> Iterator[Element]:
    for stage in stages:
        for model, booking in stage.bookings.items():
            yield _booked(model, booking)


def _booked(model: str, booking: Booking) -> Element:
    table = booking.table
    numeric = [
        all(isinstance(row[column], int) for row in table.rows)
        for column in range(len(table.columns))
    ]
    return html_table(
        f"{booking.metric} of {model} by {table.caption}: {booking.change:+d} in sum.",
        [
            (Numbers if is_number else Words)(name)
            for name, is_number in zip(table.columns, numeric, strict=True)
        ],
        [tuple(str(cell) for cell in row) for row in table.rows],
    )


def _footer(difference: ScoringDifference) -> Element:
    sides = f"{difference.before} {difference.after}"
    return element(
        "p",
        f"{extent(difference)}. Parts and shares are exact fractions, shown to "
        "four digits; with what a metric's own rounding leaves, they add up "
        "to each change. ",
        element("code", f"siftlog diff {difference.run} {sides} --json"),
        " gives them in full.",
    )
