"""How a review comes to its negatives, and what a run made of it, as pages."""

from jobs.screening.explain.pages import explain
from jobs.screening.explain.told import explain_inputs

__all__ = ["explain", "explain_inputs"]
