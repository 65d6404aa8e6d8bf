"""The order that a reply gives to the candidates of one rerank call."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from jobs.evidence_retrieval.parsing.lists import entries
from jobs.evidence_retrieval.parsing.numbers import read_place
from jobs.evidence_retrieval.parsing.objects import first_object, unread
from jobs.evidence_retrieval.parsing.values import Ordering
from jobs.replies import arrays
from runner.job import guarded
from runner.messages import ParseFailure, Reply

_CHAIN = re.compile(r"\[?\d{1,9}\]?(?:\s*>\s*\[?\d{1,9}\]?)+")


@guarded
def parse_rerank(reply: Reply, n: int) -> Ordering | ParseFailure:
    """The order of *n* candidates, a permutation whatever the reply leaves out.

    Failures: `truncated`, `no_json`, `no_ranking`, and `incomplete_ranking` where fewer
    than half of the candidates are named.
    """
    found = first_object(reply.text, lambda value: "ranking" in value)
    if found is not None:
        named = _named(found["ranking"])
    elif reply.is_truncated:
        return unread(reply, "no_json")
    else:
        named = _named(reply.text) or _first_array(reply.text)
        if named is None:
            return unread(reply, "no_json")
    if named is None:
        return ParseFailure(reason="no_ranking")
    return _ordering(named, n)


def _named(value: object) -> Iterable[object] | None:
    """The numbers that a list or a text such as `3 > 1 > 2` names, unread."""
    if isinstance(value, str):
        chain = _CHAIN.search(value)
        return chain[0].split(">") if chain else None
    listed = entries(value)
    return None if listed is None else (number for number, _ in listed)


def _first_array(text: str) -> Iterable[object] | None:
    array = next(arrays(text), None)
    if array is None:
        return None
    return [str(each) if type(each) is int else each for each in array]


def _ordering(named: Iterable[object], n: int) -> Ordering | ParseFailure:
    noted: Counter[str] = Counter()
    order: dict[int, None] = {}
    for number in named:
        place = read_place(number, n)
        if place is None:
            noted["unknown_candidate"] += 1
        elif place in order:
            noted["repeated_candidate"] += 1
        else:
            order[place] = None
    if 2 * len(order) < n:
        return ParseFailure(
            reason="incomplete_ranking",
            detail=f"{len(order)} of {n} candidates are named",
        )
    missing = [place for place in range(n) if place not in order]
    if missing:
        noted["missing_candidate"] += len(missing)
    return Ordering(places=(*order, *missing), noted=dict(noted))
