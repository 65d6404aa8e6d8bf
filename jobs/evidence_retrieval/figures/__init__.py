"""What a scoring looks like: curves, bars and counts as values for the report."""

from jobs.evidence_retrieval.figures.album import Album

__all__ = ["Album"]
