"""Counts of one replicate by paper and by property, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jobs.metrics.columns import Ints
from jobs.property_extraction.measuring.fate import Fates


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """TP, FP and FN of groups, each a paper and a name; groups ascend."""

    papers: Sequence[str]  #: all that are scored, those without a row too
    names: Sequence[str]  #: ascending
    paper: Ints  #: by group: place in `papers`
    name: Ints  #: by group: place in `names`
    tp: Ints  #: by group
    fp: Ints
    fn: Ints

    @classmethod
    def of(cls, fates: Fates) -> Counts:
        """The counts of one replicate."""
        tallies = fates.tallies()
        names = sorted({name for _, name in tallies})
        paper_at = {refno: at for at, refno in enumerate(fates.papers)}
        name_at = {name: at for at, name in enumerate(names)}
        cells = np.array([*tallies.values()], dtype=np.int64).reshape(-1, 3)
        return cls(
            papers=fates.papers,
            names=names,
            paper=np.array([paper_at[refno] for refno, _ in tallies], dtype=np.int64),
            name=np.array([name_at[name] for _, name in tallies], dtype=np.int64),
            tp=cells[:, 0],
            fp=cells[:, 1],
            fn=cells[:, 2],
        )

    def by_paper(self) -> Cells:
        """Sums over the properties of each paper."""
        return self._summed(self.paper, len(self.papers))

    def by_name(self) -> Cells:
        """Sums over the papers of each property."""
        return self._summed(self.name, len(self.names))

    def _summed(self, at: Ints, n: int) -> Cells:
        return Cells(
            *(
                np.bincount(at, weights=column, minlength=n).astype(np.int64)
                for column in (self.tp, self.fp, self.fn)
            )
        )


@dataclass(frozen=True, slots=True)
class Cells:
    """TP, FP and FN side by side, one of each an item."""

    tp: Ints
    fp: Ints
    fn: Ints

    def totals(self) -> tuple[int, int, int]:
        """The three sums."""
        return int(self.tp.sum()), int(self.fp.sum()), int(self.fn.sum())

    def sums(self) -> Mapping[str, tuple[Ints, Ints]]:
        """Precision, recall and F1 as numerators and denominators."""
        return {
            "precision": (self.tp, self.tp + self.fp),
            "recall": (self.tp, self.tp + self.fn),
            "f1": (2 * self.tp, 2 * self.tp + self.fp + self.fn),
        }
