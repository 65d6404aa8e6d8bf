"""What a reply says once it has been read; what could not be read is a `ParseFailure`.

Every value names the rule that read it, so that a verdict can be explained.
"""

from __future__ import annotations

from dataclasses import dataclass

from runner.messages import ParseFailure, Reply

LETTERS = ("a", "b", "c", "d")


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantList:
    """The variants that an extraction reply lists."""

    entries: tuple[str, ...]  #: as spelt, repeats included; may be empty
    dropped: int  #: entries of the list that name no variant
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """The option that a multiple-choice reply picks."""

    letter: str  #: "a" to "d"
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAnswer:
    """The p-value and the significance that a study-parameter reply states.

    The rules of profile `clinpgx-qa` put "parse_error" into a field that is missing.
    """

    p_value: str
    significance: str
    rule: str


def unread(reply: Reply, reason: str) -> ParseFailure:
    """The failure to read *reply*: cut off or empty before anything else."""
    if reply.is_truncated:
        return ParseFailure(reason="truncated")
    return ParseFailure(reason=reason if reply.text.strip() else "empty_reply")
