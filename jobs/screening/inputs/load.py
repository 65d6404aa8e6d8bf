"""Loads a run's inputs: a prepared set, and full texts where they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from jobs.noticed import Noticed
from jobs.screening.asking.told import told
from jobs.screening.dataset import Dataset
from jobs.screening.prepared.reading import read_set
from jobs.screening.settings import Settings
from jobs.screening.validation_set import ValidationSet
from jobs.screening.wording import WORDING
from runner.errors import DatasetError, UsageError
from runner.job import InputFile
from runner.scorecard import Finding

SAMPLE = Path(__file__).parents[1] / "sample"

NAMED = ("tables", "reviews", "references", "papers", "records")
"""The settings that name what a set is drawn from."""

_TITLE_ALONE = {
    "auto": "Reviews are told by their title alone: neither criteria nor sections of "
    "an abstract say what they ask for (build the set with --criteria that name them).",
    "llm": "A model states what reviews ask for from their title alone: their "
    "abstracts have no sections that say it (build the set with --criteria that name "
    "them, and run it with --criteria-source auto).",
}
"""By the source of criteria; with `file` such reviews are skipped, and counted so."""

FULLTEXTS = (".txt", ".md")
"""Ends of the names of full texts; the first one counts where a paper has both."""


def with_sample(settings: Settings) -> Settings:
    """The shipped sample where no data is named; the given object otherwise."""
    if any(getattr(settings, name) for name in (*NAMED, "validation_set", "decisions")):
        return settings
    return settings.model_copy(
        update={
            "tables": SAMPLE / "tables",
            "excluded": settings.excluded or SAMPLE / "excluded.csv",
            "criteria": settings.criteria or SAMPLE / "criteria.jsonl",
            "fulltext": settings.fulltext or SAMPLE / "fulltext",
            "validation_set": SAMPLE / "set",
        }
    )


def require(settings: Settings) -> None:
    """Refuse settings that a run cannot start from.

    Raises:
        UsageError: no set is named, or full texts are to be read and none are named.
    """
    if settings.validation_set is None:
        raise UsageError(
            "A run needs --validation-set, a folder that siftlog prepare screening has "
            "written; name no data at all to run on the shipped sample."
        )
    if "fulltext" in settings.stages and settings.fulltext is None:
        raise UsageError(
            "Stage fulltext needs --fulltext, a folder of <pmid>.txt or .md; or leave "
            "it out of --stages."
        )


def inputs(settings: Settings) -> tuple[InputFile, ...]:
    """The files and folders that `load` reads under these settings."""
    names = ["validation_set", "prompts"]
    if "fulltext" in settings.stages:
        names.append("fulltext")
    found = ((name, getattr(settings, name)) for name in names)
    return tuple(InputFile(setting=name, path=path) for name, path in found if path)


def load(settings: Settings) -> Dataset:
    """Read and validate the inputs that are named; an imported run may name none.

    Raises:
        DatasetError: an input is off; names file and row.
    """
    drawn = None
    if settings.validation_set is not None:
        drawn = _limited(read_set(settings.validation_set), settings.limit)
        if not drawn.records:
            raise DatasetError(
                f"{settings.validation_set} holds no record: build the set with other "
                "--negatives, --keep-without-negatives or a lower --min-included."
            )
    fulltexts: Mapping[str, Path] = {}
    if settings.fulltext is not None and "fulltext" in settings.stages:
        fulltexts = _fulltexts(settings.fulltext)
    return Dataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts),
        validation_set=drawn,
        fulltexts=fulltexts,
        findings=() if drawn is None else (*drawn.findings, *_told(settings, drawn)),
    )


def _told(settings: Settings, drawn: ValidationSet) -> tuple[Finding, ...]:
    """Reviews of which a model learns the title alone."""
    message = _TITLE_ALONE.get(settings.criteria_source)
    if message is None:
        return ()
    noticed = Noticed()
    screened = {record.review for record in drawn.records}
    for review in drawn.reviews:
        if review.id in screened and told(settings, review).source == "title":
            noticed.add(
                "criteria_from_title",
                "warn",
                "reviews.jsonl",
                message,
                example=review.id,
            )
    return noticed.findings()


def _limited(drawn: ValidationSet, limit: int) -> ValidationSet:
    return replace(drawn, records=drawn.records[:limit]) if limit else drawn


def _fulltexts(folder: Path) -> dict[str, Path]:
    """The full texts of a folder by paper."""
    if not folder.is_dir():
        raise DatasetError(
            f"{folder}: no such folder (name one of <pmid>.txt or .md with --fulltext)."
        )
    found: dict[str, Path] = {}
    for suffix in FULLTEXTS:
        for path in sorted(folder.glob(f"*{suffix}")):
            if path.is_file():
                found.setdefault(path.name.removesuffix(suffix), path)
    return found
