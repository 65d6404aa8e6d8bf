"""Version and stages of the job, for whoever lists jobs without loading them."""

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
