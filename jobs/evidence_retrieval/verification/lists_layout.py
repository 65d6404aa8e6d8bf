"""The summary of ranking lists: a block for each list, or one for each denominator.

`{retriever: B, reranked: B, eval_split, eval_mode?}`, where B holds figures by cut-off
and counts of queries, or is `{positives_only: B, all_queries: B}`; that of siftlog
adds `definitions`, `intervals` and `n_defined`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jobs.evidence_retrieval.verification import beside
from jobs.evidence_retrieval.verification.choices import Choices, Queries
from jobs.evidence_retrieval.verification.evidence import ranking_figure
from jobs.evidence_retrieval.verification.figures import Figure, Scope
from jobs.evidence_retrieval.verification.held import Held, Reading, counted, over

LISTS = ("retriever", "reranked")
"""The lists that such a summary speaks of, wherever the rows have them."""

_DENOMINATORS: Mapping[str, Queries] = {
    "positives_only": "positives",
    "all_queries": "all",
}
_WORDS = ("eval_split", "eval_mode")


def read_lists(stored: Mapping[str, Any], scope: Scope, choices: Choices) -> Reading:
    """What *stored* holds, and what it lacks or contradicts by itself."""
    listed = {name for query in scope.queries for name in query.lists}
    held: list[Held] = []
    failures: list[str] = []
    for key, value in stored.items():
        if isinstance(value, Mapping) and key in {*LISTS, *listed}:
            held += _list(key, value, scope)
            failures += _lacking(key, value)
        elif key == "intervals":
            held += beside.intervals(value, _named, scope)
        elif key in beside.UNCHECKED:
            held += beside.numbers(key, value, beside.UNCHECKED[key])
        elif key not in _WORDS:
            held.append(Held(path=key, stored=value))
    failures += [
        f"The rows have {name} lists and the summary has no block {name}."
        for name in LISTS
        if name in listed and not stored.get(name)
    ]
    failures += beside.astray(stored.get("intervals"), _named, scope, choices)
    return Reading(held=tuple(held), failures=tuple(failures))


def _named(name: str) -> Figure | None:
    """The figure of `list.metric`."""
    listed, _, key = name.rpartition(".")
    return ranking_figure(key, listed)


def _list(name: str, block: Mapping[str, Any], scope: Scope) -> Iterator[Held]:
    if not set(_DENOMINATORS).intersection(block):
        # a block of one denominator says itself which it is
        skips = block.get("skip_no_positives", True)
        yield from _figures(name, name, block, scope, "positives" if skips else "all")
        return
    for key, value in block.items():
        path = f"{name}.{key}"
        if key in _DENOMINATORS and isinstance(value, Mapping):
            yield from _figures(name, path, value, scope, _DENOMINATORS[key])
        else:
            yield Held(path=path, stored=value)


def _lacking(name: str, block: Mapping[str, Any]) -> Iterator[str]:
    there = set(_DENOMINATORS).intersection(block)
    parts = {f"{name}.{key}": block.get(key) for key in _DENOMINATORS} if there else {}
    for path, part in (parts or {name: block}).items():
        figures = [key for key in part or () if ranking_figure(key, name) is not None]
        if not figures:
            yield f"The summary's block {path} is missing or holds no figure."


def _figures(
    name: str, path: str, block: Mapping[str, Any], scope: Scope, queries: Queries
) -> Iterator[Held]:
    truths = [query.truth for query in scope.queries]
    judged, positive = len(truths) - truths.count(None), truths.count(True)
    counts = {
        "queries_total": (judged, "judged queries"),
        "queries_with_positives": (positive, "queries that have evidence"),
        "queries_evaluated": (
            positive if queries == "positives" else judged,
            "queries that the means divide by",
        ),
    }
    for key, value in block.items():
        below = f"{path}.{key}"
        if key in counts:
            yield counted(below, value, *counts[key])
        elif key != "skip_no_positives":
            figure = ranking_figure(key, name, queries=queries)
            yield over(below, value, figure, scope)
