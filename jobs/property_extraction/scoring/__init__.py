"""A sheet, measured, as a scorecard."""

from jobs.property_extraction.scoring.scorecard import score

__all__ = ["score"]
