"""Can an agent rebuild a Cochrane review's list of included studies?

The outline here is what `siftlog jobs` lists without loading the job.
"""

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
