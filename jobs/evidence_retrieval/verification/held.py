"""A number that a stored summary holds, with what may recompute it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from jobs.evidence_retrieval.verification.choices import Choices, Tries
from jobs.evidence_retrieval.verification.figures import Figure, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One key of a stored summary; without `compute` nothing recomputes it."""

    path: str
    stored: object
    compute: Callable[[Choices], float | None] | None = None
    tries: Tries = field(default_factory=dict)
    meaning: str = ""
    why: str = ""  #: it cannot be recomputed from the rows; empty: the key is unknown
    is_count: bool = False  #: of queries or folds, beside the figures themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A stored summary under one layout."""

    held: tuple[Held, ...]
    failures: tuple[str, ...] = ()
    """One sentence for each block that should be there, or contradicts itself."""


def over(path: str, stored: object, figure: Figure | None, scope: Scope) -> Held:
    """What stands at *path*, as *figure* of a scope; None: an unknown key."""
    if figure is None:
        return Held(path=path, stored=stored)
    return Held(
        path=path,
        stored=stored,
        compute=partial(scope.value, figure),
        tries=figure.tries,
        meaning=figure.meaning,
    )


def counted(path: str, stored: object, n: int, meaning: str) -> Held:
    """A count of queries or folds."""
    return Held(
        path=path,
        stored=stored,
        compute=lambda _: n,
        meaning=meaning,
        is_count=True,
    )
