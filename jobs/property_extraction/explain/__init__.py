"""Why rows count as they do, and why names stand for others, as pages."""

from jobs.property_extraction.explain.page import explain

__all__ = ["explain"]
