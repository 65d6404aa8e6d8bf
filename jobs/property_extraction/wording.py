"""The prompts of property-extraction: what each shows, and where their wording is.

Never offered to a prompt: values of the truth.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from runner.prompts import Placeholder, PromptBlock, PromptCatalog

_PAPER: Final = Placeholder(
    name="paper", meaning="the paper, or a piece of it, between marks", needed=True
)
_QUOTE_CHARS: Final = Placeholder(
    name="quote_chars", meaning="characters that a quote has at most"
)
_NAMES: Final = Placeholder(
    name="names",
    meaning="the listed properties, a line of JSON each, between marks",
    needed=True,
)
_ROWS: Final = Placeholder(
    name="rows",
    meaning="the values whose quotes are not in the paper, a line of JSON each, "
    "between marks",
    needed=True,
)
_PREDICTED: Final = Placeholder(
    name="predicted",
    meaning="the field of research, a predicted name, and values found under it, "
    "between marks",
    needed=True,
)
_TARGET: Final = Placeholder(
    name="target", meaning="the property it may mean, between marks", needed=True
)
_TARGETS: Final = Placeholder(
    name="targets",
    meaning="the properties it may mean, each with its letter, between marks",
    needed=True,
)

WORDING: Final = PromptCatalog(
    job="property-extraction",
    file=Path(__file__).with_name("prompts.toml"),
    blocks=(
        PromptBlock(
            name="extract.free",
            meaning="which values does a paper report, properties named by its own "
            "words (names=free)",
            parts={"system": (_QUOTE_CHARS,), "user": (_PAPER,)},
        ),
        PromptBlock(
            name="extract.listed",
            meaning="the same, properties named by a list (names=listed)",
            parts={"system": (_QUOTE_CHARS,), "user": (_NAMES, _PAPER)},
        ),
        PromptBlock(
            name="extract.wanted",
            meaning="which values does a paper report of the properties that the "
            "rubric or the truth names (properties=rubric, truth)",
            parts={
                "system": (
                    _QUOTE_CHARS,
                    Placeholder(
                        name="naming",
                        meaning="naming_free or naming_listed, by the setting names",
                    ),
                ),
                "user": (_NAMES, _PAPER),
                "naming_free": (),
                "naming_listed": (),
            },
        ),
        PromptBlock(
            name="requote",
            meaning="where does the paper say values whose quotes are not in it",
            parts={"system": (_QUOTE_CHARS,), "user": (_PAPER, _ROWS)},
        ),
        PromptBlock(
            name="verify.pair",
            meaning="do two names mean one property (verify=pair)",
            parts={"system": (), "user": (_PREDICTED, _TARGET)},
        ),
        PromptBlock(
            name="verify.choice",
            meaning="which of several properties does a name mean (verify=choice)",
            parts={"system": (), "user": (_PREDICTED, _TARGETS)},
        ),
    ),
)
