"""Figures of a scoring: rates, aliases, losses, properties and quotes, by model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from jobs.kit import shared_figures
from jobs.kit.shared_figures import SIDE_BY_SIDE, build_figures
from jobs.kit.text_format import plural
from jobs.property_extraction.caveats import ExcludedRows
from jobs.property_extraction.grounding import GroundingLevel
from jobs.property_extraction.rates import WORDS, GroupCounts, by_name
from jobs.property_extraction.results import PropertyResults, ScoredModel
from jobs.property_extraction.row_outcomes import RowOutcome
from runner.scorecard import Axis, Bars, FailedFigure, Figure, Panel, Points, Stack
from store.printable import one_line, shortened

PlottedModel: TypeAlias = shared_figures.ModelSeries[ScoredModel]
"""One of the models that are shown."""


PlottedResults: TypeAlias = shared_figures.PlottedModels[PropertyResults, ScoredModel]


def plotted_results(results: PropertyResults) -> PlottedResults:
    """The models that figures have room for."""
    settings, papers = results.dataset.settings, plural(len(results.papers), "paper")
    return shared_figures.plotted_models(
        results,
        results.columns,
        interval_note=shared_figures.bootstrap_note(
            settings.level, "paper", papers, settings.boot_b
        ),
        omission_note=ExcludedRows.of(results).note,
    )


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
"""Levels as the figure has them, the worst at the bottom."""

NAME_CELLS = 36
"""Of a model's name below a bar: a picture has no more, and cuts off the end."""


def rates(plotted: PlottedResults) -> Figure | None:
    """Precision, recall and F1 of all rows, with intervals."""
    if not plotted.results.papers:
        return None
    marks = []
    for model in plotted.models:
        metrics = [model.column.metric(word) for word in WORDS]
        marks.append(
            Bars(
                values=tuple(metric.value for metric in metrics),
                lo=tuple(metric.lo for metric in metrics),
                hi=tuple(metric.hi for metric in metrics),
                label=model.name,
                series=model.series,
            )
        )
    return Figure(
        name="rates",
        title="Precision, recall and F1",
        caption=f"All rows together. Bars: {plotted.interval_note}.{plotted.rest}",
        panels=(
            Panel(
                x=Axis(names=("precision", "recall", "F1")),
                y=Axis(lo=0, hi=1),
                marks=tuple(marks),
            ),
        ),
    )


def aliases(plotted: PlottedResults) -> Figure | None:
    """What aliases do to the true positives."""
    models = [model for model in plotted.models if model.column.first.aliases.accepted]
    if not models:
        return None
    sets = dict.fromkeys(model.column.first.aliases.id for model in models)
    return Figure(
        name="aliases",
        title="Values found, by alias set",
        caption="Matched rows of the first replicate without aliases, and under those "
        f"that act: {', '.join(sets)}.{plotted.rest}",
        panels=(
            Panel(
                x=Axis(names=("no aliases", "with aliases")),
                y=Axis(label="true positives", lo=0),
                marks=tuple(
                    Bars(
                        values=(
                            model.column.unrenamed.prediction_outcomes.count(
                                RowOutcome.TP
                            ),
                            model.column.first.row_outcomes.prediction_outcomes.count(
                                RowOutcome.TP
                            ),
                        ),
                        label=model.name,
                        series=model.series,
                    )
                    for model in models
                ),
            ),
        ),
    )


def quotes(plotted: PlottedResults) -> Figure | None:
    """How many rows of each model have which kind of quote."""
    if not len(plotted.results.dataset.papers):
        return None
    return Figure(
        name="quotes",
        title="Whether quotes stand in their papers",
        caption="Predicted rows by their quote: in the paper word for word (ligatures, "
        "dashes and blanks apart, or with parts left out), nearly, or not at all. Rows "
        f"of papers without a text are left out.{plotted.rest}",
        panels=(
            Panel(
                x=Axis(
                    names=tuple(
                        shortened(one_line(model.name), NAME_CELLS)
                        for model in plotted.models
                    )
                ),
                y=Axis(label="rows", lo=0),
                marks=tuple(
                    Stack(
                        values=tuple(
                            sum(
                                int(
                                    model.column.metric(f"grounding.{level}").value or 0
                                )
                                for level in levels
                            )
                            for model in plotted.models
                        ),
                        label=label,
                        series=series,
                    )
                    for series, (label, levels) in enumerate(QUOTES.items())
                ),
            ),
        ),
    )


STEPS = ("truth", "name found", "value found")


