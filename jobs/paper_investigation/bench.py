"""Reads the bench: which papers, and which variants a curator found in each."""

from __future__ import annotations

import re
from pathlib import Path

from jobs.noticed import Noticed
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.dataset import BenchPaper
from jobs.paper_investigation.rows import Row, read_rows
from jobs.paper_investigation.settings import Settings
from runner.errors import DatasetError

PMCID = re.compile(r"PMC[0-9]+")
ANY_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""With `any_id`: still safe in file names and in keys, where "/" separates."""


def read_bench(
    path: Path, settings: Settings, noticed: Noticed
) -> tuple[BenchPaper, ...]:
    """The papers of a bench file, in file order."""
    papers: dict[str, BenchPaper] = {}
    for row in read_rows(path, settings.encoding_errors, noticed):
        paper = _paper(row, settings)
        first = papers.setdefault(paper.pmcid, paper)
        if first is not paper:
            raise row.error(
                f"{paper.pmcid} stands on line {first.line} already "
                "(keep one of the two)"
            )
        _notice_repeats(paper, row.file, settings, noticed)
    if not papers:
        raise DatasetError(f"{path.name}: no paper in it (a line a paper is expected).")
    return tuple(papers.values())


def paper_id(row: Row, settings: Settings) -> str:
    """The row's `pmcid`, checked."""
    pmcid = row.required("pmcid")
    if (ANY_ID if settings.any_id else PMCID).fullmatch(pmcid):
        return pmcid
    remedy = (
        "use 1 to 64 letters, digits, dots, dashes or underscores"
        if settings.any_id
        else "correct it, or accept other ids with --any-id"
    )
    raise row.error(f"pmcid {pmcid!r} is not a paper id ({remedy})")


def _paper(row: Row, settings: Settings) -> BenchPaper:
    pmcid = paper_id(row, settings)
    variants = row.texts("variants")
    if not variants and settings.profile != "clinpgx-qa":
        raise row.error("variants is empty (a paper needs at least one truth variant)")
    return BenchPaper(
        pmcid=pmcid,
        variants=variants,
        pmid=row.text("pmid") or None,
        title=row.text("article_title") or None,
        raw_variants=row.groups("raw_variants"),
        line=row.line,
    )


def _notice_repeats(
    paper: BenchPaper, file: str, settings: Settings, noticed: Noticed
) -> None:
    kept = naming.distinct(paper.variants, "keep")
    if len(kept) < len(paper.variants):
        noticed.add(
            "repeated_variants",
            "info",
            file,
            "Some papers list a variant more than once; it counts once.",
            example=paper.pmcid,
        )
    if len(naming.distinct(paper.variants, settings.variant_case)) < len(kept):
        noticed.add(
            "merged_variants",
            "info",
            file,
            "Some papers list spellings that fold to one variant; they count once.",
            example=paper.pmcid,
        )
