"""Metrics of an agent's verdicts, which are apart from whether its reviews pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobs.metrics import mean, ratio, wilson
from jobs.review_benchmark.settings import Settings, VerdictKind
from jobs.review_benchmark.verdicts.measured import Verdicts
from jobs.review_benchmark.verdicts.pairs import DEFINITIONS
from jobs.review_benchmark.verdicts.threshold import NULL_QUANTILE, Source
from runner.scorecard import Metric

_PASSED: Mapping[VerdictKind, str] = {
    "direction": "stated direction of effect as the authors', certainty within "
    "{within} level(s)",
    "tfidf": "similarity above the threshold, and direction and certainty as under "
    "direction",
    "embedding": "similarity above the threshold, and direction and certainty as under "
    "direction",
    "judge": "similarity above the threshold, and the judge calls the direction same",
}
"""The condition of a verdict, by the way in which conclusions are compared."""


def metrics(found: Verdicts, settings: Settings) -> Iterator[Metric]:
    """The metrics of one agent's verdicts."""
    similarity = DEFINITIONS[found.kind]
    compared, mismatched = found.compared, found.mismatched
    yield Metric(
        path="verdict.similarity",
        value=mean(compared.values()),
        n=len(found.matches),
        n_defined=len(compared),
        definition=f"mean over reviews of {similarity}",
        meaning="how alike the agent's conclusions are to the authors' own",
    )
    yield Metric(
        path="verdict.null",
        value=mean(mismatched.values()),
        n=len(mismatched),
        definition=f"mean over mismatched pairs of {similarity}",
    )
    yield Metric(
        path="verdict.auroc",
        value=found.auroc,
        n=len(compared) + len(mismatched),
        definition="auroc@1(matched against mismatched pairs)",
    )
    yield from _threshold(found)
    yield from _passed(found, settings)
    if found.kind == "judge":
        yield Metric(
            path="verdict.opposite",
            value=sum(match.is_opposite for match in found.matches.values()),
            n=len(compared),
            definition="count@1(reviews whose direction the judge calls opposite)",
        )
    yield Metric(
        path="verdict.alike",
        value=None if found.threshold is None else len(found.alike),
        n=len(found.matches),
        definition="count@1(pairs of other reviews that a threshold above 0 admits)",
    )


def _threshold(found: Verdicts) -> Iterator[Metric]:
    drawn = found.threshold
    source = "mismatched pairs" if drawn is None else drawn.source
    yield Metric(
        path="verdict.threshold",
        value=None if drawn is None else drawn.value,
        n=len(found.mismatched) if drawn is None else drawn.n,
        definition=_SOURCES[source],
        meaning="similarity from which two conclusions count as alike",
    )
    alike = [found.is_alike(review) for review in found.compared]
    yield Metric(
        path="verdict.above",
        value=None if drawn is None else alike.count(True),
        n=len(alike),
        definition="count@1(conclusions whose similarity the threshold admits)",
        meaning="conclusions that are alike by similarity, whatever they state",
    )
    if drawn is not None and source == "labels":
        yield Metric(
            path="verdict.label_accuracy",
            value=drawn.accuracy,
            n=drawn.n,
            definition="accuracy@1(leave-one-out; the threshold of the other labels)",
        )


_SOURCES: Mapping[Source, str] = {
    "labels": "youden@1(highest J over labels; ties to the higher threshold)",
    "mismatched pairs": f"quantile@1({NULL_QUANTILE:g} of mismatched pairs, linear)",
    "borrowed pairs": f"quantile@1({NULL_QUANTILE:g} of mismatched pairs, linear; with "
    "those of other agents and of the authors among themselves)",
    "fixed": "fixed@1(a value of siftlog's; too few mismatched pairs)",
    "setting": "setting@1(verdict_threshold)",
}


def _passed(found: Verdicts, settings: Settings) -> Iterator[Metric]:
    judged = [*found.judged.values()]
    passed = judged.count(True) if judged else None
    ends = wilson(passed or 0, len(judged), settings.level)
    condition = _PASSED[found.kind].format(within=settings.certainty_within)
    yield Metric(
        path="verdict.judged",
        value=len(judged),
        n=len(found.matches),
        definition="count@1(conclusions that pass or fail; the others are not judged)",
    )
    yield Metric(
        path="verdict.passed",
        value=passed,
        n=len(judged),
        definition=f"passed@2({condition})",
    )
    yield Metric(
        path="verdict.passed_rate",
        value=None if passed is None else ratio(passed, len(judged)),
        n=len(judged),
        lo=ends.lo,
        hi=ends.hi,
        definition=f"passed_rate@2(passed / judged; Wilson, level={settings.level})",
        meaning="share of its conclusions that count as the authors' own",
    )
