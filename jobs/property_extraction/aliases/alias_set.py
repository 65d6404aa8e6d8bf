"""A versioned set of names that stand for others, and the renaming it does."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from jobs.kit.grouping import grouped
from jobs.property_extraction.name_pairs import TwoNames
from jobs.property_extraction.settings import NameMatch
from jobs.property_extraction.values.numbers import folded

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
class AliasEntry(TwoNames):
    """Whether one name stands for another."""

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
        return *self.names, self.refno

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
        return "\t".join((*self.names, *scope))

    @property
    def label(self) -> str:
        """It as a sentence quotes it."""
        scope = "" if self.refno is None else f" in {self.refno}"
        return f"{self.pred_name!r} => {self.gt_name!r}{scope}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasOrigin:
    """What an alias set was made from, as far as that is known."""

    run: str | None = None
    scoring: int | None = None
    verification_runs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasSet:
    """Entries, each pair of names at most once a scope."""

    entries: tuple[AliasEntry, ...] = ()
    parent: str | None = None  #: id of the set that it grew from
    created_from: AliasOrigin = AliasOrigin()

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
        by_source = {source: accepted[source] for source in SOURCES}
        others = {status: rest[status] for status in STATUSES}
        return {name: n for name, n in (by_source | others).items() if n}

    @property
    def status_mix(self) -> str:
        """The counts in words, such as `19 human, 4 llm, 2 undecided`."""
        return ", ".join(f"{n} {name}" for name, n in self.counts.items()) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedName:
    """What a name stands for in a paper, and which entries say so."""

    raw_name: str
    entries: tuple[AliasEntry, ...] = ()  #: by gt_name; several only for a target set
    targets: tuple[str, ...] = field(init=False)
    """The names that it may stand for, ascending; itself where nothing does."""

    def __post_init__(self) -> None:
        names = dict.fromkeys(entry.gt_name for entry in self.entries)
        object.__setattr__(self, "targets", tuple(names) or (self.raw_name,))

    @property
    def name(self) -> str:
        """The name that a row without a partner is booked on."""
        return self.targets[0]

    def entry(self, gt_name: str | None = None) -> AliasEntry | None:
        """The entry that a row is booked on; None where no alias acted.

        Args:
            gt_name: the truth's name, where the row has a partner.
        """
        meant = [entry for entry in self.entries if entry.gt_name == gt_name]
        return next(iter((*meant, *self.entries)), None)


FOLDS: Mapping[NameMatch, Callable[[str], str]] = {"exact": str, "fold": folded}
"""What of a name an alias goes by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renaming:
    """The accepted entries of an alias set, by what they are looked up with."""

    entries: Mapping[tuple[str | None, str], tuple[AliasEntry, ...]] = field(
        default_factory=dict
    )  #: by paper (None: all) and key
    key: Callable[[str], str] = str
    canonical: Container[str] = frozenset()
    _cache: dict[tuple[str | None, str], RenamedName] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(
        cls,
        alias_set: AliasSet,
        name_match: NameMatch = "exact",
        canonical: Container[str] = frozenset(),
    ) -> Renaming:
        """What a set renames, in one step; entries that are not accepted do nothing.

        Args:
            alias_set: without clashes, or with each of them meant as a target set.
            name_match: `fold` lets an entry act on names that differ from its own in
                form, case or blanks alone.
            canonical: names of truth and rubric: other spellings of an entry's name
                that are one of these keep it.
        """
        key = FOLDS[name_match]
        ordered = sorted(alias_set.accepted, key=lambda entry: entry.gt_name)
        by_key = grouped(((e.refno, key(e.pred_name)), e) for e in ordered)
        entries = {at: tuple(group) for at, group in by_key.items()}
        return cls(entries=entries, key=key, canonical=canonical)

    def renamed(self, refno: str, name: str) -> RenamedName:
        """What *name* stands for in a paper.

        What is said of the paper goes before what is said of all, and then what is
        spelled as the name is before what differs from it.
        """
        key = self.key(name)
        about = (refno if (refno, key) in self.entries else None, name)
        if about not in self._cache:
            self._cache[about] = self._renamed(refno, name, key)
        return self._cache[about]

    def _renamed(self, refno: str, name: str, key: str) -> RenamedName:
        for scope in (refno, None):
            matches = self.entries.get((scope, key), ())
            spelled = tuple(entry for entry in matches if entry.pred_name == name)
            if entries := spelled if spelled or name in self.canonical else matches:
                return RenamedName(raw_name=name, entries=entries)
        return RenamedName(raw_name=name)
