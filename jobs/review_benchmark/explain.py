"""Explains reviews and papers of them, a page per model: `siftlog explain`.

Before any run, it shows which studies the database has and which ones the fixed plan
finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jobs.kit.explain import (
    ItemAnswer,
    closest,
    failure_text,
    pages_text,
    select,
    summary_fact,
)
from jobs.kit.replies import AnswerSubset
from jobs.kit.text_format import listed, plural
from jobs.review_benchmark import parsing, requests
from jobs.review_benchmark.answered_questions import question_page
from jobs.review_benchmark.coverage import ReviewStock, review_stocks
from jobs.review_benchmark.data import Relevance, Review
from jobs.review_benchmark.database.papers import DatabasePaper
from jobs.review_benchmark.explain_review import (
    ExplainedReview,
    ExplainedSearch,
    planned_search,
    review_blocks,
    review_facts,
    search_blocks,
    study_fact,
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
from store.document import NONE, Block, Fact, Heading, Quote
from store.printable import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedPaper:
    """A review, or a paper of it, that a user selected."""

    review: Review
    paper: str = ""  #: id in the database, or `document_id` of an import; empty: none

    @property
    def name(self) -> str:
        """Name of the item as users write it."""
        return f"{self.review.id}:{self.paper}" if self.paper else self.review.id


def selections(items: Iterable[str], reviews: Sequence[Review]) -> list[SelectedPaper]:
    """Return the review (`CD1`) or the paper (`CD1:17`) that each item names.

    Raises:
        UsageError: an item names no review; gives the nearest ones.
    """
    ids = [review.id for review in reviews]
    return select(
        items,
        lambda item: _named(item, reviews),
        kinds="review",
        otherwise="name a review by its id, or a paper as REVIEW:PAPER.",
        near=lambda item: closest(item.partition(":")[0], ids),
    )


def _named(item: str, reviews: Sequence[Review]) -> list[SelectedPaper]:
    # ids may contain anything, colons too: a full match takes precedence
    if whole := [review for review in reviews if item == review.id]:
        return [SelectedPaper(review=whole[0])]
    for review in reviews:
        begun = f"{review.id}:"
        if item.startswith(begun) and item != begun:
            return [SelectedPaper(review=review, paper=item.removeprefix(begun))]
    return []


def paper_blocks(explained: ExplainedReview, document: str) -> Iterator[Block]:
    """Yield the page of a paper without its head.

    Raises:
        UsageError: the run has no such paper.
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
            yield Heading(f"search, replicate {replicate}")
            yield from ranked_blocks(search, paper)
        yield Heading("replies")
        yield from _replies(explained, paper)
        yield ""
    elif candidate is None:
        raise unknown(explained.review, document)
    else:
        record = explained.rebuilt.records.get(document)
        if record is not None:
            yield Fact("title", record.title or NONE)
        yield from _studies(explained, document)
    yield from _decision(explained, candidate)
    for match in explained.matches:
        if match.document == document and match.lost_at is not None:
            yield Fact("lost", f"{match.lost_at}: {match.resolution}")


def stock_facts(dataset: ReviewDataset, review: Review, document: str) -> DatabasePaper:
    """Return a paper of the database.

    Raises:
        UsageError: the database has no paper with this id.
    """
    database = dataset.database
    paper = None
    if database is not None and document.isascii() and document.isdigit():
        paper = database.paper(int(document))
    if paper is None:
        raise unknown(review, document)
    return paper


def unknown(review: Review, document: str) -> UsageError:
    """Return the error for an unknown paper."""
    return UsageError(
        f"{one_line(review.id)} has no paper {one_line(document)[:60]!r}"
        " here; the ids are in matches.csv, and explain with the "
        "review alone lists the first ones."
    )


def paper_facts(paper: DatabasePaper) -> Iterator[Block]:
    """Yield the facts about a paper in the database."""
    yield Fact("title", paper.title or NONE)
    ids = [f"PMID {paper.pmid}"] if paper.pmid else []
    ids += [f"DOI {paper.doi}"] if paper.doi else []
    ids += [str(paper.year)] if paper.year is not None else ["no year"]
    yield Fact("record", ", ".join(ids), is_cut=True)
    yield Fact("abstract", paper.abstract or NONE)


