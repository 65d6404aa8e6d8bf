"""Whatever aliases do to a matching, their bookings come to the change."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.property_extraction.aliases.alias_set import AliasEntry, AliasSet, Renaming
from jobs.property_extraction.aliases.differences import bookable, booked
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.predictions import ReplicatePredictions
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes, row_outcomes
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.settings import PropertySettings
from jobs.property_extraction.values.comparer import Comparer

PAPERS = st.sampled_from(["P1", "P2"])
NAMES = st.sampled_from("abcde")
VALUES = st.sampled_from(["1", "2", "3"])
ROWS = st.lists(st.tuples(PAPERS, NAMES, VALUES), max_size=12)
SETS = st.dictionaries(st.tuples(NAMES, st.none() | PAPERS), NAMES, max_size=5)


def scored(
    truth: list[tuple[str, str, str]],
    stated: list[tuple[str, str, str]],
    aliases: dict[tuple[str, str | None], str],
) -> RowOutcomes:
    """Rows of that paper, name and value, matched under those aliases."""
    own = PropertySettings()
    dataset = PropertyDataset(
        settings=own,
        truth=tuple(
            TruthRow(refno=refno, name=name, value=value)
            for refno, name, value in truth
        ),
        aliases=AliasSet(
            entries=tuple(
                AliasEntry(
                    pred_name=name, gt_name=target, refno=refno, status="accepted"
                )
                for (name, refno), target in aliases.items()
            )
        ),
    )
    predictions = tuple(
        Prediction(refno=refno, name=name, value=value, row=number)
        for number, (refno, name, value) in enumerate(stated, 1)
    )
    return row_outcomes(
        dataset,
        ReplicatePredictions(model="m", replicate=1, predictions=predictions),
        Comparer(own),
        Renaming.of(dataset.aliases),
        lambda *_: True,
    )


@settings(max_examples=60)
@given(truth=ROWS, stated=ROWS, sets=st.tuples(SETS, SETS))
def test_bookings_come_to_the_change_of_the_true_positives(
    truth: list[tuple[str, str, str]],
    stated: list[tuple[str, str, str]],
    sets: tuple[dict[tuple[str, str | None], str], dict[tuple[str, str | None], str]],
) -> None:
    before, after = (scored(truth, stated, aliases) for aliases in sets)
    made = booked(bookable(before), bookable(after))
    hits = [
        list(own.prediction_outcomes).count(RowOutcome.TP) for own in (before, after)
    ]
    misses = [list(own.truth_outcomes).count(RowOutcome.FN) for own in (before, after)]
    assert made.change == hits[1] - hits[0] == misses[0] - misses[1]
    columns = made.table.columns
    totals = {
        name: sum(int(row[columns.index(name)] or 0) for row in made.table.rows)
        for name in ("tp_gained", "tp_lost", "rows_renamed")
    }
    assert totals["tp_gained"] - totals["tp_lost"] == made.change
    renamed = (own for own in after.renamed if own.entries)
    assert totals["rows_renamed"] == sum(1 for _ in renamed)
