"""A sheet, measured, as a scorecard."""

from jobs.screening.scoring.scorecard import score

__all__ = ["score"]
