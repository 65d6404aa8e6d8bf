"""Drafts for each paper from the other papers alone.

Values and names of a paper's own truth have no part in the draft that it is scored
with, so the score is not in-sample.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice

from jobs.property_extraction.aliases.alias_set import AliasEntry
from jobs.property_extraction.mismatch.candidates import (
    Near,
    draft,
    order,
    review,
)
from jobs.property_extraction.settings import SameName


def crossfitted(
    papers: Mapping[str, Sequence[Near]],
    *,
    k: int,
    top: int,
    canonical: Container[str],
    same_name: SameName = "guard",
) -> tuple[AliasEntry, ...]:
    """Entries that each hold in the one paper that had no part in them.

    Each paper's draft is what `review` and `draft` make of the others. All pairs are
    counted once; only those of the paper itself are counted and placed anew for it.

    Args:
        papers: what `near` finds in each, by refno.
        k: targets of a name in a paper that spelling makes.
        top: how many pairs a draft is made of.
        canonical: names of truth and rubric.
        same_name: whether those keep theirs.
    """
    whole = review(papers.values(), k, None, canonical)
    known = {(each.pred_name, each.gt_name): each for each in whole}
    entries: list[AliasEntry] = []
    for refno in sorted(papers):
        own = {(n.pred_name, n.gt_name) for n in papers[refno] if n.rank <= k}
        others = (each for each in whole if (each.pred_name, each.gt_name) not in own)
        fewer = (
            replace(known[pair], count=known[pair].count - 1)
            for pair in own
            if known[pair].count > 1
        )
        reviewed = islice(merge(others, sorted(fewer, key=order), key=order), top)
        entries += (
            AliasEntry(
                pred_name=name,
                gt_name=target,
                refno=refno,
                status="accepted",
                source="draft",
            )
            for name, target in draft(reviewed, same_name).items()
        )
    return tuple(entries)