def waterfall(plotted: PlottedResults) -> Figure | None:
    """A bar a step: the truth rows that are left, and on them those lost there."""
    models = [model for model in plotted.models if _counts(model)[0]]
    if not models:
        return None
    return Figure(
        name="losses",
        title="Where curated values were lost",
        caption="Truth rows; those whose name is predicted in their paper, under an "
        "alias where one acts; and those whose value is too. Lost at the second step: "
        "not found, or otherwise named; at the third: the value is wrong, or there are "
        f"fewer of them.{plotted.rest}",
        columns=SIDE_BY_SIDE[len(models)],
        panels=tuple(_panel(model) for model in models),
    )


def _counts(model: PlottedModel) -> tuple[int, int, int]:
    """Truth rows, those whose name is found, and those whose value is."""
    counts = model.column.first.counts
    has_predictions = (counts.tp + counts.fp) > 0
    truth = counts.tp + counts.fn
    return int(truth.sum()), int(truth[has_predictions].sum()), int(counts.tp.sum())


def _panel(model: PlottedModel) -> Panel:
    left = _counts(model)
    lost = (0, *(before - after for before, after in pairwise(left)))
    return Panel(
        title=model.name,
        x=Axis(
            names=tuple(f"{step}\n{n:,}" for step, n in zip(STEPS, left, strict=True))
        ),
        y=Axis(label="truth rows", lo=0),
        marks=(
            Stack(values=left, label="left", series=0),
            Stack(values=lost, label="lost at this step", series=1),
        ),
    )


MOST_ROWS = 24
"""Properties in one figure; a page has no more. The tables hold all."""


def recall(plotted: PlottedResults) -> Figure | None:
    """Recall of each property, those with the most truth rows first."""
    n: Counter[str] = Counter()
    rates: dict[str, dict[str, float | None]] = {}
    for model in plotted.models:
        counts = model.column.first.counts
        # models differ in truth where papers failed: the most of them stands
        n |= Counter(dict(zip(counts.names, _truth(counts), strict=True)))
        rates[model.name] = dict(
            zip(counts.names, by_name(counts, "recall"), strict=True)
        )
    ranked_names = sorted(
        (name for name in n if n[name]), key=lambda name: (-n[name], name)
    )
    if not ranked_names:
        return None
    names = ranked_names[:MOST_ROWS]
    left = (
        f" Of {len(ranked_names):,} properties the {len(names):,} with the most "
        "truth rows."
        if len(ranked_names) > len(names)
        else ""
    )
    return Figure(
        name="recall-by-property",
        title="Recall by property",
        caption="Share of each property's curated values that is found, of n in all."
        f"{left}{plotted.rest}",
        panels=(
            Panel(
                x=Axis(label="recall", lo=0, hi=1),
                y=Axis(
                    names=tuple(
                        f"{shortened(one_line(name), NAME_CELLS)}\nn = {n[name]:,}"
                        for name in names
                    )
                ),
                marks=tuple(
                    Bars(
                        values=tuple(rates[model.name].get(name) for name in names),
                        label=model.name if len(plotted.models) > 1 else "",
                        series=model.series,
                    )
                    for model in plotted.models
                ),
            ),
        ),
    )


def trade(plotted: PlottedResults) -> Figure | None:
    """Precision against recall: a point for all properties that have the same two."""
    panels = tuple(
        panel for model in plotted.models if (panel := _points(model)) is not None
    )
    if not panels:
        return None
    return Figure(
        name="precision-recall-by-property",
        title="Precision against recall by property",
        caption="Properties that are both curated and predicted; the number beside a "
        f"point is how many have these two rates.{plotted.rest}",
        columns=SIDE_BY_SIDE[len(panels)],
        panels=panels,
    )


def _points(model: PlottedModel) -> Panel | None:
    counts = model.column.first.counts
    pairs = Counter(
        (recall_value, right)
        for recall_value, right in zip(
            by_name(counts, "recall"), by_name(counts, "precision"), strict=True
        )
        if recall_value is not None and right is not None
    )
    if not pairs:
        return None
    points = sorted(pairs)
    return Panel(
        title=model.name,
        x=Axis(label="recall", lo=0, hi=1),
        y=Axis(label="precision", lo=0, hi=1),
        square=True,
        marks=(
            Points(
                x=tuple(x for x, _ in points),
                y=tuple(y for _, y in points),
                notes=tuple(f"{pairs[point]:,}" for point in points),
                series=model.series,
            ),
        ),
    )


def _truth(counts: GroupCounts) -> list[int]:
    cells = counts.by_name()
    truth: list[int] = np.asarray(cells.tp + cells.fn).tolist()
    return truth


@dataclass(frozen=True, slots=True)
class PropertyFigures:
    """The figures that the input has something for, in the order of the report."""

    results: PropertyResults

    def __iter__(self) -> Iterator[Figure | FailedFigure]:
        draws = (rates, aliases, waterfall, recall, trade, quotes)
        return build_figures(lambda: plotted_results(self.results), draws)
