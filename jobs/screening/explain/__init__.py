"""How a review comes to its negatives, step by step: words, counts, a diagram."""

from jobs.screening.explain.told import explain_inputs

__all__ = ["explain_inputs"]
