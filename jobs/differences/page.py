"""Renders a difference as one HTML file, in the frame of the reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from jobs.differences.difference import (
    CauseShare,
    ChangedMetric,
    DifferenceStage,
    ScoringDifference,
)
from jobs.differences.rendering import (
    extent,
    judged_first,
    labels,
    named_metrics,
    number,
    sides,
    signed,
    verdict_tally,
)
from jobs.report.html import (
    Child,
    Element,
    HtmlColumn,
    element,
    facts_list,
    html_page,
    html_table,
)
from jobs.text import plural
from runner.scorecard import Booking

MOST_ITEMS = 50
"""Of one part on the page; --json has all."""


def page(made: ScoringDifference, paths: Sequence[str] = ()) -> str:
    """The text of the page.

    Args:
        made: what to tell.
        paths: of the metrics to show, `*` for any characters; all where none are named.
    """
    shown = named_metrics(made, paths)
    parts = {
        "Causes": _causes(made.stages),
        "Metrics by cause": _metrics(made, shown),
        "Booked": _bookings(made.stages),
        "Items": _items(made, shown),
        "Verdicts": _verdicts(made.stages),
    }
    filled = {title: inside for title, each in parts.items() if (inside := tuple(each))}
    facts = {
        "job": made.job,
        "run": made.run,
        **{
            f"scoring {number}": f"scorecard.json, SHA-256 {digest[:16]}…"
            for number, digest in zip(
                (made.before, made.after), made.digests, strict=True
            )
        },
    }
    title = f"{made.job}: scoring {made.before} to {made.after} of run {made.run}"
    notices = (element("p", note, class_="notice") for note in made.notes)
    return html_page(title, (facts_list(facts), notices), filled, _footer(made))


def _causes(stages: Sequence[DifferenceStage]) -> Iterator[Element]:
    if not stages:
        yield element("p", "Nothing that a scoring goes by differs.")
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
            HtmlColumn(name="cause"),
            HtmlColumn(name="before"),
            HtmlColumn(name="after"),
            HtmlColumn(name="metrics moved", numeric=True),
            HtmlColumn(name="verdicts changed", numeric=True),
        ],
        rows,
    )


def _metrics(
    made: ScoringDifference, shown: Sequence[ChangedMetric]
) -> Iterator[Element]:
    """For each model a table: a metric a row, a cause a column."""
    for model in dict.fromkeys(each.model for each in shown):
        own = [each for each in shown if each.model == model]
        first = [each for each in own if each.path in {made.headline, *made.headlines}]
        rest = [each for each in own if each not in first]
        yield element("h3", model)
        if first:
            yield _table(first, "The metrics to look at first.")
        if rest:
            yield element(
                "details",
                element("summary", plural(len(rest), "further metric")),
                _table(rest, "n/a: undefined on a side, so that no number is divided."),
            )


def _table(changed: Sequence[ChangedMetric], caption: str) -> Element:
    causes = tuple(
        dict.fromkeys(labels(part.causes) for each in changed for part in each.parts)
    )
    heads = ("before", "after", "change", *causes)
    return html_table(
        caption,
        [
            HtmlColumn(name="metric"),
            *(HtmlColumn(name=name, numeric=True) for name in heads),
        ],
        [
            (
                each.path,
                number(each.before),
                number(each.after),
                signed(each.change),
                *(_by(each, cause) for cause in causes),
            )
            for each in changed
        ],
    )


def _by(each: ChangedMetric, cause: str) -> str:
    own = [part for part in each.parts if labels(part.causes) == cause]
    if not own:
        return ""
    known = [part.change for part in own if part.change is not None]
    return signed(sum(known, Fraction()) if known else None)


def _items(
    made: ScoringDifference, shown: Sequence[ChangedMetric]
) -> Iterator[Element]:
    for each in shown:
        for part in each.parts:
            if part.items:
                table = _shares(part)
                opened = "" if each.path == made.headline else None
                yield element(
                    "details",
                    element(
                        "summary",
                        f"{each.path} of {each.model}, {labels(part.causes)}: "
                        f"{signed(part.change)} by {plural(len(part.items), 'item')}",
                    ),
                    table,
                    open=opened,
                )


def _shares(part: CauseShare) -> Element:
    left = len(part.items) - MOST_ITEMS
    caption = f"The largest; {left:,} more are in --json." if left > 0 else "All items."
    return html_table(
        caption,
        [
            HtmlColumn(name="item"),
            HtmlColumn(name="before", numeric=True),
            HtmlColumn(name="after", numeric=True),
            HtmlColumn(name="share", numeric=True),
        ],
        [
            (item.item, number(item.before), number(item.after), signed(item.share))
            for item in part.items[:MOST_ITEMS]
        ],
    )


def _verdicts(stages: Sequence[DifferenceStage]) -> Iterator[Element]:
    for stage in stages:
        for model, causes, changes in stage.by_cause():
            yield element(
                "details",
                element(
                    "summary", f"{model}, {labels(causes)}: {verdict_tally(changes)}"
                ),
                html_table(
                    f"The first {MOST_ITEMS} at most.",
                    [HtmlColumn(name=name) for name in ("task", "before", "after")],
                    [
                        (each.key, *sides(each))
                        for each in judged_first(changes)[:MOST_ITEMS]
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
        all(isinstance(row[place], int) for row in table.rows)
        for place in range(len(table.columns))
    ]
    return html_table(
        f"{booking.metric} of {model} by {table.caption}: {booking.change:+d} in sum.",
        [
            HtmlColumn(name=name, numeric=is_number)
            for name, is_number in zip(table.columns, numeric, strict=True)
        ],
        [tuple(str(cell) for cell in row) for row in table.rows],
    )


def _footer(made: ScoringDifference) -> Element:
    return element(
        "footer",
        element(
            "p",
            f"{extent(made)}. Parts and shares are exact fractions, shown to four "
            "digits; with what a metric's own rounding leaves, they add up to each "
            "change. ",
            element(
                "code", f"siftlog diff {made.run} {made.before} {made.after} --json"
            ),
            " gives them in full.",
        ),
    )
