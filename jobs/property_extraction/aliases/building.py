"""Builds alias sets from evidence about name pairs: seven rules, in a fixed order.

First every pair is decided, from all sources. The rules then ensure that the set
renames in one step: no name is its own target, directly or by a cycle, no canonical
name is renamed, none has two targets, and no target is renamed in turn. Every change is
reported, and none depends on the order of rows or on hashing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from jobs.kit.grouping import grouped
from jobs.property_extraction.aliases.alias_set import (
    SOURCES,
    AliasEntry,
    AliasOrigin,
    AliasSet,
    Key,
    Status,
)
from jobs.property_extraction.aliases.chains import BuildRule, BuildStep, settle_chains
from jobs.property_extraction.name_pairs import NamePair, NameRuling, Names
from jobs.property_extraction.settings import Clash
from runner.errors import DatasetError

_STATUS: Mapping[bool | None, Status] = {
    True: "accepted",
    False: "rejected",
    None: "undecided",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasEvidence:
    """Everything known about name pairs."""

    candidates: tuple[NamePair, ...] = ()
    rulings: Mapping[Names, NameRuling] = field(default_factory=dict)  #: of models
    review: tuple[AliasEntry, ...] = ()  #: of people; undecided ones have no effect
    parent: AliasSet | None = None  #: its decisions apply until there are newer ones
    drafts: Mapping[str, str] = field(default_factory=dict)
    """Targets to accept for names without a decision; empty: none."""


def decided_entries(evidence: AliasEvidence) -> dict[Key, AliasEntry]:
    """Return an entry for every pair with any evidence, by key, ascending.

    A person takes precedence over models, then imported decisions, then names that are
    equal except for case, then the draft; within a source, newer ones do.
    """
    facts = {candidate.names: candidate for candidate in evidence.candidates}
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
    evidence: AliasEvidence,
    reviewed: AliasEntry | None,
    earlier: AliasEntry | None,
    facts: Mapping[Names, NamePair],
) -> AliasEntry:
    name, target, refno = key
    undecided = AliasEntry(pred_name=name, gt_name=target, refno=refno)
    ruling = evidence.rulings.get((name, target)) if refno is None else None
    decisions = []  # within a source, newer ones come first
    if reviewed is not None and reviewed.status != "undecided":
        decisions.append(replace(reviewed, source="human"))
    if ruling is not None:
        status = _STATUS[ruling.is_match]
        decisions.append(
            replace(undecided, status=status, source="llm", reason=ruling.reason)
        )
    if refno is None and name.strip().casefold() == target.strip().casefold():
        decisions.append(replace(undecided, status="accepted", source="exact"))
    if refno is None and evidence.drafts.get(name) == target:
        decisions.append(replace(undecided, status="accepted", source="draft"))
    # a draft of the parent is no decision; it is drafted anew
    if earlier and earlier.status != "undecided" and not earlier.is_draft:
        decisions.append(earlier)
    # min takes the first of equals
    best = min(decisions, key=lambda entry: SOURCES.index(entry.source), default=None)
    entry = best or undecided
    if ruling is not None:
        entry = replace(entry, votes=ruling.votes, models=ruling.models)
    if (fact := facts.get((name, target))) is not None:
        entry = replace(
            entry,
            count=fact.count or entry.count,
            avg_sim=entry.avg_sim if fact.avg_sim is None else fact.avg_sim,
        )
    return entry


Entries: TypeAlias = tuple[AliasEntry, ...]
RuleResult: TypeAlias = tuple[Entries, list[BuildStep]]
"""Remaining entries of a rule, and its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltAliasSet:
    """A new alias set, and the steps of the rules that built it."""

    alias_set: AliasSet
    steps: tuple[BuildStep, ...]

    @property
    def report(self) -> tuple[str, ...]:
        """A line for each step."""
        return tuple(step.line for step in self.steps)


