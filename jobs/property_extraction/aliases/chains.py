"""Resolves aliases of aliases: chains are shortened, and cycles dropped.

This happens first for all papers, then for each paper that has entries, which take
precedence there. Afterwards one step renames every name to its final target.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from jobs.kit.grouping import grouped
from jobs.property_extraction.aliases.alias_set import SOURCES, AliasEntry, Key


def loops(targets: Mapping[str, Collection[str]]) -> tuple[frozenset[str], ...]:
    """Return the strongly connected components of two or more names.

    They are ordered by their lowest name.

    Args:
        targets: the targets of each name; itself does not count.
    """
    edges = [
        (name, target)
        for name, name_targets in targets.items()
        for target in name_targets
    ]
    names = sorted({name for edge in edges for name in edge})
    index_of = {name: at for at, name in enumerate(names)}
    rows = [index_of[name] for name, _ in edges]
    columns = [index_of[target] for _, target in edges]
    graph = csr_array(
        (np.ones(len(edges), np.int8), (rows, columns)), shape=(len(names),) * 2
    )
    _, labels = connected_components(graph, connection="strong")
    components = grouped(zip(labels.tolist(), names, strict=True))
    return tuple(
        frozenset(component) for component in components.values() if len(component) > 1
    )


BuildRule: TypeAlias = Literal[
    "self", "canonical", "clash", "transitive", "cycle", "target", "scope"
]
"""The rules, in the order in which they are applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildStep:
    """A change or a notice while a set is built."""

    rule: BuildRule
    entry: AliasEntry  #: before the change
    message: str  #: the change and its reason

    @property
    def line(self) -> str:
        """A line of a report."""
        return f"{self.rule}: {self.entry.label} {self.message}"


Acting: TypeAlias = Mapping[str, Sequence[AliasEntry]]
"""The entries that act in a scope, by the name that they rename."""

Chain: TypeAlias = tuple[AliasEntry, ...]
"""Entries of which each renames the target of the previous one."""


