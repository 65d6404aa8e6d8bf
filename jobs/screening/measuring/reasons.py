"""Reasons: does the model exclude a true exclusion for what the review excluded it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jobs.metrics import ratio
from jobs.screening.measuring.view import View
from jobs.screening.reasons import OTHER
from runner.scorecard import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """Coded reasons of the review by those of the model, of true exclusions."""

    cells: Mapping[tuple[str, str], int]  #: by (review's, model's), sorted
    other: int  #: records whose own reason is coded `other`, and so says nothing
    uncoded: int  #: records of which no reason is known

    @property
    def n(self) -> int:
        """Records that are compared."""
        return sum(self.cells.values())

    def metrics(self) -> Iterator[Metric]:
        """The share that agrees, and how many are left out."""
        agreed = sum(n for (own, said), n in self.cells.items() if own == said)
        yield Metric(
            path="reasons.agreement",
            value=ratio(agreed, self.n),
            n=self.n,
            subset="true exclusions that the model excluded",
            definition="reason agreement@1(same reason_code; own reason other or not "
            "known left out)",
        )
        for word, number, meaning in (
            ("other", self.other, "own reason is coded other"),
            ("uncoded", self.uncoded, "no reason is known"),
        ):
            yield Metric(
                path=f"reasons.{word}",
                value=number,
                n=self.n + self.other + self.uncoded,
                subset="true exclusions that the model excluded",
                definition=f"count@1({meaning})",
            )


def reasons(view: View) -> Reasons | None:
    """The reasons of a view; None where no true exclusion of the set has a code."""
    records, said = view.records, view.decisions.reason_code
    if "true-excluded" not in records.kinds or not any(records.reason_code):
        return None
    kind = records.kinds.index("true-excluded")
    rows = ((records.kind == kind) & (view.call == 0)).nonzero()[0]
    cells: Counter[tuple[str, str]] = Counter()
    left_out: Counter[str] = Counter()
    for at in rows.tolist():
        own = records.reason_code[at]
        if own in {OTHER, ""}:
            left_out[own] += 1
        else:
            cells[own, (said[at] if said else "") or OTHER] += 1
    return Reasons(
        cells=dict(sorted(cells.items())),
        other=left_out[OTHER],
        uncoded=left_out[""],
    )
