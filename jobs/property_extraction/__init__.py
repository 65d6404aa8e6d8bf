"""Material properties from papers: extraction, scoring by rubric, aliases.

The outline here is what `siftlog jobs` lists without loading the job.
"""

from __future__ import annotations

from runner.registry import JobOutline

OUTLINE = JobOutline(
    version="2",
    stages={
        "extract": "subject",
        "requote": "subject",
        "verify": "subject",
        "rows": "subject",
    },
)
