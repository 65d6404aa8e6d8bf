"""Defines the prompts of review-benchmark: wording, contents, schemas of replies.

The wording is in `prompts.toml`. The review comes first, so that a provider's prompt
cache can reuse it for all its papers.

No prompt contains the list of included studies, the review's id, DOI, PMID and address,
or its authors' conclusion, except that of the judge of conclusions. An extraction sees
the review's text, but neither its truth nor the paper database.

Models fill the fields of a reply in the order of their declaration, so a rationale
precedes the value that it explains. The docstrings of the schema's classes are sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, Field

from jobs.kit.chat import data_block
from jobs.review_benchmark.data import PICO, Agreement, Certainty, Direction, Review
from jobs.review_benchmark.database.papers import DatabasePaper
from jobs.review_benchmark.settings import Scale
from runner.messages import Schema, TextPart
from runner.prompts import REASK, Placeholder, PromptBlock, PromptCatalog
from runner.structured import schema_of


def _section(name: str, meaning: str, *, needed: bool = False) -> Placeholder:
    return Placeholder(name=name, meaning=f"{meaning}, between marks", needed=needed)


_REVIEW: Final = _section("review", "the review's question and criteria", needed=True)
_SEARCH: Final = _section(
    "search", "how many queries are wanted, and of which years", needed=True
)
_LIMITS: Final = (
    Placeholder(name="most_groups", meaning="groups that a query has at most"),
    Placeholder(name="most_synonyms", meaning="synonyms that a group has at most"),
    Placeholder(name="most_words", meaning="words that a synonym has at most"),
)
_PAPER: Final = _section("paper", "title, year and abstract", needed=True)
_RATIONALE: Final = Placeholder(
    name="rationale_chars", meaning="characters that a rationale has at most"
)
_PAPERS: Final = Placeholder(
    name="papers",
    meaning="the included papers, the best first, each between marks",
    needed=True,
)
_CONCLUSIONS: Final = _section("conclusions", "two conclusions, A and B", needed=True)


def _scored(name: str, scale: str) -> PromptBlock:
    return PromptBlock(
        name=name,
        meaning=f"how relevant is a paper (scale={scale})",
        parts={"system": (_RATIONALE,), "user": (_REVIEW, _PAPER)},
    )


_REFERENCES: Final = _section("references", "a piece of the list", needed=True)

WORDING: Final = PromptCatalog(
    job="review-benchmark",
    file=Path(__file__).with_name("prompts.toml"),
    blocks=(
        PromptBlock(
            name="plan",
            meaning="what is to be searched",
            parts={"system": _LIMITS, "user": (_REVIEW, _SEARCH)},
        ),
        _scored("score.from_1_to_5", "1-5"),
        _scored("score.from_0_to_1", "0-1"),
        PromptBlock(
            name="conclude",
            meaning="what do the included papers say about the question",
            parts={"system": (), "user": (_REVIEW, _PAPERS)},
        ),
        PromptBlock(
            name="judge",
            meaning="how alike are two conclusions (verdict=judge)",
            parts={"system": (), "user": (_CONCLUSIONS,)},
        ),
        PromptBlock(
            name="x.places",
            meaning="prepare extract: where are the sections that no heading tells",
            parts={
                "system": (),
                "user": (
                    _section("wanted", "the sections looked for", needed=True),
                    _section("lines", "numbered lines that may be headings"),
                ),
            },
        ),
        PromptBlock(
            name="x.meta",
            meaning="prepare extract: what does the review say of itself",
            parts={
                "system": (),
                "user": (
                    _section("head", "the beginning of the text", needed=True),
                    _section("objectives", "that section"),
                    _section("criteria", "that section"),
                    _section("conclusions", "that section"),
                ),
            },
        ),
        PromptBlock(
            name="x.refs",
            meaning="prepare extract: the references of included studies",
            parts={"system": (), "user": (_REFERENCES,)},
        ),
        PromptBlock(
            name="x.excluded",
            meaning="prepare extract: the references of excluded studies, with reasons",
            parts={
                "system": (),
                "user": (_section("reasons", "the table of reasons"), _REFERENCES),
            },
        ),
        REASK,
    ),
)


def review_part(
    review: Review, *, title: bool = False, criteria: bool = True
) -> TextPart:
    """Return the question and criteria of a review, a cacheable part of a prompt."""
    lines = [*_question(review, title=title)]
    if criteria:
        lines += (("Inclusion criterion", criterion) for criterion in review.inclusion)
        lines += (("Exclusion criterion", criterion) for criterion in review.exclusion)
    return TextPart(text=_block("review", lines), cache=True)


def plan_part(queries: int, years: tuple[int, int] | None) -> TextPart:
    """Return the number of queries, and the years to search."""
    lines = [("Queries", f"at most {queries}")]
    if years is not None:
        lines.append(("Years", f"{years[0]} to {years[1]}"))
    return TextPart(text=_block("search", lines))


def paper_part(paper: DatabasePaper, *, seed: str) -> TextPart:
    """Return one paper; its marks derive from *seed*, the task's key."""
    return TextPart(text=_block("paper", _paper(paper), seed=seed))


