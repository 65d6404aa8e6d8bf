"""The tables of a verification, under the names that building alias sets looks for."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.property_extraction.aliases.verdicts import HEURISTIC
from jobs.property_extraction.artifacts.naming import model_slugs
from jobs.property_extraction.gathering.verdicts import EQUAL
from jobs.property_extraction.inputs.candidates import Pair
from jobs.property_extraction.verifying.metrics import agreements
from jobs.property_extraction.verifying.verification import Column, Verification
from runner.scorecard import Cell, Table

COLUMNS = (
    *("pred_name", "gt_name", "is_match", "reason", "model", "count", "avg_sim"),
)


def tables(verification: Verification) -> Iterator[Table]:
    """The verdicts of each model, its matches, and where models differ."""
    slugs = model_slugs(column.model for column in verification.columns)
    for column in verification.columns:
        rows = tuple(_rows(verification, column))
        yield Table(
            name=f"alias_verification_all__{slugs[column.model]}",
            columns=COLUMNS,
            rows=rows,
            caption="Every pair, by the majority of replicates; undecided ones blank.",
        )
        yield Table(
            name=f"alias_verification_matches__{slugs[column.model]}",
            columns=COLUMNS,
            rows=tuple(row for row in rows if row[2] is True),
            caption="The pairs that mean one property.",
        )
    yield _together(verification)
    if len(verification.columns) > 1:
        yield _agreement(verification)


def _rows(verification: Verification, column: Column) -> Iterator[tuple[Cell, ...]]:
    for pair in verification.pairs:
        names = (pair.pred_name, pair.gt_name)
        if names in verification.equal:
            yield (*names, True, EQUAL, HEURISTIC, *_told(pair))
        elif (ruling := column.rulings.get(names)) is not None:
            said = (ruling.is_match, ruling.reason)
            yield (*names, *said, column.model, *_told(pair))


def _told(pair: Pair) -> tuple[Cell, Cell]:
    """What the candidates' file says, and nothing where it says nothing."""
    return pair.count or None, pair.avg_sim


def _together(verification: Verification) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for pair in verification.pairs:
        names = (pair.pred_name, pair.gt_name)
        ruling = verification.rulings.get(names)
        if names in verification.equal:
            rows.append((*names, True, None, None, EQUAL, *_told(pair)))
        elif ruling is not None:
            asked = sum(names in column.rulings for column in verification.columns)
            said = (ruling.is_match, ruling.votes, asked, ruling.reason)
            rows.append((*names, *said, *_told(pair)))
    return Table(
        name="verification",
        columns=(
            *("pred_name", "gt_name", "is_match", "votes", "models"),
            *("reason", "count", "avg_sim"),
        ),
        rows=tuple(rows),
        caption="Every pair, by the majority of all models and replicates; votes are "
        "those for a match.",
        is_headline=True,
    )


def _agreement(verification: Verification) -> Table:
    return Table(
        name="agreement",
        columns=("model", "other_model", "pairs", "agree", "kappa"),
        rows=tuple(
            (first.model, second.model, found.n, found.percent, found.kappa)
            for first, second, found in agreements(verification)
        ),
        caption="Each two models on the pairs that both decided; Cohen's kappa.",
    )
