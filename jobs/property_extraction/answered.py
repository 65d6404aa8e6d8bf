"""What the replies of each stage were read as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One value that a reply states; the texts are the model's own, trimmed.

    Rows that are equal in all of these are one row.
    """

    name: str
    value: str
    unit: str = ""
    material: str = ""
    condition: str = ""
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What a reply to stage `extract` states, in its order, repeats included."""

    rows: tuple[Found, ...]
    dropped: int = 0  #: entries without a property or a value
    cut: int = 0  #: rows beyond the most that one reply may have
    is_partial: bool = False  #: the reply was cut short; these are its whole objects


@dataclass(frozen=True, slots=True, kw_only=True)
class Requoted:
    """What a reply to stage `requote` says of the rows that it was asked about."""

    quotes: Mapping[int, str]  #: by the number of the row
    withdrawn: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether two names mean one property."""

    is_match: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which of its targets a name means."""

    target: int | None  #: place among those that were offered, from 0; None: none
    reason: str = ""
