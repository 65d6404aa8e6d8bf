"""The vector of a conclusion, checked before it is used."""

from __future__ import annotations

import math

from jobs.review_benchmark.answered import Vector
from runner.job import guarded
from runner.messages import ParseFailure, Vectors


@guarded
def parse_vector(reply: Vectors) -> Vector | ParseFailure:
    """The one vector in a reply.

    One failure, `bad_vector`: another number of them, an entry that is no number, or no
    length of its own.
    """
    rows = reply.numbers()
    if len(rows) != 1 or not any(rows[0]) or not all(map(math.isfinite, rows[0])):
        return ParseFailure(reason="bad_vector")
    return rows[0]
