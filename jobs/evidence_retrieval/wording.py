"""The prompts that evidence-retrieval has: what each shows, and where their wording is.

Never offered to a prompt: gold, folds, uids of sentences, or other posts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from runner.prompts import Placeholder, PromptBlock, PromptCatalog

_SENTENCES: Final = Placeholder(
    name="sentences",
    meaning="the numbered sentences of the post, between marks",
    needed=True,
)
_CRITERION: Final = Placeholder(
    name="criterion", meaning="the criterion's text, between marks", needed=True
)
_CRITERIA: Final = Placeholder(
    name="criteria",
    meaning="id and text of every criterion, a line of JSON each, between marks",
    needed=True,
)
_CANDIDATES: Final = Placeholder(
    name="candidates",
    meaning="the numbered sentences to be ordered, between marks",
    needed=True,
)

WORDING: Final = PromptCatalog(
    job="evidence-retrieval",
    file=Path(__file__).with_name("prompts.toml"),
    blocks=(
        PromptBlock(
            name="assess.query",
            meaning="is there evidence for one criterion, and which (batch=query)",
            parts={"system": (), "user": (_SENTENCES, _CRITERION)},
        ),
        PromptBlock(
            name="assess.post",
            meaning="the same for all criteria of a post at once (batch=post)",
            parts={"system": (), "user": (_SENTENCES, _CRITERIA)},
        ),
        PromptBlock(
            name="rerank",
            meaning="in which order are the candidates of a window",
            parts={"system": (), "user": (_CANDIDATES, _CRITERION)},
        ),
    ),
)
