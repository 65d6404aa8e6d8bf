"""Ranked lists as JSON: an object a query, best first, ranked in the given order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from jobs.evidence_retrieval.importing.given import Given
from jobs.evidence_retrieval.importing.source import QUERY, Part, Source
from jobs.inputs.files import read_jsonl

LIST = "ranking"
"""What the list is called: such a file does not name the step that made it."""

UIDS, SCORES = "sent_uids", "scores"


def is_rankings(columns: Sequence[str]) -> bool:
    """Whether the keys of an object are those of a ranked list."""
    return {*QUERY, UIDS} <= set(columns)


def read_rankings(source: Source) -> Iterator[Part]:
    """The list of each query; scores are looked at only for the best of them."""
    rows = read_jsonl(
        source.path,
        (*QUERY, UIDS),
        (SCORES,),
        noticed=source.noticed,
        renamed=source.columns,
    )
    for row, part in source.parts(rows):
        uids = source.ranked(row, UIDS, part.post)
        scores = row.numbers(SCORES)
        if scores and len(scores) != len(uids):
            raise row.error(
                f"{len(scores)} {SCORES} for {len(uids)} {UIDS} (give one each, or "
                "none)"
            )
        if any(below > above for above, below in pairwise(scores)):
            source.noticed.add(
                "scores_contradict_order",
                "warn",
                source.path.name,
                "Scores rise along lists that are said to be best first; the order "
                "given was kept.",
                example=f"line {row.line}",
            )
        given = Given(lists={LIST: uids}, score=max(scores, default=None))
        yield replace(part, given={source.model: given})
