"""What a model made of a review, held against the whole database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.gathering.course import Course
from jobs.review_benchmark.gathering.joined import candidates
from jobs.review_benchmark.gathering.missed import Searches
from jobs.review_benchmark.gathering.spending import in_sum
from jobs.review_benchmark.gathering.stock import Stock
from jobs.review_benchmark.matching.lookup import Lookup, Stocked
from jobs.review_benchmark.matching.match import Matched, matched
from jobs.review_benchmark.rebuilt import Missed, Rebuilt
from jobs.review_benchmark.record import Record
from jobs.review_benchmark.review import Review


def rebuilt(
    dataset: Dataset,
    review: Review,
    model: str,
    courses: Sequence[Course],
    stock: Stock,
    *,
    replicates: int,
) -> Rebuilt:
    """What the replicates of a model come to for a review.

    Args:
        dataset: reviews, papers and settings.
        review: that is rebuilt.
        model: that rebuilds it.
        courses: of the replicates that have begun.
        stock: what the database has of the review.
        replicates: how many there are to be.
    """
    found = candidates(courses, replicates, dataset.settings)
    first = [own for own in found if own.included]
    rest = [own for own in found if not own.included]
    order = {int(own.document): place for place, own in enumerate((*first, *rest))}

    def of(lookups: Sequence[Lookup]) -> Matched:
        pools = [Stocked(order=order, lookup=lookup) for lookup in lookups]
        return matched(stock.wanted, pools, dataset.settings.rules, range(len(first)))

    own = of(stock.lookups)
    otherwise = None if stock.otherwise is None else of(stock.otherwise)
    documents = _documents(order, own, otherwise)
    records = {}
    not_offered = {}
    for paper, hit in enumerate(own.hits):
        if hit is not None:
            document = documents[hit.place]
            records[document] = stock.record(int(document))
            if hit.place >= len(order):
                not_offered[paper] = records[document]
    return Rebuilt(
        review=review.id,
        model=model,
        matched=own,
        otherwise=otherwise,
        documents=documents,
        records=records,
        nearest=stock.nearest,
        papers={each.document: stock.record(int(each.document)) for each in found},
        missed=_missed(dataset, review, courses, not_offered),
        included=tuple(own.document for own in first),
        candidates=found,
        searches=tuple(own.searched for own in courses if own.searched is not None),
        conclusions=tuple(own.concluded for own in courses),
        spent=in_sum([own.spent for own in courses]),
        skip="" if found else _skip(courses),
    )


def _missed(
    dataset: Dataset,
    review: Review,
    courses: Sequence[Course],
    papers: Mapping[int, Record],
) -> Mapping[int, Missed]:
    """Why the search did not offer some papers, by their place in the truth."""
    if dataset.database is None or not papers:
        return {}
    searches = Searches(
        review=review,
        settings=dataset.settings,
        database=dataset.database,
        courses=courses,
    )
    return {at: searches.missed(paper) for at, paper in papers.items()}


def _skip(courses: Sequence[Course]) -> str:
    """Why nothing was found: the search never was, or found nothing."""
    return next((own.failure for own in courses if own.failure), "no_candidates")


def _documents(order: Mapping[int, int], *every: Matched | None) -> dict[int, str]:
    """Papers by their place: those of the order, and those beyond it that are hit."""
    found = {place: str(number) for number, place in order.items()}
    for own in every:
        for hits in () if own is None else (*own.serving, *own.claimable):
            for hit in hits:
                found.setdefault(hit.place, str(hit.place - len(order)))
    return found
