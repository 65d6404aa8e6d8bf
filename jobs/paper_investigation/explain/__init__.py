"""Why a paper scored what it did: truth, lists, questions, replies, rules, verdicts."""

from jobs.paper_investigation.explain.page import explain

__all__ = ["explain"]
