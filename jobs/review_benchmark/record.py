"""A row of an agent's result: a paper that it has found and judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One row, as its file has it; matching normalises on its own."""

    document: str  #: `document_id` as text; unique among the papers of a library
    pmid: str = ""  #: empty: not given
    doi: str = ""
    title: str = ""
    year: int | None = None
    score: float | None = None  #: relevance, on the agent's own scale
    rationale: str = ""
    other_titles: tuple[str, ...] = ()  #: by which it is found as well
    included: bool = False  #: it stands in the list of included papers
    further: Mapping[str, Any] = field(default_factory=dict)
    """Fields that siftlog does not know."""
