"""Find the evidence sentences for a criterion, and know when there are none.

The outline here is what `siftlog jobs` lists without loading the job.
"""

from __future__ import annotations

from runner.registry import JobOutline

OUTLINE = JobOutline(
    version="2",
    stages={
        "assess": "subject",
        "embed": "embed",
        "rerank_api": "rerank",
        "rerank": "subject",
        "given": "subject",
    },
)
