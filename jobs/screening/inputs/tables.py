"""All inputs of `prepare` and `explain`: three tables, or labelled records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.noticed import Noticed
from jobs.screening.corpus import Citations, Corpus, Exclusion, Text
from jobs.screening.inputs.citations import read_citations
from jobs.screening.inputs.criteria import read_criteria
from jobs.screening.inputs.exclusions import read_exclusions
from jobs.screening.inputs.records import read_records
from jobs.screening.inputs.texts import read_texts
from jobs.screening.reasons import coded, read_reason_map
from jobs.screening.settings import Settings
from runner.errors import UsageError

NAMES: Mapping[str, str] = {
    "reviews": "cochrane_pubmed_abstracts.csv",
    "references": "cochrane_pubmed_references.csv",
    "papers": "referenced_paper_abstracts.csv",
}
"""The tables by the setting that names each, as `--tables` looks for them."""


def table_paths(settings: Settings) -> dict[str, Path]:
    """Where each table is read from; a table named by itself wins over the folder's.

    Raises:
        UsageError: one of them is neither named nor in a folder.
    """
    found = {}
    for name, file in NAMES.items():
        path = getattr(settings, name) or _in_folder(settings.tables, file)
        if path is None:
            raise UsageError(
                f"Name the folder of the three tables with --tables, or --{name}, or "
                "labelled records with --records."
            )
        found[name] = path
    return found


def read_corpus(settings: Settings) -> Corpus:
    """Read and validate all that is named.

    Raises:
        UsageError: nothing is named, or both tables and records are.
        DatasetError: an input is off; names file, row and column.
    """
    noticed = Noticed()
    renamed = renamed_columns(settings)
    source = _source(settings, noticed, renamed)
    citations = source.citations
    exclusions = {(each.review, each.paper): each for each in source.exclusions}
    further: Mapping[str, Text] = {}
    if settings.excluded is not None:
        cited = {
            (citations.reviews[review], citations.papers[paper])
            for review, paper in zip(citations.review, citations.paper, strict=True)
        }
        listed = read_exclusions(settings.excluded, cited, noticed, renamed)
        exclusions |= {(each.review, each.paper): each for each in listed.found}
        further = listed.texts
    own = read_reason_map(settings.reason_map, noticed) if settings.reason_map else {}
    known = coded((exclusions[key] for key in sorted(exclusions)), own)
    citing = set(citations.reviews)
    of_citing = [each for each in known if each.review in citing]
    excluded = [each for each in of_citing if each.status == "excluded"]
    return Corpus(
        reviews=source.reviews,
        papers=source.papers,
        further=further,
        citations=citations,
        exclusions=known,
        criteria=read_criteria(settings.criteria, noticed) if settings.criteria else {},
        findings=noticed.findings(),
        sizes={
            "reviews": len(source.reviews),
            "reviews_citing": len(citations.reviews),
            "reviews_without_citations": len(
                source.reviews.keys() - set(citations.reviews)
            ),
            "citing_reviews_without_row": len(
                set(citations.reviews) - source.reviews.keys()
            ),
            "papers": len(source.papers),
            "papers_with_abstract": sum(
                text.has_abstract for text in source.papers.values()
            ),
            "edges": citations.rows,
            "edges_unique": len(citations.review),
            "exclusions": len(excluded),
            "exclusions_with_text": sum(
                each.paper in source.papers for each in excluded
            ),
            "awaiting_or_ongoing": len(of_citing) - len(excluded),
        },
    )


def renamed_columns(settings: Settings) -> dict[str, str]:
    """Columns of the files by the names used here, from `--map FIELD=COLUMN`.

    Raises:
        UsageError: one of them has no equals sign.
    """
    found = {}
    for pair in settings.map:
        field, is_pair, column = pair.partition("=")
        if not (is_pair and field and column):
            raise UsageError(f"--map {pair}: write FIELD=COLUMN, such as pmid=PubMed.")
        found[column] = field
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What both layouts come to."""

    reviews: Mapping[str, Text]
    papers: Mapping[str, Text]
    citations: Citations
    exclusions: tuple[Exclusion, ...] = ()


def _source(
    settings: Settings, noticed: Noticed, renamed: Mapping[str, str]
) -> _Source:
    has_tables = settings.tables or any(getattr(settings, name) for name in NAMES)
    if settings.records:
        if has_tables:
            raise UsageError("Name either tables or labelled records, not both.")
        labelled = read_records(
            settings.records, settings.positive_label, noticed, renamed
        )
        return _Source(
            reviews=labelled.reviews,
            papers=labelled.papers,
            citations=labelled.citations,
            exclusions=labelled.exclusions,
        )
    paths = table_paths(settings)
    return _Source(
        reviews=read_texts(paths["reviews"], noticed, renamed),
        papers=read_texts(paths["papers"], noticed, renamed),
        citations=read_citations(paths["references"], noticed, renamed),
    )


def _in_folder(folder: Path | None, file: str) -> Path | None:
    """A table of a folder, compressed or not."""
    if folder is None:
        return None
    plain = folder / file
    packed = folder / f"{file}.gz"
    return packed if packed.exists() and not plain.exists() else plain