def settle_chains(
    entries: Iterable[AliasEntry],
) -> tuple[tuple[AliasEntry, ...], list[BuildStep]]:
    """Return the entries so that no accepted target is renamed in its scope.

    Undecided or rejected entries are unchanged; a shortened entry replaces any
    other entry of the same pair. No entry may rename a canonical name.
    """
    by_key = {entry.key: entry for entry in entries}
    papers = grouped((e.refno, e.key) for e in by_key.values() if e.acts)
    steps = _settle(by_key, _Scope(refno=None, keys=papers.pop(None, [])))
    everywhere = _by_name(e for e in by_key.values() if e.acts and e.refno is None)
    sources = grouped(
        (entry.gt_name, name)
        for name, name_entries in everywhere.items()
        for entry in name_entries
    )
    for refno in sorted(filter(None, papers)):
        scope = _Scope(
            refno=refno, keys=papers[refno], everywhere=everywhere, sources=sources
        )
        steps += _settle(by_key, scope)
    return tuple(by_key.values()), steps


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """The papers in which entries act: all of them, or one."""

    refno: str | None
    keys: Sequence[Key]  #: of the scope's entries
    everywhere: Acting = field(default_factory=dict)  #: settled, of all papers
    sources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names of these entries, by target."""

    def acting(self, by_key: Mapping[Key, AliasEntry]) -> Acting:
        """Return the scope's entries, and those of all papers next to them in a chain.

        The others meet no entry of the scope: they are settled already.
        """
        scope_entries = _by_name(by_key[key] for key in self.keys if by_key[key].acts)
        near = {
            name for target in scope_entries for name in self.sources.get(target, ())
        }
        near |= {
            entry.gt_name for entries in scope_entries.values() for entry in entries
        }
        others = {n: self.everywhere[n] for n in near if n in self.everywhere}
        acting = {**others, **scope_entries}
        return {name: acting[name] for name in sorted(acting)}


def _by_name(entries: Iterable[AliasEntry]) -> Acting:
    ordered = sorted(entries, key=lambda entry: entry.gt_name)
    return grouped((entry.pred_name, entry) for entry in ordered)


def _settle(by_key: dict[Key, AliasEntry], scope: _Scope) -> list[BuildStep]:
    steps: list[BuildStep] = []
    while troubles := list(_troubles(by_key, scope)):
        for step in troubles:
            reason = f"{step.rule}: {step.message}"
            dropped = replace(step.entry, status="undecided", reason=reason)
            by_key[dropped.key] = dropped
        steps += troubles
    return [*steps, *_cut_short(by_key, scope)]


def _troubles(by_key: Mapping[Key, AliasEntry], scope: _Scope) -> Iterator[BuildStep]:
    """Yield the entries of a scope that cannot act: cycles, else rejected chains.

    Without a paper's entries the others are sound, so each trouble has one of them.
    """
    acting = scope.acting(by_key)
    circles = loops(
        {name: [e.gt_name for e in entries] for name, entries in acting.items()}
    )
    for circle in circles:
        names = ", ".join(map(repr, sorted(circle)))
        for name in sorted(circle):
            for entry in acting[name]:
                if entry.gt_name in circle and entry.refno == scope.refno:
                    message = f"dropped: {names} form a cycle"
                    yield BuildStep(rule="cycle", entry=entry, message=message)
    if circles:
        return
    blamed: dict[Key, BuildStep] = {}
    for chain in _chains(acting):
        if len(chain) > 1 and _is_rejected(by_key, chain, scope.refno):
            message = (
                f"undecided: {_chain_text(chain)}, and the ends were rejected as a pair"
            )
            entry = next(entry for entry in chain if entry.refno == scope.refno)
            blamed[entry.key] = BuildStep(
                rule="transitive", entry=entry, message=message
            )
    yield from blamed.values()


def _is_rejected(
    by_key: Mapping[Key, AliasEntry], chain: Chain, refno: str | None
) -> bool:
    ends = chain[0].pred_name, chain[-1].gt_name
    entry = by_key.get((*ends, refno)) or by_key.get((*ends, None))
    return entry is not None and entry.status == "rejected"


def _chains(acting: Acting) -> Iterator[Chain]:
    for entries in acting.values():
        for entry in entries:
            yield from _chains_of(entry, acting)


def _chains_of(entry: AliasEntry, acting: Acting) -> Iterator[Chain]:
    """Yield the shortest chain from an entry to each of its final targets."""
    reached = {entry.gt_name: entry}
    waiting = deque(reached)
    while waiting:
        name = waiting.popleft()
        onward = acting.get(name, ())
        if not onward:
            yield _back(entry, name, reached)
        for next_entry in onward:
            if next_entry.gt_name not in reached:
                reached[next_entry.gt_name] = next_entry
                waiting.append(next_entry.gt_name)


def _back(first: AliasEntry, name: str, reached: Mapping[str, AliasEntry]) -> Chain:
    chain = [reached[name]]
    while chain[-1] is not first:
        chain.append(reached[chain[-1].pred_name])
    return tuple(reversed(chain))


def _cut_short(by_key: dict[Key, AliasEntry], scope: _Scope) -> Iterator[BuildStep]:
    """Map every name that acts in a scope to its final target."""
    acting = scope.acting(by_key)
    for entries in acting.values():
        chains = [chain for entry in entries for chain in _chains_of(entry, acting)]
        if all(len(chain) == 1 for chain in chains):
            continue
        for entry in entries:
            if entry.refno == scope.refno:
                del by_key[entry.key]
        for chain in sorted(chains, key=len):
            joined = _joined(chain, scope.refno, by_key)
            if not (joined.key in by_key and by_key[joined.key].acts):
                by_key[joined.key] = joined
            if len(chain) > 1:
                message = f"now {joined.label}: {_chain_text(chain)}"
                yield BuildStep(rule="transitive", entry=chain[0], message=message)


def _joined(
    chain: Chain, refno: str | None, by_key: Mapping[Key, AliasEntry]
) -> AliasEntry:
    """Return the entry equivalent to a chain; its source is the weakest one."""
    first, last = chain[0], chain[-1]
    if len(chain) == 1:
        return replace(first, refno=refno)
    pair = AliasEntry(pred_name=first.pred_name, gt_name=last.gt_name, refno=refno)
    return replace(
        by_key.get(pair.key, pair),
        status="accepted",
        source=max((entry.source for entry in chain), key=SOURCES.index),
        reason=_chain_text(chain),
    )


def _chain_text(chain: Chain) -> str:
    names = (chain[0].pred_name, *(entry.gt_name for entry in chain))
    return " => ".join(map(repr, names))
