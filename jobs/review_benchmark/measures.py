"""Collects the metrics of review-benchmark: scopes, slots, and measures by path."""

from __future__ import annotations

from jobs.kit.measures import BASELINE_FORMS, Measure, MeasurePart, Measures
from jobs.review_benchmark.agent_results import COUNTS, LOST, PASSED, RATES
from jobs.review_benchmark.verdicts import VERDICTS

MEASURES = Measures(
    headlines=(
        "macro.recall",
        "macro.precision",
        "macro.ceiling",
        "macro.retrieval_recall",
        "macro.screening_recall",
        "verdict.similarity",
        "verdict.passed_rate",
    ),
    scopes={
        "macro.": MeasurePart(name="", meaning="mean over reviews"),
        "micro.": MeasurePart(name="pooled over reviews"),
        "median.": MeasurePart(name="median over reviews"),
        "min.": MeasurePart(name="minimum over reviews"),
        "review.{review*}.": MeasurePart(name="review {review}"),
        "replicate.{replicate}.": MeasurePart(
            name="replicate {replicate}",
            meaning="mean over reviews of replicate {replicate} by itself",
        ),
    },
    forms=BASELINE_FORMS,
    slots={
        "method": {
            "pmid": "PMID",
            "doi": "DOI",
            "title_fuzzy": "similar title",
        }
    },
    measures={
        **RATES,
        **{f"count.{key}": measure for key, measure in COUNTS.items()},
        "count.method.null": Measure(
            "Studies without a match",
            "Studies of the truth that match no paper",
            "lower",
        ),
        **{f"lost.{step}": measure for step, measure in LOST.items()},
        **VERDICTS,
        **PASSED,
    },
)
