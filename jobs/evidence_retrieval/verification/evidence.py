"""Figures of ranked lists over the queries that have evidence."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import MappingProxyType

from jobs.evidence_retrieval.verification.choices import Choices, Cut, Queries, Tries
from jobs.evidence_retrieval.verification.figures import (
    Figure,
    NotComputableError,
    Scope,
    mean,
)
from jobs.evidence_retrieval.verification.queries import GIVEN, Query
from jobs.evidence_retrieval.verification.rankings import MEASURES

CUTS = (1, 3, 5, 10, 20)
"""Cut-offs that are tried where a figure may have been made at another one."""

_NAME = re.compile(r"(recall|precision|hit|mrr|map|ndcg)(?:@(K|[1-9]\d*))?")

_MEANINGS = MappingProxyType(
    {
        "recall": "share of a query's evidence sentences among those shown",
        "precision": "share of the shown sentences that are evidence",
        "hit": "share of queries with at least one evidence sentence among those shown",
        "mrr": "1 / rank of the first evidence sentence",
        "map": "precision at each evidence sentence, averaged over all of them",
        "ndcg": "how close the order comes to the best possible one",
    }
)
_COLUMNS = MappingProxyType(
    dict(zip(("recall", "precision", "mrr"), GIVEN, strict=True))
)
"""What a file may hold by query without the lists it came from."""

_GIVEN_AT = MappingProxyType({"recall": "K", "precision": "K", "mrr": None})
"""The cut-offs of those."""


def ranking_figure(
    key: str, listed: str, *, queries: Queries = "positives"
) -> Figure | None:
    """The figure that *key* names, over the list *listed*; None: it names none.

    `recall@5` is cut at 5, `recall@K` at the K that was selected for each query, and
    `mrr` not at all. *queries* are those that its block says it divides by.
    """
    match = _NAME.fullmatch(key)
    if match is None:
        return None
    measure, cut = match.groups()
    if cut is None and measure != "mrr":
        return None
    shown = {"K": "at the selected K", None: "in the whole list"}.get(cut, f"@{cut}")
    ranked = _Ranked(measure=measure, cut=cut, listed=listed, queries=queries)
    return Figure(
        name=f"{listed}.{queries}.{key}",
        compute=ranked.value,
        meaning=f"{_MEANINGS[measure]}, {shown}",
        tries=_tries(measure, cut),
    )


def _tries(measure: str, cut: str | None) -> Tries:
    """What such a figure is known to be called by others.

    A fixed cut-off is never tried under another one: a table whose columns were
    swapped would pass.
    """
    tries: dict[str, tuple[object, ...]] = {
        "queries": ("positives", "all"),
        "of_nothing": (None, 0.0),
    }
    if measure == "mrr":
        tries["k"] = ("whole list",) if cut else CUTS
    elif cut == "K":
        tries["k"] = CUTS
        tries["skip_empty"] = (False, True)
    else:
        tries["k"] = ("selected",)
    if measure == "map":
        tries["ap_denominator"] = ("gold", "min", "found")
    if measure == "precision":
        tries["precision_over"] = ("k", "k_eff")
    return tries


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    """A measure of one list, averaged over queries."""

    measure: str
    cut: str | None  #: digits, K, or None for the whole list
    listed: str
    queries: Queries

    def value(self, scope: Scope, choices: Choices) -> float | None:
        """The mean; a query without evidence, where it counts, adds 0."""
        judged = [query for query in scope.queries if query.truth is not None]
        positive = [query for query in judged if query.truth]
        negatives = len(judged) - len(positive)
        if choices.skip_empty and self._at(choices) == "selected":
            # what a row states without a list is taken as it is
            positive = [
                query
                for query in positive
                if query.selected != 0 or self.listed not in query.lists
            ]
        of_queries = [self._of(query, choices) for query in positive]
        measured = [value for value in of_queries if value is not None]
        if positive and not measured:
            raise NotComputableError(
                f"the rows of positive queries hold no {self.listed} from which "
                f"{self.measure} could be taken at this cut-off"
            )
        queries = self.queries if choices.queries == "named" else choices.queries
        divisor = len(measured) + (negatives if queries == "all" else 0)
        return mean(measured, choices, over=divisor)

    def _of(self, query: Query, choices: Choices) -> float | None:
        """The measure of one query; None where its row does not hold what it takes."""
        found = query.lists.get(self.listed)
        if found is None:
            is_given = choices.k == "named" and self._is_by_row
            return query.given.get(_COLUMNS[self.measure]) if is_given else None
        at, of = self._at(choices), MEASURES[self.measure]
        if at == "whole list":
            return of(found, found.length, choices)
        if at == "selected":
            # a list that ends before K shows fewer: that is what a reader got
            own = replace(choices, precision_over=choices.precision_over or "k_eff")
            return None if query.selected is None else of(found, query.selected, own)
        return of(found, at, choices)

    @property
    def _is_by_row(self) -> bool:
        """Whether a row may hold the measure at this very cut-off."""
        return self.cut == _GIVEN_AT.get(self.measure, "")

    def _at(self, choices: Choices) -> Cut:
        if choices.k != "named":
            return choices.k
        if self.cut is None:
            return "whole list"
        return "selected" if self.cut == "K" else int(self.cut)
