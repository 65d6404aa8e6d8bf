"""From a sheet to a scorecard: every metric with its subset, interval and meaning."""

from jobs.evidence_retrieval.scoring.scorecard import score

__all__ = ["score"]
