"""PMIDs in input files, which are kept as written and read when papers are matched."""

from __future__ import annotations

from jobs.inputs.rows import InputFindings
from jobs.review_benchmark.matching.normal import pmid_of


def notice_pmid(pmid: str, where: str, noticed: InputFindings) -> None:
    """Note a PMID in which no number can be read, so that it will match nothing.

    Args:
        pmid: as written; empty where none is given.
        where: the file.
        noticed: learns of it.
    """
    if pmid and not pmid_of(pmid):
        noticed.add(
            "no_pmid",
            "warn",
            where,
            "PMIDs hold no PubMed number (an id of PubMed Central is none); papers are "
            "matched without them.",
            example=pmid,
        )
