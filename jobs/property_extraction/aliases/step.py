"""What a rule of building did to an entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from jobs.property_extraction.aliases.alias_set import AliasEntry

Rule: TypeAlias = Literal[
    "self", "canonical", "clash", "transitive", "cycle", "target", "scope"
]
"""The rules, in the order in which they are applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change, or one thing to know of, while a set is built."""

    rule: Rule
    entry: AliasEntry  #: as it was before
    told: str  #: what became of it, and why

    @property
    def line(self) -> str:
        """It as a line of a report."""
        return f"{self.rule}: {self.entry.shown} {self.told}"
