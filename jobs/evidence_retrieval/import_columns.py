"""Names the columns of imported files.

It is separate from the formats, so that scoring does not load the file readers.
"""

from __future__ import annotations

from collections.abc import Sequence

from jobs.evidence_retrieval.import_records import (
    CALIBRATED,
    GAMMA_PREFIX,
    PROB_PREFIX,
    RAW,
    STATED,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.inputs.column_map import is_field

QUERY = ("post_id", "criterion_id")

LABEL = "has_evidence_gold"

GOLD = "gold_sent_uids"

JUDGED = "judged"
"""Column that is 0 for unjudged queries, whose blank `gold_ids` mean nothing."""

LIST_SUFFIX = "_topk"
"""Suffix of columns with a ranking; the rest is the list's name."""

UIDS, SCORES = "sent_uids", "scores"

FIELDS = (
    *QUERY,
    LABEL,
    *("fold_id", "state", "tau_neg", "tau_pos", "n_candidates", "selected_k"),
    *STATED,
    GOLD,
    CALIBRATED,
    RAW,
    PROB_PREFIX + "*",
    UIDS,
    SCORES,
    "gold_ids",
    "*" + LIST_SUFFIX,
    GAMMA_PREFIX + "*",
)
"""Fields that a column of a file may be mapped to."""


def stored_pairs(settings: EvidenceSettings) -> Sequence[str]:
    """Return the pairs of `--map` that name a key of the results in `--against`.

    These are the pairs without a column that this job reads; empty without `--against`.
    """
    if settings.against is None:
        return ()
    return [
        pair
        for pair in settings.map
        if not any(is_field(side, FIELDS) for side in pair.split("="))
    ]
