"""Measures misses by property name, and which wrong names may mean a missed one.

A miss whose name was predicted has a wrong value; one whose name was not predicted was
not found or has another name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from jobs.kit.grouping import grouped
from jobs.kit.measurements import MeasuredValue, Measurement, count, share
from jobs.kit.measures import ValueMeasure, measured
from jobs.kit.metrics import mean, ratio
from jobs.property_extraction.aliases.alias_set import AliasSet
from jobs.property_extraction.aliases.candidates import (
    EXAMPLES,
    AliasCandidate,
    NearName,
    PaperMismatch,
    PredictionExample,
    alias_candidates,
    count_contained,
    crossfitted,
    draft_targets,
    near_names,
    review_candidates,
)
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.name_pairs import EXAMPLE_FIELDS, Names
from jobs.property_extraction.rates import GroupCounts
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.values.comparer import Comparer

PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Encompassment:
    """Groups of a paper and a property in which truth rows are missed."""

    misses: int  #: with a missed value
    matches: int  #: of them, those with a wrong value of the name
    missed_values: int  #: truth rows that are missed
    replaced_values: int  #: of them, at most as many as there are wrong values

    @classmethod
    def of(cls, counts: GroupCounts) -> Encompassment:
        """Count the misses of one replicate."""
        missed = counts.fn > 0
        return cls(
            misses=int(missed.sum()),
            matches=int((missed & (counts.fp > 0)).sum()),
            missed_values=int(counts.fn.sum()),
            replaced_values=int(np.minimum(counts.fp, counts.fn).sum()),
        )


ENCOMPASSMENT: Mapping[str, ValueMeasure[Encompassment]] = {
    "misses": ValueMeasure(
        "Properties with a missed value",
        "Properties of a paper with a curated value that is missed",
        "lower",
        of=lambda e: count(e.misses),
        definition="misses@1((paper, property) with fn > 0)",
    ),
    "name_matches": ValueMeasure(
        "Missed properties with another value",
        "Properties of a paper with a missed value for which another is predicted",
        of=lambda e: count(e.matches, e.misses),
        definition="name_matches@1((paper, property) with fn > 0 and fp > 0)",
    ),
    "encompassment": ValueMeasure(
        "Encompassment (%)",
        "Percentage of the properties with a missed value for which another value is "
        "predicted",
        of=lambda e: _percent(e.matches, e.misses),
        definition="encompassment@1(name_matches / misses, percent)",
    ),
}

BY_VALUE: Mapping[str, ValueMeasure[Encompassment]] = {
    "encompassment~fn_values": replace(
        ENCOMPASSMENT["encompassment"],
        of=lambda e: _percent(e.replaced_values, e.missed_values),
        definition="encompassment@1(sum min(fp, fn) / sum fn, percent)",
    )
}


def alias_note(aliases: AliasSet) -> str:
    """Return a note about the sources of aliases."""
    return f"aliases: {aliases.status_mix}" if aliases.accepted else ""


def encompassment(counts: GroupCounts, note: str) -> Iterator[Measurement]:
    """Yield measurements of the misses of one replicate.

    Args:
        counts: of the replicate.
        note: on its aliases.
    """
    for value in measured({**ENCOMPASSMENT, **BY_VALUE}, Encompassment.of(counts)):
        yield replace(value, note=note if "encompassment" in value.path else "")


def _percent(above: int, below: int) -> MeasuredValue:
    """Return a percentage; the division comes last, so that it is rounded once."""
    return count(ratio(PERCENT * above, below), below)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedNames:
    """Names by paper: those of the truth, and the predicted ones."""

    expected: frozenset[tuple[str, str]]
    predicted: frozenset[tuple[str, str]]

    @property
    def coverage(self) -> MeasuredValue:
        """Share of the truth's names that are predicted in any paper."""
        names = {name for _, name in self.expected}
        return share(len(names & {name for _, name in self.predicted}), len(names))

    @property
    def recall(self) -> MeasuredValue:
        """Share of the truth's names that are predicted in their paper."""
        return share(len(self.expected & self.predicted), len(self.expected))


NAMES: Mapping[str, ValueMeasure[PredictedNames]] = {
    "name_coverage": ValueMeasure(
        "Name coverage",
        "Share of the curated property names that are predicted at least once",
        "higher",
        of=lambda names: names.coverage,
        definition="name_coverage@1(truth names predicted at least once / all)",
    ),
    "name_recall": ValueMeasure(
        "Name recall",
        "Share of the curated names of each paper that are predicted in it",
        "higher",
        of=lambda names: names.recall,
        definition="name_recall@1((paper, property) of truth with a prediction of "
        "that name / all)",
    ),
}


