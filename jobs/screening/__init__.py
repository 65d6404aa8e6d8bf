"""Would a model lose eligible papers, and how much reading would it save?

The outline here is what `siftlog jobs` lists without loading the job.
"""

from __future__ import annotations

from runner.registry import JobOutline

OUTLINE = JobOutline(
    version="2",
    stages={
        "criteria": "subject",
        "title": "subject",
        "abstract": "subject",
        "fulltext": "subject",
    },
)
