"""The scores that a rerank endpoint gave to a pool."""

from __future__ import annotations

import math

from jobs.evidence_retrieval.parsing.values import EndpointScores
from runner.job import guarded
from runner.messages import ParseFailure, Ranking


@guarded
def parse_scores(reply: Ranking, n: int) -> EndpointScores | ParseFailure:
    """The score of each of *n* sentences; None where the endpoint left one out.

    Failures: `bad_indices`, for one that is named twice or out of range, `bad_scores`
    for one that is not finite, and `no_scores` where there are none.
    """
    by_place = {each.index: each.score for each in reply.results}
    if len(by_place) != len(reply.results) or not by_place.keys() <= set(range(n)):
        return ParseFailure(reason="bad_indices")
    if not all(map(math.isfinite, by_place.values())):
        return ParseFailure(reason="bad_scores")
    if not by_place:
        return ParseFailure(reason="no_scores")
    missing = n - len(by_place)
    return EndpointScores(
        scores=tuple(by_place.get(place) for place in range(n)),
        noted={"missing_score": missing} if missing else {},
    )
