"""What the verdicts of an agent come to; apart from whether its reviews pass."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.metrics import mean, ratio, wilson
from jobs.review_benchmark.settings import Settings
from jobs.review_benchmark.verdicts.measured import Verdicts
from jobs.review_benchmark.verdicts.pairs import DEFINITIONS
from jobs.review_benchmark.verdicts.threshold import NULL_QUANTILE
from runner.scorecard import Metric


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
    by_labels = drawn is not None and drawn.source == "labels"
    yield Metric(
        path="verdict.threshold",
        value=None if drawn is None else drawn.value,
        n=len(found.mismatched) if drawn is None else drawn.n,
        definition="youden@1(highest J over labels; ties to the higher threshold)"
        if by_labels
        else f"quantile@1({NULL_QUANTILE:g} of mismatched pairs, linear)",
    )
    if drawn is not None and by_labels:
        yield Metric(
            path="verdict.label_accuracy",
            value=drawn.accuracy,
            n=drawn.n,
            definition="accuracy@1(leave-one-out; the threshold of the other labels)",
        )


def _passed(found: Verdicts, settings: Settings) -> Iterator[Metric]:
    verdicts = [found.passes(review) for review in found.compared]
    passed = None if found.threshold is None else verdicts.count(True)
    ends = wilson(passed or 0, 0 if passed is None else len(verdicts), settings.level)
    yield Metric(
        path="verdict.passed",
        value=passed,
        n=len(verdicts),
        definition="passed@1(conclusions that the threshold admits, none opposite)",
    )
    yield Metric(
        path="verdict.passed_rate",
        value=None if passed is None else ratio(passed, len(verdicts)),
        n=len(verdicts),
        lo=ends.lo,
        hi=ends.hi,
        definition=f"passed_rate@1(passed / compared; Wilson, level={settings.level})",
    )
