"""What replies took: calls, tokens and money."""

from __future__ import annotations

import math
from collections.abc import Iterable

from jobs.review_benchmark.rebuilt import Spent
from runner.task import Answer


def spent(answers: Iterable[Answer]) -> Spent:
    """What the replies among *answers* took."""
    return in_sum(_of(answer) for answer in answers if answer.reply is not None)


def in_sum(parts: Iterable[Spent]) -> Spent:
    """What several took together; what nobody told of any stays unknown."""
    every = list(parts)
    inwards = [own.tokens_in for own in every if own.tokens_in is not None]
    outwards = [own.tokens_out for own in every if own.tokens_out is not None]
    costs = [own.cost_usd for own in every if own.cost_usd is not None]
    return Spent(
        calls=sum(own.calls for own in every),
        tokens_in=sum(inwards) if inwards else None,
        tokens_out=sum(outwards) if outwards else None,
        cost_usd=math.fsum(costs) if costs else None,
    )


def _of(answer: Answer) -> Spent:
    usage = None if answer.reply is None else answer.reply.usage
    return Spent(
        calls=1,
        tokens_in=None if usage is None else usage.tokens_in,
        tokens_out=None if usage is None else usage.tokens_out,
        cost_usd=answer.cost_usd,
    )
