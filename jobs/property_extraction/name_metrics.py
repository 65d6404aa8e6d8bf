"""Measures misses by property name, and which wrong names may mean a missed one.

A miss whose name was predicted has a wrong value; one whose name was not, was not found
or is otherwise named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

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
from jobs.property_extraction.name_pairs import Names
from jobs.property_extraction.rates import GroupCounts
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.values.comparer import Comparer
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
    def of(cls, counts: GroupCounts) -> Encompassment:
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


def name_metrics(outcomes: RowOutcomes) -> Iterator[Metric]:
    """Coverage of names, and how often a truth row's name is predicted in its paper."""
    stated = {
        (row.refno, outcomes.renamed[index].targets)
        for index, row in enumerate(outcomes.predictions)
        if outcomes.prediction_outcomes[index] in {RowOutcome.TP, RowOutcome.FP}
    }
    predicted_names = {(refno, name) for refno, targets in stated for name in targets}
    expected = {
        (row.refno, row.name)
        for row, outcome in zip(outcomes.truth, outcomes.truth_outcomes, strict=True)
        if outcome in {RowOutcome.TP, RowOutcome.FN}
    }
    truth_names = {name for _, name in expected}
    covered_names = truth_names & {name for _, name in predicted_names}
    yield Metric(
        path="name_coverage",
        value=ratio(len(covered_names), len(truth_names)),
        n=len(truth_names),
        definition="name_coverage@1(truth names predicted at least once / all)",
    )
    yield Metric(
        path="name_recall",
        value=ratio(len(expected & predicted_names), len(expected)),
        n=len(expected),
        definition="name_recall@1((paper, property) of truth with a prediction of "
        "that name / all)",
    )


_Wrong: TypeAlias = tuple[str, Prediction]
"""A prediction without a partner, under the name that it is booked on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatches:
    """The pairs of names of one replicate."""

    papers: Sequence[PaperMismatch]  #: those with wrong and missed names, ascending
    near: Sequence[Sequence[NearName]]  #: what each of them makes
    candidates: Sequence[AliasCandidate]  #: by spelling and by value
    review: Sequence[AliasCandidate]  #: by spelling alone, the first of them
    draft: Mapping[str, str]  #: the first target of each name; nobody checked it

    def metrics(self, k: int) -> Iterator[Metric]:
        """How many pairs of names there are, and how many of them may mean the same."""
        sides = [
            (sorted(paper.predicted), sorted(paper.missed)) for paper in self.papers
        ]
        spelled = [
            near_name for near in self.near for near_name in near if near_name.rank <= k
        ]
        by_name = Counter(candidate.pred_name for candidate in self.review)
        n = sum(len(wrong) * len(missed) for wrong, missed in sides)
        near_by = (
            f"near@1(the {k} most similar missed names of each wrong name of a paper)"
        )
        numbers: Mapping[str, tuple[float | None, str]] = {
            "pairs": (n, "pairs@1(wrong names x missed names of a paper, over papers)"),
            "contained": (
                sum(count_contained(*side) for side in sides),
                "contained@1(pairs with one name, lower-cased, within the other)",
            ),
            "near": (len(spelled), near_by),
            "near_distinct": (
                len(
                    {(near_name.pred_name, near_name.gt_name) for near_name in spelled}
                ),
                f"{near_by}; each pair of names once",
            ),
            "similarity": (
                mean(near_name.similarity for near_name in spelled),
                f"{near_by}; mean of 2 LCS / (length + length), lower-cased",
            ),
            "by_value": (
                sum(candidate.value_hits > 0 for candidate in self.candidates),
                "by_value@1(candidates with a missed number in a known unit)",
            ),
            "clashing": (
                sum(count > 1 for count in by_name.values()),
                "clashing@1(names with several targets in alias_candidates_review.csv)",
            ),
            "drafted": (
                len(self.draft),
                "drafted@1(names in property_aliases.json)",
            ),
            "drafted_selves": (
                sum(name == target for name, target in self.draft.items()),
                "drafted@1(names in property_aliases.json); that stand for themselves",
            ),
        }
        for path, (value, definition) in numbers.items():
            yield Metric(
                path=f"mismatch.{path}", value=value, n=n, definition=definition
            )

    def crossfitted(self, dataset: PropertyDataset) -> AliasSet:
        """The given aliases, and for other names what the other papers suggest."""
        settings, aliases = dataset.settings, dataset.aliases
        drafts = crossfitted(
            {
                paper.refno: near
                for paper, near in zip(self.papers, self.near, strict=True)
            },
            k=settings.k,
            top=settings.top,
            canonical=dataset.canonical,
            same_name=settings.same_name,
        )
        settled = {entry.pred_name for entry in aliases.accepted}
        further = (entry for entry in drafts if entry.pred_name not in settled)
        return replace(aliases, entries=(*aliases.entries, *further))


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
        candidates=alias_candidates(near, canonical, _examples(wrong)),
        review=reviewed,
        draft=draft_targets(reviewed, settings.same_name),
    )


def _wrong(outcomes: RowOutcomes) -> Iterator[_Wrong]:
    """The false positives, and the names that they are booked on.

    A name that has an alias is settled: of its rows with another value the alias's
    target is the wrong name, and that is a right one.
    """
    for index, outcome in enumerate(outcomes.prediction_outcomes):
        if outcome is RowOutcome.FP:
            yield outcomes.names[index], outcomes.predictions[index]


def _papers(
    outcomes: RowOutcomes, false_positives: Iterable[_Wrong], comparer: Comparer
) -> Iterator[PaperMismatch]:
    wrong: dict[str, list[_Wrong]] = {}
    for name, row in false_positives:
        wrong.setdefault(row.refno, []).append((name, row))
    missed: dict[str, list[TruthRow]] = {}
    for truth, outcome in zip(outcomes.truth, outcomes.truth_outcomes, strict=True):
        if outcome is RowOutcome.FN:
            missed.setdefault(truth.refno, []).append(truth)
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
    """Predicted rows whose number is a missing one under another name, by both."""
    hits = {
        (edge.prediction, missed[edge.truth].name)
        for edge in comparer.value_hits([row for _, row in wrong], missed)
    }
    pairs = ((wrong[index][0], name) for index, name in hits)
    return Counter((stated, name) for stated, name in pairs if stated != name)


def _examples(wrong: Iterable[_Wrong]) -> Mapping[str, list[PredictionExample]]:
    """The first predictions of each wrong name."""
    examples: dict[str, list[PredictionExample]] = {}
    for name, row in wrong:
        name_examples = examples.setdefault(name, [])
        if len(name_examples) < EXAMPLES:
            name_examples.append(
                PredictionExample(
                    value=row.value,
                    unit=row.unit,
                    condition=row.condition,
                    quote=row.quote,
                )
            )
    return examples
