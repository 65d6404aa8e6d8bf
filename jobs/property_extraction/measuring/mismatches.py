"""Which wrong names of a replicate may mean a missed one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from jobs.metrics import mean
from jobs.property_extraction.aliases.alias_set import AliasSet
from jobs.property_extraction.aliases.verdicts import Names
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.measuring.fate import Fate, Fates
from jobs.property_extraction.mismatch.candidates import (
    EXAMPLES,
    Candidate,
    Example,
    Mismatch,
    Near,
    candidates,
    draft,
    near,
    review,
)
from jobs.property_extraction.mismatch.crossfit import crossfitted
from jobs.property_extraction.mismatch.similarity import count_contained
from jobs.property_extraction.row import Prediction, TruthRow
from jobs.property_extraction.values.comparer import Comparer
from runner.scorecard import Metric

_Wrong: TypeAlias = tuple[str, Prediction]
"""A prediction without a partner, under the name that it is booked on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatches:
    """The pairs of names of one replicate."""

    papers: Sequence[Mismatch]  #: those with wrong and missed names, ascending
    near: Sequence[Sequence[Near]]  #: what each of them makes
    candidates: Sequence[Candidate]  #: by spelling and by value
    review: Sequence[Candidate]  #: by spelling alone, the first of them
    draft: Mapping[str, str]  #: the first target of each name; nobody checked it

    def metrics(self, k: int) -> Iterator[Metric]:
        """How many pairs of names there are, and how many of them may mean the same."""
        sides = [(sorted(own.predicted), sorted(own.missed)) for own in self.papers]
        spelled = [each for own in self.near for each in own if each.rank <= k]
        by_name = Counter(each.pred_name for each in self.review)
        n = sum(len(wrong) * len(missed) for wrong, missed in sides)
        near_by = (
            f"near@1(the {k} most similar missed names of each wrong name of a paper)"
        )
        numbers: Mapping[str, tuple[float | None, str]] = {
            "pairs": (n, "pairs@1(wrong names x missed names of a paper, over papers)"),
            "contained": (
                sum(count_contained(*own) for own in sides),
                "contained@1(pairs with one name, lower-cased, within the other)",
            ),
            "near": (len(spelled), near_by),
            "near_distinct": (
                len({(each.pred_name, each.gt_name) for each in spelled}),
                f"{near_by}; each pair of names once",
            ),
            "similarity": (
                mean(each.similarity for each in spelled),
                f"{near_by}; mean of 2 LCS / (length + length), lower-cased",
            ),
            "by_value": (
                sum(each.value_hits > 0 for each in self.candidates),
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

    def crossfitted(self, dataset: Dataset) -> AliasSet:
        """The given aliases, and for other names what the other papers suggest."""
        settings, given = dataset.settings, dataset.aliases
        drafts = crossfitted(
            {
                paper.refno: own
                for paper, own in zip(self.papers, self.near, strict=True)
            },
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
        near=found,
        candidates=candidates(found, canonical, _examples(wrong)),
        review=reviewed,
        draft=draft(reviewed, settings.same_name),
    )


def _wrong(fates: Fates) -> Iterator[_Wrong]:
    """The false positives, and the names that they are booked on.

    A name that has an alias is settled: of its rows with another value the alias's
    target is the wrong name, and that is a right one.
    """
    for place, fate in enumerate(fates.fates):
        if fate is Fate.FP:
            yield fates.names[place], fates.predictions[place]


def _papers(
    fates: Fates, false_positives: Iterable[_Wrong], comparer: Comparer
) -> Iterator[Mismatch]:
    wrong: dict[str, list[_Wrong]] = {}
    for name, row in false_positives:
        wrong.setdefault(row.refno, []).append((name, row))
    missed: dict[str, list[TruthRow]] = {}
    for truth, fate in zip(fates.truth, fates.truth_fates, strict=True):
        if fate is Fate.FN:
            missed.setdefault(truth.refno, []).append(truth)
    for refno in sorted(wrong.keys() & missed.keys()):
        yield Mismatch(
            refno=refno,
            predicted=frozenset(name for name, _ in wrong[refno]),
            missed=frozenset(row.name for row in missed[refno]),
            value_hits=_value_hits(wrong[refno], missed[refno], comparer),
        )


def _value_hits(
    wrong: Sequence[_Wrong], missed: Sequence[TruthRow], comparer: Comparer
) -> Mapping[Names, int]:
    """Predicted rows whose number is a missing one under another name, by both."""
    met = {
        (edge.prediction, missed[edge.truth].name)
        for edge in comparer.value_hits([row for _, row in wrong], missed)
    }
    pairs = ((wrong[place][0], name) for place, name in met)
    return Counter((stated, name) for stated, name in pairs if stated != name)


def _examples(wrong: Iterable[_Wrong]) -> Mapping[str, list[Example]]:
    """The first predictions of each wrong name."""
    found: dict[str, list[Example]] = {}
    for name, row in wrong:
        own = found.setdefault(name, [])
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
