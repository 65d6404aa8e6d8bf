"""Aliases of aliases: chains are cut short, and circles dropped.

First for all papers, then for each paper that has entries of its own, which go before
the others there. Afterwards one step renames every name for good.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from jobs.property_extraction.aliases.alias_set import SOURCES, AliasEntry, Key
from jobs.property_extraction.aliases.loops import loops
from jobs.property_extraction.aliases.step import Step

Acting: TypeAlias = Mapping[str, Sequence[AliasEntry]]
"""The entries that act in a scope, by the name that they rename."""

Chain: TypeAlias = tuple[AliasEntry, ...]
"""Entries of which each renames the target of the one before."""


def settled(entries: Iterable[AliasEntry]) -> tuple[tuple[AliasEntry, ...], list[Step]]:
    """The entries, so that no accepted one has a target that is renamed in its scope.

    Entries that are undecided or rejected stay as they are; one that was cut short
    takes the place of what is known of the same pair. Names that are right as they are
    must not be renamed by any.
    """
    known = {entry.key: entry for entry in entries}
    steps: list[Step] = []
    scopes = {entry.refno for entry in known.values() if entry.acts}
    for scope in (None, *sorted(filter(None, scopes))):
        while troubles := list(_troubles(known, scope)):
            for step in troubles:
                reason = f"{step.rule}: {step.told}"
                known[step.entry.key] = replace(
                    step.entry, status="undecided", reason=reason
                )
            steps += troubles
        steps += _cut_short(known, scope)
    return tuple(known.values()), steps


def _acting(known: Mapping[Key, AliasEntry], scope: str | None) -> Acting:
    everywhere: defaultdict[str, list[AliasEntry]] = defaultdict(list)
    own: defaultdict[str, list[AliasEntry]] = defaultdict(list)
    for entry in known.values():
        if entry.acts and entry.refno is None:
            everywhere[entry.pred_name].append(entry)
        elif entry.acts and entry.refno == scope:
            own[entry.pred_name].append(entry)
    found = {**everywhere, **own}
    return {name: sorted(found[name], key=_target) for name in sorted(found)}


def _target(entry: AliasEntry) -> str:
    return entry.gt_name


def _troubles(known: Mapping[Key, AliasEntry], scope: str | None) -> Iterator[Step]:
    """The entries of a scope that cannot act: circles, or else what was rejected.

    Without those of a paper the others are sound, so each trouble has one of them.
    """
    acting = _acting(known, scope)
    circles = loops({name: [e.gt_name for e in own] for name, own in acting.items()})
    for circle in circles:
        names = ", ".join(map(repr, sorted(circle)))
        for name in sorted(circle):
            for entry in acting[name]:
                if entry.gt_name in circle and entry.refno == scope:
                    told = f"dropped: {names} stand for one another"
                    yield Step(rule="cycle", entry=entry, told=told)
    if circles:
        return
    blamed: dict[Key, Step] = {}
    for chain in _chains(acting):
        if len(chain) > 1 and _is_rejected(known, chain, scope):
            told = f"undecided: {_shown(chain)}, and the ends were rejected as a pair"
            entry = next(entry for entry in chain if entry.refno == scope)
            blamed[entry.key] = Step(rule="transitive", entry=entry, told=told)
    yield from blamed.values()


def _is_rejected(
    known: Mapping[Key, AliasEntry], chain: Chain, scope: str | None
) -> bool:
    ends = chain[0].pred_name, chain[-1].gt_name
    found = known.get((*ends, scope)) or known.get((*ends, None))
    return found is not None and found.status == "rejected"


def _chains(acting: Acting) -> Iterator[Chain]:
    for own in acting.values():
        for entry in own:
            yield from _chains_of(entry, acting)


def _chains_of(entry: AliasEntry, acting: Acting) -> Iterator[Chain]:
    """From an entry to each name at which it comes to rest, the shortest way."""
    reached = {entry.gt_name: entry}
    waiting = deque(reached)
    while waiting:
        name = waiting.popleft()
        onward = acting.get(name, ())
        if not onward:
            yield _back(entry, name, reached)
        for each in onward:
            if each.gt_name not in reached:
                reached[each.gt_name] = each
                waiting.append(each.gt_name)


def _back(first: AliasEntry, name: str, reached: Mapping[str, AliasEntry]) -> Chain:
    chain = [reached[name]]
    while chain[-1] is not first:
        chain.append(reached[chain[-1].pred_name])
    return tuple(reversed(chain))


def _cut_short(known: dict[Key, AliasEntry], scope: str | None) -> Iterator[Step]:
    """Let every name that acts in a scope stand for where it comes to rest."""
    acting = _acting(known, scope)
    for own in acting.values():
        chains = [chain for entry in own for chain in _chains_of(entry, acting)]
        if all(len(chain) == 1 for chain in chains):
            continue
        for entry in own:
            if entry.refno == scope:
                del known[entry.key]
        for chain in sorted(chains, key=len):
            made = _joined(chain, scope, known)
            if not (made.key in known and known[made.key].acts):
                known[made.key] = made
            if len(chain) > 1:
                told = f"now {made.shown}: {_shown(chain)}"
                yield Step(rule="transitive", entry=chain[0], told=told)


def _joined(
    chain: Chain, scope: str | None, known: Mapping[Key, AliasEntry]
) -> AliasEntry:
    """The entry that does what a chain does, and is as sure as its weakest part."""
    first, last = chain[0], chain[-1]
    if len(chain) == 1:
        return replace(first, refno=scope)
    pair = AliasEntry(pred_name=first.pred_name, gt_name=last.gt_name, refno=scope)
    return replace(
        known.get(pair.key, pair),
        status="accepted",
        source=max((entry.source for entry in chain), key=SOURCES.index),
        reason=_shown(chain),
    )


def _shown(chain: Chain) -> str:
    names = (chain[0].pred_name, *(entry.gt_name for entry in chain))
    return " => ".join(map(repr, names))
