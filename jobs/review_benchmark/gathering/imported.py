"""What an agent made of a review elsewhere, held against its own records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import get_args

from jobs.metrics import mean
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.inputs.results import AgentResult
from jobs.review_benchmark.matching.listed import Listed
from jobs.review_benchmark.matching.match import Matched, matched, wanted
from jobs.review_benchmark.matching.nearest import Near, nearest
from jobs.review_benchmark.matching.ratio import JUNK_FROM
from jobs.review_benchmark.matching.rules import Wanted
from jobs.review_benchmark.rebuilt import Candidate, Concluded, Outcome, Rebuilt
from jobs.review_benchmark.record import Record
from jobs.review_benchmark.review import Review


def rebuilt(
    dataset: Dataset,
    review: Review,
    model: str,
    results: Mapping[int, AgentResult],
    *,
    replicates: int,
) -> Rebuilt:
    """What the replicates of an agent come to; their records are all it could find.

    Args:
        dataset: reviews and settings.
        review: that is rebuilt.
        model: the agent.
        results: by the number of the replicate, from 1.
        replicates: how many there are of any review.
    """
    rules = dataset.settings.rules
    rows = _rows(results, replicates)
    offered = [row.record for row in rows]
    # papers that were there and that no search offered; they come after all others
    unseen = {each.document: each for own in results.values() for each in own.unseen}
    known = {each.document for each in offered}
    records = [*offered, *(own for own in unseen.values() if own.document not in known)]
    # another title of a paper is a record of its own, found by that alone
    records += [
        Record(document=own.document, title=title)
        for own in tuple(records)
        for title in own.other_titles
    ]
    included = tuple(own.document for own in records if own.included)
    kept = frozenset(included)
    places = {at for at, own in enumerate(records) if own.document in kept}
    sought = [wanted(paper, rules.normal) for paper in review.studies]
    pool = Listed.of(
        records, rules.normal, cutoff=rules.title_cutoff, autojunk=rules.autojunk
    )

    def of(listed: Listed) -> Matched:
        return matched(sought, [listed] * len(sought), rules, places)

    own = other = of(pool)
    if any(len(title) >= JUNK_FROM for title in pool.titles):
        other = of(replace(pool, autojunk=not rules.autojunk))
    hit = [records[hit.place] for hit in own.hits if hit is not None]
    return Rebuilt(
        review=review.id,
        model=model,
        matched=own,
        otherwise=None if other == own else other,
        documents={at: each.document for at, each in enumerate(records)},
        records={each.document: each for each in hit},
        nearest=_nearest(sought, own, records, pool),
        papers={each.document: each for each in reversed(records)},
        included=included,
        candidates=tuple(_candidates(rows, kept)),
        conclusions=tuple(map(_stated, results.values())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row of a result, or what the replicates say of one paper together."""

    record: Record
    votes: tuple[bool, ...]  #: by replicate: whether it includes it


def _rows(results: Mapping[int, AgentResult], replicates: int) -> Sequence[_Row]:
    """The rows, included ones first.

    Of several replicates each paper has one row: included by more than half of them,
    with the mean of the scores that there are.
    """
    numbers = range(1, replicates + 1)
    if len(results) == 1:
        ((only, result),) = results.items()
        return [
            _Row(
                record=own,
                votes=tuple(own.included and each == only for each in numbers),
            )
            for own in result.records
        ]
    by_number = {
        # of a paper that stands twice the first row counts: included ones come first
        number: {own.document: own for own in reversed(result.records)}
        for number, result in results.items()
    }
    first: dict[str, Record] = {}
    for own in by_number.values():
        for document in reversed(own):
            first.setdefault(document, own[document])
    joined = []
    for record in first.values():
        rows = [by_number.get(each, {}).get(record.document) for each in numbers]
        votes = tuple(own is not None and own.included for own in rows)
        score = mean(None if own is None else own.score for own in rows)
        is_included = 2 * sum(votes) > len(results)
        joined.append(
            _Row(
                record=replace(record, score=score, included=is_included),
                votes=votes,
            )
        )
    return sorted(joined, key=lambda row: not row.record.included)


def _candidates(rows: Sequence[_Row], kept: AbstractSet[str]) -> Iterator[Candidate]:
    """The rows as candidates; one that the included have too counts there alone."""
    for rank, row in enumerate(rows, start=1):
        own = row.record
        if own.included or own.document not in kept:
            yield Candidate(
                document=own.document,
                rank=rank,
                included=own.included,
                outcome=_outcome(own),
                score=own.score,
                votes=row.votes,
                rationale=own.rationale,
            )


def _outcome(record: Record) -> Outcome:
    """What came of a paper: what our own result files say, else whether it has a score.

    A score that is lacking may not have been asked for.
    """
    stated = record.further.get("outcome")
    known = next((each for each in get_args(Outcome) if each == stated), None)
    return known or ("open" if record.score is None else "scored")


def _nearest(
    sought: Sequence[Wanted], own: Matched, records: Sequence[Record], pool: Listed
) -> dict[int, Near]:
    missing = [at for at, hits in enumerate(own.serving) if not hits]
    documents = [each.document for each in records]
    found = nearest(
        [sought[at].title for at in missing],
        [list(zip(documents, pool.titles, strict=True))],
        autojunk=pool.autojunk,
    )
    return {
        at: near for at, near in zip(missing, found, strict=True) if near is not None
    }


def _stated(result: AgentResult) -> Concluded:
    """A conclusion that a file holds, if it does."""
    if not result.conclusion:
        return Concluded(failure="no_conclusion")
    return Concluded(
        text=result.conclusion,
        direction=result.direction,
        certainty=result.certainty,
    )
