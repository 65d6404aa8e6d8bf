"""What was wrong with a run's replies: for programs, for `status`, and at its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from store.read.usage import ReplyShares

KINDS: Final = ("truncated", "refused", "filtered", "empty", "unparsed")
LARGE: Final = 0.2
"""A share from which on the end of a run warns: results are then hardly of use."""


def shares_of(replies: ReplyShares) -> dict[str, float]:
    """The share of each kind; those above zero only."""
    shares = {}
    for kind in KINDS:
        n = getattr(replies, kind)
        # a prompt that was filtered with an error status never had a reply
        of = replies.replies + (replies.failed if kind == "filtered" else 0)
        if n:
            shares[kind] = min(1.0, n / max(1, of))
    return shares


def replies_json(replies: Sequence[ReplyShares]) -> list[dict[str, Any]]:
    """Counts and shares by model."""
    return [
        {
            **asdict(one),
            "shares": {kind: round(share, 6) for kind, share in shares_of(one).items()},
        }
        for one in replies
    ]


def replies_lines(replies: Sequence[ReplyShares]) -> Iterator[str]:
    """One line for each model of which something is to be said."""
    for one in replies:
        shares = shares_of(one)
        if shares:
            said = ", ".join(
                f"{getattr(one, kind):,} {kind} ({_percent(share)})"
                for kind, share in shares.items()
            )
            yield f"{one.model}: of {one.replies:,} replies {said}"


def closing_lines(replies: Sequence[ReplyShares]) -> Iterator[str]:
    """The same as sentences for the end of a run; large shares as warnings."""
    for one in replies:
        shares = shares_of(one)
        for line in replies_lines([one]):
            large = max(shares.values()) >= LARGE
            yield f"Warning: {line}{_advice(shares)}." if large else f"{line}."


def _advice(shares: dict[str, float]) -> str:
    """The next step, by the largest share."""
    if shares.get("truncated", 0.0) >= LARGE:
        return (
            "; raise the output limit (max_output_tokens of the model in a --config "
            "file), or lower the reasoning effort"
        )
    if shares.get("filtered", 0.0) >= LARGE or shares.get("refused", 0.0) >= LARGE:
        return "; look at some with siftlog tasks, and change prompt or model"
    return "; look at some with siftlog tasks before you use the results"


def _percent(share: float) -> str:
    """A share as a percentage; never 0 where there is one, never 100 where one lacks.

    >>> _percent(0.00001), _percent(0.5), _percent(0.9999), _percent(1.0)
    ('<0.1 %', '50 %', '>99.9 %', '100 %')
    """
    if 0 < share < 0.001:  # noqa: PLR2004 - a tenth of a percent
        return "<0.1 %"
    if 0.999 < share < 1:  # noqa: PLR2004
        return ">99.9 %"
    return f"{100 * share:.3g} %"