def ranked_blocks(
    search: ExplainedSearch | str, paper: DatabasePaper
) -> Iterator[Block]:
    """Yield the rank of a paper in a search."""
    if isinstance(search, str):
        yield f"  none: {search}"
        return
    yield from search_blocks(search, paper.id)
    search_hits = search.search.search_hits
    rank = search_hits.rank(paper.id)
    if rank is None:
        yield "  this paper: no query offers it"
    elif rank > len(search_hits.candidates):
        yield f"  this paper: rank {rank:,} of all queries together, cut"
    else:
        yield f"  this paper: rank {rank:,} of all queries together"


def _studies(explained: ExplainedReview, document: str) -> Iterator[Block]:
    if not explained.dataset.has_truth:
        return
    matches = [match for match in explained.matches if match.document == document]
    for match in matches:
        study = f"{match.index} ({match.paper.name})"
        yield Fact("study", f"{study}, by {match.method} ({match.confidence:.2f})")
    if not matches:
        yield "study      not a study of the review"


def _replies(explained: ExplainedReview, paper: DatabasePaper) -> Iterator[Block]:
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
            yield Quote(answer.chat.text)
        yield Fact("", _read(explained.dataset, answer), indent=4, width=0)
    if not answers:
        yield "  no request about this paper"


def _read(dataset: ReviewDataset, answer: Answer) -> str:
    """Return how a reply was parsed, or why there is none."""
    if answer.skip is not None:
        return f"skipped: {answer.skip}"
    if answer.error is not None:
        return f"failed: {answer.error}"
    if answer.chat is None:
        return "not answered yet"
    match parsing.read_score(dataset, answer.task, answer.chat):
        case Relevance(score=score, rule=rule):
            return f"read: {score:g} by rule {rule}"
        case ParseFailure() as failure:
            return f"not read: {failure_text(failure)}"


def _decision(
    explained: ExplainedReview, candidate: CandidatePaper | None
) -> Iterator[Block]:
    if candidate is None:
        yield "decision   not a candidate"
        return
    word = "included" if candidate.included else "not included"
    least = explained.dataset.settings.least_score
    if candidate.score is None:
        reason = candidate.failure or candidate.outcome
        yield f"decision   {word}: no score ({reason})"
    else:
        limit = (
            f", threshold {least:g}"
            if explained.has_search
            else " (the agent's own rule)"
        )
        yield f"decision   {word}: score {candidate.score:g}{limit}"
    yield Fact("reason", candidate.rationale)


def review_before(dataset: ReviewDataset, chosen: SelectedPaper) -> Iterator[Block]:
    """Yield which studies of a review the database has, and which are candidates."""
    review = chosen.review
    yield from review_facts(review, dataset.settings)
    search = planned_search(dataset, review)
    if not dataset.has_truth:
        yield Heading("search")
        yield from search_blocks(search)
        return
    stock = review_stocks(dataset, [review])[review.id]
    records = _records(dataset, stock)
    offered = frozenset(search.search.search_hits.candidates)
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
    yield Heading("search")
    yield from search_blocks(search)
    for title, indices in (("not in the database", absent), ("not found", missed)):
        if indices:
            yield Heading(f"{title} ({len(indices)})")
        for at in indices:
            yield study_fact(at, review.studies[at])
            near = stock.nearest.get(at)
            if near is not None:
                yield (
                    f"    the most similar title, at {near.ratio:.4f}, is that of "
                    f"{near.document}"
                )


