"""A versioned set of aliases, and the renaming that it defines."""

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
"""Sources of a decision; the first one with a decision about a pair counts."""

Key: TypeAlias = tuple[str, str, str | None]
"""A pair of names, and the paper to which it is limited, or None."""

ID_LENGTH = 12
"""Hexadecimal digits of an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasEntry(TwoNames):
    """A decision whether one name is an alias of another."""

    refno: str | None = None  #: the only paper in which it applies; None: all
    status: Status = "undecided"
    source: Source = "draft"
    models: tuple[str, ...] = ()  #: the models that verified it, sorted
    votes: int = 0  #: number of positive verdicts
    reason: str = ""
    count: int = 0  #: papers in which it was a candidate
    avg_sim: float | None = None  #: similarity of the names, 0 to 1; None: unknown

    @property
    def key(self) -> Key:
        """Key of the entry; unique within a set."""
        return *self.names, self.refno

    @property
    def acts(self) -> bool:
        """Whether rows are renamed by it."""
        return self.status == "accepted"

    @property
    def is_draft(self) -> bool:
        """Whether it acts without having been verified."""
        return self.acts and self.source == "draft"

    @property
    def line(self) -> str:
        """The entry's line in the hashed text of a set's id."""
        scope = () if self.refno is None else (self.refno,)
        return "\t".join((*self.names, *scope))

    @property
    def label(self) -> str:
        """The entry as a sentence quotes it."""
        scope = "" if self.refno is None else f" in {self.refno}"
        return f"{self.pred_name!r} => {self.gt_name!r}{scope}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasOrigin:
    """The source of an alias set, as far as it is known."""

    run: str | None = None
    scoring: int | None = None
    verification_runs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasSet:
    """Entries; each pair of names occurs at most once per scope."""

    entries: tuple[AliasEntry, ...] = ()
    parent: str | None = None  #: id of the set that it was built from
    created_from: AliasOrigin = AliasOrigin()

    @property
    def accepted(self) -> tuple[AliasEntry, ...]:
        """The entries that act."""
        return tuple(entry for entry in self.entries if entry.acts)

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits; equal for sets with the same renaming.

        They are the beginning of the SHA-256 of the accepted lines, sorted and joined
        by newlines; rejected entries and the sources of decisions do not matter.
        """
        lines = "\n".join(sorted(entry.line for entry in self.accepted))
        packed = lines.encode("utf-8", "surrogatepass")
        return hashlib.sha256(packed).hexdigest()[:ID_LENGTH]

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers of accepted entries by source, then of rejected and undecided."""
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
    """The targets of a name in a paper, and the entries that define them."""

    raw_name: str
    entries: tuple[AliasEntry, ...] = ()  #: by gt_name; several only for a target set
    targets: tuple[str, ...] = field(init=False)
    """The possible targets, ascending; the name itself if it has none."""

    def __post_init__(self) -> None:
        names = dict.fromkeys(entry.gt_name for entry in self.entries)
        object.__setattr__(self, "targets", tuple(names) or (self.raw_name,))

    @property
    def name(self) -> str:
        """Name under which a row without a partner is counted."""
        return self.targets[0]

    def entry(self, gt_name: str | None = None) -> AliasEntry | None:
        """Return the entry to which a row is assigned; None if no alias acted.

        Args:
            gt_name: the truth's name, if the row has a partner.
        """
        meant = [entry for entry in self.entries if entry.gt_name == gt_name]
        return next(iter((*meant, *self.entries)), None)


FOLDS: Mapping[NameMatch, Callable[[str], str]] = {"exact": str, "fold": folded}
"""Normalisation under which an alias matches a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Renaming:
    """The accepted entries of an alias set, by lookup key."""

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
        """Return the one-step renaming of a set; only accepted entries act.

        Args:
            alias_set: without clashes, or with each one meant as a target set.
            name_match: `fold` lets an entry act on names that differ from its name only
                in form, case or blanks.
            canonical: names of truth and rubric; other spellings of an entry's name
                that are among them are not renamed.
        """
        key = FOLDS[name_match]
        ordered = sorted(alias_set.accepted, key=lambda entry: entry.gt_name)
        by_key = grouped(((e.refno, key(e.pred_name)), e) for e in ordered)
        entries = {at: tuple(group) for at, group in by_key.items()}
        return cls(entries=entries, key=key, canonical=canonical)

    def renamed(self, refno: str, name: str) -> RenamedName:
        """Return the targets of *name* in a paper.

        Entries of the paper take precedence over those of all papers, and then exact
        spellings over others.
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
