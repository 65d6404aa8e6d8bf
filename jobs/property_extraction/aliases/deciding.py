"""What is decided about each pair of names, whoever says so: where building begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from jobs.property_extraction.aliases.alias_set import (
    SOURCES,
    AliasEntry,
    AliasSet,
    Key,
    Status,
)
from jobs.property_extraction.aliases.verdicts import Names, Ruling
from jobs.property_extraction.inputs.candidates import Pair

_STATUS: Mapping[bool | None, Status] = {
    True: "accepted",
    False: "rejected",
    None: "undecided",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that is known of name pairs."""

    candidates: tuple[Pair, ...] = ()
    rulings: Mapping[Names, Ruling] = field(default_factory=dict)  #: of models
    review: tuple[AliasEntry, ...] = ()  #: of people; undecided ones decide nothing
    parent: AliasSet | None = None  #: whose decisions stand until there are newer ones
    drafts: Mapping[str, str] = field(default_factory=dict)
    """Targets that are taken where nobody decided; empty: none."""


def decided(evidence: Evidence) -> dict[Key, AliasEntry]:
    """An entry for every pair that anything is known of, by key, ascending.

    A person is believed before models, then what was imported, then names that are
    equal but for case, then the draft; and of the same kind what is newer.
    """
    facts = {(each.pred_name, each.gt_name): each for each in evidence.candidates}
    review = {entry.key: entry for entry in evidence.review}
    parent = evidence.parent or AliasSet()
    earlier = {entry.key: entry for entry in parent.entries}
    pairs = {*facts, *evidence.rulings}
    keys: set[Key] = {*review, *earlier, *((*pair, None) for pair in pairs)}
    return {
        key: _entry(key, evidence, review.get(key), earlier.get(key), facts)
        for key in sorted(keys, key=lambda key: (key[0], key[1], key[2] or ""))
    }


def _entry(
    key: Key,
    evidence: Evidence,
    reviewed: AliasEntry | None,
    earlier: AliasEntry | None,
    facts: Mapping[Names, Pair],
) -> AliasEntry:
    name, target, refno = key
    ruling = evidence.rulings.get((name, target)) if refno is None else None
    said = [
        *_reviewed(reviewed),
        *_ruled(key, ruling),
        *_automatic(key, evidence.drafts),
        *_inherited(earlier),
    ]
    # min takes the first of equals, and what is newer stands first
    best = min(said, key=lambda entry: SOURCES.index(entry.source), default=None)
    entry = best or AliasEntry(pred_name=name, gt_name=target, refno=refno)
    if ruling is not None:
        entry = replace(entry, votes=ruling.votes, models=ruling.models)
    if (fact := facts.get((name, target))) is not None:
        entry = replace(
            entry,
            count=fact.count or entry.count,
            avg_sim=entry.avg_sim if fact.avg_sim is None else fact.avg_sim,
        )
    return entry


def _reviewed(entry: AliasEntry | None) -> Iterator[AliasEntry]:
    if entry is not None and entry.status != "undecided":
        yield replace(entry, source="human")


def _ruled(key: Key, ruling: Ruling | None) -> Iterator[AliasEntry]:
    if ruling is not None:
        yield AliasEntry(
            pred_name=key[0],
            gt_name=key[1],
            status=_STATUS[ruling.is_match],
            source="llm",
            reason=ruling.reason,
        )


def _automatic(key: Key, drafts: Mapping[str, str]) -> Iterator[AliasEntry]:
    name, target, refno = key
    if refno is None and name.strip().casefold() == target.strip().casefold():
        yield AliasEntry(
            pred_name=name, gt_name=target, status="accepted", source="exact"
        )
    if refno is None and drafts.get(name) == target:
        yield AliasEntry(
            pred_name=name, gt_name=target, status="accepted", source="draft"
        )


def _inherited(entry: AliasEntry | None) -> Iterator[AliasEntry]:
    """A decision of the parent; a draft is none, it is drawn up anew."""
    if entry is not None and entry.status != "undecided" and not entry.is_draft:
        yield entry
