"""Scoring of paper investigations: `score` turns a run's answers into a scorecard."""

from jobs.paper_investigation.scoring.scorecard import score

__all__ = ["score"]
