"""The causes of a difference, in the order in which they are changed one at a time.

Pure. What a cause changes is told by two bases; between them lie the bases of the
scorings that are to be made. The order is fixed, for where causes act on one another
the share of each depends on it.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from runner.score.repeat import ScoringBasis
from store.events import Input


class Kind(enum.StrEnum):
    """What a cause is, in the order in which causes stand."""

    ITEMS = "items"  #: answers that came, went or were asked again
    INPUT = "input"  #: a file or folder, such as the gold
    SETTING = "setting"
    PARSER = "parser"  #: other code read something else from the replies
    SCORER = "scorer"  #: other code judged what was read otherwise
    CODE = "code"  #: one of these two, or both, and no verdict tells them apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One thing that differs between two scorings."""

    kind: Kind
    name: str = ""  #: of the setting, for those that have one
    before: str = ""  #: what it was, as it is shown
    after: str = ""

    @property
    def label(self) -> str:
        """It in two words."""
        return f"{self.kind} {self.name}".rstrip()


PARSER = Cause(kind=Kind.PARSER)
SCORER = Cause(kind=Kind.SCORER)


def code(before: str, after: str) -> Cause:
    """Other code on an equal basis: whose the two scorings are."""
    return Cause(kind=Kind.CODE, before=before, after=after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A basis to be scored, and what it changes in that of the step before."""

    cause: Cause
    basis: ScoringBasis


def steps(
    before: ScoringBasis, after: ScoringBasis, order: Sequence[str]
) -> tuple[Step, ...]:
    """The way from one basis to another, one cause at a time.

    Args:
        before: where it begins.
        after: where it ends.
        order: names of all settings, in the order in which they are changed.
    """
    made = []
    at = before
    for cause, at in _changes(before, after, order):
        made.append(Step(cause=cause, basis=at))
    if made:
        # what is equal in content and lies elsewhere is no cause, and comes along
        made[-1] = replace(made[-1], basis=after)
    return tuple(made)


def _changes(
    before: ScoringBasis, after: ScoringBasis, order: Sequence[str]
) -> Iterator[tuple[Cause, ScoringBasis]]:
    at = before
    if before.seq != after.seq:
        at = replace(at, seq=after.seq)
        yield (
            Cause(
                kind=Kind.ITEMS,
                before=f"event {before.seq}",
                after=f"event {after.seq}",
            ),
            at,
        )
    names = [*order, *sorted({*before.settings, *after.settings} - {*order})]
    files = {given.setting for given in (*before.inputs, *after.inputs)}
    for name in (name for name in names if name in files):
        old, new = _of(before, name), _of(after, name)
        if [given.sha256 for given in old] == [given.sha256 for given in new]:
            continue
        others = tuple(given for given in at.inputs if given.setting != name)
        at = replace(_set(at, after, name), inputs=(*others, *new))
        yield Cause(kind=Kind.INPUT, name=name, before=_told(old), after=_told(new)), at
    for name in (name for name in names if name not in files):
        if before.settings.get(name) == after.settings.get(name):
            continue
        at = _set(at, after, name)
        yield (
            Cause(
                kind=Kind.SETTING,
                name=name,
                before=_word(before.settings.get(name)),
                after=_word(after.settings.get(name)),
            ),
            at,
        )


def _of(basis: ScoringBasis, name: str) -> tuple[Input, ...]:
    return tuple(given for given in basis.inputs if given.setting == name)


def _set(basis: ScoringBasis, after: ScoringBasis, name: str) -> ScoringBasis:
    return replace(basis, settings={**basis.settings, name: after.settings.get(name)})


_DIGITS = 8
"""Of a file's hash, as it is shown."""


def _told(inputs: Sequence[Input]) -> str:
    return ", ".join(given.sha256[:_DIGITS] for given in inputs) or "none"


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
