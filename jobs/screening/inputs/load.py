"""Loads a run's inputs: a prepared set, and full texts where they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from jobs.inputs.rows import InputFindings
from jobs.inputs.sampling import draw_sample, report_sample
from jobs.screening.asking.told import told
from jobs.screening.dataset import Dataset
from jobs.screening.prepared.reading import read_set
from jobs.screening.settings import Settings
from jobs.screening.validation_set import ValidationSet
from jobs.screening.wording import WORDING
from jobs.text import plural
from runner.errors import DatasetError, UsageError
from runner.job import InputFile
from runner.scorecard import Finding

SAMPLE = Path(str(files("jobs.screening"))) / "sample"

NAMED = ("tables", "reviews", "references", "papers", "records")
"""The settings that name what a set is drawn from."""

_TITLE_ALONE = (
    "Nothing but the title says what a review asks for: there are neither criteria "
    "nor sections of an abstract that state them."
)

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
            # one of its reviews has no criteria, to show what is said of it
            "title_criteria": True,
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
    noticed = InputFindings()
    if settings.validation_set is not None:
        drawn = _limited(read_set(settings.validation_set), settings.limit, noticed)
        if not drawn.records:
            raise DatasetError(
                f"{settings.validation_set} holds no record: build the set with other "
                "--negatives, --keep-without-negatives or a lower --min-included."
            )
    fulltexts: Mapping[str, Path] = {}
    if settings.fulltext is not None and "fulltext" in settings.stages:
        fulltexts = _fulltexts(settings.fulltext)
    dataset = Dataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts),
        validation_set=drawn,
        fulltexts=fulltexts,
    )
    given = () if drawn is None else drawn.findings
    return replace(dataset, findings=(*noticed.findings(), *given, *_noticed(dataset)))


def admit(dataset: Dataset) -> None:
    """Refuse reviews of which only the title is known, unless they are asked for.

    Raises:
        DatasetError: there are some.
    """
    found = _with_title_alone(dataset)
    if found and not dataset.settings.title_criteria:
        raise DatasetError(
            f"reviews.jsonl: {plural(len(found), 'review')} of "
            f"{len(dataset.screened)} can be screened by the title alone, such as "
            f"{found[0]}: there are neither criteria nor sections of an abstract that "
            "state them (build the set with --criteria FILE, or accept titles "
            "with --title-criteria)."
        )


def _with_title_alone(dataset: Dataset) -> list[str]:
    """The reviews of which a model learns the title alone.

    Where criteria must come from a file, reviews without them are skipped instead.
    """
    settings = dataset.settings
    if settings.criteria_source == "file":
        return []
    sources = ((own, told(settings, dataset.review(own))) for own in dataset.screened)
    return [own for own, found in sources if found.source == "title"]


def _noticed(dataset: Dataset) -> tuple[Finding, ...]:
    noticed = InputFindings()
    for review in _with_title_alone(dataset):
        noticed.add(
            "criteria_from_title",
            "warn",
            "reviews.jsonl",
            _TITLE_ALONE,
            example=review,
        )
    return noticed.findings()


def _limited(drawn: ValidationSet, limit: int, noticed: InputFindings) -> ValidationSet:
    """A set of some records, whose kinds and reviews keep their share."""
    kept = draw_sample(
        drawn.records,
        limit,
        key=lambda record: record.key,
        strata=(lambda record: record.kind, lambda record: record.review),
    )
    report_sample(noticed, kept, drawn.records, "record", "kind and review")
    return replace(drawn, records=kept)


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
