"""Alias sets built from what is known of name pairs: seven rules, in a fixed order.

Who decided about a pair stands in `deciding`. The rules then see to it that the set
renames in one step: no name stands for itself or comes back to itself, no right name is
renamed, none has two targets, and none has a target that is renamed in turn. Every
change is told, and neither row order nor hashing has a part in any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from jobs.property_extraction.aliases.alias_set import (
    AliasEntry,
    AliasSet,
    Origin,
    Status,
)
from jobs.property_extraction.aliases.deciding import Evidence, decided
from jobs.property_extraction.aliases.paths import settled
from jobs.property_extraction.aliases.step import Rule, Step
from jobs.property_extraction.settings import Clash
from runner.errors import DatasetError

Entries: TypeAlias = tuple[AliasEntry, ...]
Done: TypeAlias = tuple[Entries, list[Step]]
"""What a rule leaves, and what it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A new alias set, and everything that the rules did to make it."""

    alias_set: AliasSet
    steps: tuple[Step, ...]

    @property
    def report(self) -> tuple[str, ...]:
        """A line for each step."""
        return tuple(step.line for step in self.steps)


def build(
    evidence: Evidence,
    *,
    canonical: frozenset[str],
    clash: Clash = "best",
    strict: bool = False,
    created_from: Origin | None = None,
) -> Built:
    """Decide about every pair, and make one consistent set of what was accepted.

    Args:
        evidence: all that is known of name pairs.
        canonical: names of truth and rubric.
        clash: of several accepted targets of a name, keep the best, none, or all of
            them, as a target set.
        strict: refuse targets that are neither in truth nor rubric.
        created_from: the run and scoring of the candidates.

    Raises:
        DatasetError: a target is unknown, and *strict*.
    """
    entries: Entries = tuple(decided(evidence).values())
    entries, selves = _without_selves(entries)
    entries, guarded = _guarded(entries, canonical)
    entries, clashes = _clashes(entries, evidence, clash)
    entries, paths = settled(entries)
    unknown = list(_unknown_targets(entries, canonical))
    if strict and unknown:
        raise DatasetError(
            f"{unknown[0].entry.shown} {unknown[0].told} (correct the target, or leave "
            "out --strict)."
        )
    steps = (*selves, *guarded, *clashes, *paths, *unknown, *_overrides(entries))
    made = AliasSet(
        entries=tuple(sorted(entries, key=_order)),
        parent=None if evidence.parent is None else evidence.parent.id,
        created_from=created_from or Origin(),
    )
    return Built(alias_set=made, steps=steps)


def _order(entry: AliasEntry) -> tuple[str, str, str]:
    return entry.pred_name, entry.gt_name, entry.refno or ""


def _without_selves(entries: Entries) -> Done:
    """A name that stands for itself has no effect."""
    selves = [entry for entry in entries if entry.pred_name == entry.gt_name]
    kept = tuple(entry for entry in entries if entry.pred_name != entry.gt_name)
    told = "removed: it has no effect"
    return kept, [Step(rule="self", entry=entry, told=told) for entry in selves]


def _guarded(entries: Entries, canonical: frozenset[str]) -> Done:
    """A right name is never renamed.

    Where a right name stands for itself among the candidates, dropping that alone would
    let the second-best target take its place.
    """
    told = "rejected: the name is itself one of truth or rubric"
    guarded = [e for e in entries if e.acts and e.pred_name in canonical]
    return _changed(entries, guarded, "rejected", "canonical", told)


def _clashes(entries: Entries, evidence: Evidence, clash: Clash) -> Done:
    """A name has one target in a scope, unless it is to stand for a set of them."""
    rivals: defaultdict[tuple[str, str | None], list[AliasEntry]] = defaultdict(list)
    for entry in entries:
        if entry.acts:
            rivals[entry.pred_name, entry.refno].append(entry)
    preferred = _preference(evidence)
    losers: list[AliasEntry] = []
    for own in rivals.values():
        if clash == "skip" and len(own) > 1:
            losers += own
        elif clash == "best":
            losers += sorted(own, key=preferred)[1:]
    told = "undecided: the name has other accepted targets"
    return _changed(entries, losers, "undecided", "clash", told)


def _preference(evidence: Evidence) -> Callable[[AliasEntry], tuple[object, ...]]:
    """Orders rivals: what a person chose last, or what most speaks for, first."""
    chosen = {entry.key for entry in evidence.review if entry.acts}
    hits = {(c.pred_name, c.gt_name): c.value_hits for c in evidence.candidates}
    return lambda entry: (
        entry.key not in chosen,
        entry.source != "human",
        -entry.votes,
        -hits.get((entry.pred_name, entry.gt_name), 0),
        -entry.count,
        -(entry.avg_sim or 0.0),
        entry.gt_name,
    )


def _changed(
    entries: Entries,
    hit: Iterable[AliasEntry],
    status: Status,
    rule: Rule,
    told: str,
) -> Done:
    """Entries of which some have lost their say."""
    steps = [Step(rule=rule, entry=entry, told=told) for entry in hit]
    keys = {step.entry.key for step in steps}
    changed = tuple(
        replace(entry, status=status, reason=rule) if entry.key in keys else entry
        for entry in entries
    )
    return changed, steps


def _unknown_targets(entries: Entries, canonical: frozenset[str]) -> Iterator[Step]:
    told = "kept, though neither truth nor rubric has its target"
    for entry in entries:
        if entry.acts and entry.gt_name not in canonical:
            yield Step(rule="target", entry=entry, told=told)


def _overrides(entries: Entries) -> Iterator[Step]:
    everywhere = {e.pred_name: e for e in entries if e.acts and e.refno is None}
    for entry in entries:
        if entry.acts and entry.refno is not None and entry.pred_name in everywhere:
            other = everywhere[entry.pred_name].gt_name
            told = f"goes before {other!r} there"
            yield Step(rule="scope", entry=entry, told=told)
