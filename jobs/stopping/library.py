"""Opens the library of a run for screening to a stop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.kit.labels.source import LabelSource
from jobs.screening.inputs import LIBRARY_REVIEW, ScreeningDataset
from jobs.screening.labelling import labelling
from jobs.screening.prompts import describe_review
from jobs.stopping.certificate import Library, file_sha256
from runner.errors import DatasetError, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLibrary:
    """The records of a library with their texts."""

    dataset: ScreeningDataset
    keys: tuple[str, ...]  #: in file order
    hashes: Library

    @property
    def texts(self) -> dict[str, str]:
        """Title and abstract by key."""
        items = (labelling.item(self.dataset, key) for key in self.keys)
        return {item.key: f"{item.title} {item.text}" for item in items}

    @property
    def question(self) -> str:
        """The question with its criteria."""
        review = self.dataset.review(LIBRARY_REVIEW)
        lines = describe_review(self.dataset.settings, review, None).lines
        return " ".join(f"{text}" for _, text in lines)


def open_library(
    dataset: ScreeningDataset, paths: Sequence[Path] | None = None
) -> OpenLibrary:
    """Hash the files and texts of a library.

    Args:
        dataset: inputs of the run.
        paths: paths of the library's files; None: those of the settings.

    Raises:
        UsageError: the run is not of a library, or of a sample of one.
        DatasetError: no record has an abstract.
    """
    settings = dataset.settings
    if not settings.library:
        raise UsageError(
            "Only a library is screened to a stop: name a run that was started with "
            "--library, or the library itself."
        )
    if settings.limit:
        raise UsageError(
            "The run screened a sample (--limit), which proves nothing about the "
            "library: run it without --limit."
        )
    keys = tuple(labelling.items(dataset))
    items = [labelling.item(dataset, key) for key in keys]
    without = sum(not item.text.strip() for item in items)
    if without == len(items):
        first = settings.library[0].name
        raise DatasetError(
            f"{first}: none of its {len(items):,} records has an abstract, so nobody "
            "can screen them (export the library with abstracts)."
        )
    return OpenLibrary(
        dataset=dataset,
        keys=keys,
        hashes=Library(
            files=file_hashes(paths or settings.library),
            texts={item.key: item.sha256 for item in items},
            without_abstract=without,
        ),
    )


def file_hashes(paths: Iterable[Path]) -> dict[str, str]:
    """Return the SHA-256 of files, by name; repeated names get a number."""
    hashes: dict[str, str] = {}
    for path in paths:
        name, number = path.name, 2
        while name in hashes:
            name, number = f"{path.name} ({number})", number + 1
        hashes[name] = file_sha256(path)
    return hashes


def library_of(source: LabelSource) -> OpenLibrary:
    """Return the library of a run whose data is loaded."""
    dataset = source.dataset
    if not isinstance(dataset, ScreeningDataset):
        raise UsageError(
            f"Run {source.run} is of the job {source.job.name}: only runs of screening "
            "are screened to a stop."
        )
    return open_library(dataset)
