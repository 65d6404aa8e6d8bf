"""Near-miss statistics of large synthetic graphs: time, memory and growth.

Each review cites 50 papers; five of them it shares with two other reviews each, which
is about twice what the real tables have. What is measured goes from edges in memory to
the figures over all reviews: matrices, neighbourhoods, hashes of the candidates.
Reading the table, and writing the candidates, have rows of their own, on the smallest
graph. Seconds are the processor's: nothing here waits.
"""

from __future__ import annotations

import hashlib
import resource
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jobs.kit.inputs.rows import InputFindings
from jobs.screening import inputs, set_files
from jobs.screening.citations import Citations, read_citations
from jobs.screening.corpus import Corpus
from jobs.screening.data import ArticleText
from jobs.screening.graph import Graph, overview, statistics_of
from jobs.screening.set_files import build
from jobs.screening.settings import ScreeningSettings
from tests.bench.row import Row
from tests.bench.verdict import most, shown

CITED, SHARED, DEGREE = 50, 5, 3
REVIEWS = (10_000, 20_000, 100_000)
NEAR = 50
"""Reviews in a row that share papers."""
HUB = 1_000
"""Reviews that cite the hub of the row about hubs."""

READABLE = ArticleText(title="Title", abstract="Abstract.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One size."""

    edges: int
    seconds: float
    candidates: int
    peak_mb: float


def measure(quick: bool) -> list[Row]:
    """The rows; quick leaves the largest graph out, and with it the goals."""
    sizes = REVIEWS[:2] if quick else REVIEWS
    found = [_statistics(_corpus(reviews)) for reviews in sizes]
    rows = [
        shown(
            f"{each.edges:,} edges, {each.candidates:,} candidates: statistics, s",
            each.seconds,
        )
        for each in found
    ]
    first, last = found[0], found[-1]
    growth = last.seconds / first.seconds / (last.edges / first.edges)
    rows.append(
        most("N12", "time for an edge, largest over smallest graph", growth, 1.5)
    )
    if not quick:
        rows += [
            most("N12", f"{last.edges:,} edges: statistics, s", last.seconds, 60),
            most("N12", f"{last.edges:,} edges: peak memory, MB", last.peak_mb, 2048),
        ]
    small = _corpus(sizes[0])
    hub = _statistics(_corpus(sizes[0], hub=HUB))
    times = _by_sets_s(small) / _statistics(small).seconds
    return [
        *rows,
        shown("candidates by Python's sets, times longer", times, "N12"),
        shown(f"{hub.edges:,} edges, a hub of {HUB:,}: statistics, s", hub.seconds),
        shown(f"{first.edges:,} edges: prepare without drift, s", _prepare_s(small)),
        shown(f"{first.edges:,} edges: reading the table, s", _reading_s(small)),
    ]


def _statistics(corpus: Corpus) -> Measured:
    began = time.process_time()
    graph = Graph(corpus)
    each = [statistics_of(graph, near) for near in graph.neighbourhoods()]
    seen = overview(each)
    return Measured(
        edges=len(corpus.citations.review),
        seconds=time.process_time() - began,
        candidates=seen["total"],
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def _by_sets_s(corpus: Corpus) -> float:
    """The candidates and their hashes by a set for each review and each paper."""
    began = time.process_time()
    citations = corpus.citations
    includes: dict[int, set[int]] = {}
    citing: dict[int, set[int]] = {}
    pairs = zip(citations.review.tolist(), citations.paper.tolist(), strict=True)
    for review, paper in pairs:
        includes.setdefault(review, set()).add(paper)
        citing.setdefault(paper, set()).add(review)
    for review, own in includes.items():
        related = set().union(*(citing[paper] for paper in own)) - {review}
        links = Counter(paper for other in related for paper in includes[other] - own)
        found = "\n".join(sorted(citations.papers[paper] for paper in links))
        hashlib.sha256(found.encode()).hexdigest()
    return time.process_time() - began


def _prepare_s(corpus: Corpus) -> float:
    """Near misses alone: random ones are drawn from all papers, for every review."""
    settings = ScreeningSettings(negatives=("near-miss",), drift=False)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        path = Path(folder, "candidates.csv")
        with (
            set_files.csv_table(path, inputs.CANDIDATES) as candidates,
            set_files.csv_table(path.with_name("set.csv"), inputs.RECORDS) as records,
        ):
            build(
                corpus,
                Graph(corpus),
                settings,
                candidates=candidates.add,
                records=lambda drawn: records.add(map(set_files.record_row, drawn)),
            )
        return time.process_time() - began


def _reading_s(corpus: Corpus) -> float:
    made = corpus.citations
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "references.csv")
        with set_files.csv_table(path, ("citing_pmid", "ref_pmid")) as rows:
            pairs = zip(made.review.tolist(), made.paper.tolist(), strict=True)
            rows.add((made.reviews[at], made.papers[to]) for at, to in pairs)
        began = time.process_time()
        read_citations(path, InputFindings(), {})
        return time.process_time() - began


def _corpus(reviews: int, hub: int = 0) -> Corpus:
    """A graph of *reviews*; the first *hub* of them cite one further paper."""
    chance = np.random.default_rng(20260118)
    alone = CITED - SHARED
    own = np.arange(reviews * alone)
    shared = reviews * SHARED // DEGREE
    # every shared paper is cited by neighbours in the list, as topics are neighbours
    owner = chance.integers(0, reviews, (shared, 1))
    owner = owner + chance.integers(0, NEAR, (shared, DEGREE))
    review = np.concatenate([own // alone, owner.ravel() % reviews, np.arange(hub)])
    paper = np.concatenate(
        [
            own,
            np.repeat(len(own) + np.arange(shared), DEGREE),
            np.full(hub, len(own) + shared),
        ]
    )
    papers = tuple(f"{at:08d}" for at in range(len(own) + shared + (hub > 0)))
    edges = np.unique(review * len(papers) + paper)
    return Corpus(
        reviews={f"{at:06d}": READABLE for at in range(reviews)},
        papers=dict.fromkeys(papers, READABLE),
        citations=Citations(
            reviews=tuple(f"{at:06d}" for at in range(reviews)),
            papers=papers,
            review=edges // len(papers),
            paper=edges % len(papers),
            rows=len(review),
        ),
    )
