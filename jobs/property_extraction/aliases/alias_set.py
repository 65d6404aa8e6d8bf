"""A versioned set of names that stand for another, and what was decided about each."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["accepted", "rejected", "undecided"]
Source: TypeAlias = Literal["exact", "draft", "llm", "human", "import"]

STATUSES: tuple[Status, ...] = ("accepted", "rejected", "undecided")

SOURCES: tuple[Source, ...] = ("human", "llm", "import", "exact", "draft")
"""Who said so; the first one that says anything of a pair is believed."""

Key: TypeAlias = tuple[str, str, str | None]
"""A pair of names, and the one paper that is meant, or None."""

ID_LENGTH = 12
"""Hexadecimal digits of an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasEntry:
    """Whether one name stands for another."""

    pred_name: str  #: as models write it
    gt_name: str  #: as the truth has it
    refno: str | None = None  #: the one paper that it holds in; None: all
    status: Status = "undecided"
    source: Source = "draft"
    models: tuple[str, ...] = ()  #: that were asked, sorted
    votes: int = 0  #: verdicts that say yes
    reason: str = ""
    count: int = 0  #: papers in which it was a candidate
    avg_sim: float | None = None  #: similarity of the names, 0 to 1; None: not known

    @property
    def key(self) -> Key:
        """What a set has one entry of."""
        return self.pred_name, self.gt_name, self.refno

    @property
    def acts(self) -> bool:
        """Whether rows are renamed by it."""
        return self.status == "accepted"

    @property
    def is_draft(self) -> bool:
        """Whether it acts though nobody checked it."""
        return self.acts and self.source == "draft"

    @property
    def line(self) -> str:
        """What the id of a set is made of."""
        scope = () if self.refno is None else (self.refno,)
        return "\t".join((self.pred_name, self.gt_name, *scope))

    @property
    def shown(self) -> str:
        """It as a sentence quotes it."""
        scope = "" if self.refno is None else f" in {self.refno}"
        return f"{self.pred_name!r} => {self.gt_name!r}{scope}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What an alias set was made from, as far as that is known."""

    run: str | None = None
    scoring: int | None = None
    verification_runs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasSet:
    """Entries, each pair of names at most once a scope."""

    entries: tuple[AliasEntry, ...] = ()
    parent: str | None = None  #: id of the set that it grew from
    created_from: Origin = Origin()

    @property
    def accepted(self) -> tuple[AliasEntry, ...]:
        """The entries that act."""
        return tuple(entry for entry in self.entries if entry.acts)

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits; equal for sets that rename alike.

        The beginning of the SHA-256 of the accepted lines, sorted and joined by
        newlines; what was rejected or decided by whom does not count.
        """
        lines = "\n".join(sorted(entry.line for entry in self.accepted))
        packed = lines.encode("utf-8", "surrogatepass")
        return hashlib.sha256(packed).hexdigest()[:ID_LENGTH]

    @property
    def counts(self) -> Mapping[str, int]:
        """Accepted entries by source, then how many are rejected and undecided."""
        accepted = Counter(entry.source for entry in self.accepted)
        rest = Counter(entry.status for entry in self.entries if not entry.acts)
        named = {source: accepted[source] for source in SOURCES}
        others = {status: rest[status] for status in STATUSES}
        return {name: n for name, n in (named | others).items() if n}

    @property
    def status_mix(self) -> str:
        """The counts in words, such as `19 human, 4 llm, 2 undecided`."""
        return ", ".join(f"{n} {name}" for name, n in self.counts.items()) or "none"
