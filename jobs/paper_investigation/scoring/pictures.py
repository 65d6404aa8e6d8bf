"""What the scores look like: models against one another, and where questions fail.

Every number here is a metric of the scorecard or a count behind one; nothing is
computed for a picture alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.figures.gallery import drawn
from jobs.paper_investigation.scoring import counted_pictures
from jobs.paper_investigation.settings import PIPELINES
from jobs.paper_investigation.tallies.breakdown import TOTAL
from jobs.paper_investigation.tallies.headline import AVERAGES
from jobs.paper_investigation.tallies.pairs import Pair
from jobs.paper_investigation.tallies.survey import Survey
from runner.scorecard import (
    Axis,
    Bars,
    FailedFigure,
    Figure,
    Metric,
    Numbers,
    Panel,
    Points,
)

MOST_MODELS = 6
"""Side by side in one picture; the tables hold all."""

FIELDS = {"p_value": "p-value", "significance": "significance", "both": "both"}

ALL_CLASSES = "class.MICRO-AVG.recall"

ByPath = Mapping[str, Metric]


def figures(
    survey: Survey, metrics: Mapping[str, ByPath], pairs: Sequence[Pair]
) -> Iterator[Figure | FailedFigure]:
    """The figures of a scoring; none for what was not asked.

    Args:
        survey: what was counted.
        metrics: by model and path.
        pairs: every two models.
    """
    return drawn(
        lambda: _shown(survey, metrics, pairs),
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
class _Shown:
    """What figures are drawn from."""

    survey: Survey
    pairs: Sequence[Pair]
    rates: _Rates
    counted: counted_pictures.Counted
    asked: Sequence[str]  #: pipelines with answers, and their total

    @property
    def has_averages(self) -> bool:
        """Whether papers are averaged over at all."""
        return bool(AVERAGES[self.survey.mode])

    @property
    def has_fields(self) -> bool:
        """Whether study parameters were asked for."""
        models = self.rates.models.values()
        return any("study_param.both.accuracy" in own for own in models)


def _shown(
    survey: Survey, metrics: Mapping[str, ByPath], pairs: Sequence[Pair]
) -> _Shown:
    names = tuple(metrics)[:MOST_MODELS]
    left = len(metrics) > len(names)
    more = f" The first {len(names)} of {len(metrics)} models." if left else ""
    tallies = [survey.tallies[model] for model in names]
    return _Shown(
        survey=survey,
        pairs=pairs,
        rates=_Rates(models={name: metrics[name] for name in names}, more=more),
        counted=counted_pictures.Counted(survey=survey, models=names, more=more),
        asked=[
            name
            for name in (*PIPELINES, TOTAL)
            if any(tally.breakdown.pipelines[name].answered for tally in tallies)
        ],
    )


def averages(shown: _Shown) -> Figure | None:
    """Means over papers."""
    paths = [average.path for average in AVERAGES[shown.survey.mode]]
    return _averages(shown.rates, paths) if paths else None


def papers(shown: _Shown) -> Figure | None:
    """How many papers lie where."""
    return shown.counted.papers() if shown.has_averages else None


def ceiling(shown: _Shown) -> Figure | None:
    """The score of each paper against its recall."""
    return shown.counted.ceiling() if shown.survey.mode == "investigate" else None


def differences(shown: _Shown) -> Iterator[Figure]:
    """Papers on which two models differ."""
    if shown.has_averages:
        yield from shown.counted.differences(shown.pairs)


def classes(shown: _Shown) -> Figure | None:
    """Recall by class of variants."""
    return _classes(shown.rates) if shown.has_averages else None


def kinds(shown: _Shown) -> Figure | None:
    """Recall by kind of variants."""
    return _kinds(shown.rates) if shown.has_averages else None


def pipelines(shown: _Shown) -> Figure | None:
    """Accuracy by pipeline."""
    return _pipelines(shown.rates, shown.asked) if shown.asked else None


def outcomes(shown: _Shown) -> Figure | None:
    """What became of the questions."""
    return shown.counted.outcomes() if shown.asked else None


def fields(shown: _Shown) -> Figure | None:
    """Accuracy by study parameter."""
    return _fields(shown.rates) if shown.has_fields else None


def significance(shown: _Shown) -> Figure | None:
    """Stated against expected significance."""
    return shown.counted.significance() if shown.has_fields else None


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
                x=_values(found),
                y=tuple(place + begin + series * gap for place in range(len(paths))),
                lo=tuple(m.lo if m else None for m in found),
                hi=tuple(m.hi if m else None for m in found),
                label=model,
                series=series,
            )
            for series, (model, found) in enumerate(self._at(paths))
        )

    def bars(self, paths: Sequence[str]) -> tuple[Bars, ...]:
        """A bar with its interval for each model at each path."""
        return tuple(
            Bars(
                values=_values(found),
                lo=tuple(m.lo if m else None for m in found),
                hi=tuple(m.hi if m else None for m in found),
                label=model,
                series=series,
            )
            for series, (model, found) in enumerate(self._at(paths))
        )

    def panel(
        self, words: Mapping[str, str], marks: tuple[Points | Bars, ...], label: str
    ) -> Panel:
        """The marks at the names of the paths, each with the n of the models."""
        names = tuple(f"{word}\nn = {self._n(path)}" for path, word in words.items())
        return Panel(x=Axis(label=label, lo=0, hi=1), y=Axis(names=names), marks=marks)

    def _at(self, paths: Sequence[str]) -> Iterator[tuple[str, list[Metric | None]]]:
        for model, own in self.models.items():
            yield model, [own.get(path) for path in paths]

    def _n(self, path: str) -> str:
        """Of all models, or a range where they differ."""
        found = [own[path] for own in self.models.values() if path in own]
        sizes = [m.n if m.n_defined is None else m.n_defined for m in found]
        low, high = min(sizes, default=0), max(sizes, default=0)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _values(found: Sequence[Metric | None]) -> Numbers:
    return tuple(metric.value if metric else None for metric in found)


def _averages(rates: _Rates, paths: Sequence[str]) -> Figure:
    words = {path: counted_pictures.WORDS[path] for path in paths}
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
    every = dict.fromkeys(path for own in rates.models.values() for path in own)
    return {
        path: path.split(".")[1]
        for path in every
        if path.startswith(f"{prefix}.") and path.endswith(".recall")
    }


def _pipelines(rates: _Rates, asked: Sequence[str]) -> Figure:
    words = {f"pipeline.{name}.accuracy": name for name in asked}
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
