"""Pictures of single papers, questions and pairs of models, behind the averages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.paper_investigation.tallies.breakdown import TOTAL
from jobs.paper_investigation.tallies.figures import Papers
from jobs.paper_investigation.tallies.headline import RECALL, SCORE
from jobs.paper_investigation.tallies.pairs import Pair
from jobs.paper_investigation.tallies.study import SIGNIFICANCES
from jobs.paper_investigation.tallies.survey import Survey
from runner.scorecard import (
    Axis,
    Figure,
    Heatmap,
    Histogram,
    Numbers,
    Panel,
    Points,
    ReferenceLine,
    Stack,
)

BINS = tuple(place / 10 for place in range(11))

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
class Counted:
    """What was counted of the models that are shown."""

    survey: Survey
    models: Sequence[str]
    more: str  #: said behind each caption: which models are left out

    def papers(self) -> Figure:
        """How many papers lie where."""
        average = RECALL if self.survey.mode == "extract" else SCORE
        word = WORDS[average.path]
        counts = {
            model: _counts(self.survey.tallies[model].papers.values(average.value))
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
                    marks=(Histogram(edges=BINS, counts=own, series=series),),
                )
                for series, (model, own) in enumerate(counts.items())
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
                        _scattered(self.survey.tallies[model].papers, series),
                    ),
                    square=True,
                )
                for series, model in enumerate(self.models)
            ),
        )

    def differences(self, pairs: Sequence[Pair]) -> Iterator[Figure]:
        """What every two models differ by, average for average."""
        shown = [p for p in pairs if {p.left, p.right} <= {*self.models}]
        paths = list(dict.fromkeys(path for pair in shown for path in pair.averages))
        if not paths:
            return
        names = tuple(f"{p.left} - {p.right}\nn = {p.papers:,}" for p in shown)
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
                        _forest(shown, path),
                    ),
                )
                for path in paths
            ),
        )

    def outcomes(self) -> Figure:
        """What became of every question."""
        totals = [
            self.survey.tallies[model].breakdown.pipelines[TOTAL]
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
                if (stated := self.survey.tallies[model].study.significances)
            ),
        )


def _scattered(papers: Papers, series: int) -> Points:
    found = zip(papers.values(RECALL.value), papers.values(SCORE.value), strict=True)
    places = dict.fromkeys(
        (round(recall, SHARE_DIGITS), round(score, SHARE_DIGITS))
        for recall, score in found
        if recall is not None and score is not None
    )
    return Points(
        x=tuple(recall for recall, _ in places),
        y=tuple(score for _, score in places),
        series=series,
    )


def _forest(pairs: Sequence[Pair], path: str) -> Points:
    found = [pair.averages.get(path) for pair in pairs]
    gaps = [each.gap if each else None for each in found]
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
