"""Declares the figures of a scoring: rates, aliases, losses, properties and quotes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np

from jobs.kit import charts
from jobs.kit.charts import (
    Chart,
    ChartFigures,
    Drawing,
    bootstrap_note,
    first_rows,
    loss_panel,
    most_rows,
    rows_panel,
    stack,
)
from jobs.kit.grounding import GroundingLevel
from jobs.kit.text_format import n_text, plural
from jobs.property_extraction.caveats import ExcludedRows
from jobs.property_extraction.rates import WORDS, rates_of
from jobs.property_extraction.results import PropertyResults, ScoredModel
from jobs.property_extraction.row_outcomes import RowOutcome
from runner.scorecard import Axis, Panel, Points
from store.printable import one_line

Plot: TypeAlias = charts.Plot[PropertyResults, ScoredModel]

NAMES = ("precision", "recall", "F1")
"""Display names of the rates."""

QUOTES = {
    "fabricated": (GroundingLevel.ABSENT,),
    "nearly there": (GroundingLevel.NEAR,),
    "in the paper": (
        GroundingLevel.EXACT,
        GroundingLevel.NORMALISED,
        GroundingLevel.ELIDED,
    ),
    "no quote": (GroundingLevel.NO_QUOTE,),
}
"""Levels as the figure shows them, the worst first."""

MOST_ROWS = 24
"""Most properties in one figure, which must fit a page. The tables have all."""


def _rates(plot: Plot) -> Iterator[Panel]:
    if plot.results.papers:
        rates = [[model.data.metric(word) for word in WORDS] for model in plot.models]
        names = [
            f"{name}\n{n_text(metrics)}"
            for name, metrics in zip(NAMES, zip(*rates, strict=True), strict=True)
        ]
        yield rows_panel(
            names, zip(plot.models, rates, strict=True), Axis(label="rate", lo=0, hi=1)
        )


def _aliases(plot: Plot) -> Drawing:
    models = [model for model in plot.models if model.data.first.aliases.accepted]
    panel = Panel(
        x=Axis(names=("no aliases", "with aliases")),
        y=Axis(label="true positives", lo=0),
        marks=tuple(
            model.bars(
                outcomes.prediction_outcomes.count(RowOutcome.TP)
                for outcomes in (model.data.unrenamed, model.data.first.row_outcomes)
            )
            for model in models
        ),
    )
    sets = dict.fromkeys(model.data.first.aliases.id for model in models)
    return Drawing(panels=[panel] if models else [], facts={"sets": ", ".join(sets)})


def _losses(plot: Plot) -> Iterator[Panel]:
    """Yield the remaining truth rows after each step, and those lost there."""
    for model in plot.select(_left):
        yield loss_panel(model.name, "truth rows", model.data)


def _left(model: ScoredModel) -> Mapping[str, int] | None:
    counts = model.first.counts
    has_predictions = (counts.tp + counts.fp) > 0
    truth = counts.tp + counts.fn
    if not truth.sum():
        return None
    return {
        "truth": int(truth.sum()),
        "name found": int(truth[has_predictions].sum()),
        "value found": int(counts.tp.sum()),
    }


def _recall(plot: Plot) -> Drawing:
    """Draw the recall of each property, those with the most truth rows first."""
    n: Counter[str] = Counter()
    recalls: dict[str, dict[str, float | None]] = {}
    for model in plot.models:
        counts, cells = model.data.first.counts, model.data.first.counts.by_name()
        # models differ in truth if papers failed: the largest count is used
        truth: list[int] = np.asarray(cells.tp + cells.fn).tolist()
        n |= Counter(dict(zip(counts.names, truth, strict=True)))
        rates = rates_of(cells, "recall")
        recalls[model.name] = dict(zip(counts.names, rates, strict=True))
    ranked = sorted((name for name in n if n[name]), key=lambda name: (-n[name], name))
    names, selected = first_rows(
        ranked,
        most_rows(len(plot.models), MOST_ROWS),
        " Of {all:,} properties the {n:,} with the most truth rows.",
    )
    panel = rows_panel(
        [one_line(name) for name in names],
        (
            (model, [recalls[model.name].get(name) for name in names])
            for model in plot.models
        ),
        Axis(label="recall", lo=0, hi=1),
        row_notes=[f"n = {n[name]:,}" for name in names],
    )
    return Drawing(panels=[panel] if names else [], facts={"selected": selected})


def _precision_and_recall(plot: Plot) -> Iterator[Panel]:
    """Yield a point for all properties that have the same two rates."""
    for model in plot.select(_rate_pairs):
        points = sorted(model.data)
        yield Panel(
            title=model.name,
            x=Axis(label="recall", lo=0, hi=1),
            y=Axis(label="precision", lo=0, hi=1),
            square=True,
            marks=(
                Points(
                    x=tuple(x for x, _ in points),
                    y=tuple(y for _, y in points),
                    notes=tuple(f"{model.data[point]:,}" for point in points),
                    series=model.series,
                ),
            ),
        )


def _rate_pairs(model: ScoredModel) -> Counter[tuple[float, float]]:
    cells = model.first.counts.by_name()
    rates = zip(rates_of(cells, "recall"), rates_of(cells, "precision"), strict=True)
    return Counter(
        (recall, precision)
        for recall, precision in rates
        if recall is not None and precision is not None
    )


def _quotes(plot: Plot) -> Iterator[Panel]:
    """Yield the number of rows of each model by kind of quote."""
    if len(plot.results.dataset.papers):
        yield Panel(
            x=Axis(label="rows", lo=0),
            y=Axis(names=tuple(one_line(model.name) for model in plot.models)),
            marks=stack(
                {
                    label: [_rows_at(model.data, *levels) for model in plot.models]
                    for label, levels in QUOTES.items()
                }
            ),
        )


def _rows_at(model: ScoredModel, *levels: GroundingLevel) -> int:
    return sum(int(model.metric(f"grounding.{level}").value or 0) for level in levels)


CHARTS = (
    Chart(
        name="rates",
        title="Precision, recall and F1",
        caption="All rows together; n is the number of rows. Intervals: {intervals}.",
        panels=_rates,
    ),
    Chart(
        name="aliases",
        title="Values found, by alias set",
        caption="Matched rows of the first replicate without aliases, and under those "
        "that act: {sets}.",
        panels=_aliases,
    ),
    Chart(
        name="losses",
        title="Where curated values were lost",
        caption="Truth rows; those whose name is predicted in their paper, under an "
        "alias where one acts; and those whose value is too. Lost at the second step: "
        "not found, or otherwise named; at the third: the value is wrong, or there are "
        "fewer of them.",
        panels=_losses,
    ),
    Chart(
        name="recall-by-property",
        title="Recall by property",
        caption="Share of each property's curated values that is found, of n in all."
        "{selected}",
        panels=_recall,
    ),
    Chart(
        name="precision-recall-by-property",
        title="Precision against recall by property",
        caption="Properties that are both curated and predicted; the number beside a "
        "point is how many have these two rates.",
        panels=_precision_and_recall,
    ),
    Chart(
        name="quotes",
        title="Do quotes occur in their papers?",
        caption="Predicted rows by their quote: in the paper word for word (ligatures, "
        "dashes and blanks apart, or with parts left out), nearly, or not at all. Rows "
        "of papers without a text are left out.",
        panels=_quotes,
    ),
)
"""Charts in the order of the report."""

CHARTS_WITHOUT_TRUTH = tuple(chart for chart in CHARTS if chart.name == "quotes")


def figures(results: PropertyResults) -> ChartFigures[PropertyResults, ScoredModel]:
    """Return the figures that the input has data for."""

    def plot() -> Plot:
        settings = results.dataset.settings
        papers = plural(len(results.papers), "paper")
        note = bootstrap_note(settings.level, "paper", papers, settings.boot_b)
        omitted = ExcludedRows.of(results).note
        return Plot.of(results, results.columns, note, omitted=omitted)

    charts = CHARTS if results.dataset.has_truth else CHARTS_WITHOUT_TRUTH
    return ChartFigures(charts, plot)
