"""Why a query got what it got: sentences, scores by stage, gate, K, gold, replies."""

from jobs.evidence_retrieval.explain.page import explain

__all__ = ["explain"]
