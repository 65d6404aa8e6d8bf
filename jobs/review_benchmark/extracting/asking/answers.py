"""What replies say: the values that the stages of an extraction parse to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.review_benchmark.extracting.cutting.sections import Section
from jobs.review_benchmark.review import Pico


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Stage `x.places`: between which lines sections stand."""

    lines: Mapping[Section, tuple[int, int | None]]
    """First line, and the line after the last; None: up to the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """Stage `x.meta`: what the review says of itself; empty: not said."""

    id: str = ""
    title: str = ""
    question: str = ""
    pico: Pico | None = None
    inclusion: tuple[str, ...] = ()
    exclusion: tuple[str, ...] = ()
    conclusion: str = ""
    date_range: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One reference of a chunk, as a model read it; nothing of it is checked yet."""

    ref_id: str = ""
    authors: tuple[str, ...] = ()
    title: str = ""
    year: str = ""  #: as written
    journal: str = ""
    doi: str = ""
    pmid: str = ""
    quote: str = ""
    reason: str = ""  #: why it was excluded

    @property
    def name(self) -> str:
        """What it is called in a sentence: the first that is given."""
        return self.ref_id or self.title or self.quote or "(nothing)"


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """Stages `x.refs` and `x.excluded`: the references of a chunk."""

    read: tuple[Reference, ...] = ()
    unusable: int = 0  #: entries of the list that are no objects
