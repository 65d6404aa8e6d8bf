"""Before any run: what the database has, and what the fixed plan finds in it."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.explain.facts import review_facts, study_line
from jobs.review_benchmark.explain.paper import paper_facts, ranked_lines, stocked
from jobs.review_benchmark.explain.searching import planned_search, search_lines
from jobs.review_benchmark.explain.selection import Selection
from jobs.review_benchmark.gathering.stock import Stock, stocks
from jobs.review_benchmark.matching.lookup import Stocked
from jobs.review_benchmark.matching.match import matched
from jobs.text import hanging_lines, one_line


def review_before(dataset: Dataset, chosen: Selection) -> Iterator[str]:
    """What the database has of a review's studies, and how many would be scored."""
    review = chosen.review
    yield from review_facts(review, dataset.settings)
    search = planned_search(dataset, review)
    there = stocks(dataset, [review])[review.id]
    records = _records(dataset, there)
    offered = frozenset(search.found.candidates)
    absent = [at for at, own in enumerate(records) if own is None]
    missed = [
        at for at, own in enumerate(records) if own is not None and own not in offered
    ]
    held = len(records) - len(absent)
    yield (
        f"studies    {len(records)}: {held} in the database, {held - len(missed)} "
        "found by the fixed plan"
    )
    yield ""
    yield "search"
    yield from search_lines(search)
    for title, places in (("not in the database", absent), ("not found", missed)):
        if places:
            yield ""
            yield f"{title} ({len(places)})"
        for at in places:
            yield study_line(at, review.studies[at])
            near = there.nearest.get(at)
            if near is not None:
                yield (
                    f"    the likest title, at {near.ratio:.4f}, is that of "
                    f"{near.document}"
                )


def paper_before(dataset: Dataset, chosen: Selection) -> Iterator[str]:
    """Where the fixed plan has a paper."""
    review = chosen.review
    paper = stocked(dataset, review, chosen.paper)
    yield from paper_facts(paper)
    records = _records(dataset, stocks(dataset, [review])[review.id])
    own = [
        f"{at} ({study.name})"
        for at, (study, it) in enumerate(zip(review.studies, records, strict=True))
        if it == paper.id
    ]
    said = one_line("; ".join(own)) or "none of the review's"
    yield from hanging_lines("study      ", said)
    yield ""
    yield "search"
    yield from ranked_lines(planned_search(dataset, review), paper)


def _records(dataset: Dataset, there: Stock) -> list[int | None]:
    """The paper of each study, where no agent has put papers into an order."""
    pools = [Stocked(order={}, lookup=lookup) for lookup in there.lookups]
    hits = matched(there.wanted, pools, dataset.settings.rules, ()).hits
    return [None if hit is None else hit.place for hit in hits]
