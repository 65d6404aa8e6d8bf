"""Declares the figures of a scoring: models compared, and where questions fail.

Every number here is a metric of the scorecard or a count behind one; nothing is
computed only for a figure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jobs.kit import charts
from jobs.kit.charts import (
    Chart,
    ChartFigures,
    Drawing,
    rows_panel,
    stack,
    value_columns,
)
from jobs.kit.text_format import n_text
from jobs.paper_investigation.model_pairs import PaperModelPair
from jobs.paper_investigation.model_tally import ModelTally
from jobs.paper_investigation.paper_scores import AVERAGES, RECALL, SCORE
from jobs.paper_investigation.question_counts import SIGNIFICANCES, TOTAL
from jobs.paper_investigation.run_tally import RunTally
from jobs.paper_investigation.settings import PIPELINES
from runner.scorecard import (
    Axis,
    Heatmap,
    Histogram,
    Metric,
    Panel,
    Points,
    ReferenceLine,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperResults:
    """Data of all models for figures."""

    tally: RunTally
    pairs: Sequence[PaperModelPair]

    @property
    def has_averages(self) -> bool:
        """Whether there are averages over papers."""
        return bool(AVERAGES[self.tally.mode])


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperModelResults:
    """Data of one model for figures."""

    tally: ModelTally
    metrics: Mapping[str, Metric]  #: by path


Plot: TypeAlias = charts.Plot[PaperResults, PaperModelResults]

BINS = tuple(i / 10 for i in range(11))

SHARE_DIGITS = 3
"""Digits of shares: papers that agree in them are one point of a scatter plot."""

WORDS = {
    "avg_variant_recall": "variant recall",
    "avg_question_acc": "question accuracy",
    "avg_paper_score": "paper score",
    "avg_precision": "precision",
    "avg_f1": "F1",
}

FIELDS = {
    "study_param.p_value.accuracy": "p-value",
    "study_param.significance.accuracy": "significance",
    "study_param.both.accuracy": "both",
}


def _rate_panel(plot: Plot, words: Mapping[str, str], label: str) -> Iterator[Panel]:
    """Yield a point for each model and path with a value, with n.

    Args:
        plot: models whose metrics at these paths lie between 0 and 1.
        words: names of the rows, by path.
        label: label of the rates.
    """
    rates = {
        path: [model.data.metrics.get(path) for model in plot.models] for path in words
    }
    defined = {
        path: metrics
        for path, metrics in rates.items()
        if any(metric and metric.value is not None for metric in metrics)
    }
    if not defined:
        return
    yield rows_panel(
        [f"{words[path]}\n{n_text(metrics)}" for path, metrics in defined.items()],
        (
            (model, [metrics[at] for metrics in defined.values()])
            for at, model in enumerate(plot.models)
        ),
        Axis(label=label, lo=0, hi=1),
    )


def _averages(plot: Plot) -> Iterator[Panel]:
    if plot.results.has_averages:
        paths = [average.path for average in AVERAGES[plot.results.tally.mode]]
        words = {path: WORDS[path] for path in paths}
        yield from _rate_panel(plot, words, "mean over papers")


def _recalls(plot: Plot, prefix: str) -> dict[str, str]:
    """Return the paths of the recalls below *prefix*, with their names."""
    paths = dict.fromkeys(path for model in plot.models for path in model.data.metrics)
    return {
        path: path.split(".")[1]
        for path in paths
        if path.startswith(f"{prefix}.") and path.endswith(".recall")
    }


def _classes(plot: Plot) -> Iterator[Panel]:
    if plot.results.has_averages:
        words = _recalls(plot, "class") | {"class.MICRO-AVG.recall": "all"}
        yield from _rate_panel(plot, words, "recall")


def _kinds(plot: Plot) -> Iterator[Panel]:
    if plot.results.has_averages:
        yield from _rate_panel(plot, _recalls(plot, "kind"), "recall")


def _answered_pipelines(plot: Plot) -> list[str]:
    """Return the pipelines with answers, and their total."""
    return [
        name
        for name in (*PIPELINES, TOTAL)
        if any(
            model.data.tally.breakdown.pipelines[name].answered for model in plot.models
        )
    ]


def _pipelines(plot: Plot) -> Iterator[Panel]:
    if names := _answered_pipelines(plot):
        words = {f"pipeline.{name}.accuracy": name for name in names}
        yield from _rate_panel(plot, words, "accuracy")


def _fields(plot: Plot) -> Iterator[Panel]:
    if any("study_param.both.accuracy" in model.data.metrics for model in plot.models):
        yield from _rate_panel(plot, FIELDS, "accuracy")


def _papers(plot: Plot) -> Drawing:
    """Draw a histogram of paper scores."""
    average = RECALL if plot.results.tally.mode == "extract" else SCORE
    word = WORDS[average.path]
    models = plot.select(
        lambda data: _bin_counts(data.tally.papers.values(average.value))
    )
    y = Axis(label="papers", lo=0, hi=max(max(model.data) for model in models))
    panels = [
        Panel(
            title=model.name,
            x=Axis(label=word, lo=0, hi=1),
            y=y,
            height=0.8,
            marks=(Histogram(edges=BINS, counts=model.data, series=model.series),),
        )
        for model in models
    ]
    return Drawing(
        panels=panels if plot.results.has_averages else [], facts={"average": word}
    )


def _bin_counts(values: Sequence[float | None]) -> tuple[int, ...]:
    """Return the number of values in each bin; the last one includes 1."""
    counts = [0] * (len(BINS) - 1)
    for value in values:
        if value is not None:
            counts[min(bisect_right(BINS, value), len(counts)) - 1] += 1
    return tuple(counts)


def _score_by_recall(plot: Plot) -> Iterator[Panel]:
    """Yield the score of each paper against its recall, which is an upper bound."""
    if plot.results.tally.mode != "investigate":
        return
    for model in plot.models:
        papers = model.data.tally.papers
        points = dict.fromkeys(
            (round(recall, SHARE_DIGITS), round(score, SHARE_DIGITS))
            for recall, score in zip(
                papers.values(RECALL.value), papers.values(SCORE.value), strict=True
            )
            if recall is not None and score is not None
        )
        yield Panel(
            title=model.name,
            x=Axis(label=WORDS[RECALL.path], lo=0, hi=1),
            y=Axis(label=WORDS[SCORE.path], lo=0, hi=1),
            marks=(
                ReferenceLine(way="diagonal", label="ceiling"),
                Points(
                    x=tuple(recall for recall, _ in points),
                    y=tuple(score for _, score in points),
                    series=model.series,
                ),
            ),
            square=True,
        )


def _differences(plot: Plot) -> Iterator[Panel]:
    """Yield the differences of every two models, by average."""
    if not plot.results.has_averages:
        return
    plotted = {model.name for model in plot.models}
    pairs = [
        pair
        for pair in plot.results.pairs
        if {pair.compared.left, pair.compared.right} <= plotted
    ]
    names = tuple(f"{pair.compared.left}\n- {pair.compared.right}" for pair in pairs)
    for path in dict.fromkeys(path for pair in pairs for path in pair.compared.metrics):
        comparisons = [pair.average(path) for pair in pairs]
        x, lo, hi = value_columns(
            comparison.gap if comparison else None for comparison in comparisons
        )
        yield Panel(
            title=WORDS[path],
            x=Axis(label="difference"),
            y=Axis(names=names),
            marks=(
                ReferenceLine(way="vertical", at=0.0),
                Points(x=x, y=tuple(range(len(pairs))), lo=lo, hi=hi),
            ),
            row_notes=tuple(f"n = {pair.papers:,}" for pair in pairs),
        )


def _outcomes(plot: Plot) -> Iterator[Panel]:
    """Yield the outcome of every question."""
    if not _answered_pipelines(plot):
        return
    totals = [model.data.tally.breakdown.pipelines[TOTAL] for model in plot.models]
    parts = {
        "right": [group.right for group in totals],
        "wrong": [g.answered - g.right - g.unparsed for g in totals],
        "unreadable reply": [group.unparsed for group in totals],
        "no reply": [group.missing.total() for group in totals],
    }
    yield Panel(
        x=Axis(label="questions", lo=0),
        y=Axis(names=tuple(model.name for model in plot.models)),
        marks=stack(parts),
    )


def _significance(plot: Plot) -> Iterator[Panel]:
    """Yield the answered significance against the expected one."""
    for model in plot.select(lambda data: data.tally.study.significances):
        yield Panel(
            title=model.name,
            x=Axis(label="answered", names=SIGNIFICANCES),
            y=Axis(label="expected", names=SIGNIFICANCES),
            marks=(
                Heatmap(
                    rows=tuple(
                        tuple(model.data[row, column] for column in SIGNIFICANCES)
                        for row in SIGNIFICANCES
                    ),
                    label="answers",
                ),
            ),
        )


CHARTS = (
    Chart(
        name="averages",
        title="Averages over papers",
        caption="Means over the scored papers with percentile bootstrap intervals by "
        "paper; n is the number of papers that have a value. Precision is a lower "
        "bound: the truth lists only variants with findings.",
        panels=_averages,
    ),
    Chart(
        name="papers",
        title="Papers by {average}",
        caption="How many scored papers lie in each tenth of the {average}; a paper "
        "of several replicates counts once, with its mean.",
        panels=_papers,
    ),
    Chart(
        name="score-by-recall",
        title="Paper score against variant recall",
        caption="One point per paper; papers with equal values share a point. "
        "A paper's score is its recall times how well its questions "
        "were answered, so it lies on the diagonal where all answers "
        "are right and nowhere above.",
        panels=_score_by_recall,
    ),
    Chart(
        name="differences",
        title="Differences between models",
        caption="The first model's mean minus the second's, over the papers "
        "that both have (n), with paired percentile bootstrap "
        "intervals by paper; an interval that contains 0 is "
        "inconclusive.",
        panels=_differences,
    ),
    Chart(
        name="classes",
        title="Recall by class of variant",
        caption="Truth variants that were listed, over all of the class, in papers "
        "whose list could be read; n is the number of truth variants.",
        panels=_classes,
    ),
    Chart(
        name="kinds",
        title="Recall by kind of variant",
        caption="Truth variants that were listed, over all of the kind, in papers "
        "whose list could be read, with percentile bootstrap intervals by paper; n is "
        "the number of truth variants.",
        panels=_kinds,
    ),
    Chart(
        name="pipelines",
        title="Right answers by question pipeline",
        caption="Right over answered questions, each question once, with percentile "
        "bootstrap intervals by paper; n is the number of answered questions.",
        panels=_pipelines,
    ),
    Chart(
        name="outcomes",
        title="What became of the questions",
        caption="Every question that was sent, once: answered right or wrong, "
        "with a reply that could not be parsed (counted as wrong), or "
        "without a reply (not counted).",
        panels=_outcomes,
    ),
    Chart(
        name="study-fields",
        title="Study parameters, field by field",
        caption="Is it the p-value or the significance that fails? Right over answered "
        "study-parameter questions; an answer is right where both are. n is the "
        "number of answers.",
        panels=_fields,
    ),
    Chart(
        name="significance",
        title="Significance: expected and answered",
        caption="Study-parameter answers by the significance that was expected "
        "(rows) and the one that was stated (columns); a reply that could not be "
        "read states something else. Right ones lie on the diagonal.",
        panels=_significance,
    ),
)
"""In the order of the report."""


def figures(
    tally: RunTally,
    metrics: Mapping[str, Mapping[str, Metric]],
    pairs: Sequence[PaperModelPair],
) -> ChartFigures[PaperResults, PaperModelResults]:
    """Return the figures of a scoring, without those of other modes.

    Args:
        tally: counts of the run.
        metrics: metrics by model and path.
        pairs: every two models.
    """
    return ChartFigures(
        CHARTS,
        lambda: Plot.of(
            PaperResults(tally=tally, pairs=pairs),
            {
                model: PaperModelResults(tally=tally.by_model[model], metrics=by_path)
                for model, by_path in metrics.items()
            },
        ),
    )
