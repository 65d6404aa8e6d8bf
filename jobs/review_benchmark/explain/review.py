"""The course of a review under one model: searched, scored, included, lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jobs.review_benchmark.explain.conclusion import conclusion_lines
from jobs.review_benchmark.explain.facts import review_facts, study_line
from jobs.review_benchmark.explain.searching import search_lines
from jobs.review_benchmark.explain.told import Told
from jobs.review_benchmark.measuring.lost import LOST_AT, PaperMatch
from jobs.review_benchmark.rebuilt import Candidate
from jobs.review_benchmark.summary.reasons import percent
from jobs.text import (
    NONE,
    TextColumn,
    hanging_lines,
    joined_words,
    number,
    one_line,
    plural,
    text_table,
)

LISTED = 10
"""Candidates that are listed; explain REVIEW:PAPER tells of any."""


def review_lines(told: Told) -> Iterator[str]:
    """All of the page but its head."""
    yield from review_facts(told.review, told.dataset.settings)
    yield from _outcome(told)
    if told.is_own:
        for replicate, search in told.searches():
            yield ""
            yield f"search, replicate {replicate}"
            if isinstance(search, str):
                yield f"  none: {one_line(search)}"
            else:
                yield from search_lines(search)
    if told.rebuilt.candidates:
        yield ""
        yield "papers, best first" if told.is_own else "papers, as given"
        yield from _papers(told)
    yield ""
    yield from _lost(told.column.lost(told.review.id))
    odd = told.column.suspicious[told.review.id]
    if odd:
        yield ""
        yield "matches to look at"
        for each in odd:
            yield study_line(each.index, told.review.studies[each.index])
            yield from hanging_lines("    ", one_line(each.message))
    yield from conclusion_lines(told)


def _lost(lost: Sequence[PaperMatch]) -> Iterator[str]:
    """Studies that were lost, by the step at which they were."""
    yield f"lost       {plural(len(lost), 'study', 'studies') if lost else 'none'}"
    for step in LOST_AT:
        papers = [own for own in lost if own.lost_at == step]
        if papers:
            yield f"{step} ({len(papers)})"
        for own in papers:
            yield study_line(own.index, own.paper)
            yield from hanging_lines("    ", one_line(own.resolution))
            if own.rationale:
                yield from hanging_lines("    it says: ", one_line(own.rationale))


def _outcome(told: Told) -> Iterator[str]:
    found, settings = told.benchmark, told.dataset.settings
    word = "PASSED" if found.passes(settings.target_recall) else "FAILED"
    precision = "n/a" if found.precision is None else f"{found.precision:.1%}"
    yield (
        f"outcome    {word}: recall {found.recall:.1%} (target "
        f"{percent(settings.target_recall)}), precision {precision}"
    )
    steps = [f"{found.found} with a record"]
    if told.is_own:
        steps.append(f"{found.retrieved} found by the search")
    steps.append(f"{found.found_and_included} included")
    yield f"studies    {found.truth}: {', '.join(steps)}"
    papers = plural(found.included_rows, "paper")
    yield f"included   {papers}, {found.right_rows} of them studies of the review"
    if told.rebuilt.skip:
        yield f"not done   {one_line(told.rebuilt.skip)}"


def _papers(told: Told) -> Iterator[str]:
    every = told.rebuilt.candidates
    shown = every[:LISTED]
    studies: dict[str, list[int]] = {}
    for match in told.matches:
        if match.found:
            studies.setdefault(match.document, []).append(match.index)
    yield from text_table(
        [
            TextColumn(title="rank", cells=[str(own.rank) for own in shown]),
            _words("paper", (own.document for own in shown)),
            TextColumn(title="score", cells=[_standing(own) for own in shown]),
            _words("in", ("yes" if own.included else NONE for own in shown)),
            _words(
                "study", (joined_words(studies.get(own.document, ())) for own in shown)
            ),
            _words("title", (_title(told, own) for own in shown)),
        ]
    )
    if every[LISTED:]:
        yield f"  and {len(every) - LISTED:,} more"


def _standing(own: Candidate) -> str:
    """A candidate's score, or why it has none."""
    return own.outcome if own.score is None else number(own.score, 2)


def _title(told: Told, own: Candidate) -> str:
    database = told.dataset.database
    if database is not None and told.is_own:
        paper = database.paper(int(own.document))
        return NONE if paper is None else paper.title
    record = told.rebuilt.records.get(own.document)
    return NONE if record is None else record.title


def _words(title: str, cells: Iterable[str]) -> TextColumn:
    return TextColumn(title=title, cells=list(map(one_line, cells)), has_words=True)
