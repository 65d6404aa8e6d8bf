"""Small corpora, and the same questions answered with plain sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from jobs.screening.citations import CitationCollector
from jobs.screening.corpus import Corpus
from jobs.screening.data import ArticleText, Exclusion, Status

Edge = tuple[str, str]

IDS = ("1", "01", "10", "9", "2", "02", "11", "100")
"""Ids whose order as text is not that of numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Who cites whom, as sets."""

    edges: tuple[Edge, ...]  #: repetitions are allowed
    readable: frozenset[str]  #: papers with an abstract
    exclusions: tuple[tuple[str, str, Status], ...] = ()

    def cited(self, review: str) -> set[str]:
        return {paper for own, paper in self.edges if own == review}

    def included(self, review: str) -> set[str]:
        return self.cited(review) & self.readable

    @property
    def reviews(self) -> list[str]:
        return sorted({review for review, _ in self.edges})

    def citing(self, paper: str) -> set[str]:
        return {review for review, own in self.edges if own == paper}

    def known(self, review: str) -> dict[str, Status]:
        return {
            paper: status for own, paper, status in self.exclusions if own == review
        }

    def corpus(self, edges: Iterable[Edge] | None = None) -> Corpus:
        """As it is read; *edges*: the same ones in another order."""
        found = CitationCollector()
        for review, paper in self.edges if edges is None else edges:
            found.add(review, paper)
        papers = {paper for _, paper in self.edges}
        return Corpus(
            reviews={
                review: ArticleText(title=f"Review {review}") for review in self.reviews
            },
            papers={
                paper: ArticleText(
                    title=f"Paper {paper}",
                    abstract=f"text {paper}" if paper in self.readable else "",
                )
                for paper in sorted(papers | {own for _, own, _ in self.exclusions})
            },
            citations=found.citations(),
            exclusions=tuple(
                Exclusion(review=review, paper=paper, status=status)
                for review, paper, status in sorted(self.exclusions)
            ),
        )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Worlds of a few reviews that share most of a few papers.

    Most papers have an abstract: without that hardly any two reviews are related.
    """
    ids = st.sampled_from(IDS)
    papers = st.sets(ids, min_size=1, max_size=5)
    cited = draw(st.dictionaries(ids, papers, min_size=2, max_size=6))
    repeated = draw(st.lists(st.sampled_from(sorted(cited)), max_size=2))
    edges = [
        (review, p) for review in [*cited, *repeated] for p in sorted(cited[review])
    ]
    unreadable = draw(st.sets(ids, max_size=2))
    statuses: st.SearchStrategy[Status] = st.sampled_from(
        ("excluded", "awaiting", "ongoing")
    )
    known = draw(st.dictionaries(st.tuples(ids, ids), statuses, max_size=12))
    return World(
        edges=tuple(edges),
        readable=frozenset({paper for _, paper in edges} - unreadable),
        exclusions=tuple((*pair, status) for pair, status in known.items()),
    )


def write_tables(folder: Path, rows: dict[str, Sequence[str]]) -> Path:
    """The three tables from their lines, header first; their folder."""
    names = {
        "reviews": "cochrane_pubmed_abstracts.csv",
        "references": "cochrane_pubmed_references.csv",
        "papers": "referenced_paper_abstracts.csv",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in rows.items():
        text = "".join(f"{line}\n" for line in lines)
        (folder / names[name]).write_text(text, encoding="utf-8", newline="")
    return folder