def build_alias_set(
    evidence: AliasEvidence,
    *,
    canonical: frozenset[str],
    clash: Clash = "best",
    strict: bool = False,
    created_from: AliasOrigin | None = None,
) -> BuiltAliasSet:
    """Decide every pair, and build one consistent set of the accepted ones.

    Args:
        evidence: everything known about name pairs.
        canonical: names of truth and rubric.
        clash: of several accepted targets of a name, keep the best, none, or all of
            them, as a target set.
        strict: refuse targets that are neither in truth nor rubric.
        created_from: the run and scoring of the candidates.

    Raises:
        DatasetError: a target is unknown, and *strict* is set.
    """
    entries: Entries = tuple(decided_entries(evidence).values())
    entries, selves = _without_selves(entries)
    entries, guarded = _guarded(entries, canonical)
    entries, clashes = _clashes(entries, evidence, clash)
    entries, paths = settle_chains(entries)
    unknown = list(_unknown_targets(entries, canonical))
    if strict and unknown:
        raise DatasetError(
            f"{unknown[0].entry.label} {unknown[0].message} (correct the target, "
            "or leave out --strict)."
        )
    steps = (*selves, *guarded, *clashes, *paths, *unknown, *_overrides(entries))
    alias_set = AliasSet(
        entries=tuple(sorted(entries, key=_order)),
        parent=None if evidence.parent is None else evidence.parent.id,
        created_from=created_from or AliasOrigin(),
    )
    return BuiltAliasSet(alias_set=alias_set, steps=steps)


def _order(entry: AliasEntry) -> tuple[str, str, str]:
    return *entry.names, entry.refno or ""


def _without_selves(entries: Entries) -> RuleResult:
    """Remove entries whose target is the name itself; they have no effect."""
    selves = [entry for entry in entries if entry.pred_name == entry.gt_name]
    remaining = tuple(entry for entry in entries if entry.pred_name != entry.gt_name)
    message = "removed: it has no effect"
    return remaining, [
        BuildStep(rule="self", entry=entry, message=message) for entry in selves
    ]


def _guarded(entries: Entries, canonical: frozenset[str]) -> RuleResult:
    """Reject entries that rename a canonical name.

    If a canonical name is a candidate for itself, dropping only that entry would let
    the second-best target replace it.
    """
    message = "rejected: the name is itself one of truth or rubric"
    guarded = [e for e in entries if e.acts and e.pred_name in canonical]
    return _changed(entries, guarded, "rejected", "canonical", message)


def _clashes(entries: Entries, evidence: AliasEvidence, clash: Clash) -> RuleResult:
    """Leave one target per name and scope, unless target sets are allowed."""
    rivals = grouped(((e.pred_name, e.refno), e) for e in entries if e.acts)
    preferred = _preference(evidence)
    losers: list[AliasEntry] = []
    for group in rivals.values():
        if clash == "skip" and len(group) > 1:
            losers += group
        elif clash == "best":
            losers += sorted(group, key=preferred)[1:]
    message = "undecided: the name has other accepted targets"
    return _changed(entries, losers, "undecided", "clash", message)


def _preference(evidence: AliasEvidence) -> Callable[[AliasEntry], tuple[object, ...]]:
    """Return a sort key of rivals: last choices of a person, then the most evidence."""
    chosen = {entry.key for entry in evidence.review if entry.acts}
    hits = {c.names: c.value_hits for c in evidence.candidates}
    return lambda entry: (
        entry.key not in chosen,
        entry.source != "human",
        -entry.votes,
        -hits.get(entry.names, 0),
        -entry.count,
        -(entry.avg_sim or 0.0),
        entry.gt_name,
    )


def _changed(
    entries: Entries,
    hit: Iterable[AliasEntry],
    status: Status,
    rule: BuildRule,
    message: str,
) -> RuleResult:
    """Return entries with a new status for some of them."""
    steps = [BuildStep(rule=rule, entry=entry, message=message) for entry in hit]
    keys = {step.entry.key for step in steps}
    changed = tuple(
        replace(entry, status=status, reason=rule) if entry.key in keys else entry
        for entry in entries
    )
    return changed, steps


def _unknown_targets(
    entries: Entries, canonical: frozenset[str]
) -> Iterator[BuildStep]:
    message = "kept, though neither truth nor rubric has its target"
    for entry in entries:
        if entry.acts and entry.gt_name not in canonical:
            yield BuildStep(rule="target", entry=entry, message=message)


def _overrides(entries: Entries) -> Iterator[BuildStep]:
    everywhere = {e.pred_name: e for e in entries if e.acts and e.refno is None}
    for entry in entries:
        if entry.acts and entry.refno is not None and entry.pred_name in everywhere:
            other = everywhere[entry.pred_name].gt_name
            message = f"takes precedence over {other!r} in that paper"
            yield BuildStep(rule="scope", entry=entry, message=message)
