"""Format E: a line a query, with its gold and any number of ranked lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jobs.evidence_retrieval.importing.given import Given, Truth
from jobs.evidence_retrieval.importing.source import QUERY, Part, Source
from jobs.inputs.files import read_csv

JUDGED = "judged"
"""0 where nobody judged the query, so that a blank `gold_ids` says nothing."""

LIST_SUFFIX = "_topk"
"""Of the columns that hold a ranking; what stands before it is the list's name."""


def is_lists(columns: Sequence[str]) -> bool:
    """Whether a header is that of ranked lists."""
    return {*QUERY, "gold_ids"} <= set(columns) and bool(_names(columns))


def read_lists(source: Source) -> Iterator[Part]:
    """The lists of each query; a blank `gold_ids` says that there is no evidence."""
    names = _names(source.names)
    rows = read_csv(
        source.path,
        (*QUERY, "gold_ids"),
        [*(name + LIST_SUFFIX for name in names), JUDGED],
        noticed=source.noticed,
        allow_ragged=source.settings.allow_ragged,
        renamed=source.columns,
    )
    for row, part in source.parts(rows):
        is_judged = not row.has(JUDGED) or row.label(JUDGED) == 1
        gold = source.sentences(row, "gold_ids", part.post)
        lists = {
            name: source.ranked(row, name + LIST_SUFFIX, part.post) for name in names
        }
        yield replace(
            part,
            truth=Truth(gold=tuple(dict.fromkeys(gold)) if is_judged else None),
            given={source.model: Given(lists=lists)},
        )


def _names(columns: Sequence[str]) -> list[str]:
    return [
        name.removesuffix(LIST_SUFFIX) for name in columns if name.endswith(LIST_SUFFIX)
    ]
