"""Version and stages of the job, for whoever lists jobs without loading them."""

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
