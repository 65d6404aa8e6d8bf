"""The vectors of a post's criteria and sentences, checked before they are used."""

from __future__ import annotations

import numpy as np

from jobs.evidence_retrieval.parsing.values import PostVectors
from runner.job import guarded
from runner.messages import FLOAT_BYTES, ParseFailure, Vectors

BAD = ParseFailure(reason="bad_vectors")


@guarded
def parse_vectors(
    reply: Vectors, *, criteria: int, sentences: int
) -> PostVectors | ParseFailure:
    """The vectors in the order of the request: *criteria* first, then *sentences*.

    One failure, `bad_vectors`: another number of them, of unequal length, with an entry
    that is no number, or without a length of their own.
    """
    lengths = {len(packed) for packed in reply.packed}
    if len(reply.packed) != criteria + sentences or len(lengths) != 1:
        return BAD
    (length,) = lengths
    if length == 0 or length % FLOAT_BYTES:
        return BAD
    rows = np.frombuffer(b"".join(reply.packed), "<f4").reshape(len(reply.packed), -1)
    if not np.isfinite(rows).all() or not rows.any(axis=1).all():
        return BAD
    numbers = rows.astype(np.float64)
    return PostVectors(criteria=numbers[:criteria], sentences=numbers[criteria:])
