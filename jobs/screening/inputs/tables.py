"""All inputs of `prepare` and `explain`: three tables, or labelled records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.inputs.rows import InputFindings
from jobs.screening.corpus import Citations, Corpus, Criteria, Exclusion, Text
from jobs.screening.graph.naming import place_of
from jobs.screening.inputs.citations import read_citations
from jobs.screening.inputs.criteria import read_criteria
from jobs.screening.inputs.exclusions import read_exclusions
from jobs.screening.inputs.records import read_records
from jobs.screening.inputs.renaming import renamed_columns
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
    """Where the tables, or the labelled records, are read from, by a name of each.

    A table named by itself wins over the folder's.

    Raises:
        UsageError: one of them is neither named nor in a folder, or both tables and
            records are named.
    """
    if settings.records:
        if settings.tables or any(getattr(settings, name) for name in NAMES):
            raise UsageError("Name either tables or labelled records, not both.")
        files = sorted(settings.records, key=lambda path: path.name)
        return {f"records.{path.name}": path for path in files}
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
        UsageError: nothing is named, both tables and records are, or a column is to be
            renamed that there is not.
        DatasetError: an input is off; names file, row and column. Or the settings name
            a review that cites nothing; names the nearest.
    """
    noticed = InputFindings()
    paths = table_paths(settings)
    listed_in = [settings.excluded] if settings.excluded else []
    renamed = renamed_columns(settings.map, (*paths.values(), *listed_in))
    source = _source(settings, paths, noticed, renamed)
    citations = source.citations
    for review in settings.review:
        place_of(review, citations.reviews)
    exclusions = {(each.review, each.paper): each for each in source.exclusions}
    further: Mapping[str, Text] = {}
    if settings.excluded is not None:
        listed = read_exclusions(settings.excluded, citations, noticed, renamed)
        exclusions |= {(each.review, each.paper): each for each in listed.found}
        further = listed.texts
    criteria: Mapping[str, Criteria] = {}
    if settings.criteria is not None:
        criteria = read_criteria(settings.criteria, noticed)
    citing = set(citations.reviews)
    for path, reviews in (
        (settings.excluded, {review for review, _ in exclusions}),
        (settings.criteria, criteria.keys()),
    ):
        if path is not None:
            _note_strangers(path, reviews - source.reviews.keys() - citing, noticed)
    own = read_reason_map(settings.reason_map, noticed) if settings.reason_map else {}
    known = coded((exclusions[key] for key in sorted(exclusions)), own)
    of_citing = [each for each in known if each.review in citing]
    excluded = [each for each in of_citing if each.status == "excluded"]
    return Corpus(
        reviews=source.reviews,
        papers=source.papers,
        further=further,
        citations=citations,
        exclusions=known,
        criteria=criteria,
        findings=noticed.findings(),
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
                each.paper in source.papers for each in excluded
            ),
            "awaiting_or_ongoing": len(of_citing) - len(excluded),
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What both layouts come to."""

    reviews: Mapping[str, Text]
    papers: Mapping[str, Text]
    citations: Citations
    exclusions: tuple[Exclusion, ...] = ()


def _source(
    settings: Settings,
    paths: Mapping[str, Path],
    noticed: InputFindings,
    renamed: Mapping[str, str],
) -> _Source:
    if settings.records:
        labelled = read_records(
            settings.records, settings.positive_label, noticed, renamed
        )
        return _Source(
            reviews=labelled.reviews,
            papers=labelled.papers,
            citations=labelled.citations,
            exclusions=labelled.exclusions,
        )
    return _Source(
        reviews=read_texts(paths["reviews"], noticed, renamed),
        papers=read_texts(paths["papers"], noticed, renamed),
        citations=read_citations(paths["references"], noticed, renamed),
    )


def _note_strangers(path: Path, reviews: Iterable[str], noticed: InputFindings) -> None:
    """Reviews that nothing but a list of exclusions or criteria knows."""
    for review in sorted(reviews):
        noticed.add(
            "unknown_reviews",
            "warn",
            path.name,
            "Reviews are named that neither cite anything nor have a text; what is "
            "said of them is not used.",
            example=review,
        )


def _in_folder(folder: Path | None, file: str) -> Path | None:
    """A table of a folder, compressed or not."""
    if folder is None:
        return None
    plain = folder / file
    packed = folder / f"{file}.gz"
    return packed if packed.exists() and not plain.exists() else plain
