"""Lists versions and stages of the jobs here, for `siftlog jobs`, which loads none.

No job imports this: what is changed for one is no change to the code of another.
"""

from __future__ import annotations

from runner.registry import JobOutline

ASK = JobOutline(
    version="2",
    stages={
        "ask": "subject",
        "chunk": "subject",
        "then": "subject",
        "check": "subject",
        "judge": "judge",
    },
)

EVIDENCE_RETRIEVAL = JobOutline(
    version="2",
    stages={
        "assess": "subject",
        "embed": "embed",
        "rerank_api": "rerank",
        "rerank": "subject",
        "given": "subject",
    },
)

PAPER_INVESTIGATION = JobOutline(
    version="2",
    stages={
        "extract": "subject",
        "question": "subject",
        "batch": "subject",
    },
)

PROPERTY_EXTRACTION = JobOutline(
    version="2",
    stages={
        "extract": "subject",
        "requote": "subject",
        "verify": "subject",
        "rows": "subject",
    },
)

REPLIES = JobOutline(version="1", stages={"question": "subject"})

REVIEW_BENCHMARK = JobOutline(
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

SCREENING = JobOutline(
    version="2",
    stages={
        "criteria": "subject",
        "title": "subject",
        "abstract": "subject",
        "fulltext": "subject",
    },
)
