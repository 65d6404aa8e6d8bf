"""The prompts that screening has: what each shows, and where their wording is.

Never offered to a prompt: labels, kinds, related reviews, counts, and ids unless asked
for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from runner.prompts import REASK, Placeholder, PromptBlock, PromptCatalog

_REVIEW: Final = Placeholder(
    name="review",
    meaning="what the review asks for, between marks",
    needed=True,
)
_PAPER: Final = Placeholder(
    name="paper",
    meaning="the paper as far as the stage shows it, between marks",
    needed=True,
)
_REASON_CODES: Final = Placeholder(
    name="reason_codes", meaning="the codes of reasons, with commas between them"
)


def _screening(stage: str, shown: str) -> PromptBlock:
    return PromptBlock(
        name=stage,
        meaning=f"does a paper meet the review's criteria, by {shown}",
        parts={"system": (_REASON_CODES,), "user": (_REVIEW, _PAPER)},
    )


WORDING: Final = PromptCatalog(
    job="screening",
    file=Path(__file__).with_name("prompts.toml"),
    blocks=(
        PromptBlock(
            name="criteria",
            meaning="what does a review ask for, by its own abstract "
            "(criteria_source=llm)",
            parts={"system": (), "user": (_REVIEW,)},
        ),
        _screening("title", "its title alone"),
        _screening("abstract", "its title and abstract"),
        _screening("fulltext", "its full text"),
        REASK,
    ),
)
