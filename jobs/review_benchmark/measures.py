"""Names, meanings and directions of the metrics of review-benchmark.

Those of an agent's reviews, of its conclusions, and of an extraction of ground truth.
"""

from __future__ import annotations

from collections.abc import Mapping

from jobs.kit.measures import BASELINE_FORMS, Measure, MeasurePart, Measures
from runner.scorecard import Direction


def _measure(name: str, meaning: str, direction: Direction = "neither") -> Measure:
    return Measure(name=name, meaning=meaning, direction=direction)


_RATES: Mapping[str, Measure] = {
    "recall": _measure(
        "Recall",
        "Share of a review's included studies that were found and included",
        "higher",
    ),
    "precision": _measure(
        "Precision",
        "Share of the included papers that the review includes too",
        "higher",
    ),
    "ceiling": _measure(
        "Recall ceiling",
        "Share of a review's studies that the searched papers contain at all",
    ),
    "retrieval_recall": _measure(
        "Retrieval recall",
        "Share of a review's studies that the search offers",
        "higher",
    ),
    "screening_recall": _measure(
        "Screening recall",
        "Share of the offered studies that were included",
        "higher",
    ),
    "recall_distinct": _measure(
        "Recall of distinct studies",
        "Recall with a study that the review lists twice counted once",
        "higher",
    ),
    "nnr": _measure(
        "Number needed to read",
        "Included papers for each one that the review includes too",
        "lower",
    ),
}

_COUNTS: Mapping[str, Measure] = {
    "reviews": _measure("Reviews", "Number of reviews"),
    "truth": _measure("Studies of the truth", "Studies that the reviews include"),
    "included": _measure("Included papers", "Papers that the agent includes"),
    "found": _measure(
        "Studies found", "Studies of the truth that the searched papers contain"
    ),
    "found_and_included": _measure(
        "Studies found and included",
        "Studies of the truth that were found and included",
        "higher",
    ),
    "not_found": _measure(
        "Studies not found",
        "Studies of the truth that the searched papers lack or that do not match",
        "lower",
    ),
    "found_but_excluded": _measure(
        "Studies found but not included",
        "Studies of the truth that were found and not included",
        "lower",
    ),
    "method.null": _measure(
        "Studies without a match", "Studies of the truth that match no paper", "lower"
    ),
    "method.{method}": _measure(
        "Studies matched by {method}", "Studies of the truth that match by {method}"
    ),
}

_LOST: Mapping[str, tuple[str, str]] = {
    "not_in_database": ("not in the database", "which the searched papers lack"),
    "near_miss_match": ("near miss", "whose nearest paper is not near enough"),
    "claimed": ("claimed by another study", "whose paper another study has taken"),
    "not_retrieved": ("not retrieved", "which the search did not offer"),
    "date_filtered": ("filtered by date", "which the range of dates leaves out"),
    "unscored": ("unscored", "which have no readable score"),
    "below_threshold": ("below the threshold", "whose score is below the threshold"),
    "excluded": ("excluded", "which were excluded"),
}
"""By the step that lost a study: its name, and the studies that it lost."""

_VERDICTS: Mapping[str, Measure] = {
    "similarity": _measure(
        "Similarity of conclusions",
        "Similarity of the agent's conclusions to the authors' own, as a mean over "
        "reviews",
        "higher",
    ),
    "null": _measure(
        "Similarity of mismatched conclusions",
        "Similarity of conclusions of different reviews, as a mean over pairs",
    ),
    "auroc": _measure(
        "AUROC of similarity",
        "How often a conclusion is more similar to that of its own review than of "
        "another; chance is 0.5",
        "higher",
    ),
    "opposite": _measure(
        "Opposite conclusions",
        "Reviews whose conclusion has the opposite direction",
        "lower",
    ),
    "alike": _measure(
        "Mismatched conclusions above the threshold",
        "Pairs of conclusions of different reviews that the threshold admits",
        "lower",
    ),
    "threshold": _measure(
        "Similarity threshold", "Similarity from which a conclusion can pass"
    ),
    "above": _measure(
        "Conclusions above the threshold",
        "Conclusions that are alike by similarity, whatever they state",
    ),
    "judged": _measure(
        "Conclusions judged", "Conclusions that pass or fail; others are not judged"
    ),
    "label_accuracy": _measure(
        "Accuracy against labels",
        "Share of labelled conclusions that the threshold of the other labels decides "
        "rightly",
        "higher",
    ),
    "passed": _measure(
        "Conclusions passed",
        "Conclusions that count as the authors' own",
        "higher",
    ),
    "passed_rate": _measure(
        "Share of conclusions passed",
        "Share of the compared conclusions that count as the authors' own",
        "higher",
    ),
}

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
        **_RATES,
        **{f"count.{name}": measure for name, measure in _COUNTS.items()},
        **{
            f"lost.{step}": _measure(
                f"Studies lost, {name}", f"Studies of the truth {which}", "lower"
            )
            for step, (name, which) in _LOST.items()
        },
        **{f"verdict.{name}": measure for name, measure in _VERDICTS.items()},
        "passed": _measure(
            "Reviews passed", "Reviews whose recall reaches the target", "higher"
        ),
        "passed_rate": _measure(
            "Share of reviews passed",
            "Share of reviews whose recall reaches the target",
            "higher",
        ),
    },
)

EXTRACTION = Measures(
    headlines=("references.grounded", "studies.recall", "studies.precision"),
    measures={
        "references.grounded": _measure(
            "Grounded references",
            "Share of the references that occur in the review's text",
            "higher",
        ),
        "studies.recall": _measure(
            "Recall of studies",
            "Share of the truth's studies that were extracted",
            "higher",
        ),
        "studies.precision": _measure(
            "Precision of studies",
            "Share of the extracted studies that the truth has",
            "higher",
        ),
        "identifiers.{id}": _measure(
            "Right identifiers, {id}",
            "Share of matched studies with the truth's {id}, among those whose truth "
            "has one",
            "higher",
        ),
        "similarity.{field}": _measure(
            "Similarity, {field}",
            "Similarity of the extracted {field} to the truth's own",
            "higher",
        ),
        "count.references": _measure("References kept", "References that are kept"),
        "count.references_dropped": _measure(
            "References dropped",
            "References that do not occur in the review's text",
            "lower",
        ),
        "count.references_repeated": _measure(
            "References repeated", "References that an earlier one repeats"
        ),
        "count.studies": _measure("Studies", "Studies that were extracted"),
        "count.studies_in_abstract": _measure(
            "Studies by the abstract", "Number of studies that the abstract states"
        ),
        "count.flags": _measure("Flags", "Doubts that checks raise", "lower"),
        "count.sections_placed": _measure(
            "Sections placed", "Sections of the review that were found in its text"
        ),
        "count.excluded": _measure(
            "Excluded studies", "References of the review's excluded studies"
        ),
    },
)
"""Of `siftlog generate review-benchmark`."""
