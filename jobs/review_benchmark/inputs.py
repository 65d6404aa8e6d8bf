"""Loads a run's inputs: published reviews, and the papers of a database.

It also defines what two comparable results must share: the truth, the matching
settings, and the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import msgspec

from jobs.kit.inputs.cells import BLANK, Label, Text
from jobs.kit.inputs.files import read_table
from jobs.kit.inputs.rows import InputFindings, RowModel
from jobs.kit.inputs.sampling import draw_sample, report_sample
from jobs.kit.text_format import plural
from jobs.review_benchmark.data import Review
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.prompts import WORDING
from jobs.review_benchmark.settings import DATA, ReviewBenchmarkSettings, VerdictKind
from jobs.review_benchmark.truth_files import (
    read_questions,
    read_truth,
    typed_question,
    with_answers,
)
from runner.errors import DatasetError, UsageError
from runner.job import InputFile
from runner.prompts import PromptBook
from runner.scorecard import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class ConclusionLabel:
    """A person's verdict on an agent's conclusion about a review."""

    review: str
    model: str
    similar: bool  #: to the conclusion of the review's authors


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDataset:
    """All inputs of a run; an import has no database."""

    settings: ReviewBenchmarkSettings
    reviews: tuple[Review, ...]  #: ascending by id as text
    prompts: PromptBook = field(default_factory=WORDING.shipped)
    database: PaperDatabase | None = None
    labels: tuple[ConclusionLabel, ...] = ()  #: of the loaded reviews
    findings: tuple[Finding, ...] = ()
    _by_id: Mapping[str, Review] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_id = {review.id: review for review in self.reviews}
        object.__setattr__(self, "_by_id", by_id)

    def review(self, review: str) -> Review:
        """Return a review by its id; raise `KeyError` if there is none."""
        return self._by_id[review]

    def find(self, review: str) -> Review | None:
        """Return a review by its id, if there is one."""
        return self._by_id.get(review)

    @property
    def papers(self) -> PaperDatabase:
        """Database that is searched; raises `DatasetError` if there is none."""
        if self.database is None:
            raise DatasetError("There is no paper database (name one with --database).")
        return self.database

    @property
    def has_truth(self) -> bool:
        """Whether published reviews list the studies to find."""
        return self.settings.truth is not None or not self.settings.asks_question

    @property
    def concludes(self) -> bool:
        """Whether agents write conclusions."""
        return self.settings.asks_question or self.verdict != "off"

    @property
    def source(self) -> str:
        """Setting that names the reviews, for messages."""
        return str(self.settings.truth or self.settings.questions or "question")

    @property
    def concluded(self) -> tuple[Review, ...]:
        """Reviews with a known authors' conclusion."""
        return tuple(review for review in self.reviews if review.conclusion)

    @property
    def verdict(self) -> VerdictKind:
        """Kind of comparison of conclusions, by the settings or the available data."""
        if not self.has_truth:
            return "off"
        if self.settings.verdict is None:
            return "direction" if self.concluded else "off"
        return self.settings.verdict


class _LabelRow(RowModel):
    cochrane_id: Text
    model: Text
    similar: Label | None


def read_labels(
    path: Path, reviews: AbstractSet[str], findings: InputFindings
) -> tuple[ConclusionLabel, ...]:
    """Return the labels in a CSV file; a row without one is ignored.

    `verdicts.csv` of a scoring is such a file once its column `similar` is filled.

    Args:
        path: the file.
        reviews: ids of the available reviews.
        findings: collects a finding for columns that are not read.

    Raises:
        DatasetError: the file or a row is invalid, or a conclusion has two labels.
    """
    labels: dict[tuple[str, str], ConclusionLabel] = {}
    for row in read_table(path, _LabelRow, findings=findings):
        if row.similar is None:
            continue
        review, model = row.cochrane_id, row.model
        for name, text in (("cochrane_id", review), ("model", model)):
            if not text:  # a row without a label may lack these
                raise row.error(f"{name} {BLANK}")
        if review not in reviews:
            raise row.error(
                f"cochrane_id is {review!r}, which has no ground truth (correct it or "
                "remove the row)"
            )
        if (review, model) in labels:
            raise row.error(f"{review} of {model} has a label already (remove one)")
        labels[review, model] = ConclusionLabel(
            review=review, model=model, similar=bool(row.similar)
        )
    return tuple(labels.values())


SAMPLE = Path(str(files("jobs.review_benchmark"))) / "sample"


def with_sample(settings: ReviewBenchmarkSettings) -> ReviewBenchmarkSettings:
    """Return settings for the shipped sample if no input is named, else *settings*."""
    if settings.asks_question or any(getattr(settings, name) for name in DATA):
        return settings
    return settings.model_copy(
        update={"truth": SAMPLE / "truth", "database": SAMPLE / "papers.db"}
    )


def require(settings: ReviewBenchmarkSettings) -> None:
    """Raise for settings that a run cannot start from.

    Raises:
        UsageError: the reviews or the papers are not named.
    """
    if settings.truth is None and not settings.asks_question:
        raise UsageError(
            "Name the folder of published reviews, --truth DIR, or ask a question of "
            "your own, --question TEXT, or name no input at all to run on the shipped "
            "sample."
        )
    if settings.database is None:
        raise UsageError(
            "A run needs --database, a file that siftlog prepare review-benchmark "
            "import has made; name no input at all to run on the shipped sample."
        )


