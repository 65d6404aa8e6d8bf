"""Explains reviews and papers of them, a page per model: `siftlog explain`.

Before any run, it shows what the database has of a review and what the fixed plan
finds.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jobs.kit.replies import AnswerSubset
from jobs.kit.text_format import NAME_CHARS, hanging_lines, nearest_hint, quoted_lines
from jobs.review_benchmark import parsing, requests
from jobs.review_benchmark.coverage import ReviewStock, review_stocks
from jobs.review_benchmark.data import Relevance, Review
from jobs.review_benchmark.database.papers import DatabasePaper
from jobs.review_benchmark.explain_review import (
    ExplainedReview,
    ExplainedSearch,
    planned_search,
    review_facts,
    review_lines,
    search_lines,
    study_line,
)
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.lookup import DatabasePool
from jobs.review_benchmark.matching import match_papers
from jobs.review_benchmark.predictions import collect_predictions
from jobs.review_benchmark.rebuilt_reviews import CandidatePaper
from jobs.review_benchmark.results import measure_agents
from runner.errors import UsageError
from runner.job import Answer, Answers
from runner.messages import ParseFailure
from store.document import NONE, WIDTH
from store.printable import clip, cut, one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedPaper:
    """One item."""

    review: Review
    paper: str = ""  #: id in the database, or `document_id` of an import; empty: none

    @property
    def name(self) -> str:
        """The item as a person names it."""
        return f"{self.review.id}:{self.paper}" if self.paper else self.review.id


def select(
    items: Iterable[str], reviews: Sequence[Review]
) -> tuple[SelectedPaper, ...]:
    """What each item names: `CD1` a review, `CD1:17` a paper of it.

    Raises:
        UsageError: an item names no review; says which are near.
    """
    return tuple(_selection(item, reviews) for item in items)


def _selection(item: str, reviews: Sequence[Review]) -> SelectedPaper:
    for review in reviews:
        # ids may hold anything, colons too: a whole name goes before a part of one
        if item == review.id:
            return SelectedPaper(review=review)
    for review in reviews:
        begun = f"{review.id}:"
        if item.startswith(begun) and item != begun:
            return SelectedPaper(review=review, paper=item.removeprefix(begun))
    raise UsageError(_unknown(item, reviews))


def _unknown(item: str, reviews: Sequence[Review]) -> str:
    ids = [review.id for review in reviews]
    near = difflib.get_close_matches(item.partition(":")[0], ids)
    hint = nearest_hint(near, "name a review by its id, or a paper as REVIEW:PAPER.")
    return f"There is no review {clip(item, NAME_CHARS)!r}; {hint}"


def paper_lines(explained: ExplainedReview, document: str) -> Iterator[str]:
    """All of the page but its head.

    Raises:
        UsageError: the run knows no such paper.
    """
    candidates = (
        candidate
        for candidate in explained.rebuilt.candidates
        if candidate.document == document
    )
    candidate = next(candidates, None)
    if explained.has_search:
        paper = stock_facts(explained.dataset, explained.review, document)
        yield from paper_facts(paper)
        yield from _studies(explained, document)
        for replicate, search in explained.searches():
            yield ""
            yield f"search, replicate {replicate}"
            yield from ranked_lines(search, paper)
        yield ""
        yield "replies"
        yield from _replies(explained, paper)
        yield ""
    elif candidate is None:
        raise unknown(explained.review, document)
    else:
        record = explained.rebuilt.records.get(document)
        if record is not None:
            yield from hanging_lines("title      ", one_line(record.title) or NONE)
        yield from _studies(explained, document)
    yield from _decision(explained, candidate)
    for match in explained.matches:
        if match.document == document and match.lost_at is not None:
            yield from hanging_lines(
                "lost       ", f"{match.lost_at}: {match.resolution}"
            )


def stock_facts(dataset: ReviewDataset, review: Review, document: str) -> DatabasePaper:
    """A paper of the database.

    Raises:
        UsageError: it has none of this id.
    """
    database = dataset.database
    paper = None
    if database is not None and document.isascii() and document.isdigit():
        paper = database.paper(int(document))
    if paper is None:
        raise unknown(review, document)
    return paper


def unknown(review: Review, document: str) -> UsageError:
    """The complaint about a paper that is not there."""
    return UsageError(
        f"{one_line(review.id)} has no paper {one_line(document)[:60]!r} here; the ids "
        "stand in matches.csv, and explain with the review alone lists the first ones."
    )


def paper_facts(paper: DatabasePaper) -> Iterator[str]:
    """What the database has of a paper."""
    yield from hanging_lines("title      ", one_line(paper.title) or NONE)
    ids = [f"PMID {paper.pmid}"] if paper.pmid else []
    ids += [f"DOI {paper.doi}"] if paper.doi else []
    ids += [str(paper.year)] if paper.year is not None else ["no year"]
    yield cut(f"record     {one_line(', '.join(ids))}", WIDTH)
    yield from hanging_lines("abstract   ", one_line(paper.abstract) or NONE)


def ranked_lines(search: ExplainedSearch | str, paper: DatabasePaper) -> Iterator[str]:
    """Where a search has a paper."""
    if isinstance(search, str):
        yield f"  none: {one_line(search)}"
        return
    yield from search_lines(search, paper.id)
    rank = search.rank(paper.id)
    if rank is None:
        yield "  this paper: no query offers it"
    elif rank > len(search.search_hits.candidates):
        yield f"  this paper: rank {rank:,} of all queries together, cut"
    else:
        yield f"  this paper: rank {rank:,} of all queries together"


def _studies(explained: ExplainedReview, document: str) -> Iterator[str]:
    matches = [match for match in explained.matches if match.document == document]
    for match in matches:
        yield from hanging_lines(
            "study      ",
            one_line(
                f"{match.index} ({match.paper.name}), by {match.method} "
                f"({match.confidence:.2f})"
            ),
        )
    if not matches:
        yield "study      none of the review's"


def _replies(explained: ExplainedReview, paper: DatabasePaper) -> Iterator[str]:
    key = requests.paper_key(explained.review.id, paper.id)
    answers = [
        answer
        for family in explained.families
        for answer in family
        if answer.task.stage == "score" and answer.task.key == key
    ]
    for answer in answers:
        yield f"  replicate {answer.task.replicate}, task {answer.task.number}"
        if answer.chat is not None:
            yield from quoted_lines(answer.chat.text)
        yield from hanging_lines("    ", _read(explained.dataset, answer))
    if not answers:
        yield "  nothing was asked about it"


def _read(dataset: ReviewDataset, answer: Answer) -> str:
    """What was made of a reply, or why there is none."""
    if answer.skip is not None:
        return f"skipped: {one_line(answer.skip)}"
    if answer.error is not None:
        return f"failed: {one_line(answer.error)}"
    if answer.chat is None:
        return "not answered yet"
    match parsing.read_score(dataset, answer.task, answer.chat):
        case Relevance(score=score, rule=rule):
            return f"read: {score:g} by rule {rule}"
        case ParseFailure(reason=reason, detail=detail):
            return f"not read: {reason}" + (f": {one_line(detail)}" if detail else "")


def _decision(
    explained: ExplainedReview, candidate: CandidatePaper | None
) -> Iterator[str]:
    if candidate is None:
        yield "decision   not a candidate"
        return
    word = "included" if candidate.included else "not included"
    least = explained.dataset.settings.least_score
    if candidate.score is None:
        reason = candidate.failure or candidate.outcome
        yield f"decision   {word}: no score ({one_line(reason)})"
    else:
        limit = (
            f", threshold {least:g}"
            if explained.has_search
            else " (the agent's own rule)"
        )
        yield f"decision   {word}: score {candidate.score:g}{limit}"
    if candidate.rationale:
        yield from hanging_lines("reason     ", one_line(candidate.rationale))


def review_before(dataset: ReviewDataset, chosen: SelectedPaper) -> Iterator[str]:
    """What the database has of a review's studies, and how many would be scored."""
    review = chosen.review
    yield from review_facts(review, dataset.settings)
    search = planned_search(dataset, review)
    stock = review_stocks(dataset, [review])[review.id]
    records = _records(dataset, stock)
    offered = frozenset(search.search_hits.candidates)
    absent = [at for at, record in enumerate(records) if record is None]
    missed = [
        at
        for at, record in enumerate(records)
        if record is not None and record not in offered
    ]
    stored_count = len(records) - len(absent)
    yield (
        f"studies    {len(records)}: {stored_count} in the database, "
        f"{stored_count - len(missed)} found by the fixed plan"
    )
    yield ""
    yield "search"
    yield from search_lines(search)
    for title, indices in (("not in the database", absent), ("not found", missed)):
        if indices:
            yield ""
            yield f"{title} ({len(indices)})"
        for at in indices:
            yield study_line(at, review.studies[at])
            near = stock.nearest.get(at)
            if near is not None:
                yield (
                    f"    the likest title, at {near.ratio:.4f}, is that of "
                    f"{near.document}"
                )


