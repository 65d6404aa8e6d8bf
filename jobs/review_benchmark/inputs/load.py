"""Loads a run's inputs: published reviews, and the papers that may be found."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from importlib.resources import files
from pathlib import Path

from jobs.inputs.rows import InputFindings
from jobs.inputs.sampling import draw_sample, report_sample
from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.inputs.labels import read_labels
from jobs.review_benchmark.inputs.truth import read_truth
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.settings import DATA, Settings
from jobs.review_benchmark.wording import WORDING
from jobs.text import plural
from runner.errors import DatasetError, UsageError
from runner.job import InputFile

SAMPLE = Path(str(files("jobs.review_benchmark"))) / "sample"


def with_sample(settings: Settings) -> Settings:
    """The shipped sample where no input is named; the given object otherwise."""
    if any(getattr(settings, name) for name in DATA):
        return settings
    return settings.model_copy(
        update={"truth": SAMPLE / "truth", "database": SAMPLE / "papers.db"}
    )


def require(settings: Settings) -> None:
    """Refuse settings that a run cannot start from.

    Raises:
        UsageError: the reviews or the papers are not named.
    """
    if settings.truth is None:
        raise UsageError(
            "Name the folder of published reviews, --truth DIR, or no input at all to "
            "run on the shipped sample."
        )
    if settings.database is None:
        raise UsageError(
            "A run needs --database, a file that siftlog prepare review-benchmark "
            "import has made; name no input at all to run on the shipped sample."
        )


def inputs(settings: Settings) -> tuple[InputFile, ...]:
    """The files and folders that `load` reads under these settings."""
    found = []
    if settings.truth is not None:
        found.append(InputFile(setting="truth", path=settings.truth))
    if settings.database is not None:
        found.append(papers(settings.database))
    for name in ("verdict_labels", "prompts"):
        path = getattr(settings, name)
        if path is not None:
            found.append(InputFile(setting=name, path=path))
    return tuple(found)


def papers(path: Path) -> InputFile:
    """A database as an input, which counts by its papers.

    To import a file once more changes its bytes and none of them.
    """
    with closing(Database(path)) as database:
        return InputFile(setting="database", path=path, sha256=database.content_hash)


def load(settings: Settings) -> Dataset:
    """Read and validate the inputs that are named; an imported run has no database.

    Raises:
        DatasetError: an input is off, there is no paper, or a review that is named is
            not there.
        UsageError: no reviews are named.
    """
    if settings.truth is None:
        raise UsageError("Name the folder of published reviews: --truth DIR.")
    noticed = InputFindings()
    every = read_truth(settings.truth, noticed)
    reviews = chosen(every, settings)
    report_sample(noticed, reviews, named(every, settings), "review")
    labels = (
        read_labels(settings.verdict_labels, {own.id for own in every}, noticed)
        if settings.verdict_labels is not None
        else ()
    )
    kept = {own.id for own in reviews}
    return Dataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts),
        reviews=reviews,
        labels=tuple(label for label in labels if label.review in kept),
        database=None if settings.database is None else _stocked(settings.database),
        findings=noticed.findings(),
    )


def admit(dataset: Dataset) -> None:
    """Refuse reviews of which only the title is known, unless they are asked for.

    Raises:
        DatasetError: there are some.
    """
    found = [review.id for review in dataset.reviews if review.is_title_alone]
    if found and not dataset.settings.title_criteria:
        raise DatasetError(
            f"{dataset.settings.truth}: {plural(len(found), 'review')} of "
            f"{len(dataset.reviews)} can be searched by the title alone, such as "
            f"{found[0]}: research_question repeats the title, and there is neither "
            "pico nor a criterion (fill them in, choose others with --review, or "
            "accept titles with --title-criteria)."
        )


def _stocked(path: Path) -> Database:
    """A database that holds papers at all."""
    database = Database(path)
    if not len(database):
        with closing(database):
            raise DatasetError(
                f"{path}: it holds no paper (siftlog prepare review-benchmark import "
                "--database FILE adds those of files)."
            )
    return database


def chosen(reviews: Sequence[Review], settings: Settings) -> tuple[Review, ...]:
    """The reviews of a run: those that are named, or a sample of them.

    Raises:
        DatasetError: one that is named is not there.
    """
    kept = named(reviews, settings)
    return draw_sample(kept, settings.limit, key=lambda review: review.id)


def named(reviews: Sequence[Review], settings: Settings) -> tuple[Review, ...]:
    """The reviews that `--review` names; all where it names none.

    Raises:
        DatasetError: one that is named is not there.
    """
    if not settings.review:
        return tuple(reviews)
    by_id = {review.id: review for review in reviews}
    for name in settings.review:
        if name not in by_id:
            raise DatasetError(
                f"{settings.truth}: there is no review {name} (there are "
                f"{', '.join(by_id)})."
            )
    return tuple(review for review in reviews if review.id in settings.review)
