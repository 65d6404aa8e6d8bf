"""How far two models say the same of the same items, right or wrong."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.metrics import Agreement, agreement
from runner.scorecard import Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Two models' labels against each other."""

    what: str  #: a label is, such as "decision"
    n: int  #: items that both have a label of
    agreement: Agreement


def alike(a: Labels, b: Labels) -> Alike | None:
    """Agreement over the items that both label; None where there is none.

    Nor is there any where the labels are not from one list.
    """
    if (a.what, a.categories) != (b.what, b.categories):
        return None
    theirs = dict(zip(b.items, b.said, strict=True))
    both = [
        (word, other)
        for item, word in zip(a.items, a.said, strict=True)
        if word is not None and (other := theirs.get(item)) is not None
    ]
    if not both:
        return None
    mine, others = zip(*both, strict=True)
    found = agreement(mine, others, a.categories)
    return Alike(what=a.what, n=len(both), agreement=found)