def paper_before(dataset: ReviewDataset, chosen: SelectedPaper) -> Iterator[str]:
    """Where the fixed plan has a paper."""
    review = chosen.review
    paper = stock_facts(dataset, review, chosen.paper)
    yield from paper_facts(paper)
    records = _records(dataset, review_stocks(dataset, [review])[review.id])
    studies = [
        f"{at} ({study.name})"
        for at, (study, it) in enumerate(zip(review.studies, records, strict=True))
        if it == paper.id
    ]
    studies_text = one_line("; ".join(studies)) or "none of the review's"
    yield from hanging_lines("study      ", studies_text)
    yield ""
    yield "search"
    yield from ranked_lines(planned_search(dataset, review), paper)


def _records(dataset: ReviewDataset, stock: ReviewStock) -> list[int | None]:
    """The paper of each study, where no agent has put papers into an order."""
    pools = [DatabasePool(order={}, lookup=lookup) for lookup in stock.lookups]
    hits = match_papers(stock.truth_keys, pools, dataset.settings.rules, ()).hits
    return [None if hit is None else hit.index for hit in hits]


UNASKED = "nothing is known of it yet: its search plan is still to come"


def explain(
    dataset: ReviewDataset, answers: Answers | None, items: tuple[str, ...]
) -> str:
    """Explain reviews, or papers of them.

    Args:
        dataset: the inputs.
        answers: those of a run; None before any.
        items: ids of reviews, and papers as `REVIEW:PAPER`.

    Raises:
        UsageError: an item names nothing in the data or the run.
    """
    pages = [
        page
        for chosen in select(items, dataset.reviews)
        for page in (
            _before(dataset, chosen)
            if answers is None
            else _after(dataset, answers, chosen)
        )
    ]
    return "\n\n".join("\n".join(page) for page in pages) + "\n"


def _before(dataset: ReviewDataset, chosen: SelectedPaper) -> Iterator[Iterable[str]]:
    lines = paper_before if chosen.paper else review_before
    yield [_head(chosen, "before any run"), *lines(dataset, chosen)]


def _after(
    dataset: ReviewDataset, answers: Answers, chosen: SelectedPaper
) -> Iterator[Iterable[str]]:
    review = chosen.review
    # nothing is fitted over reviews, so that the others play no part
    alone = replace(dataset, reviews=(review,))
    about = AnswerSubset.matching(answers, lambda task: task.key == review.id)
    results = measure_agents(alone, collect_predictions(alone, about))
    for model, column in results.columns.items():
        head = _head(chosen, model)
        if review.id not in column.rebuilt:
            yield head, UNASKED
            continue
        explained = ExplainedReview(
            dataset=alone,
            review=review,
            column=column,
            families=tuple(f for f in about.held if f[0].task.model == model),
            has_search=not answers.imported,
        )
        lines = (
            paper_lines(explained, chosen.paper)
            if chosen.paper
            else review_lines(explained)
        )
        yield [head, *lines]


def _head(chosen: SelectedPaper, title: str) -> str:
    return cut(f"{one_line(chosen.name)}  {one_line(title)}", WIDTH)
