"""What a sheet says, in forms that tests compare."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.evidence_retrieval.queries import ScoringInput


def codes(sheet: ScoringInput) -> list[str]:
    return [each.code for each in (*sheet.findings, *sheet.leakage)]


def fingerprint(
    sheet: ScoringInput, keys: Iterable[str] | None = None
) -> dict[str, object]:
    """Everything said of each query, by its key, to the byte."""
    wanted = None if keys is None else frozenset(keys)
    said: dict[str, object] = {}
    for found in sheet.predictions:
        columns = (
            *(found.prob_raw, found.prob, found.score),
            *(found.tau_neg, found.tau_pos, found.state, found.k),
        )
        for i in range(len(sheet.queries)):
            key = sheet.queries.key(i)
            if wanted is None or key in wanted:
                said[f"{found.model} {found.config} {key}"] = (
                    *(None if each is None else each[i].tobytes() for each in columns),
                    *(tuple(lists[i]) for lists in found.lists.values()),
                )
    return said