def papers_part(papers: Sequence[DatabasePaper]) -> TextPart:
    """Return several papers, each between separate marks."""
    return TextPart(text="".join(_block("paper", _paper(paper)) for paper in papers))


def conclusions_part(first: str, second: str) -> TextPart:
    """Return two conclusions, called A and B."""
    return TextPart(text=_block("conclusions", [("A", first), ("B", second)]))


def _question(review: Review, *, title: bool) -> Iterator[tuple[str, str]]:
    yield "Question", review.question
    if title:
        yield "Title", review.title
    if review.pico is not None:
        for name in PICO:
            yield name.capitalize(), getattr(review.pico, name)


def _paper(paper: DatabasePaper) -> Iterator[tuple[str, str]]:
    yield "Title", paper.title.strip() or "(no title)"
    if paper.year is not None:
        yield "Year", str(paper.year)
    yield "Abstract", paper.abstract.strip() or "(no abstract)"


def _block(name: str, lines: Iterable[tuple[str, str]], seed: str | None = None) -> str:
    """Format one nonempty field per line; values lose their line breaks."""
    flat = ((label, " ".join(text.split())) for label, text in lines)
    text = "\n".join(f"{label}: {text}" for label, text in flat if text)
    return data_block(name, text, seed=seed)


class PlannedQuery(BaseModel):
    """One query: every group by one of its synonyms, and none of the others."""

    label: str
    all_of: list[list[str]]
    none_of: list[str]


class SearchPlanReply(BaseModel):
    """The queries to be searched."""

    rationale: str
    queries: list[PlannedQuery]


class ScoredFrom1To5(BaseModel):
    """How relevant the paper is, from 1 to 5; the rationale has 400 characters."""

    rationale: str
    score: Annotated[float, Field(ge=1, le=5)]


class ScoredFrom0To1(BaseModel):
    """How relevant the paper is, from 0 to 1; the rationale has 400 characters."""

    rationale: str
    score: Annotated[float, Field(ge=0, le=1)]


class ConclusionReply(BaseModel):
    """What the papers come to, in one to five sentences."""

    conclusion: str
    direction: Direction
    certainty: Certainty


class JudgeReply(BaseModel):
    """How alike two conclusions are, from 0 to 100."""

    rationale: str
    direction: Agreement
    similarity: Annotated[float, Field(ge=0, le=100)]


PLAN = schema_of(SearchPlanReply, "search_plan")
CONCLUDE = schema_of(ConclusionReply, "conclusion")
JUDGE = schema_of(JudgeReply, "likeness")

SCORE: dict[Scale, Schema] = {
    "1-5": schema_of(ScoredFrom1To5, "relevance"),
    "0-1": schema_of(ScoredFrom0To1, "relevance"),
}
