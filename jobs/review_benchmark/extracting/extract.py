"""An extraction's inputs: the review's text, and what it is checked against."""

from __future__ import annotations

from dataclasses import dataclass, field

from jobs.inputs.documents import Document
from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.extracting.cutting.sections import NEEDED, Section, Sections
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.settings import Settings
from jobs.review_benchmark.wording import WORDING
from runner.prompts import PromptBook
from runner.scorecard import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract:
    """All inputs of a run that reads a review."""

    settings: Settings
    document: Document
    sections: Sections  #: those that a heading tells
    prompts: PromptBook = field(default_factory=WORDING.shipped)
    database: Database | None = None  #: whose titles the PMIDs are checked by
    against: tuple[Review, ...] = ()  #: truth that the extraction is scored by
    findings: tuple[Finding, ...] = ()

    @property
    def lacking(self) -> tuple[Section, ...]:
        """Sections that a model is asked to find."""
        return tuple(name for name in NEEDED if name not in self.sections)
