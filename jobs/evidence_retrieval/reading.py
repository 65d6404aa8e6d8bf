"""What the engine makes of each stage's replies: the parser with the data's sizes.

Never raises on model output, nor on a query that the data no longer holds: both are a
`ParseFailure`, counted by its reason.
"""

from __future__ import annotations

from jobs.evidence_retrieval.asking.listing import listing
from jobs.evidence_retrieval.asking.request import assessed, is_batch
from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.importing.given import read_given
from jobs.evidence_retrieval.parsing.assess import parse_assess, parse_assessments
from jobs.evidence_retrieval.parsing.endpoint import parse_scores
from jobs.evidence_retrieval.parsing.rerank import parse_rerank
from jobs.evidence_retrieval.parsing.values import (
    Assessment,
    EndpointScores,
    Ordering,
    PostAssessment,
    PostVectors,
)
from jobs.evidence_retrieval.parsing.vectors import parse_vectors
from runner.job import Stage, Task
from runner.messages import ParseFailure, Ranking, Reply, Vectors

UNKNOWN = ParseFailure(reason="unknown_query")


def read_assess(
    dataset: Dataset, task: Task, reply: Reply
) -> Assessment | PostAssessment | ParseFailure:
    """What a reply says of a query, or of all criteria of a post."""
    try:
        post, criteria = assessed(dataset, task.key)
    except KeyError:
        return UNKNOWN
    if is_batch(dataset, task.key):
        ids = [criterion.id for criterion in criteria]
        return parse_assessments(reply, len(post.sentences), ids)
    return parse_assess(reply, len(post.sentences))


def read_rerank(dataset: Dataset, task: Task, reply: Reply) -> Ordering | ParseFailure:
    """The order of a window's candidates."""
    try:
        listed = listing(dataset, task)
    except KeyError:
        return UNKNOWN
    return parse_rerank(reply, len(listed.places))


def read_embed(
    dataset: Dataset, task: Task, reply: Vectors
) -> PostVectors | ParseFailure:
    """The vectors of all criteria and of a post's sentences."""
    try:
        post = dataset.post(task.key)
    except KeyError:
        return UNKNOWN
    return parse_vectors(
        reply, criteria=len(dataset.criteria), sentences=len(post.sentences)
    )


def read_rerank_api(
    dataset: Dataset, task: Task, reply: Ranking
) -> EndpointScores | ParseFailure:
    """An endpoint's scores of a pool."""
    try:
        post, _ = dataset.query(task.key)
    except KeyError:
        return UNKNOWN
    return parse_scores(reply, len(post.sentences))


STAGES = (
    Stage(name="assess", parse=read_assess),
    Stage(name="embed", parse=read_embed, role="embed"),
    Stage(name="rerank_api", parse=read_rerank_api, role="rerank", follows=False),
    Stage(name="rerank", parse=read_rerank),
    Stage(name="given", parse=read_given, follows=False),
)

PARSERS = {stage.name: stage.parse for stage in STAGES}
