"""A second computation of every number that a stored summary holds.

Nothing here imports numpy or `jobs.metrics`: what two independent readings agree on is
more than what one of them says twice. Rows and summary go in as plain text and JSON.
"""

from jobs.evidence_retrieval.verification.choices import (
    PROFILES,
    SIFTLOG,
    Choices,
    choices_of,
)
from jobs.evidence_retrieval.verification.queries import Row
from jobs.evidence_retrieval.verification.verdicts import TOLERANCE, verify
from jobs.evidence_retrieval.verification.verification import (
    COLUMNS,
    Comparison,
    Verification,
)

__all__ = [
    "COLUMNS",
    "PROFILES",
    "SIFTLOG",
    "TOLERANCE",
    "Choices",
    "Comparison",
    "Row",
    "Verification",
    "choices_of",
    "verify",
]
