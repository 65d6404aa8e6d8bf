"""Loads what an extraction reads: the review's file, and what it is checked by."""

from __future__ import annotations

from jobs.inputs.documents import read_document
from jobs.inputs.rows import InputFindings
from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.extracting.cutting.sections import sections
from jobs.review_benchmark.extracting.extract import Extract
from jobs.review_benchmark.inputs.load import papers
from jobs.review_benchmark.inputs.truth import read_truth
from jobs.review_benchmark.settings import Settings
from jobs.review_benchmark.wording import WORDING
from runner.errors import UsageError
from runner.job import InputFile


def inputs(settings: Settings) -> tuple[InputFile, ...]:
    """The files and folders that `load` reads under these settings."""
    files = (
        (name, getattr(settings, name)) for name in ("extract", "against", "prompts")
    )
    found = [InputFile(setting=name, path=path) for name, path in files if path]
    if settings.database is not None:
        found.append(papers(settings.database))
    return tuple(found)


def load(settings: Settings) -> Extract:
    """Read the review and cut it.

    Raises:
        DatasetError: an input is off.
        UsageError: no file is named.
    """
    if settings.extract is None:
        raise UsageError("Name the review: extract FILE, a .pdf, .txt or .xml.")
    noticed = InputFindings()
    document = read_document(settings.extract)
    return Extract(
        settings=settings,
        prompts=WORDING.book(settings.prompts),
        document=document,
        sections=sections(document),
        database=None if settings.database is None else Database(settings.database),
        against=()
        if settings.against is None
        else read_truth(settings.against, noticed),
        findings=noticed.findings(),
    )
