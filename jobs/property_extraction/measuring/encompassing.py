"""Misses by whether their property's name was predicted at all.

A miss whose name was predicted has a wrong value; one whose name was not, was not found
or is otherwise named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jobs.metrics import ratio
from jobs.property_extraction.aliases.alias_set import AliasSet
from jobs.property_extraction.measuring.counts import Counts
from jobs.property_extraction.measuring.fate import Fate, Fates
from runner.scorecard import Metric

PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Encompassment:
    """Groups of a paper and a property in which truth rows are missed."""

    misses: int  #: with a missed value
    matches: int  #: of them, those with a wrong value of the name
    missed_values: int  #: truth rows that are missed
    replaced_values: int  #: of them, at most as many as there are wrong values

    @classmethod
    def of(cls, counts: Counts) -> Encompassment:
        """The misses of one replicate."""
        missed = counts.fn > 0
        return cls(
            misses=int(missed.sum()),
            matches=int((missed & (counts.fp > 0)).sum()),
            missed_values=int(counts.fn.sum()),
            replaced_values=int(np.minimum(counts.fp, counts.fn).sum()),
        )

    def metrics(self, aliases: AliasSet) -> Iterator[Metric]:
        """The numbers, in reading order; who vouches for the aliases stands by them.

        Args:
            aliases: that act.
        """
        note = f"aliases: {aliases.status_mix}" if aliases.accepted else None
        yield Metric(
            path="misses",
            value=self.misses,
            n=self.misses,
            definition="misses@1((paper, property) with fn > 0)",
        )
        yield Metric(
            path="name_matches",
            value=self.matches,
            n=self.misses,
            definition="name_matches@1((paper, property) with fn > 0 and fp > 0)",
        )
        yield Metric(
            path="encompassment",
            value=_percent(self.matches, self.misses),
            n=self.misses,
            definition="encompassment@1(name_matches / misses, percent)",
            note=note,
        )
        yield Metric(
            path="encompassment~fn_values",
            value=_percent(self.replaced_values, self.missed_values),
            n=self.missed_values,
            definition="encompassment@1(sum min(fp, fn) / sum fn, percent)",
            note=note,
        )


def _percent(above: int, below: int) -> float | None:
    """As percent; divided last, so that it is rounded once."""
    return ratio(PERCENT * above, below)


def names(fates: Fates) -> Iterator[Metric]:
    """Coverage of names, and how often a truth row's name is predicted in its paper."""
    stated = {
        (row.refno, fates.renamed[place].targets)
        for place, row in enumerate(fates.predictions)
        if fates.fates[place] in {Fate.TP, Fate.FP}
    }
    told = {(refno, name) for refno, targets in stated for name in targets}
    wanted = {
        (row.refno, row.name)
        for row, fate in zip(fates.truth, fates.truth_fates, strict=True)
        if fate in {Fate.TP, Fate.FN}
    }
    truth_names = {name for _, name in wanted}
    found = truth_names & {name for _, name in told}
    yield Metric(
        path="name_coverage",
        value=ratio(len(found), len(truth_names)),
        n=len(truth_names),
        definition="name_coverage@1(truth names predicted at least once / all)",
    )
    yield Metric(
        path="name_recall",
        value=ratio(len(wanted & told), len(wanted)),
        n=len(wanted),
        definition="name_recall@1((paper, property) of truth with a prediction of "
        "that name / all)",
    )
