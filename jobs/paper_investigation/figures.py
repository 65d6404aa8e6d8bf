"""Builds the figures of a scoring: models compared, and where questions fail.

Every number here is a metric of the scorecard or a count behind one; nothing is
computed for a picture alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.kit.shared_figures import build_figures
from jobs.paper_investigation.model_pairs import PaperModelPair
from jobs.paper_investigation.paper_scores import AVERAGES, RECALL, SCORE, PaperScores
from jobs.paper_investigation.question_counts import SIGNIFICANCES, TOTAL
from jobs.paper_investigation.run_tally import RunTally
from jobs.paper_investigation.settings import PIPELINES
from runner.scorecard import (
    Axis,
    Bars,
    FailedFigure,
    Figure,
    Heatmap,
    Histogram,
    Metric,
    Numbers,
    Panel,
    Points,
    ReferenceLine,
    Stack,
)

BINS = tuple(i / 10 for i in range(11))

SHARE_DIGITS = 3
"""Papers closer than that are one point of a scatter plot."""

WORDS = {
    "avg_variant_recall": "variant recall",
    "avg_question_acc": "question accuracy",
    "avg_paper_score": "paper score",
    "avg_precision": "precision",
    "avg_f1": "F1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountFigures:
    """What was counted of the models that are shown."""

    survey: RunTally
    models: Sequence[str]
    more: str  #: said behind each caption: which models are left out

    def papers(self) -> Figure:
        """How many papers lie where."""
        average = RECALL if self.survey.mode == "extract" else SCORE
        word = WORDS[average.path]
        counts = {
            model: _counts(self.survey.by_model[model].papers.values(average.value))
            for model in self.models
        }
        most = max(map(max, counts.values()))
        return Figure(
            name="papers",
            title=f"Papers by {word}",
            caption=f"How many scored papers lie in each tenth of the {word}; a paper "
            f"of several replicates counts once, with its mean.{self.more}",
            columns=2,
            panels=tuple(
                Panel(
                    title=model,
                    x=Axis(label=word, lo=0, hi=1),
                    y=Axis(label="papers", lo=0, hi=most),
                    height=0.8,
                    marks=(Histogram(edges=BINS, counts=bin_counts, series=series),),
                )
                for series, (model, bin_counts) in enumerate(counts.items())
            ),
        )

    def ceiling(self) -> Figure:
        """The score of each paper against its recall, which it cannot exceed."""
        return Figure(
            name="score-by-recall",
            title="Paper score against variant recall",
            caption="A point a paper; papers in one place are one point. A paper's "
            "score is its recall times how well its questions were answered, so it "
            "lies on the diagonal where all answers are right and nowhere above."
            f"{self.more}",
            columns=2,
            panels=tuple(
                Panel(
                    title=model,
                    x=Axis(label=WORDS[RECALL.path], lo=0, hi=1),
                    y=Axis(label=WORDS[SCORE.path], lo=0, hi=1),
                    marks=(
                        ReferenceLine(way="diagonal", label="ceiling"),
                        _scattered(self.survey.by_model[model].papers, series),
                    ),
                    square=True,
                )
                for series, model in enumerate(self.models)
            ),
        )

    def differences(self, pairs: Sequence[PaperModelPair]) -> Iterator[Figure]:
        """What every two models differ by, average for average."""
        visible_pairs = [p for p in pairs if {p.left, p.right} <= {*self.models}]
        paths = list(
            dict.fromkeys(path for pair in visible_pairs for path in pair.averages)
        )
        if not paths:
            return
        names = tuple(f"{p.left} - {p.right}\nn = {p.papers:,}" for p in visible_pairs)
        yield Figure(
            name="differences",
            title="Differences between models",
            caption="The first model's mean less the second's, over the papers that "
            "both have (n), with paired percentile bootstrap intervals by paper; an "
            f"interval that holds 0 decides nothing.{self.more}",
            panels=tuple(
                Panel(
                    title=WORDS[path],
                    x=Axis(label="difference"),
                    y=Axis(names=names),
                    marks=(
                        ReferenceLine(way="vertical", at=0.0),
                        _forest(visible_pairs, path),
                    ),
                )
                for path in paths
            ),
        )

    def outcomes(self) -> Figure:
        """What became of every question."""
        totals = [
            self.survey.by_model[model].breakdown.pipelines[TOTAL]
            for model in self.models
        ]
        parts: Mapping[str, Numbers] = {
            "right": tuple(group.right for group in totals),
            "wrong": tuple(g.answered - g.right - g.unparsed for g in totals),
            "unreadable reply": tuple(group.unparsed for group in totals),
            "no reply": tuple(group.missing.total() for group in totals),
        }
        return Figure(
            name="outcomes",
            title="What became of the questions",
            caption="Every question that was asked, once: answered right or wrong, "
            "with a reply that could not be read (which counts as wrong), or without a "
            f"reply (which counts nowhere).{self.more}",
            panels=(
                Panel(
                    x=Axis(label="questions", lo=0),
                    y=Axis(names=tuple(self.models)),
                    marks=tuple(
                        Stack(values=values, label=name, series=series)
                        for series, (name, values) in enumerate(parts.items())
                    ),
                ),
            ),
        )

    def significance(self) -> Figure:
        """Which significance was stated where which one was right."""
        return Figure(
            name="significance",
            title="Significance: expected and answered",
            caption="Study-parameter answers by the significance that was expected "
            "(rows) and the one that was stated (columns); a reply that could not be "
            f"read states something else. Right ones lie on the diagonal.{self.more}",
            panels=tuple(
                Panel(
                    title=model,
                    x=Axis(label="answered", names=SIGNIFICANCES),
                    y=Axis(label="expected", names=SIGNIFICANCES),
                    marks=(
                        Heatmap(
                            rows=tuple(
                                tuple(stated[row, column] for column in SIGNIFICANCES)
                                for row in SIGNIFICANCES
                            ),
                            label="answers",
                        ),
                    ),
                )
                for model in self.models
                if (stated := self.survey.by_model[model].study.significances)
            ),
        )


def _scattered(papers: PaperScores, series: int) -> Points:
    points = zip(papers.values(RECALL.value), papers.values(SCORE.value), strict=True)
    distinct_points = dict.fromkeys(
        (round(recall, SHARE_DIGITS), round(score, SHARE_DIGITS))
        for recall, score in points
        if recall is not None and score is not None
    )
    return Points(
        x=tuple(recall for recall, _ in distinct_points),
        y=tuple(score for _, score in distinct_points),
        series=series,
    )


def _forest(pairs: Sequence[PaperModelPair], path: str) -> Points:
    comparisons = [pair.averages.get(path) for pair in pairs]
    gaps = [comparison.gap if comparison else None for comparison in comparisons]
    return Points(
        x=tuple(gap.value if gap else None for gap in gaps),
        y=tuple(range(len(pairs))),
        lo=tuple(gap.interval.lo if gap else None for gap in gaps),
        hi=tuple(gap.interval.hi if gap else None for gap in gaps),
    )


def _counts(values: Sequence[float | None]) -> tuple[int, ...]:
    """How many values lie in each bin; the last one takes 1 in."""
    counts = [0] * (len(BINS) - 1)
    for value in values:
        if value is not None:
            counts[min(bisect_right(BINS, value), len(counts)) - 1] += 1
    return tuple(counts)


MOST_MODELS = 6
"""Side by side in one picture; the tables hold all."""

FIELDS = {"p_value": "p-value", "significance": "significance", "both": "both"}

ALL_CLASSES = "class.MICRO-AVG.recall"

ByPath = Mapping[str, Metric]


def figures(
    survey: RunTally, metrics: Mapping[str, ByPath], pairs: Sequence[PaperModelPair]
) -> Iterator[Figure | FailedFigure]:
    """The figures of a scoring; none for what was not asked.

    Args:
        survey: what was counted.
        metrics: by model and path.
        pairs: every two models.
    """
    return build_figures(
        lambda: _figure_input(survey, metrics, pairs),
        (
            averages,
            papers,
            ceiling,
            differences,
            classes,
            kinds,
            pipelines,
            outcomes,
            fields,
            significance,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _FigureInput:
    """What figures are drawn from."""

    survey: RunTally
    pairs: Sequence[PaperModelPair]
    rates: _Rates
    counted: CountFigures
    answered_pipelines: Sequence[str]  #: pipelines with answers, and their total

    @property
    def has_averages(self) -> bool:
        """Whether papers are averaged over at all."""
        return bool(AVERAGES[self.survey.mode])

    @property
    def has_fields(self) -> bool:
        """Whether study parameters were asked for."""
        models = self.rates.models.values()
        return any("study_param.both.accuracy" in by_path for by_path in models)


def _figure_input(
    survey: RunTally, metrics: Mapping[str, ByPath], pairs: Sequence[PaperModelPair]
) -> _FigureInput:
    names = tuple(metrics)[:MOST_MODELS]
    left = len(metrics) > len(names)
    more = f" The first {len(names)} of {len(metrics)} models." if left else ""
    model_counts = [survey.by_model[model] for model in names]
    return _FigureInput(
        survey=survey,
        pairs=pairs,
        rates=_Rates(models={name: metrics[name] for name in names}, more=more),
        counted=CountFigures(survey=survey, models=names, more=more),
        answered_pipelines=[
            name
            for name in (*PIPELINES, TOTAL)
            if any(tally.breakdown.pipelines[name].answered for tally in model_counts)
        ],
    )


def averages(figure_input: _FigureInput) -> Figure | None:
    """Means over papers."""
    paths = [average.path for average in AVERAGES[figure_input.survey.mode]]
    return _averages(figure_input.rates, paths) if paths else None


def papers(figure_input: _FigureInput) -> Figure | None:
    """How many papers lie where."""
    return figure_input.counted.papers() if figure_input.has_averages else None


def ceiling(figure_input: _FigureInput) -> Figure | None:
    """The score of each paper against its recall."""
    return (
        figure_input.counted.ceiling()
        if figure_input.survey.mode == "investigate"
        else None
    )


def differences(figure_input: _FigureInput) -> Iterator[Figure]:
    """Papers on which two models differ."""
    if figure_input.has_averages:
        yield from figure_input.counted.differences(figure_input.pairs)


def classes(figure_input: _FigureInput) -> Figure | None:
    """Recall by class of variants."""
    return _classes(figure_input.rates) if figure_input.has_averages else None


def kinds(figure_input: _FigureInput) -> Figure | None:
    """Recall by kind of variants."""
    return _kinds(figure_input.rates) if figure_input.has_averages else None


def pipelines(figure_input: _FigureInput) -> Figure | None:
    """Accuracy by pipeline."""
    return (
        _pipelines(figure_input.rates, figure_input.answered_pipelines)
        if figure_input.answered_pipelines
        else None
    )


def outcomes(figure_input: _FigureInput) -> Figure | None:
    """What became of the questions."""
    return figure_input.counted.outcomes() if figure_input.answered_pipelines else None


def fields(figure_input: _FigureInput) -> Figure | None:
    """Accuracy by study parameter."""
    return _fields(figure_input.rates) if figure_input.has_fields else None


def significance(figure_input: _FigureInput) -> Figure | None:
    """Stated against expected significance."""
    return figure_input.counted.significance() if figure_input.has_fields else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rates:
    """The metrics of the models that are shown; all of them lie between 0 and 1."""

    models: Mapping[str, ByPath]
    more: str  #: said behind each caption: which models are left out

    def points(self, paths: Sequence[str]) -> tuple[Points, ...]:
        """A point with its interval for each model at each path, none over another."""
        gap = 0.7 / len(self.models)
        begin = (1 - len(self.models)) / 2 * gap
        return tuple(
            Points(
                x=_values(metrics),
                y=tuple(row + begin + series * gap for row in range(len(paths))),
                lo=tuple(m.lo if m else None for m in metrics),
                hi=tuple(m.hi if m else None for m in metrics),
                label=model,
                series=series,
            )
            for series, (model, metrics) in enumerate(self._at(paths))
        )

    def bars(self, paths: Sequence[str]) -> tuple[Bars, ...]:
        """A bar with its interval for each model at each path."""
        return tuple(
            Bars(
                values=_values(metrics),
                lo=tuple(m.lo if m else None for m in metrics),
                hi=tuple(m.hi if m else None for m in metrics),
                label=model,
                series=series,
            )
            for series, (model, metrics) in enumerate(self._at(paths))
        )

    def panel(
        self, words: Mapping[str, str], marks: tuple[Points | Bars, ...], label: str
    ) -> Panel:
        """The marks at the names of the paths, each with the n of the models."""
        names = tuple(f"{word}\nn = {self._n(path)}" for path, word in words.items())
        return Panel(x=Axis(label=label, lo=0, hi=1), y=Axis(names=names), marks=marks)

    def _at(self, paths: Sequence[str]) -> Iterator[tuple[str, list[Metric | None]]]:
        for model, by_path in self.models.items():
            yield model, [by_path.get(path) for path in paths]

    def _n(self, path: str) -> str:
        """Of all models, or a range where they differ."""
        metrics = [by_path[path] for by_path in self.models.values() if path in by_path]
        sizes = [m.n if m.n_defined is None else m.n_defined for m in metrics]
        low, high = min(sizes, default=0), max(sizes, default=0)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _values(metrics: Sequence[Metric | None]) -> Numbers:
    return tuple(metric.value if metric else None for metric in metrics)


def _averages(rates: _Rates, paths: Sequence[str]) -> Figure:
    words = {path: WORDS[path] for path in paths}
    return Figure(
        name="averages",
        title="Averages over papers",
        caption="Means over the scored papers with percentile bootstrap intervals by "
        "paper; n is the number of papers that have a value. Precision is a lower "
        f"bound: the truth lists only variants with findings.{rates.more}",
        panels=(rates.panel(words, rates.points(paths), "mean over papers"),),
    )


def _classes(rates: _Rates) -> Figure:
    words = _recalls(rates, "class")
    words[ALL_CLASSES] = "all"
    return Figure(
        name="classes",
        title="Recall by class of variant",
        caption="Truth variants that were listed, over all of the class, in papers "
        f"whose list could be read; n is the number of truth variants.{rates.more}",
        panels=(rates.panel(words, rates.bars([*words]), "recall"),),
    )


def _kinds(rates: _Rates) -> Figure:
    words = _recalls(rates, "kind")
    return Figure(
        name="kinds",
        title="Recall by kind of variant",
        caption="Truth variants that were listed, over all of the kind, in papers "
        "whose list could be read, with percentile bootstrap intervals by paper; n is "
        f"the number of truth variants.{rates.more}",
        panels=(rates.panel(words, rates.bars([*words]), "recall"),),
    )


def _recalls(rates: _Rates, prefix: str) -> dict[str, str]:
    """The recalls below *prefix* by path, with what each is of."""
    every = dict.fromkeys(path for by_path in rates.models.values() for path in by_path)
    return {
        path: path.split(".")[1]
        for path in every
        if path.startswith(f"{prefix}.") and path.endswith(".recall")
    }


def _pipelines(rates: _Rates, answered_pipelines: Sequence[str]) -> Figure:
    words = {f"pipeline.{name}.accuracy": name for name in answered_pipelines}
    return Figure(
        name="pipelines",
        title="Right answers by question pipeline",
        caption="Right over answered questions, each question once, with percentile "
        "bootstrap intervals by paper; n is the number of answered questions."
        f"{rates.more}",
        panels=(rates.panel(words, rates.bars(tuple(words)), "accuracy"),),
    )


def _fields(rates: _Rates) -> Figure:
    words = {f"study_param.{name}.accuracy": word for name, word in FIELDS.items()}
    return Figure(
        name="study-fields",
        title="Study parameters, field by field",
        caption="Is it the p-value or the significance that fails? Right over answered "
        "study-parameter questions; an answer is right where both are. n is the "
        f"number of answers.{rates.more}",
        panels=(rates.panel(words, rates.bars(tuple(words)), "accuracy"),),
    )
