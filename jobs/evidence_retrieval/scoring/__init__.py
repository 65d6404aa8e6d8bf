"""From a sheet to a scorecard: every metric with its subset, interval and meaning."""

from jobs.evidence_retrieval.scoring.scorecard import score
from jobs.evidence_retrieval.scoring.verdicts import Verdicts

__all__ = ["Verdicts", "score"]
