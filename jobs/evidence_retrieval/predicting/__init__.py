"""From stored answers to predictions: outputs, rankings, gates."""

from __future__ import annotations

from jobs.evidence_retrieval.predicting.sheet import predict

__all__ = ["predict"]
