"""The prompts of review-benchmark: what each shows, and where their wording is.

Never offered to a prompt: the list of included studies, the review's id, DOI, PMID and
address, and what its authors concluded, except to the judge of conclusions. An
extraction is shown the review's own text, and neither the truth that it is scored by
nor the paper database.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from runner.prompts import REASK, Placeholder, PromptBlock, PromptCatalog

_REVIEW: Final = Placeholder(
    name="review",
    meaning="the review's question and criteria, between marks",
    needed=True,
)
_SEARCH: Final = Placeholder(
    name="search",
    meaning="how many queries are wanted, and of which years, between marks",
    needed=True,
)
_LIMITS: Final = (
    Placeholder(name="most_groups", meaning="groups that a query has at most"),
    Placeholder(name="most_synonyms", meaning="synonyms that a group has at most"),
    Placeholder(name="most_words", meaning="words that a synonym has at most"),
)
_PAPER: Final = Placeholder(
    name="paper", meaning="title, year and abstract, between marks", needed=True
)
_RATIONALE: Final = Placeholder(
    name="rationale_chars", meaning="characters that a rationale has at most"
)
_PAPERS: Final = Placeholder(
    name="papers",
    meaning="the included papers, the best first, each between marks",
    needed=True,
)
_CONCLUSIONS: Final = Placeholder(
    name="conclusions", meaning="two conclusions, A and B, between marks", needed=True
)


def _scored(name: str, scale: str) -> PromptBlock:
    return PromptBlock(
        name=name,
        meaning=f"how relevant is a paper (scale={scale})",
        parts={"system": (_RATIONALE,), "user": (_REVIEW, _PAPER)},
    )


def _section(name: str, meaning: str, *, needed: bool = False) -> Placeholder:
    return Placeholder(name=name, meaning=f"{meaning}, between marks", needed=needed)


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
