"""Alias files as a person gives them to a scoring: judged, and never repaired.

A set that cannot be meant as it stands is an error that names the rows; only what
`building` makes was made fit. Names of truth and rubric are right as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from jobs.property_extraction.aliases.alias_set import AliasEntry, AliasSet, Key
from jobs.property_extraction.aliases.file import AliasFile, read_aliases
from jobs.property_extraction.aliases.loops import loops
from jobs.property_extraction.aliases.renaming import FOLDS
from jobs.property_extraction.settings import Clash, NameMatch, SameName
from runner.errors import DatasetError

Placed: TypeAlias = tuple[str, AliasEntry]
"""An entry and where it stands in its file."""


def given_aliases(
    path: Path,
    *,
    canonical: Container[str],
    accept_drafts: bool = False,
    name_match: NameMatch = "exact",
    clash: Clash = "best",
    same_name: SameName = "guard",
) -> AliasSet:
    """Read an alias file that is to act on a scoring.

    Args:
        path: of any of the forms of `file`.
        canonical: names of truth and rubric.
        accept_drafts: let entries act that nobody has checked.
        name_match: what of a name an entry goes by.
        clash: `set` lets a name stand for several; otherwise that is an error.
        same_name: `keep` lets names of truth and rubric be renamed.

    Raises:
        DatasetError: the file is off, or cannot be meant as it stands.
    """
    file = read_aliases(path)
    placed = list(zip(file.places, file.alias_set.entries, strict=True))
    _refuse_repeats(file, placed)
    acting = [(place, entry) for place, entry in placed if entry.acts]
    if not accept_drafts:
        _refuse_drafts(file, acting)
    if same_name == "guard":
        _refuse_canonical(file, acting, canonical)
    if clash != "set":
        _refuse_clashes(file, acting, name_match)
    _refuse_loops(file, acting, canonical, name_match)
    return file.alias_set


def reviewed_aliases(path: Path, *, clash: Clash = "best") -> tuple[AliasEntry, ...]:
    """Read what people decided, to build a set of.

    Args:
        path: of any of the forms of `file`.
        clash: `set` lets a name stand for several; otherwise that is an error.

    Raises:
        DatasetError: the file is off, or two of its rows contradict one another.
    """
    file = read_aliases(path)
    placed = list(zip(file.places, file.alias_set.entries, strict=True))
    _refuse_repeats(file, placed)
    if clash != "set":
        _refuse_clashes(file, [each for each in placed if each[1].acts], "exact")
    return file.alias_set.entries


def _refuse_repeats(file: AliasFile, placed: list[Placed]) -> None:
    seen: dict[Key, str] = {}
    for place, entry in placed:
        if entry.key in seen:
            raise DatasetError(
                f"{file.file}: {seen[entry.key]} and {place} are both about "
                f"{entry.shown}; keep one of them."
            )
        seen[entry.key] = place


def _refuse_drafts(file: AliasFile, acting: list[Placed]) -> None:
    drafts = [(place, entry) for place, entry in acting if entry.is_draft]
    if drafts:
        place, entry = drafts[0]
        raise DatasetError(
            f"{file.file}: {len(drafts)} of its aliases are drafts that nobody has "
            f"checked, such as {place}, {entry.shown}; verify them and build a set "
            "(siftlog prepare property-extraction aliases), or add --accept-drafts."
        )


def _refuse_canonical(
    file: AliasFile, acting: list[Placed], canonical: Container[str]
) -> None:
    for place, entry in acting:
        if entry.pred_name in canonical and entry.pred_name != entry.gt_name:
            raise DatasetError(
                f"{file.file}: {place} renames {entry.pred_name!r}, which is itself a "
                "name of truth or rubric; remove it, or add --same-name keep to rename "
                "right names too."
            )


def _refuse_clashes(
    file: AliasFile, acting: list[Placed], name_match: NameMatch
) -> None:
    fold = FOLDS[name_match]
    seen: dict[tuple[str | None, str], Placed] = {}
    for place, entry in acting:
        other, first = seen.setdefault(
            (entry.refno, fold(entry.pred_name)), (place, entry)
        )
        if first.gt_name != entry.gt_name:
            raise DatasetError(
                f"{file.file}: {other} and {place} clash: {first.pred_name!r} stands "
                f"for {first.gt_name!r} and for {entry.gt_name!r}; keep one of them, "
                "or add --clash set to let it stand for both."
            )


def _refuse_loops(
    file: AliasFile,
    acting: list[Placed],
    canonical: Container[str],
    name_match: NameMatch,
) -> None:
    """No name may come back to itself; one that is right as it is comes to rest."""
    fold = FOLDS[name_match]
    loose = [each for each in acting if each[1].pred_name not in canonical]
    for scope in _scopes(loose, fold):
        targets = {
            name: {fold(entry.gt_name) for _, entry in own}
            for name, own in scope.items()
        }
        for loop in loops(targets):
            rows = [
                place
                for name in sorted(loop)
                for place, entry in scope[name]
                if fold(entry.gt_name) in loop
            ]
            raise DatasetError(
                f"{file.file}: {' and '.join(rows)} send names in a circle: "
                f"{', '.join(map(repr, sorted(loop)))} stand for one another; remove "
                "one of the rows."
            )


def _scopes(
    acting: list[Placed], fold: Callable[[str], str]
) -> Iterator[Mapping[str, list[Placed]]]:
    """What acts by key: in papers that nothing is said of, then in each other one."""
    everywhere: defaultdict[str, list[Placed]] = defaultdict(list)
    papers: dict[str, defaultdict[str, list[Placed]]] = {}
    for place, entry in acting:
        own = everywhere
        if entry.refno is not None:
            own = papers.setdefault(entry.refno, defaultdict(list))
        own[fold(entry.pred_name)].append((place, entry))
    yield everywhere
    for refno in sorted(papers):
        yield {**everywhere, **papers[refno]}
