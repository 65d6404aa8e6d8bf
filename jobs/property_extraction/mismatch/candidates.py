"""Which missed name a wrong one may mean: candidates for aliases, and the draft map.

In each paper the names of rows without a partner on either side are compared: by
spelling, and by values that agree although the names do not. Values of the truth steer
the second kind, so a score on the same papers that uses them is in-sample.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType

import numpy as np

from jobs.property_extraction.aliases.verdicts import Names
from jobs.property_extraction.mismatch.similarity import Block, blocks, contains
from jobs.property_extraction.settings import SameName

EXAMPLES = 3
"""Predictions that are shown with a pair."""

TAKEN = -1.0
"""Below every similarity: a target that was found already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What a model stated under a name; never a value of the truth."""

    value: str
    unit: str = ""
    condition: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The names of a paper's rows that found no partner."""

    refno: str
    predicted: frozenset[str]  #: after aliases, where any acted
    missed: frozenset[str]  #: of the truth
    value_hits: Mapping[Names, int] = field(default_factory=dict)
    """Predicted rows whose number is a missing one under another name, by both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A missed name as a target of a wrong one, in one paper."""

    pred_name: str
    gt_name: str
    similarity: float
    rank: int  #: among the name's targets in the paper, by similarity; from 1
    value_hits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A pair of names that may mean the same, over all papers."""

    rank: int  #: best place of the target among the name's in a paper, by similarity
    pred_name: str
    gt_name: str
    count: int  #: papers
    avg_sim: float
    contained: bool  #: one name is a part of the other
    value_hits: int
    canonical: bool  #: pred_name is itself a name of truth or rubric
    clash: int  #: targets that pred_name has among the candidates
    examples: tuple[Example, ...] = ()


def near(paper: Mismatch, k: int) -> Iterator[Near]:
    """The *k* most similar targets of each wrong name, and those that values speak for.

    Names ascend, and ties in similarity go to the lower target. Memory is flat: of all
    pairs only a block is held.
    """
    names, targets = sorted(paper.predicted), sorted(paper.missed)
    if not (names and targets):
        return
    place = {target: at for at, target in enumerate(targets)}
    by_value: defaultdict[str, list[int]] = defaultdict(list)
    for name, target in (pair for pair, hits in paper.value_hits.items() if hits):
        by_value[name].append(place[target])
    for start, block in blocks(names, targets):
        own = names[start : start + len(block)]
        found: list[dict[int, tuple[int, float]]] = [
            {at: (_rank(line, at), float(line[at])) for at in by_value.get(name, ())}
            for name, line in zip(own, block, strict=True)
        ]
        for rank, (best, alike) in enumerate(_nearest(block, k), start=1):
            for row, (at, value) in enumerate(zip(best, alike, strict=True)):
                found[row][at] = (rank, value)
        for name, ranked in zip(own, found, strict=True):
            for at, (rank, value) in sorted(ranked.items(), key=itemgetter(1)):
                yield Near(
                    pred_name=name,
                    gt_name=targets[at],
                    similarity=value,
                    rank=rank,
                    value_hits=paper.value_hits.get((name, targets[at]), 0),
                )


def _rank(line: Block, at: int) -> int:
    """The place of a target among all in a row, ties in their order; from 1."""
    before = np.count_nonzero(line > line[at])
    return int(before + np.count_nonzero(line[:at] == line[at]) + 1)


def _nearest(block: Block, k: int) -> Iterator[tuple[list[int], list[float]]]:
    """The best target of each row, then the second best, and so on; uses *block* up.

    The first of equal ones is taken. For the few that are asked for this beats sorting.
    """
    rows = np.arange(len(block))
    for _ in range(min(k, block.shape[1])):
        best = block.argmax(axis=1)
        yield best.tolist(), block[rows, best].tolist()
        block[rows, best] = TAKEN


def candidates(
    papers: Iterable[Iterable[Near]],
    canonical: Container[str] = frozenset(),
    examples: Mapping[str, Sequence[Example]] = MappingProxyType({}),
) -> tuple[Candidate, ...]:
    """The pairs of all papers, by `order`.

    Args:
        papers: what `near` finds in each.
        canonical: names of truth and rubric.
        examples: predictions by the name that they were stated under.
    """
    found: defaultdict[Names, list[Near]] = defaultdict(list)
    for paper in papers:
        for each in paper:
            found[each.pred_name, each.gt_name].append(each)
    targets = Counter(name for name, _ in found)
    made = (
        Candidate(
            rank=min(each.rank for each in own),
            pred_name=name,
            gt_name=target,
            count=len(own),
            avg_sim=own[0].similarity,  # names alone make it: it is that of each paper
            contained=contains(name, target),
            value_hits=sum(each.value_hits for each in own),
            canonical=name in canonical,
            clash=targets[name],
            examples=tuple(examples.get(name, ())[:EXAMPLES]),
        )
        for (name, target), own in found.items()
    )
    return tuple(sorted(made, key=order))


def order(candidate: Candidate) -> tuple[int, float, str, str]:
    """Most papers first, then most similar, then by name."""
    return (
        -candidate.count,
        -candidate.avg_sim,
        candidate.pred_name,
        candidate.gt_name,
    )


def review(
    papers: Iterable[Iterable[Near]],
    k: int,
    top: int | None,
    canonical: Container[str] = frozenset(),
) -> tuple[Candidate, ...]:
    """The first *top* of the pairs that spelling alone makes: what is to be looked at.

    Args:
        papers: what `near` finds in each.
        k: targets of a name in a paper that spelling makes.
        top: how many pairs; None: all.
        canonical: names of truth and rubric.
    """
    spelled = ([each for each in paper if each.rank <= k] for paper in papers)
    return candidates(spelled, canonical)[:top]


def draft(
    reviewed: Iterable[Candidate], same_name: SameName = "guard"
) -> Mapping[str, str]:
    """The first target of each name, keys sorted; nobody has checked any of it.

    Args:
        reviewed: pairs in the order of `review`.
        same_name: `guard` leaves out names of truth and rubric, which are right as
            they are; `keep` maps them too, most of them to themselves.
    """
    kept = (each for each in reviewed if same_name == "keep" or not each.canonical)
    return first_targets((each.pred_name, each.gt_name) for each in kept)


def first_targets(pairs: Iterable[Names]) -> Mapping[str, str]:
    """The first target of each name, keys sorted."""
    first: dict[str, str] = {}
    for name, target in pairs:
        first.setdefault(name, target)
    return {name: first[name] for name in sorted(first)}
