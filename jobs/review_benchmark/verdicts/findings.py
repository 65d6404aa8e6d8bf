"""What a reader should know before the verdicts are believed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.verdicts.measured import Verdicts
from jobs.review_benchmark.verdicts.threshold import LEAST_PAIRS
from runner.scorecard import Finding


def findings(dataset: Dataset, found: Sequence[Verdicts]) -> Iterator[Finding]:
    """Labels without a conclusion, labels that draw no line, and alike conclusions."""
    if dataset.labels:
        yield from _labels(dataset, found)
    alike = list(dict.fromkeys(pair for own in found for pair in own.alike))
    if alike:
        yield Finding(
            code="alike_conclusions",
            severity="info",
            where="verdicts",
            message="Conclusions of different reviews are as alike as the threshold.",
            n=len(alike),
            example=" and ".join(alike[0]),
        )


def not_available(found: Sequence[Verdicts]) -> Iterator[str]:
    """Why an agent has no similarity, or no threshold, with what would help."""
    for own in found:
        if own.kind == "direction":
            if own.compared and not own.judged:
                yield (
                    f"{own.model}: verdicts; no conclusion can be judged by the stated "
                    "direction of effect (verdicts.csv says why; give the truth a "
                    "conclusion_direction, or name a --judge-model with --verdict "
                    "judge)"
                )
        elif not own.compared:
            yield (
                f"{own.model}: verdicts; nothing compares its conclusions by "
                f"{own.kind} (verdicts.csv says why; --verdict direction needs no call)"
            )
        elif own.threshold is None:
            yield (
                f"{own.model}: a threshold of verdicts; it takes {LEAST_PAIRS} "
                f"mismatched pairs, and there are {len(own.mismatched)} (label "
                "conclusions: --verdict-labels FILE)"
            )


def _labels(dataset: Dataset, found: Sequence[Verdicts]) -> Iterator[Finding]:
    there = {(own.model, review) for own in found for review in own.compared}
    unused = [
        label for label in dataset.labels if (label.model, label.review) not in there
    ]
    where = "" if (path := dataset.settings.verdict_labels) is None else path.name
    if unused:
        yield Finding(
            code="labels_unused",
            severity="warn",
            where=where,
            message="Labels name conclusions that the run does not have.",
            n=len(unused),
            example=f"{unused[0].review} of {unused[0].model}",
        )
    if not any(own.threshold and own.threshold.source == "labels" for own in found):
        yield Finding(
            code="labels_of_one_kind",
            severity="warn",
            where=where,
            message="Labels draw no threshold unless some are 0 and some are 1.",
            n=len(dataset.labels),
        )
