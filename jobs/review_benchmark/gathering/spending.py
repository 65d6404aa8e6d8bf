"""What replies took: calls, tokens and money."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from jobs.review_benchmark.rebuilt import Spent
from runner.job import Answer


def spent(answers: Iterable[Answer]) -> Spent:
    """What the replies among *answers* took."""
    replied = [answer for answer in answers if answer.reply is not None]
    usages = [
        usage
        for answer in replied
        if answer.reply is not None and (usage := answer.reply.usage) is not None
    ]
    return Spent(
        calls=len(replied),
        tokens_in=_tokens([usage.tokens_in for usage in usages]),
        tokens_out=_tokens([usage.tokens_out for usage in usages]),
        cost_usd=_cost([answer.cost_usd for answer in replied]),
    )


def in_sum(parts: Sequence[Spent]) -> Spent:
    """What several took together."""
    return Spent(
        calls=sum(own.calls for own in parts),
        tokens_in=_tokens([own.tokens_in for own in parts]),
        tokens_out=_tokens([own.tokens_out for own in parts]),
        cost_usd=_cost([own.cost_usd for own in parts]),
    )


def _tokens(given: Iterable[int | None]) -> int | None:
    """The sum of what is known; None where nothing is."""
    known = [value for value in given if value is not None]
    return sum(known) if known else None


def _cost(given: Iterable[float | None]) -> float | None:
    known = [value for value in given if value is not None]
    return math.fsum(known) if known else None