def paper_before(dataset: ReviewDataset, chosen: SelectedPaper) -> Iterator[Block]:
    """Yield the rank of a paper in the fixed plan."""
    review = chosen.review
    paper = stock_facts(dataset, review, chosen.paper)
    yield from paper_facts(paper)
    if not dataset.has_truth:
        yield Heading("search")
        yield from ranked_blocks(planned_search(dataset, review), paper)
        return
    records = _records(dataset, review_stocks(dataset, [review])[review.id])
    studies = [
        f"{at} ({study.name})"
        for at, (study, it) in enumerate(zip(review.studies, records, strict=True))
        if it == paper.id
    ]
    yield Fact("study", "; ".join(studies) or "not a study of the review")
    yield Heading("search")
    yield from ranked_blocks(planned_search(dataset, review), paper)


def _records(dataset: ReviewDataset, stock: ReviewStock) -> list[int | None]:
    """Return the paper of each study before any agent has ranked papers."""
    pools = [DatabasePool(order={}, lookup=lookup) for lookup in stock.lookups]
    hits = match_papers(stock.truth_keys, pools, dataset.settings.rules, ()).hits
    return [None if hit is None else hit.index for hit in hits]


UNASKED = "no result yet: its search plan is still open"


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
    return pages_text(
        page
        for chosen in selections(items, dataset.reviews)
        for page in (
            _before(dataset, chosen)
            if answers is None
            else _after(dataset, answers, chosen)
        )
    )


def _before(dataset: ReviewDataset, chosen: SelectedPaper) -> Iterator[Iterable[Block]]:
    lines = paper_before if chosen.paper else review_before
    yield [_head(chosen, "before any run"), *lines(dataset, chosen)]


def _after(
    dataset: ReviewDataset, answers: Answers, chosen: SelectedPaper
) -> Iterator[Iterable[Block]]:
    review = chosen.review
    # nothing is fitted over reviews, so the others do not matter
    alone = replace(dataset, reviews=(review,))
    about = AnswerSubset.matching(answers, lambda task: task.key == review.id)
    predictions = collect_predictions(alone, about)
    columns = measure_agents(alone, predictions).columns if dataset.has_truth else {}
    by_model = {rebuilt.model: rebuilt for rebuilt in predictions.rebuilt}
    for model in predictions.models:
        head = _head(chosen, model)
        if model not in by_model:
            yield head, UNASKED
            continue
        if not (dataset.has_truth or chosen.paper):
            included = plural(len(by_model[model].included), "paper")
            answer = ItemAnswer(model=model, text=f"includes {included}")
            page = question_page(dataset, by_model[model])
            yield [head, summary_fact(None, [answer]), *page]
            continue
        explained = ExplainedReview(
            dataset=alone,
            review=review,
            rebuilt=by_model[model],
            column=columns.get(model),
            families=tuple(f for f in about.held if f[0].task.model == model),
            has_search=not answers.imported,
        )
        lines = (
            paper_blocks(explained, chosen.paper)
            if chosen.paper
            else review_blocks(explained)
        )
        yield [head, _summary(explained, chosen.paper), *lines]


def _summary(explained: ExplainedReview, document: str) -> Fact:
    """Return the truth about a review or a paper of it, and the model's answer."""
    model, has_truth = explained.rebuilt.model, explained.column is not None
    if not document:
        benchmark = explained.benchmark
        text = f"{benchmark.found_and_included} of them, in {benchmark.included_rows}"
        answer = ItemAnswer(model=model, text=f"includes {text} papers")
        return summary_fact(plural(benchmark.truth, "study", "studies"), [answer])
    is_study = any(match.document == document for match in explained.matches)
    is_included = document in explained.rebuilt.included
    answer = ItemAnswer(
        model=model,
        text="included" if is_included else "not included",
        is_right=is_included == is_study if has_truth else None,
    )
    truth = f"{'a' if is_study else 'no'} study of the review"
    return summary_fact(truth if has_truth else None, [answer])


def _head(chosen: SelectedPaper, title: str) -> Heading:
    return Heading(f"{chosen.name}  {title}", level=1)


def describe(dataset: ReviewDataset, /) -> Iterator[str]:
    """Yield the questions of the reviews."""
    questions = (review.question or review.title for review in dataset.reviews)
    reviews = plural(len(dataset.reviews), "review")
    yield f"{reviews}: {listed(questions, most=4)}"
