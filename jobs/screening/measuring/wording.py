"""What the headline metrics tell a reader who is no statistician, and what they do not.

A near miss is unjudged: the review may never have seen it, so that "wrongly included"
is what the set says, not what is known.
"""

from __future__ import annotations

from collections.abc import Mapping

DRAWN_RATIO = "goes by this set's ratio of negatives, which need not be a search's"
"""Stands beside everything that depends on how common the included papers are."""

DEPENDS_ON_RATIO = frozenset(
    {"precision", "npv", "f1", "f2", "nnr", "accuracy", "ap", "wss95", "wss100"}
)

UNJUDGED = "near misses are unjudged, not known to be ineligible"

MEANINGS: Mapping[str, str] = {
    "all.micro.sensitivity": "Of the papers that the reviews include, the share that "
    "the model includes among those that it decided.",
    "all.micro.as_include.sensitivity": "Sensitivity where a person reads whatever "
    "the model leaves undecided: what is kept in use.",
    "all.micro.specificity": "Of the negatives that the model decided, the share that "
    "it excludes.",
    "near-miss.micro.specificity": "Of the papers of related reviews, the hardest to "
    "tell apart, the share that the model excludes.",
    "random.micro.specificity": "Of the papers of any other review, the share that "
    "the model excludes.",
    "true-excluded.micro.specificity": "Of the papers that the reviews excluded, the "
    "share that the model excludes.",
    "all.micro.coverage": "Share of records that the model decided.",
    "all.macro.wss95": "Share of reading saved, beyond chance, when a person reads in "
    "the model's order until 95% of a review's papers are found.",
    "all.macro.auroc": "How often an included paper ranks above a negative of its "
    "review.",
}
"""By path."""
