"""What makes two results comparable: one truth, one way of matching, one database."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from jobs.review_benchmark.review import Review
from jobs.review_benchmark.settings import Settings

MATCHING = (
    "matching",
    "title_cutoff",
    "autojunk",
    "punctuation",
    "strip_dx",
    "unique_claims",
    "precision",
)
"""The settings that say how papers are matched and counted."""


def truth_hash(review: Review) -> str:
    """SHA-256 over what is looked for: the identifiers and titles of its studies.

    What else a file says, such as notes, may be corrected without another truth.
    """
    studies = [
        (study.pmid, study.doi, study.title, study.year) for study in review.studies
    ]
    return sha256(msgspec.json.encode((review.id, studies))).hexdigest()


def matching_options(settings: Settings) -> str:
    """How papers are matched, in one line: `matching=whole-list, ...`."""
    values = settings.model_dump(mode="json", include={*MATCHING})
    return ", ".join(f"{name}={_shown(values[name])}" for name in MATCHING)


def _shown(value: object) -> str:
    """A value as `--set` takes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
