"""One property of a paper: the rows of both sides, and how each pair compares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.property_extraction.measuring.fate import Fates
from jobs.property_extraction.measuring.results import Column, Results
from jobs.property_extraction.row import Prediction, TruthRow
from jobs.property_extraction.values.comparison import Compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What a model's first replicate has under a name, with all it may be paired to."""

    results: Results
    column: Column
    refno: str
    name: str
    predicted: Sequence[int]  #: places of rows, in file order
    truth: Sequence[int]  #: likewise

    @classmethod
    def of(cls, results: Results, column: Column, refno: str, name: str) -> Group:
        """The rows that were stated under a name, or that an alias leads to it."""
        fates = column.first.fates
        predicted = [
            place
            for place, row in enumerate(fates.predictions)
            if row.refno == refno and name in {row.name, *fates.renamed[place].targets}
        ]
        names = {name, *(own for at in predicted for own in fates.renamed[at].targets)}
        return cls(
            results=results,
            column=column,
            refno=refno,
            name=name,
            predicted=predicted,
            truth=truth_of(results, refno, names),
        )

    @property
    def targets(self) -> Sequence[str]:
        """What the name stands for in this paper, as far as it is stated there."""
        stated = (at for at in self.predicted if self._row(at).name == self.name)
        return next((self.fates.renamed[at].targets for at in stated), ())

    def _row(self, place: int) -> Prediction:
        return self.fates.predictions[place]

    @property
    def fates(self) -> Fates:
        """Those of all rows."""
        return self.column.first.fates

    @property
    def stated(self) -> Sequence[Prediction]:
        """The predicted rows."""
        return [self._row(at) for at in self.predicted]

    @property
    def curated(self) -> Sequence[TruthRow]:
        """The truth rows."""
        return [self.fates.truth[at] for at in self.truth]

    @property
    def names(self) -> frozenset[str]:
        """All names of its rows."""
        booked = {self.fates.names[at] for at in self.predicted}
        return frozenset({*booked, *(row.name for row in self.curated), self.name})

    def compared(self, place: int, other: int) -> Compared | None:
        """How a prediction compares with a truth row; None: their names differ."""
        row, truth = self._row(place), self.fates.truth[other]
        if truth.name not in self.fates.renamed[place].targets:
            return None
        kind = self.results.dataset.rubric.kind(truth.name)
        return self.results.comparer.compare(kind, truth.name, row, truth)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Positions of the rows that are paired, from 0 on both sides."""
        for i, place in enumerate(self.predicted):
            partner = self.fates.partners[place]
            if partner in self.truth:
                yield i, self.truth.index(partner)


def truth_of(results: Results, refno: str, names: set[str]) -> Sequence[int]:
    """Places of the truth rows of a paper that have one of some names."""
    truth = results.dataset.truth
    own = results.dataset.truth_by_paper.get(refno, ())
    return [place for place in own if truth[place].name in names]
