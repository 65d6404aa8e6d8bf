"""A run, scored."""

from jobs.review_benchmark.scoring.scorecard import score

__all__ = ["score"]
