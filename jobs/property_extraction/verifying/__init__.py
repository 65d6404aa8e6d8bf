"""Scores a verification: what each model says of each pair, and where they differ."""

from jobs.property_extraction.verifying.explained import explained
from jobs.property_extraction.verifying.scorecard import score

__all__ = ["explained", "score"]
