"""Scoring review-benchmark at the size of section 12 of its specification.

Matching is held against plain difflib, whose time is that of a sample, in a straight
line. A scoring searches again for every review and model, as any scoring does.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher
from pathlib import Path

from jobs.review_benchmark.data import AgentRecord, Review, TruthPaper
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.lookup import RecordListPool
from jobs.review_benchmark.matching import (
    LookupKeys,
    MatchingRules,
    Normaliser,
    match_papers,
)
from jobs.review_benchmark.score import score
from tests.bench.row import Row
from tests.bench.verdict import least, most
from tests.jobs.review_benchmark.agents import Agent, Asked, database_of, dataset_of

RECORDS = 12
SAMPLE = 200
"""Titles that plain difflib is given."""

CANDIDATES, QUERIES, STUDIES = 300, 6, 15
CUTOFF = 0.85


def measure(quick: bool) -> list[Row]:
    """Matching of titles, then whole scorings."""
    return [*_matching(1_000 if quick else 10_000), *_scoring(*_size(quick=quick))]


def _size(*, quick: bool) -> tuple[int, int]:
    return (10, 3) if quick else (100, 10)


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _title(draw: random.Random) -> str:
    words = "effect of therapy on pain in adults with children trial placebo acute care"
    return " ".join(
        [
            *draw.choices(words.split(), k=8),
            *(f"w{draw.randrange(500)}" for _ in "abcd"),
        ]
    )


def _matching(titles: int) -> Iterator[Row]:
    draw = random.Random(1)
    records = [_title(draw) for _ in range(RECORDS)]
    sought = [
        LookupKeys(pmid="", doi="", title=_changed(draw, records))
        for _ in range(titles)
    ]
    pool = RecordListPool.of(
        [AgentRecord(document=title, title=title) for title in records],
        Normaliser(),
        cutoff=CUTOFF,
        autojunk=True,
    )

    def ours(some: list[LookupKeys]) -> list[float | None]:
        hits = match_papers(some, [pool] * len(some), MatchingRules(), ()).hits
        return [None if hit is None else hit.confidence for hit in hits]

    def plain(some: list[LookupKeys]) -> list[float | None]:
        best = [
            max(SequenceMatcher(None, each.title, own).ratio() for own in records)
            for each in some
        ]
        return [ratio if ratio >= CUTOFF else None for ratio in best]

    if ours(sought[:SAMPLE]) != plain(sought[:SAMPLE]):
        raise AssertionError("pruned and plain matching differ")
    seconds = _timed(lambda: ours(sought))
    looped = _timed(lambda: plain(sought[:SAMPLE])) * titles / SAMPLE
    what = f"{titles:,} titles x {RECORDS} records"
    yield most("reviews", f"{what}, pruned, s", seconds, titles / 10_000)
    yield least(
        "reviews", "the same by plain difflib, times longer", looped / seconds, 10
    )


def _changed(draw: random.Random, records: list[str]) -> str:
    """Every fourth title is nearly a record's."""
    if draw.random() > 1 / 4:
        return _title(draw)
    words = draw.choice(records).split()
    words[draw.randrange(len(words))] = "changed"
    return " ".join(words)


def _scoring(reviews: int, models: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        papers = database_of(Path(name) / "papers.db", _papers(reviews))
        known = [_review(number) for number in range(reviews)]
        dataset = dataset_of(known, papers, verdict="off")
        agents = [_agent(f"bench/m{number}", number, known) for number in range(models)]
        answers = Asked(dataset=dataset, agents=agents).answers()
        seconds = _timed(lambda: score(dataset, answers))
        papers.close()
    what = f"{reviews} reviews x {models} models x {CANDIDATES} candidates, s"
    yield most("reviews", what, seconds, 10 * reviews * models / 1000)


def _papers(reviews: int) -> Iterator[ImportedRecord]:
    draw = random.Random(2)
    for number in range(reviews * CANDIDATES):
        review, place = divmod(number, CANDIDATES)
        yield ImportedRecord(
            source_id=str(number),
            pmid=str(number + 1),
            title=f"topic{review} part{place % QUERIES} {_title(draw)}",
            abstract=" ".join(_title(draw) for _ in range(5)),
            year=2000,
        )


def _review(number: int) -> Review:
    """Most studies by their PMID, some by their title, some that are not there."""
    draw = random.Random(number)
    first = number * CANDIDATES
    studies = [TruthPaper(pmid=str(first + 10 * n + 1)) for n in range(STUDIES - 4)]
    studies += [TruthPaper(title=_title(draw)) for _ in range(4)]
    return Review(
        id=f"CD{number:06}",
        title=f"review {number}",
        question="?",
        studies=tuple(studies),
    )


def _agent(model: str, seed: int, reviews: list[Review]) -> Agent:
    """One that words its queries in its own way, and misses a part of the papers."""
    return Agent(
        model=model,
        queries={
            review.id: [
                {
                    "label": f"part {part}",
                    "all_of": [[f"topic{place}"], [f"part{part}", f"model{seed}"]],
                    "none_of": [],
                }
                for part in range(QUERIES - seed % 2)
            ]
            for place, review in enumerate(reviews)
        },
        score=lambda _, paper, __: 1 + (paper * (seed + 3)) % 41 / 10,
    )
