"""The course of a review, or of one paper in it: searched, scored, included or lost."""

from jobs.review_benchmark.explain.page import explain

__all__ = ["explain"]
