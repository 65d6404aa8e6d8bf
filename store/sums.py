"""What a fold counts: by minute, by stage and model, by class of what went wrong.

Plain sums that are added up in the tables. All are of integers, so that they do not
depend on how events were batched.
"""

from __future__ import annotations

import enum
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

US_PER_S = 1_000_000
US_PER_MINUTE = 60 * US_PER_S
#: Latency buckets are 2 % wide: percentiles to 2 % without keeping every value.
BUCKET_RATIO = 1.02
_LOG_RATIO = math.log(BUCKET_RATIO)


@dataclass(slots=True)
class Minute:
    """What happened in one minute of one stage and model."""

    started: int = 0
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_pico: int = 0


@dataclass(slots=True)
class Lane:
    """What has happened so far of one stage and model: its minutes in sum."""

    started: int = 0
    succeeded: int = 0
    replies: int = 0  #: answers whose latency is known
    tokens_in: int = 0
    tokens_out: int = 0
    cost_pico: int = 0


@dataclass(slots=True)
class ReplyTally:
    """Replies and failed tasks of one stage and model, by what was wrong with them.

    All that ever came is counted: a `retry` takes nothing away.
    """

    replies: int = 0  #: answers of the response cache included
    truncated: int = 0  #: ended at the output limit
    refused: int = 0  #: by the model
    filtered: int = 0  #: by the provider, with a reply or an error status
    empty: int = 0  #: without any text
    unparsed: int = 0  #: the job's parser could not read them
    failed: int = 0  #: tasks that ended without a reply


@dataclass(slots=True)
class ErrorClass:
    """Failed attempts of one class, stage and model."""

    n: int
    final: int  #: of them, those that no further attempt followed
    last_seq: int
    sample_task: int


class Outcome(enum.StrEnum):
    """What came of an attempt or a reply that was not as it should be."""

    RETRIED = "retried"
    FINAL = "final"  #: no further attempt
    REASKED = "re-ask"  #: the content was refused, and asked for again
    UNPARSED = "unparsed"  #: the reply is kept, and the parser could not read it


@dataclass(slots=True)
class Failures:
    """What went wrong in one minute of one class, stage, model and outcome."""

    n: int
    last_task: int


def lanes_of(
    minutes: Mapping[tuple[str, str, int], Minute],
    latencies: Mapping[tuple[str, str, int], int],
) -> dict[tuple[str, str], Lane]:
    """What some minutes come to, by stage and model.

    Args:
        minutes: by stage, model and minute.
        latencies: answers by model, stage and bucket.
    """
    sums: dict[tuple[str, str], Lane] = defaultdict(Lane)
    for (stage, model, _), minute in minutes.items():
        lane = sums[stage, model]
        lane.started += minute.started
        lane.succeeded += minute.succeeded
        lane.tokens_in += minute.tokens_in
        lane.tokens_out += minute.tokens_out
        lane.cost_pico += minute.cost_pico
    for (model, stage, _), n in latencies.items():
        sums[stage, model].replies += n
    return sums


def bucket_of(latency_ms: float) -> int:
    """The latency bucket of a duration; everything below 1 ms shares bucket 0."""
    return int(math.log(latency_ms) / _LOG_RATIO) if latency_ms > 1 else 0
