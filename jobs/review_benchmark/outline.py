"""Version and stages of the job, for whoever lists jobs without loading them."""

from __future__ import annotations

from runner.registry import JobOutline

OUTLINE = JobOutline(
    version="2",
    stages={
        "plan": "subject",
        "score": "subject",
        "conclude": "subject",
        "judge": "judge",
        "embed": "embed",
        "result": "subject",
        "x.places": "subject",
        "x.meta": "subject",
        "x.refs": "subject",
        "x.excluded": "subject",
    },
)
