"""Which variants does a paper study, and does the model understand them?

The outline here is what `siftlog jobs` lists without loading the job.
"""

from __future__ import annotations

from runner.registry import JobOutline

OUTLINE = JobOutline(
    version="2",
    stages={
        "extract": "subject",
        "question": "subject",
        "batch": "subject",
    },
)
