"""The shipped job with a leak in it: each fold also learns from its own test posts.

What a careless change would do to the nested evaluation, in one place: the gate of a
fold is fitted on the posts that it then judges. It is installed for one test only.
"""

from __future__ import annotations

from dataclasses import replace

from jobs.evidence_retrieval.job import job as shipped
from jobs.evidence_retrieval.predictions import classifier, gate
from jobs.evidence_retrieval.predictions.classifier import Split


def leaking(*args: object, **kwargs: object) -> Split:
    """A split whose test posts are among those to learn from."""
    own = classifier.split(*args, **kwargs)  # type: ignore[arg-type]
    return replace(own, fit=(*own.fit, *own.test))


gate.split = leaking

job = shipped
