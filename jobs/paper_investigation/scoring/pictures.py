"""What the scores look like: models against one another, and where questions fail.

Every number here is a metric of the scorecard or a count behind one; nothing is
computed for a picture alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from jobs.paper_investigation.record import Mode
from jobs.paper_investigation.settings import PIPELINES
from jobs.paper_investigation.tallies.breakdown import TOTAL
from jobs.paper_investigation.tallies.headline import AVERAGES, RECALL, SCORE
from jobs.paper_investigation.tallies.survey import Survey
from runner.figure import (
    Axis,
    Bars,
    Figure,
    Histogram,
    Numbers,
    Panel,
    Points,
    Stack,
)
from runner.scorecard import Metric

MOST_MODELS = 6
"""Side by side in one picture; the tables hold all."""

BINS = tuple(place / 10 for place in range(11))

WORDS = {
    "avg_variant_recall": "variant recall",
    "avg_question_acc": "question accuracy",
    "avg_paper_score": "paper score",
    "avg_precision": "precision",
    "avg_f1": "F1",
}

FIELDS = {"p_value": "p-value", "significance": "significance", "both": "both"}

ByPath = Mapping[str, Metric]


def figures(survey: Survey, metrics: Mapping[str, ByPath]) -> Iterator[Figure]:
    """The figures of a scoring; none for what was not asked.

    Args:
        survey: what was counted.
        metrics: by model and path.
    """
    shown = dict(list(metrics.items())[:MOST_MODELS])
    left = len(metrics) - len(shown)
    more = f" The first {len(shown)} of {len(metrics)} models." if left else ""
    if AVERAGES[survey.mode]:
        yield _averages(shown, survey.mode, more)
        yield _papers(survey, list(shown), more)
    tallies = [survey.tallies[model] for model in shown]
    asked = [
        name
        for name in (*PIPELINES, TOTAL)
        if any(tally.breakdown.pipelines[name].answered for tally in tallies)
    ]
    if asked:
        yield _pipelines(shown, asked, more)
        yield _outcomes(survey, list(shown), more)
    if any("study_param.both.accuracy" in own for own in shown.values()):
        yield _fields(shown, more)


def _averages(models: Mapping[str, ByPath], mode: Mode, more: str) -> Figure:
    averages = [average.path for average in AVERAGES[mode]]
    return Figure(
        name="averages",
        title="Averages over papers",
        caption="Means over the scored papers with percentile bootstrap intervals by "
        "paper; n is the number of papers that have a value. Precision is a lower "
        f"bound: the truth lists only variants with findings.{more}",
        panels=(
            Panel(
                x=Axis(label="mean over papers", lo=0, hi=1),
                y=Axis(names=_with_n(models, averages, WORDS)),
                marks=_side_by_side(models, averages),
            ),
        ),
    )


def _side_by_side(
    models: Mapping[str, ByPath], paths: Sequence[str]
) -> tuple[Points, ...]:
    """A point with its interval for each model at each path, none over another."""
    gap = 0.7 / len(models)
    marks = []
    for series, (model, own) in enumerate(models.items()):
        found = [own.get(path) for path in paths]
        begin = (series - (len(models) - 1) / 2) * gap
        marks.append(
            Points(
                x=tuple(m.value if m else None for m in found),
                y=tuple(place + begin for place in range(len(paths))),
                lo=tuple(m.lo if m else None for m in found),
                hi=tuple(m.hi if m else None for m in found),
                label=model,
                series=series,
            )
        )
    return tuple(marks)


def _papers(survey: Survey, models: Sequence[str], more: str) -> Figure:
    average = RECALL if survey.mode == "extract" else SCORE
    word = WORDS[average.path]
    counts = {
        model: _counts(survey.tallies[model].papers.values(average.value))
        for model in models
    }
    most = max(map(max, counts.values()))
    return Figure(
        name="papers",
        title=f"Papers by {word}",
        caption=f"How many scored papers lie in each tenth of the {word}; a paper of "
        f"several replicates counts once, with its mean.{more}",
        columns=2,
        panels=tuple(
            Panel(
                title=model,
                x=Axis(label=word, lo=0, hi=1),
                y=Axis(label="papers", lo=0, hi=most),
                height=0.8,
                marks=(Histogram(edges=BINS, counts=own, series=series),),
            )
            for series, (model, own) in enumerate(counts.items())
        ),
    )


def _counts(values: Sequence[float | None]) -> tuple[int, ...]:
    """How many values lie in each bin; the last one takes 1 in."""
    counts = [0] * (len(BINS) - 1)
    for value in values:
        if value is not None:
            counts[min(bisect_right(BINS, value), len(counts)) - 1] += 1
    return tuple(counts)


def _pipelines(models: Mapping[str, ByPath], asked: Sequence[str], more: str) -> Figure:
    paths = [f"pipeline.{name}.accuracy" for name in asked]
    words = dict(zip(paths, asked, strict=True))
    return Figure(
        name="pipelines",
        title="Right answers by question pipeline",
        caption="Right over answered questions, each question once, with percentile "
        "bootstrap intervals by paper; n is the number of answered questions."
        f"{more}",
        panels=(
            Panel(
                x=Axis(label="accuracy", lo=0, hi=1),
                y=Axis(names=_with_n(models, paths, words)),
                marks=_bars(models, paths),
            ),
        ),
    )


def _fields(models: Mapping[str, ByPath], more: str) -> Figure:
    paths = [f"study_param.{name}.accuracy" for name in FIELDS]
    words = dict(zip(paths, FIELDS.values(), strict=True))
    return Figure(
        name="study-fields",
        title="Study parameters, field by field",
        caption="Is it the p-value or the significance that fails? Right over answered "
        "study-parameter questions; an answer is right where both are. n is the "
        f"number of answers.{more}",
        panels=(
            Panel(
                x=Axis(label="accuracy", lo=0, hi=1),
                y=Axis(names=_with_n(models, paths, words)),
                marks=_bars(models, paths),
            ),
        ),
    )


def _bars(models: Mapping[str, ByPath], paths: Sequence[str]) -> tuple[Bars, ...]:
    marks = []
    for series, (model, own) in enumerate(models.items()):
        found = [own.get(path) for path in paths]
        marks.append(
            Bars(
                values=tuple(m.value if m else None for m in found),
                lo=tuple(m.lo if m else None for m in found),
                hi=tuple(m.hi if m else None for m in found),
                label=model,
                series=series,
            )
        )
    return tuple(marks)


def _outcomes(survey: Survey, models: Sequence[str], more: str) -> Figure:
    totals = [survey.tallies[model].breakdown.pipelines[TOTAL] for model in models]
    parts: Mapping[str, Numbers] = {
        "right": tuple(group.right for group in totals),
        "wrong": tuple(g.answered - g.right - g.unparsed for g in totals),
        "unreadable reply": tuple(group.unparsed for group in totals),
        "no reply": tuple(group.missing.total() for group in totals),
    }
    return Figure(
        name="outcomes",
        title="What became of the questions",
        caption="Every question that was asked, once: answered right or wrong, with a "
        "reply that could not be read (which counts as wrong), or without a reply "
        f"(which counts nowhere).{more}",
        panels=(
            Panel(
                x=Axis(label="questions", lo=0),
                y=Axis(names=tuple(models)),
                marks=tuple(
                    Stack(values=values, label=name, series=series)
                    for series, (name, values) in enumerate(parts.items())
                ),
            ),
        ),
    )


def _with_n(
    models: Mapping[str, ByPath], paths: Sequence[str], words: Mapping[str, str]
) -> tuple[str, ...]:
    """The paths in words, each with the n of the models; a range where they differ."""
    names = []
    for path in paths:
        found = [own[path] for own in models.values() if path in own]
        sizes = [m.n if m.n_defined is None else m.n_defined for m in found]
        low, high = min(sizes, default=0), max(sizes, default=0)
        size = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        names.append(f"{words[path]}\nn = {size}")
    return tuple(names)
