"""Which wrong names of a replicate may mean a missed one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jobs.property_extraction.aliases.alias_set import AliasSet
from jobs.property_extraction.aliases.verdicts import Names
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.measuring.fate import Fate, Fates
from jobs.property_extraction.mismatch.candidates import (
    EXAMPLES,
    Candidate,
    Example,
    Mismatch,
    candidates,
    draft,
    near,
    review,
)
from jobs.property_extraction.mismatch.crossfit import crossfitted
from jobs.property_extraction.row import Prediction, TruthRow
from jobs.property_extraction.values.comparer import Comparer


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatches:
    """The pairs of names of one replicate."""

    papers: Sequence[Mismatch]  #: those with wrong and missed names, ascending
    candidates: Sequence[Candidate]  #: by spelling and by value
    review: Sequence[Candidate]  #: by spelling alone, the first of them
    draft: Mapping[str, str]  #: the first target of each name; nobody checked it

    def crossfitted(self, dataset: Dataset) -> AliasSet:
        """The given aliases, and for other names what the other papers suggest."""
        settings, given = dataset.settings, dataset.aliases
        drafts = crossfitted(
            {paper.refno: list(near(paper, settings.k)) for paper in self.papers},
            k=settings.k,
            top=settings.top,
            canonical=dataset.canonical,
            same_name=settings.same_name,
        )
        settled = {entry.pred_name for entry in given.accepted}
        further = (entry for entry in drafts if entry.pred_name not in settled)
        return replace(given, entries=(*given.entries, *further))


def mismatches(
    fates: Fates, comparer: Comparer, canonical: Container[str]
) -> Mismatches:
    """Compare wrong with missed names, paper by paper."""
    settings = fates.dataset.settings
    wrong = list(_wrong(fates))
    papers = list(_papers(fates, wrong, comparer))
    found = [list(near(paper, settings.k)) for paper in papers]
    reviewed = review(found, settings.k, settings.top, canonical)
    return Mismatches(
        papers=papers,
        candidates=candidates(found, canonical, _examples(wrong)),
        review=reviewed,
        draft=draft(reviewed, settings.same_name),
    )


def _wrong(fates: Fates) -> Iterator[Prediction]:
    """The false positives, under the names that they are booked on.

    A name that has an alias is settled: of its rows with another value the alias's
    target is the wrong name, and that is a right one.
    """
    for place, fate in enumerate(fates.fates):
        if fate is Fate.FP:
            yield replace(fates.predictions[place], name=fates.name(place))


def _papers(
    fates: Fates, false_positives: Iterable[Prediction], comparer: Comparer
) -> Iterator[Mismatch]:
    wrong: dict[str, list[Prediction]] = {}
    for row in false_positives:
        wrong.setdefault(row.refno, []).append(row)
    missed: dict[str, list[TruthRow]] = {}
    for truth, fate in zip(fates.truth, fates.truth_fates, strict=True):
        if fate is Fate.FN:
            missed.setdefault(truth.refno, []).append(truth)
    for refno in sorted(wrong.keys() & missed.keys()):
        yield Mismatch(
            refno=refno,
            predicted=frozenset(row.name for row in wrong[refno]),
            missed=frozenset(row.name for row in missed[refno]),
            value_hits=_value_hits(wrong[refno], missed[refno], comparer),
        )


def _value_hits(
    wrong: Sequence[Prediction], missed: Sequence[TruthRow], comparer: Comparer
) -> Mapping[Names, int]:
    """Predicted rows whose number is a missing one under another name, by both."""
    met = {
        (edge.prediction, missed[edge.truth].name)
        for edge in comparer.value_hits(wrong, missed)
    }
    return Counter(
        (wrong[place].name, name) for place, name in met if wrong[place].name != name
    )


def _examples(wrong: Iterable[Prediction]) -> Mapping[str, list[Example]]:
    """The first predictions of each wrong name."""
    found: dict[str, list[Example]] = {}
    for row in wrong:
        own = found.setdefault(row.name, [])
        if len(own) < EXAMPLES:
            own.append(
                Example(
                    value=row.value,
                    unit=row.unit,
                    condition=row.condition,
                    quote=row.quote,
                )
            )
    return found