def inputs(settings: ReviewBenchmarkSettings) -> tuple[InputFile, ...]:
    """Return the files and folders that `load` reads under these settings."""
    input_files = []
    if settings.truth is not None:
        input_files.append(InputFile(setting="truth", path=settings.truth))
    if settings.database is not None:
        input_files.append(papers(settings.database))
    for name in ("questions", "verdict_labels", "prompts"):
        path = getattr(settings, name)
        if path is not None:
            input_files.append(InputFile(setting=name, path=path))
    return tuple(input_files)


def papers(path: Path) -> InputFile:
    """Return a database as an input, identified by its papers.

    Importing a file again changes the bytes of the database but not its papers.
    """
    with closing(PaperDatabase(path)) as database:
        return InputFile(setting="database", path=path, sha256=database.content_hash)


def load(settings: ReviewBenchmarkSettings) -> ReviewDataset:
    """Read and validate the named inputs; an imported run has no database.

    Raises:
        DatasetError: an input is invalid, or there is no paper, or no review with a
            given name.
        UsageError: no reviews are named.
    """
    findings = InputFindings()
    every = _reviews(settings, findings)
    reviews = chosen(every, settings)
    report_sample(findings, reviews, named_reviews(every, settings), "review")
    labels = (
        read_labels(settings.verdict_labels, {review.id for review in every}, findings)
        if settings.verdict_labels is not None
        else ()
    )
    review_ids = {review.id for review in reviews}
    return ReviewDataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts),
        reviews=reviews,
        labels=tuple(label for label in labels if label.review in review_ids),
        database=None if settings.database is None else _stocked(settings.database),
        findings=findings.findings(),
    )


def _reviews(
    settings: ReviewBenchmarkSettings, findings: InputFindings
) -> tuple[Review, ...]:
    """Return the published reviews, or the questions with the known answers."""
    published = () if settings.truth is None else read_truth(settings.truth, findings)
    if not settings.asks_question:
        if settings.truth is None:
            raise UsageError("Name the folder of published reviews: --truth DIR.")
        return published
    questions = (
        (typed_question(settings.question, settings.inclusion, settings.exclusion),)
        if settings.questions is None
        else read_questions(settings.questions)
    )
    if settings.truth is None:
        return questions
    answered = with_answers(questions, published, settings.truth)
    known_ids = {review.id for review in answered}
    for question in questions:
        if question.id not in known_ids:
            findings.add(
                "question_without_truth",
                "warn",
                settings.truth.name,
                "Questions have no truth and are left out.",
                example=question.id,
            )
    return answered


def admit(dataset: ReviewDataset) -> None:
    """Refuse reviews of which only the title is known, unless the settings accept them.

    Raises:
        DatasetError: there are such reviews.
    """
    title_only = [review.id for review in dataset.reviews if review.is_title_alone]
    if title_only and not dataset.settings.title_criteria:
        raise DatasetError(
            f"{dataset.source}: {plural(len(title_only), 'review')} of "
            f"{len(dataset.reviews)} can be searched by the title alone, such as "
            f"{title_only[0]}: research_question repeats the title, and there is "
            "neither pico nor a criterion (fill them in, choose others with "
            "--review, or accept titles with --title-criteria)."
        )


def _stocked(path: Path) -> PaperDatabase:
    """Return a database; raise if it has no papers."""
    database = PaperDatabase(path)
    if not len(database):
        with closing(database):
            raise DatasetError(
                f"{path}: it holds no paper (siftlog prepare review-benchmark import "
                "--database FILE adds those of files)."
            )
    return database


def chosen(
    reviews: Sequence[Review], settings: ReviewBenchmarkSettings
) -> tuple[Review, ...]:
    """Return the reviews of a run: the named ones, or a sample of them.

    Raises:
        DatasetError: a named review does not exist.
    """
    requested = named_reviews(reviews, settings)
    return draw_sample(requested, settings.limit, key=lambda review: review.id)


def named_reviews(
    reviews: Sequence[Review], settings: ReviewBenchmarkSettings
) -> tuple[Review, ...]:
    """Return the reviews that `--review` names, or all if it names none.

    Raises:
        DatasetError: a named review does not exist.
    """
    if not settings.review:
        return tuple(reviews)
    by_id = {review.id: review for review in reviews}
    for name in settings.review:
        if name not in by_id:
            raise DatasetError(
                f"{settings.truth or settings.questions or 'question'}: there is no "
                f"review {name} (there are "
                f"{', '.join(by_id)})."
            )
    return tuple(review for review in reviews if review.id in settings.review)


MATCHING = (
    "matching",
    "title_cutoff",
    "autojunk",
    "punctuation",
    "strip_dx",
    "unique_claims",
    "precision",
)
"""Settings that define how papers are matched and counted."""


def truth_hash(review: Review) -> str:
    """Return the SHA-256 of the identifiers and titles of a review's studies.

    Corrections of other fields, such as notes, do not make another truth.
    """
    studies = [
        (study.pmid, study.doi, study.title, study.year) for study in review.studies
    ]
    return sha256(msgspec.json.encode((review.id, studies))).hexdigest()


def matching_options(settings: ReviewBenchmarkSettings) -> str:
    """Return the matching settings in one line: `matching=whole-list, ...`."""
    values = settings.model_dump(mode="json", include={*MATCHING})
    return ", ".join(f"{name}={_format_value(values[name])}" for name in MATCHING)


def _format_value(value: object) -> str:
    """Format a value as `--set` accepts it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