def predicted_names(outcomes: RowOutcomes) -> PredictedNames:
    """Return the names of one replicate."""
    stated = outcomes.predicted_as(RowOutcome.TP, RowOutcome.FP)
    return PredictedNames(
        expected=frozenset(
            (row.refno, row.name)
            for _, row in outcomes.truth_as(RowOutcome.TP, RowOutcome.FN)
        ),
        predicted=frozenset(
            (row.refno, name)
            for index, row in stated
            for name in outcomes.renamed[index].targets
        ),
    )


_Wrong: TypeAlias = tuple[str, Prediction]
"""A prediction without a partner, under the name to which it is assigned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatches:
    """The pairs of names of one replicate."""

    papers: Sequence[PaperMismatch]  #: those with wrong and missed names, ascending
    near: Sequence[Sequence[NearName]]  #: near names of each paper
    k: int  #: nearest names of a wrong one
    candidates: Sequence[AliasCandidate]  #: by spelling and by value
    review: Sequence[AliasCandidate]  #: the first candidates by spelling
    draft: Mapping[str, str]  #: the first target of each name; not verified

    def crossfitted(self, dataset: PropertyDataset) -> AliasSet:
        """Return the given aliases, and drafts from other papers for other names."""
        settings, aliases = dataset.settings, dataset.aliases
        refnos = (paper.refno for paper in self.papers)
        drafts = crossfitted(
            dict(zip(refnos, self.near, strict=True)),
            k=self.k,
            top=settings.top,
            canonical=dataset.canonical,
            same_name=settings.same_name,
        )
        settled = {entry.pred_name for entry in aliases.accepted}
        further = (entry for entry in drafts if entry.pred_name not in settled)
        return replace(aliases, entries=(*aliases.entries, *further))

    @property
    def nearest(self) -> list[NearName]:
        """Nearest names of each wrong name of a paper."""
        return [name for near in self.near for name in near if name.rank <= self.k]

    @property
    def counts(self) -> MismatchCounts:
        """Numbers from which metrics are computed."""
        targets = Counter(name.pred_name for name in self.review)
        return MismatchCounts(
            k=self.k,
            papers=[
                PairCounts(
                    wrong=len(paper.predicted),
                    missed=len(paper.missed),
                    contained=count_contained(
                        sorted(paper.predicted), sorted(paper.missed)
                    ),
                )
                for paper in self.papers
            ],
            nearest=[
                SimilarNames(names=name.names, similarity=name.similarity)
                for name in self.nearest
            ],
            value_hits=[name.value_hits for name in self.candidates],
            targets=[*targets.values()],
            drafted=[name == target for name, target in self.draft.items()],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCounts:
    """Wrong and missed names of a paper."""

    wrong: int
    missed: int
    contained: int  #: pairs with one name within the other


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarNames:
    """A wrong name and a near missed one."""

    names: Names
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MismatchCounts:
    """Numbers of the pairs of names of one replicate."""

    k: int  #: nearest names of a wrong one
    papers: Sequence[PairCounts]
    nearest: Sequence[SimilarNames]  #: of each wrong name of a paper
    value_hits: Sequence[int]  #: by candidate
    targets: Sequence[int]  #: by name in the list to review
    drafted: Sequence[bool]  #: by drafted alias: whether its target is the name itself

    @property
    def pairs(self) -> int:
        """Number of pairs of a wrong and a missed name of a paper."""
        return sum(paper.wrong * paper.missed for paper in self.papers)

    def of_pairs(self, value: float | None) -> MeasuredValue:
        """Return a value out of all pairs."""
        return count(value, self.pairs)


_NEAR = "near@1(the {over} most similar missed names of each wrong name of a paper)"

MISMATCHES: Mapping[str, ValueMeasure[MismatchCounts]] = {
    "pairs": ValueMeasure(
        "Wrong and missed names",
        "Pairs of a wrong and a missed property name of one paper",
        of=lambda m: m.of_pairs(m.pairs),
        definition="pairs@1(wrong names x missed names of a paper, over papers)",
    ),
    "contained": ValueMeasure(
        "Names within another",
        "Pairs of a wrong and a missed name of which one contains the other",
        of=lambda m: m.of_pairs(sum(paper.contained for paper in m.papers)),
        definition="contained@1(pairs with one name, lower-cased, within the other)",
    ),
    "near": ValueMeasure(
        "Nearest missed names",
        "Pairs of a wrong name and its nearest missed names",
        of=lambda m: m.of_pairs(len(m.nearest)),
        definition=_NEAR,
    ),
    "near_distinct": ValueMeasure(
        "Nearest missed names, distinct",
        "Distinct pairs of a wrong name and its nearest missed names",
        of=lambda m: m.of_pairs(len({name.names for name in m.nearest})),
        definition=f"{_NEAR}; each pair of names once",
    ),
    "similarity": ValueMeasure(
        "Similarity of nearest names",
        "Mean similarity of wrong names to their nearest missed names",
        of=lambda m: m.of_pairs(mean(name.similarity for name in m.nearest)),
        definition=f"{_NEAR}; mean of 2 LCS / (length + length), lower-cased",
    ),
    "by_value": ValueMeasure(
        "Candidates by value",
        "Candidates whose missed number is predicted under the wrong name",
        of=lambda m: m.of_pairs(sum(hits > 0 for hits in m.value_hits)),
        definition="by_value@1(candidates with a missed number in a known unit)",
    ),
    "clashing": ValueMeasure(
        "Clashing aliases",
        "Names with several targets in the list to review",
        of=lambda m: m.of_pairs(sum(n > 1 for n in m.targets)),
        definition="clashing@1(names with several targets in "
        "alias_candidates_review.csv)",
    ),
    "drafted": ValueMeasure(
        "Drafted aliases",
        "Names in the drafted list of aliases",
        of=lambda m: m.of_pairs(len(m.drafted)),
        definition="drafted@1(names in property_aliases.json)",
    ),
    "drafted_selves": ValueMeasure(
        "Drafted aliases of themselves",
        "Names in the drafted list of aliases that stand for themselves",
        of=lambda m: m.of_pairs(sum(m.drafted)),
        definition="drafted@1(names in property_aliases.json); that stand for "
        "themselves",
    ),
}


def find_mismatches(
    outcomes: RowOutcomes, comparer: Comparer, canonical: Container[str]
) -> Mismatches:
    """Compare wrong with missed names, paper by paper."""
    settings = outcomes.dataset.settings
    wrong = list(_wrong(outcomes))
    papers = list(_papers(outcomes, wrong, comparer))
    near = [list(near_names(paper, settings.k)) for paper in papers]
    reviewed = review_candidates(near, settings.k, settings.top, canonical)
    return Mismatches(
        papers=papers,
        near=near,
        k=settings.k,
        candidates=alias_candidates(near, canonical, _examples(wrong)),
        review=reviewed,
        draft=draft_targets(reviewed, settings.same_name),
    )


def _wrong(outcomes: RowOutcomes) -> Iterator[_Wrong]:
    """Yield the false positives, with the names to which they are assigned.

    A name with an alias is settled: for its rows with another value, the wrong name is
    the alias's target, which is a canonical one.
    """
    for index, row in outcomes.predicted_as(RowOutcome.FP):
        yield outcomes.names[index], row


def _papers(
    outcomes: RowOutcomes, false_positives: Iterable[_Wrong], comparer: Comparer
) -> Iterator[PaperMismatch]:
    wrong = grouped((row.refno, (name, row)) for name, row in false_positives)
    missed = grouped((row.refno, row) for _, row in outcomes.truth_as(RowOutcome.FN))
    for refno in sorted(wrong.keys() & missed.keys()):
        yield PaperMismatch(
            refno=refno,
            predicted=frozenset(name for name, _ in wrong[refno]),
            missed=frozenset(row.name for row in missed[refno]),
            value_hits=_value_hits(wrong[refno], missed[refno], comparer),
        )


def _value_hits(
    wrong: Sequence[_Wrong], missed: Sequence[TruthRow], comparer: Comparer
) -> Mapping[Names, int]:
    """Count predicted rows with a value that is missed under another name, by both."""
    hits = {
        (edge.prediction, missed[edge.truth].name)
        for edge in comparer.value_hits([row for _, row in wrong], missed)
    }
    pairs = ((wrong[index][0], name) for index, name in hits)
    return Counter((stated, name) for stated, name in pairs if stated != name)


def _examples(wrong: Iterable[_Wrong]) -> Mapping[str, list[PredictionExample]]:
    """Return the first predictions of each wrong name."""
    examples: dict[str, list[PredictionExample]] = {}
    for name, row in wrong:
        name_examples = examples.setdefault(name, [])
        if len(name_examples) < EXAMPLES:
            fields = {field: getattr(row, field) for field in EXAMPLE_FIELDS}
            name_examples.append(PredictionExample(**fields))
    return examples
