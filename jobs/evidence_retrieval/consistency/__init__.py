"""Contradictory and impossible figures, in anybody's rows and in our own tables."""

from jobs.evidence_retrieval.consistency.checking import OF_ROWS, check

__all__ = ["OF_ROWS", "check"]
