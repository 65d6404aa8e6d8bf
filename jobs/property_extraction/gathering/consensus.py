"""The rows that several replicates of a model agree on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jobs.property_extraction.gathering.predicted import Outcome, Predicted, State
from jobs.property_extraction.row import Prediction
from jobs.text import plural
from runner.errors import UsageError


def consensus(replicates: Sequence[Predicted], least: int) -> Predicted:
    """One column of what at least so many replicates found.

    Rows are one where paper, property, value and unit are; the first one stands. A
    paper counts where at least so many replicates read it; else its first failure does.

    Args:
        replicates: of one model.
        least: replicates that must have found a row.

    Raises:
        UsageError: there are fewer.
    """
    if len(replicates) < least:
        raise UsageError(
            f"consensus={least} needs rows that {least} replicates found, and "
            f"{replicates[0].model} has {plural(len(replicates), 'replicate')} (ask "
            f"with --replicates {least}, or score with --set consensus=0)."
        )
    found: Counter[tuple[str, ...]] = Counter()
    first: dict[tuple[str, ...], Prediction] = {}
    for own in replicates:
        for key, row in {_key(row): row for row in reversed(own.predictions)}.items():
            found[key] += 1
            first.setdefault(key, row)
    return Predicted(
        model=replicates[0].model,
        replicate=0,
        predictions=tuple(
            sorted(
                (row for key, row in first.items() if found[key] >= least),
                key=lambda row: row.row,
            )
        ),
        outcomes={
            refno: _outcome([own.outcomes.get(refno) for own in replicates], least)
            for refno in sorted({refno for own in replicates for refno in own.outcomes})
        },
        counts=dict(sum((Counter(own.counts) for own in replicates), Counter())),
    )


def _key(row: Prediction) -> tuple[str, ...]:
    return (row.refno, row.name, row.value, row.unit)


def _outcome(found: Sequence[Outcome | None], least: int) -> Outcome:
    read = [own for own in found if own is not None and own.state is State.SCORED]
    others = [own for own in found if own is not None and own.state is not State.SCORED]
    return read[0] if len(read) >= least or not others else others[0]
