"""Which variants does a paper study, and does the model understand them?"""

from jobs.paper_investigation.job import job

__all__ = ["job"]
