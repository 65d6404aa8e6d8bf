"""Finds candidates for aliases: missed names that a wrong name may mean.

In each paper the names of rows without a partner on either side are compared: by
spelling, and by values that agree although the names do not. The second kind uses
values of the truth, so a score on the same papers that uses them is in-sample; drafts
may be built for each paper from only the other papers.

The similarity is 2 LCS / (length a + length b) of the lower-cased names, LCS being the
length of their longest common subsequence: `ratio` of python-Levenshtein, and not that
of difflib. Lower-casing may make a name longer (that of U+0130 has two characters).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import merge
from itertools import islice
from operator import itemgetter
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from jobs.kit.grouping import grouped
from jobs.property_extraction.aliases.alias_set import AliasEntry
from jobs.property_extraction.name_pairs import Names, TwoNames
from jobs.property_extraction.settings import SameName

SimilarityBlock = NDArray[np.float64]

CELLS = 1 << 20
"""Similarities in memory: 8 MB, which fit a processor's cache."""


def similarity(a: str, b: str) -> float:
    """Return the similarity of two names, 0 to 1, regardless of case."""
    return Indel.normalized_similarity(a.lower(), b.lower())


def blocks(
    rows: Sequence[str], columns: Sequence[str]
) -> Iterator[tuple[int, SimilarityBlock]]:
    """Yield the similarities of all rows with all columns, some rows at a time.

    Each block comes with the index of its first row. In float32, rapidfuzz's default,
    similarities that differ by up to 3e-8 would be ties.
    """
    lowered = [name.lower() for name in columns]
    step = max(1, CELLS // max(1, len(columns)))
    for start in range(0, len(rows), step):
        yield (
            start,
            cdist(
                [name.lower() for name in rows[start : start + step]],
                lowered,
                scorer=Indel.normalized_similarity,
                dtype=np.float64,
            ),
        )


def contains(a: str, b: str) -> bool:
    """Return whether one of two nonempty names contains the other, ignoring case."""
    short, long = sorted((a.lower(), b.lower()), key=len)
    return bool(short) and short in long


def count_contained(rows: Sequence[str], columns: Sequence[str]) -> int:
    """Count the pairs of names of which one contains the other.

    A name within another has all its characters in common with it, so the similarity
    selects the few pairs to check.
    """
    lengths = np.array([len(name.lower()) for name in columns], np.float64)
    contained = 0
    for start, block in blocks(rows, columns):
        row_lengths = [len(name.lower()) for name in rows[start : start + len(block)]]
        tall = np.array(row_lengths, np.float64)[:, np.newaxis]
        least = 2 * np.minimum(tall, lengths) / np.maximum(tall + lengths, 1)
        for row, column in np.argwhere(block >= least - 1e-9).tolist():
            contained += contains(rows[start + row], columns[column])
    return contained


EXAMPLES = 3
"""Most predictions in a pair's examples."""

BELOW_ALL = -1.0
"""Less than every similarity; marks targets already taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionExample:
    """A prediction under a name; never a value of the truth."""

    value: str
    unit: str = ""
    condition: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperMismatch:
    """The names of a paper's rows without a partner."""

    refno: str
    predicted: frozenset[str]  #: after aliases, if any acted
    missed: frozenset[str]  #: of the truth
    value_hits: Mapping[Names, int] = field(default_factory=dict)
    """Number of predicted rows with a value of a missed name, by both names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearName(TwoNames):
    """A missed name as a target of a wrong one, in one paper."""

    similarity: float
    rank: int  #: among the name's targets in the paper, by similarity; from 1
    value_hits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasCandidate(TwoNames):
    """A pair of names that may mean the same, over all papers."""

    rank: int  #: best rank of the target among the name's in a paper, by similarity
    count: int  #: number of papers
    avg_sim: float
    contained: bool  #: whether one name contains the other
    value_hits: int
    canonical: bool  #: whether pred_name is itself a name of truth or rubric
    clash: int  #: number of targets of pred_name among the candidates
    examples: tuple[PredictionExample, ...] = ()


def near_names(paper: PaperMismatch, k: int) -> Iterator[NearName]:
    """Yield the *k* most similar targets of each wrong name, and those with value hits.

    Names ascend, and ties in similarity go to the lower target. Memory is constant: of
    all pairs only a block is in memory.
    """
    names, targets = sorted(paper.predicted), sorted(paper.missed)
    if not (names and targets):
        return
    index_of = {target: at for at, target in enumerate(targets)}
    by_value = grouped(
        (name, index_of[target])
        for (name, target), hits in paper.value_hits.items()
        if hits
    )
    for start, block in blocks(names, targets):
        block_names = names[start : start + len(block)]
        ranked_targets: list[dict[int, tuple[int, float]]] = [
            {at: (_rank(line, at), float(line[at])) for at in by_value.get(name, ())}
            for name, line in zip(block_names, block, strict=True)
        ]
        for rank, (best, similarities) in enumerate(_nearest(block, k), start=1):
            for row, (at, value) in enumerate(zip(best, similarities, strict=True)):
                ranked_targets[row][at] = (rank, value)
        for name, ranked in zip(block_names, ranked_targets, strict=True):
            for at, (rank, value) in sorted(ranked.items(), key=itemgetter(1)):
                yield NearName(
                    pred_name=name,
                    gt_name=targets[at],
                    similarity=value,
                    rank=rank,
                    value_hits=paper.value_hits.get((name, targets[at]), 0),
                )


def _rank(line: SimilarityBlock, at: int) -> int:
    """Return the rank of a target in a row, from 1; ties keep their order."""
    before = np.count_nonzero(line > line[at])
    return int(before + np.count_nonzero(line[:at] == line[at]) + 1)


def _nearest(block: SimilarityBlock, k: int) -> Iterator[tuple[list[int], list[float]]]:
    """Yield the best target of each row, then the second best; consumes *block*.

    The first of equal ones counts. For small *k* this is faster than sorting.
    """
    rows = np.arange(len(block))
    for _ in range(min(k, block.shape[1])):
        best = block.argmax(axis=1)
        yield best.tolist(), block[rows, best].tolist()
        block[rows, best] = BELOW_ALL


def alias_candidates(
    papers: Iterable[Iterable[NearName]],
    canonical: Container[str] = frozenset(),
    examples: Mapping[str, Sequence[PredictionExample]] = MappingProxyType({}),
) -> tuple[AliasCandidate, ...]:
    """Return the pairs of all papers, in `candidate_order`.

    Args:
        papers: results of `near_names` for each.
        canonical: names of truth and rubric.
        examples: predictions by their name.
    """
    by_pair = grouped((near.names, near) for paper in papers for near in paper)
    targets = Counter(name for name, _ in by_pair)
    candidates = (
        AliasCandidate(
            rank=min(near_name.rank for near_name in occurrences),
            pred_name=name,
            gt_name=target,
            count=len(occurrences),
            # computed from names only, so it is the same in each paper
            avg_sim=occurrences[0].similarity,
            contained=contains(name, target),
            value_hits=sum(near_name.value_hits for near_name in occurrences),
            canonical=name in canonical,
            clash=targets[name],
            examples=tuple(examples.get(name, ())[:EXAMPLES]),
        )
        for (name, target), occurrences in by_pair.items()
    )
    return tuple(sorted(candidates, key=candidate_order))


def candidate_order(candidate: AliasCandidate) -> tuple[int, float, str, str]:
    """Sort by number of papers, then similarity, then name."""
    return (-candidate.count, -candidate.avg_sim, *candidate.names)


def review_candidates(
    papers: Iterable[Iterable[NearName]],
    k: int,
    top: int | None,
    canonical: Container[str] = frozenset(),
) -> tuple[AliasCandidate, ...]:
    """Return the first *top* pairs by spelling, which people should review.

    Args:
        papers: results of `near_names` for each.
        k: targets of a name in a paper by spelling.
        top: number of pairs; None: all.
        canonical: names of truth and rubric.
    """
    spelled = (
        [near_name for near_name in paper if near_name.rank <= k] for paper in papers
    )
    return alias_candidates(spelled, canonical)[:top]


def draft_targets(
    reviewed: Iterable[AliasCandidate], same_name: SameName = "guard"
) -> Mapping[str, str]:
    """Return the first target of each name, keys sorted; none of them is verified.

    Args:
        reviewed: pairs in the order of `review_candidates`.
        same_name: `guard` leaves out names of truth and rubric, which need no alias;
            `keep` maps them too, most of them to themselves.
    """
    return first_targets(
        candidate.names
        for candidate in reviewed
        if same_name == "keep" or not candidate.canonical
    )


def first_targets(pairs: Iterable[Names]) -> Mapping[str, str]:
    """Return the first target of each name, keys sorted."""
    first: dict[str, str] = {}
    for name, target in pairs:
        first.setdefault(name, target)
    return {name: first[name] for name in sorted(first)}


def crossfitted(
    papers: Mapping[str, Sequence[NearName]],
    *,
    k: int,
    top: int,
    canonical: Container[str],
    same_name: SameName = "guard",
) -> tuple[AliasEntry, ...]:
    """Return entries that each apply to one paper and derive from the others.

    Each paper's draft is the result of `review_candidates` and `draft_targets` for the
    others. All pairs are counted once; only those of the paper itself are recounted.

    Args:
        papers: results of `near_names` for each, by refno.
        k: targets of a name in a paper by spelling.
        top: number of pairs of a draft.
        canonical: names of truth and rubric.
        same_name: whether those are mapped too.
    """
    whole = review_candidates(papers.values(), k, None, canonical)
    by_pair = {candidate.names: candidate for candidate in whole}
    entries: list[AliasEntry] = []
    for refno in sorted(papers):
        paper_pairs = {near.names for near in papers[refno] if near.rank <= k}
        others = (c for c in whole if c.names not in paper_pairs)
        fewer = (
            replace(by_pair[pair], count=by_pair[pair].count - 1)
            for pair in paper_pairs
            if by_pair[pair].count > 1
        )
        reviewed = islice(
            merge(others, sorted(fewer, key=candidate_order), key=candidate_order), top
        )
        entries += (
            AliasEntry(
                pred_name=name,
                gt_name=target,
                refno=refno,
                status="accepted",
                source="draft",
            )
            for name, target in draft_targets(reviewed, same_name).items()
        )
    return tuple(entries)
