"""Kinds of negatives compared: how much harder near misses are than others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jobs.metrics import ResampledDifference, Resamples, mean, mean_of, with_interval
from jobs.screening.difficulty.contamination import NOT_IDENTIFIED, implied
from jobs.screening.measuring.stratum import Stratum
from runner.scorecard import Metric

PAIRS = (("near-miss", "random"), ("near-miss", "true-excluded"))


def kind_gaps(strata: Mapping[str, Stratum], draws: Resamples) -> Iterator[Metric]:
    """Differences of specificity, paired by the reviews that have both kinds."""
    for left, right in PAIRS:
        if left not in strata or right not in strata:
            continue
        pairs = [
            (a, b) if a is not None and b is not None else (None, None)
            for a, b in zip(
                strata[left].by_review["specificity"],
                strata[right].by_review["specificity"],
                strict=True,
            )
        ]
        firsts, seconds = [a for a, _ in pairs], [b for _, b in pairs]
        there = sum(a is not None for a in firsts)
        (ends,) = draws.intervals(
            [ResampledDifference(mean_of(firsts), mean_of(seconds))]
        )
        gap = mean(a - b for a, b in pairs if a is not None and b is not None)
        yield Metric(
            path=f"kinds.{left}-{right}.specificity",
            value=gap,
            n=there,
            subset=f"reviews with {left} and {right}",
            lo=ends.lo,
            hi=ends.hi,
            definition=with_interval(
                f"specificity difference@1({left} minus {right}, mean over reviews "
                "that have both)",
                ends,
            ),
        )


def implied_contamination(strata: Mapping[str, Stratum]) -> Iterator[Metric]:
    """The share of near misses that the error rates imply to be eligible."""
    near, true = strata.get("near-miss"), strata.get("true-excluded")
    if near is None or true is None:
        return
    found = near.by_path["micro.fpr"]
    share = implied(
        found.value,
        true.by_path["micro.fpr"].value,
        strata["all"].by_path["micro.sensitivity"].value,
    )
    yield Metric(
        path="contamination.implied",
        value=share,
        n=found.n,
        subset="near-miss",
        definition="implied contamination@1((fpr near-miss - fpr true-excluded) / "
        "(sensitivity - fpr true-excluded))",
        note=NOT_IDENTIFIED
        if share is None
        else "an estimate that rests on strong assumptions",
    )
