"""The columns of a set's tables.

Beside the files that have them, which the reader of a set would load for nothing: they
bring what a set is built with.
"""

from __future__ import annotations

RECORDS = (
    "review_pmid",
    "paper_pmid",
    "label",
    "kind",
    "also_near_miss",
    "reason",
    "reason_code",
    "n_links",
    "n_shared",
    "similarity",
)
CANDIDATES = ("review_pmid", "paper_pmid", "n_links", "n_shared", "drawn")
STATISTICS = (
    "review_pmid",
    "n_references",
    "n_included",
    "n_related_reviews",
    "n_related_papers",
    "n_candidates",
    "candidates_sha256",
)
DRIFT = (
    "review_pmid",
    "kind",
    "n",
    "mean",
    "p25",
    "median",
    "p75",
    "separability",
    "mean_jaccard",
)
CONTAMINATION = (
    "review_pmid",
    "n_candidates",
    "confirmed",
    "pending",
    "duplicate_suspect",
    "unverified",
    "share_confirmed",
    "lower",
    "upper",
)
