"""A comparison for programs and for spreadsheets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from jobs.comparison.difference import Compared
from jobs.comparison.front import Front, Place
from jobs.comparison.labelling import Alike
from jobs.comparison.matching import Drawing, Match, Side, by_item, family
from jobs.comparison.pairing import ItemGap
from jobs.metrics import Agreement
from runner.scorecard import Cell as TableCell

SCHEMA = 3
"""Of what `--json` prints.

1 had no such field and said who is higher, not better; in 2 a verdict rested on the
interval alone, and Holm's family were all tests of the command.
"""


def as_json(
    made: Sequence[Match],
    front: Front | None,
    drawing: Drawing,
    listed: Sequence[Sequence[ItemGap]],
) -> dict[str, Any]:
    """All matches, each with the items *listed* for it, if there are any."""
    pairs = [_match(match) for match in made]
    for pair, gaps in zip(pairs, listed, strict=False):
        pair["items"] = [asdict(gap) for gap in gaps]
    return {
        "schema": SCHEMA,
        **asdict(drawing),
        "family": family(made),
        "pairs": pairs,
        "front": None if front is None else _front(front),
    }


def _front(front: Front) -> dict[str, Any]:
    return {
        "metric": front.path,
        "lower_is_better": front.lower_is_better,
        "n": front.n,
        "unit": front.unit,
        "cluster": front.cluster,
        "sides": [_place(place) for place in front.places],
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        **_side(place.side),
        "quality": place.quality.value,
        "lo": place.quality.interval.lo,
        "hi": place.quality.interval.hi,
        **asdict(place.expense),
        "dominated_by": [
            {**_side(each.by), "quality": each.quality} for each in place.dominated
        ],
    }


def _match(match: Match) -> dict[str, Any]:
    return {
        "a": _side(match.a),
        "b": _side(match.b),
        "metrics": {
            each.path: {
                "name": match.a.names.get(each.path, each.path),
                **_metric(each),
            }
            for each in match.compared
        },
        "not_compared": {each.path: each.why for each in match.refused},
        "only_a": list(match.only_a),
        "only_b": list(match.only_b),
        "labels": None if match.alike is None else _labels(match.alike),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "run": side.run,
        "scoring": side.number,
        "model": side.model,
        "seq": side.seq,
    }


def _metric(each: Compared) -> dict[str, Any]:
    gap, own, beside = each.gap, each.p_values.own, each.p_values.beside
    return {
        "a": gap.a,
        "b": gap.b,
        "difference": gap.value,
        "lo": gap.interval.lo,
        "hi": gap.interval.hi,
        "b_used": gap.interval.b_used,
        "flagged": gap.interval.flagged,
        "verdict": each.verdict,
        "lower_is_better": each.lower_is_better,
        "few": each.is_from_few,
        "test": None if own is None else {**asdict(own), "p_holm": each.p_holm},
        "beside": None if beside is None else asdict(beside),
        "family": each.family,
        **asdict(each.overlap),
        "agreement": None if each.agreement is None else _agreement(each.agreement),
        "standing": None if each.standing is None else asdict(each.standing),
        "cluster": each.cluster,
        "definition": each.definition,
    }


def _labels(found: Alike) -> dict[str, Any]:
    return {"what": found.what, "n": found.n, **_agreement(found.agreement)}


def _agreement(found: Agreement) -> dict[str, Any]:
    return {"percent": found.percent, "kappa": found.kappa, "ac1": found.ac}


SIDES = ("run_a", "model_a", "run_b", "model_b")

COLUMNS = (
    *(*SIDES, "metric", "a", "b", "difference"),
    *("lo", "hi", "verdict", "test", "p", "p_holm", "beside", "beside_p"),
    *("n", "clusters", "only_a", "only_b", "undefined", "wins", "losses", "ties"),
    *("agreement", "kappa", "ac1", "cluster", "definition"),
)
"""Of the file that `--csv` writes."""


def rows(made: Sequence[Match]) -> Iterator[tuple[TableCell, ...]]:
    """One row a metric and match, below `COLUMNS`."""
    yield COLUMNS
    for match in made:
        for each in match.compared:
            yield (*_keys(match), *_row(each))


ITEM_COLUMNS = (*SIDES, "metric", "item", "cluster", "a", "b", "difference", "outcome")
"""Of the file that `--out` writes."""


def item_rows(made: Sequence[Match], path: str) -> Iterator[tuple[TableCell, ...]]:
    """One row an item and match, below `ITEM_COLUMNS`; all that both sides have.

    Raises:
        UsageError: the metric was not compared, or no item has a value by itself.
    """
    yield ITEM_COLUMNS
    for match in made:
        paired = by_item(match, path)
        for gap in paired.every():
            outcome = _OUTCOMES[paired.favour(gap)]
            cells = (gap.item, gap.cluster, gap.a, gap.b, gap.b - gap.a, outcome)
            yield (*_keys(match), path, *cells)


_OUTCOMES = {1: "win", 0: "tie", -1: "loss"}
"""Of B."""


def _keys(match: Match) -> tuple[TableCell, ...]:
    return (*match.a.key, *match.b.key)


def _row(each: Compared) -> tuple[TableCell, ...]:
    gap, overlap, standing, met = (
        each.gap,
        each.overlap,
        each.standing,
        each.agreement,
    )
    own, beside = each.p_values.own, each.p_values.beside
    return (
        *(each.path, gap.a, gap.b, gap.value),
        *(gap.interval.lo, gap.interval.hi, each.verdict),
        *((own.name, own.p) if own else (None, None)),
        each.p_holm,
        *((beside.name, beside.p) if beside else (None, None)),
        *(overlap.n, overlap.clusters),
        *(overlap.only_a, overlap.only_b, overlap.undefined),
        *(
            (standing.wins, standing.losses, standing.ties)
            if standing
            else (None, None, None)
        ),
        *((met.percent, met.kappa, met.ac) if met else (None, None, None)),
        *(each.cluster, each.definition),
    )
