"""Reads a corpus for `prepare` and `explain` from three tables or labelled records.

A `Corpus` has the inputs of a draw: reviews, papers, citations, known exclusions.

Labelled records are one table per review, whose id is the file's name. Records with
label 1 are papers that the review cites, those with 0 are true exclusions. A paper may
occur in several files; its first text with an abstract counts. `--map OLD=NEW` renames
the columns of input files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from jobs.kit.inputs.cells import BLANK, Label
from jobs.kit.inputs.column_map import column_map
from jobs.kit.inputs.files import csv_columns, read_table
from jobs.kit.inputs.rows import InputFindings, Spelled, columns_of
from jobs.screening.citations import (
    CitationCollector,
    CitationRow,
    Citations,
    read_citations,
    read_exclusions,
)
from jobs.screening.data import NO_TEXT, ArticleText, Criteria, Exclusion, review_index
from jobs.screening.input_tables import (
    ExclusionRow,
    Id,
    PaperRow,
    id_of,
    read_criteria,
    read_texts,
)
from jobs.screening.reason_codes import coded, read_reason_map
from jobs.screening.settings import ScreeningSettings
from runner.errors import DatasetError, UsageError
from runner.scorecard import Finding

LABELS = ("label_included", "label_abstract_screening")


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Inputs of `prepare` and `explain`, validated."""

    reviews: Mapping[str, ArticleText]  #: rows of the review table, by id
    papers: Mapping[str, ArticleText]
    """Rows of the paper table, by id; only these count as having an abstract."""
    further: Mapping[str, ArticleText] = field(default_factory=dict)
    """Texts in the list of exclusions, by paper."""
    citations: Citations
    exclusions: tuple[Exclusion, ...] = ()  #: one per review and paper, ascending
    criteria: Mapping[str, Criteria] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Counts of the input: `reviews_without_citations`, `exclusions`, ..."""

    def excluded_by(self) -> dict[str, dict[str, Exclusion]]:
        """Return the papers that each review has excluded or not decided, by paper."""
        by_review: dict[str, dict[str, Exclusion]] = {}
        for exclusion in self.exclusions:
            by_review.setdefault(exclusion.review, {})[exclusion.paper] = exclusion
        return by_review

    def true_exclusions(
        self, cited: Iterable[str], exclusions: Mapping[str, Exclusion]
    ) -> list[str]:
        """Return the papers that a review assessed and excluded, ascending.

        Papers without an abstract are left out.

        Args:
            cited: papers that the review cites; these stay included.
            exclusions: papers that the review has excluded or not decided, by paper.
        """
        taken = set(cited)
        return [
            paper
            for paper, exclusion in sorted(exclusions.items())
            if exclusion.status == "excluded"
            and paper not in taken
            and self.text(paper).has_abstract
        ]

    def text(self, paper: str) -> ArticleText:
        """Return a paper's text: the table's, or the other if that has no abstract."""
        text = self.papers.get(paper, NO_TEXT)
        return text if text.has_abstract else self.further.get(paper, text)


class RecordRow(PaperRow):
    """A labelled record; a file has at least one of the two label columns."""

    pmid: Annotated[Id, Spelled("pubmedID")]
    label_included: Label | None = None
    label_abstract_screening: Label | None = None

    def label(self, name: str) -> int:
        """Return the label in a column, which must have one."""
        label = dict(zip(LABELS, self.labels, strict=True))[name]
        if label is None:
            raise self.error(f"{name} {BLANK}")
        return label

    @property
    def labels(self) -> tuple[int | None, int | None]:
        """Both labels, in the order of `LABELS`."""
        return self.label_included, self.label_abstract_screening


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFiles:
    """Contents of the tables, or of the files of labelled records."""

    reviews: Mapping[str, ArticleText]
    """By id. For labelled records, the title is the id, unless that is only a
    number."""
    papers: Mapping[str, ArticleText]
    citations: Citations
    exclusions: tuple[Exclusion, ...] = ()


def read_records(
    paths: Sequence[Path],
    positive: str,
    findings: InputFindings,
    renamed: Mapping[str, str],
) -> CorpusFiles:
    """Read the records of all files.

    Args:
        paths: one per review, in any order.
        positive: the label that counts as included.
        findings: receives papers labelled both ways.
        renamed: columns of the files by the names used here.

    Raises:
        DatasetError: a file is invalid, or its name is not an id or not unique; names
            file and row.
    """
    edges = CitationCollector()
    papers: dict[str, ArticleText] = {}
    excluded: list[Exclusion] = []
    reviews: dict[str, ArticleText] = {}
    for review, path in sorted((_review(path), path) for path in paths):
        if review in reviews:
            raise DatasetError(
                f"{path}: another file is called {review} too, and a file's name is "
                "the review's id (rename one)."
            )
        reviews[review] = ArticleText(title="" if review.isdigit() else review)
        seen: dict[str, int] = {}
        rows = read_table(
            path,
            RecordRow,
            findings=findings,
            needed=(positive,),
            renamed=renamed,
            unit="row",
        )
        for row in rows:
            paper, label = row.pmid, row.label(positive)
            if row.labels == (1, 0):
                findings.add(
                    "included_after_exclusion",
                    "info",
                    path.name,
                    "Records are included in the end though their abstract was "
                    "excluded.",
                    example=row.place,
                )
            if seen.setdefault(paper, label) != label:
                findings.add(
                    "included_and_excluded",
                    "warn",
                    path.name,
                    "A review both includes and excludes a paper; it stays included.",
                    example=row.place,
                )
            seen[paper] = max(seen[paper], label)
            if paper not in papers or not papers[paper].has_abstract:
                papers[paper] = row.text
            if label:
                edges.add(review, paper)
        excluded += (
            Exclusion(review=review, paper=paper)
            for paper, label in seen.items()
            if not label
        )
    return CorpusFiles(
        reviews=reviews,
        papers=papers,
        citations=edges.citations(),
        exclusions=tuple(
            sorted(excluded, key=lambda exclusion: (exclusion.review, exclusion.paper))
        ),
    )


def _review(path: Path) -> str:
    """Return the id of the review in a file."""
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    try:
        review = id_of(name)
    except ValueError as error:
        raise DatasetError(
            f"--records: the name of a file, the review's id, {error}."
        ) from error
    if not review:
        raise DatasetError(
            f"{path}: the file's name is the review's id, and it is empty (rename it)."
        )
    return review


FIELDS = tuple(
    dict.fromkeys(
        name
        for model in (RecordRow, CitationRow, ExclusionRow)
        for name in columns_of(model).names
    )
)
"""Fields that a column may be renamed to; the tables of texts have no others."""


def renamed_columns(pairs: Sequence[str], paths: Iterable[Path]) -> dict[str, str]:
    """Return the field names by the columns of the files.

    Args:
        pairs: as typed, each OLD=NEW or NEW=OLD.
        paths: the files; each column must be in at least one.

    Raises:
        UsageError: a pair is malformed, or there is no such field or column.
        DatasetError: a file cannot be read.
    """
    if not pairs:
        return {}
    columns = [name for path in paths for name in csv_columns(path)]
    return column_map(pairs, FIELDS, columns)


TABLE_FILES: Mapping[str, str] = {
    "reviews": "cochrane_pubmed_abstracts.csv",
    "references": "cochrane_pubmed_references.csv",
    "papers": "referenced_paper_abstracts.csv",
}
"""File names of the tables in the folder `--tables`, by setting."""


def table_paths(settings: ScreeningSettings) -> dict[str, Path]:
    """Return the paths of the tables, or of the labelled records, by name.

    A path set for a single table overrides the one in the folder.

    Raises:
        UsageError: one of them is neither named nor in a folder, or both tables and
            records are named.
    """
    if settings.records:
        if settings.tables or any(getattr(settings, name) for name in TABLE_FILES):
            raise UsageError("Name either tables or labelled records, not both.")
        files = sorted(settings.records, key=lambda path: path.name)
        return {f"records.{path.name}": path for path in files}
    paths = {}
    for name, file in TABLE_FILES.items():
        path = getattr(settings, name) or _in_folder(settings.tables, file)
        if path is None:
            raise UsageError(
                f"Name the folder of the three tables with --tables, or --{name}, or "
                "labelled records with --records."
            )
        paths[name] = path
    return paths


def read_corpus(settings: ScreeningSettings) -> Corpus:
    """Read and validate all named inputs.

    Raises:
        UsageError: nothing is named, both tables and records are, or a column to be
            renamed does not exist.
        DatasetError: an input is invalid; names file, row and column. Or the settings
            name a review that cites no paper; names the nearest.
    """
    findings = InputFindings()
    paths = table_paths(settings)
    exclusion_paths = [settings.excluded] if settings.excluded else []
    renamed = renamed_columns(settings.map, (*paths.values(), *exclusion_paths))
    source = _read_tables(settings, paths, findings, renamed)
    citations = source.citations
    for review in settings.review:
        review_index(review, citations.reviews)
    exclusions = {
        (exclusion.review, exclusion.paper): exclusion
        for exclusion in source.exclusions
    }
    further: Mapping[str, ArticleText] = {}
    if settings.excluded is not None:
        further_exclusions = read_exclusions(
            settings.excluded, citations, findings, renamed
        )
        exclusions |= {
            (exclusion.review, exclusion.paper): exclusion
            for exclusion in further_exclusions.exclusions
        }
        further = further_exclusions.texts
    criteria: Mapping[str, Criteria] = {}
    if settings.criteria is not None:
        criteria = read_criteria(settings.criteria, findings)
    citing = set(citations.reviews)
    for path, reviews in (
        (settings.excluded, {review for review, _ in exclusions}),
        (settings.criteria, criteria.keys()),
    ):
        if path is not None:
            _note_strangers(path, reviews - source.reviews.keys() - citing, findings)
    reason_map = (
        read_reason_map(settings.reason_map, findings) if settings.reason_map else {}
    )
    coded_exclusions = coded(
        (exclusions[key] for key in sorted(exclusions)), reason_map
    )
    of_citing = [
        exclusion for exclusion in coded_exclusions if exclusion.review in citing
    ]
    excluded = [exclusion for exclusion in of_citing if exclusion.status == "excluded"]
    return Corpus(
        reviews=source.reviews,
        papers=source.papers,
        further=further,
        citations=citations,
        exclusions=coded_exclusions,
        criteria=criteria,
        findings=findings.findings(),
        sizes={
            "reviews": len(source.reviews),
            "reviews_citing": len(citations.reviews),
            "reviews_without_citations": len(source.reviews.keys() - citing),
            "citing_reviews_without_row": len(citing - source.reviews.keys()),
            "papers": len(source.papers),
            "papers_with_abstract": sum(
                text.has_abstract for text in source.papers.values()
            ),
            "edges": citations.rows,
            "edges_unique": len(citations.review),
            "exclusions": len(excluded),
            "exclusions_with_text": sum(
                exclusion.paper in source.papers for exclusion in excluded
            ),
            "awaiting_or_ongoing": len(of_citing) - len(excluded),
        },
    )


def _read_tables(
    settings: ScreeningSettings,
    paths: Mapping[str, Path],
    findings: InputFindings,
    renamed: Mapping[str, str],
) -> CorpusFiles:
    if settings.records:
        return read_records(
            settings.records, settings.positive_label, findings, renamed
        )
    return CorpusFiles(
        reviews=read_texts(paths["reviews"], findings, renamed),
        papers=read_texts(paths["papers"], findings, renamed),
        citations=read_citations(paths["references"], findings, renamed),
    )


def _note_strangers(
    path: Path, reviews: Iterable[str], findings: InputFindings
) -> None:
    """Report reviews that only a list of exclusions or criteria contains."""
    for review in sorted(reviews):
        findings.add(
            "unknown_reviews",
            "warn",
            path.name,
            "Reviews are named that neither cite anything nor have a "
            "text; their entries are not used.",
            example=review,
        )


def _in_folder(folder: Path | None, file: str) -> Path | None:
    """Return the path of a table in a folder, compressed or not."""
    if folder is None:
        return None
    plain = folder / file
    packed = folder / f"{file}.gz"
    return packed if packed.exists() and not plain.exists() else plain
