"""One paper in a review: where the search has it, what was said, what came of it."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.review_benchmark import reading
from jobs.review_benchmark.answered import Relevance
from jobs.review_benchmark.asking import keys
from jobs.review_benchmark.database.paper import Paper
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.explain.searching import Search, search_lines
from jobs.review_benchmark.explain.told import Told
from jobs.review_benchmark.rebuilt import Candidate
from jobs.review_benchmark.review import Review
from jobs.text import NONE, WIDTH, cut, hanging_lines, one_line, quoted_lines
from runner.errors import UsageError
from runner.job import Answer
from runner.messages import ParseFailure


def paper_lines(told: Told, document: str) -> Iterator[str]:
    """All of the page but its head.

    Raises:
        UsageError: the run knows no such paper.
    """
    candidates = (own for own in told.rebuilt.candidates if own.document == document)
    candidate = next(candidates, None)
    if told.is_own:
        paper = stocked(told.dataset, told.review, document)
        yield from paper_facts(paper)
        yield from _studies(told, document)
        for replicate, search in told.searches():
            yield ""
            yield f"search, replicate {replicate}"
            yield from ranked_lines(search, paper)
        yield ""
        yield "replies"
        yield from _replies(told, paper)
        yield ""
    elif candidate is None:
        raise unknown(told.review, document)
    else:
        record = told.rebuilt.records.get(document)
        if record is not None:
            yield from hanging_lines("title      ", one_line(record.title) or NONE)
        yield from _studies(told, document)
    yield from _decision(told, candidate)
    for match in told.matches:
        if match.document == document and match.lost_at is not None:
            yield from hanging_lines(
                "lost       ", f"{match.lost_at}: {match.resolution}"
            )


def stocked(dataset: Dataset, review: Review, document: str) -> Paper:
    """A paper of the database.

    Raises:
        UsageError: it has none of this id.
    """
    database = dataset.database
    found = None
    if database is not None and document.isascii() and document.isdigit():
        found = database.paper(int(document))
    if found is None:
        raise unknown(review, document)
    return found


def unknown(review: Review, document: str) -> UsageError:
    """The complaint about a paper that is not there."""
    return UsageError(
        f"{one_line(review.id)} has no paper {one_line(document)[:60]!r} here; the ids "
        "stand in matches.csv, and explain with the review alone lists the first ones."
    )


def paper_facts(paper: Paper) -> Iterator[str]:
    """What the database has of a paper."""
    yield from hanging_lines("title      ", one_line(paper.title) or NONE)
    ids = [f"PMID {paper.pmid}"] if paper.pmid else []
    ids += [f"DOI {paper.doi}"] if paper.doi else []
    ids += [str(paper.year)] if paper.year is not None else ["no year"]
    yield cut(f"record     {one_line(', '.join(ids))}", WIDTH)
    yield from hanging_lines("abstract   ", one_line(paper.abstract) or NONE)


def ranked_lines(search: Search | str, paper: Paper) -> Iterator[str]:
    """Where a search has a paper."""
    if isinstance(search, str):
        yield f"  none: {one_line(search)}"
        return
    yield from search_lines(search, paper.id)
    rank = search.rank(paper.id)
    if rank is None:
        yield "  this paper: no query offers it"
    elif rank > len(search.found.candidates):
        yield f"  this paper: rank {rank:,} of all queries together, cut"
    else:
        yield f"  this paper: rank {rank:,} of all queries together"


def _studies(told: Told, document: str) -> Iterator[str]:
    own = [match for match in told.matches if match.document == document]
    for match in own:
        yield from hanging_lines(
            "study      ",
            one_line(
                f"{match.index} ({match.paper.name}), by {match.method} "
                f"({match.confidence:.2f})"
            ),
        )
    if not own:
        yield "study      none of the review's"


def _replies(told: Told, paper: Paper) -> Iterator[str]:
    key = keys.paper_key(told.review.id, paper.id)
    answers = [
        answer
        for family in told.families
        for answer in family
        if answer.task.stage == "score" and answer.task.key == key
    ]
    for answer in answers:
        yield f"  replicate {answer.task.replicate}, task {answer.task.number}"
        if answer.chat is not None:
            yield from quoted_lines(answer.chat.text)
        yield from hanging_lines("    ", _read(told.dataset, answer))
    if not answers:
        yield "  nothing was asked about it"


def _read(dataset: Dataset, answer: Answer) -> str:
    """What was made of a reply, or why there is none."""
    if answer.skip is not None:
        return f"skipped: {one_line(answer.skip)}"
    if answer.error is not None:
        return f"failed: {one_line(answer.error)}"
    if answer.chat is None:
        return "not answered yet"
    match reading.read_score(dataset, answer.task, answer.chat):
        case Relevance(score=score, rule=rule):
            return f"read: {score:g} by rule {rule}"
        case ParseFailure(reason=reason, detail=detail):
            return f"not read: {reason}" + (f": {one_line(detail)}" if detail else "")


def _decision(told: Told, candidate: Candidate | None) -> Iterator[str]:
    if candidate is None:
        yield "decision   not a candidate"
        return
    word = "included" if candidate.included else "not included"
    least = told.dataset.settings.least_score
    if candidate.score is None:
        why = candidate.failure or candidate.outcome
        yield f"decision   {word}: no score ({one_line(why)})"
    else:
        limit = f", threshold {least:g}" if told.is_own else " (the agent's own rule)"
        yield f"decision   {word}: score {candidate.score:g}{limit}"
    if candidate.rationale:
        yield from hanging_lines("reason     ", one_line(candidate.rationale))
