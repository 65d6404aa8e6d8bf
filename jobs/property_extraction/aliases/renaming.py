"""Aliases at work: the name that a row is matched under."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field

from jobs.property_extraction.aliases.alias_set import AliasEntry, AliasSet
from jobs.property_extraction.settings import NameMatch
from jobs.property_extraction.values.folding import folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
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
    _known: dict[tuple[str | None, str], Renamed] = field(
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
        found: defaultdict[tuple[str | None, str], list[AliasEntry]] = defaultdict(list)
        for entry in sorted(alias_set.accepted, key=lambda entry: entry.gt_name):
            found[entry.refno, key(entry.pred_name)].append(entry)
        entries = {at: tuple(own) for at, own in found.items()}
        return cls(entries=entries, key=key, canonical=canonical)

    def renamed(self, refno: str, name: str) -> Renamed:
        """What *name* stands for in a paper.

        What is said of the paper goes before what is said of all, and then what is
        spelled as the name is before what differs from it.
        """
        key = self.key(name)
        about = (refno if (refno, key) in self.entries else None, name)
        if about not in self._known:
            self._known[about] = self._renamed(refno, name, key)
        return self._known[about]

    def _renamed(self, refno: str, name: str, key: str) -> Renamed:
        for scope in (refno, None):
            found = self.entries.get((scope, key), ())
            spelled = tuple(entry for entry in found if entry.pred_name == name)
            if own := spelled if spelled or name in self.canonical else found:
                return Renamed(raw_name=name, entries=own)
        return Renamed(raw_name=name)
