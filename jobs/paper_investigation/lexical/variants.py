"""Finds variant names in a paper by their shape.

A star without a gene before it belongs to the nearest gene before. Kept is what stands
in the title, the abstract or a table, or at least twice: a name that is mentioned once
in the text is mostly background.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.paper_investigation.lexical.paper import Paper

_HLA = r"(?:hla-)?(?:d[rqp][ab]\d?|[abc])"
_GENE = r"(?:tpmt|dpyd|[a-z]{2,6}\d[a-z0-9]*)"
_STAR = r"\*\d+[a-z]?(?:xn)?(?![\d.%])"
_NAME = re.compile(
    rf"\b(?P<rsid>rs\d{{3,}})\b"
    rf"|\b(?P<hla>{_HLA}\*\d{{2,3}}:\d{{2,3}}(?::\d{{2}})*)\b"
    rf"|\b(?P<carrier>{_GENE})[ ,]+(?:\w+ )?"
    r"(?P<phenotype>(?:(?:ultra-?)?rapid|normal|extensive|intermediate|poor) "
    r"metaboli[sz]er|(?:slow|rapid|intermediate|fast) acetylator)s?\b"
    rf"|\b(?P<gene>{_GENE})(?P<own>{_STAR})?"
    rf"|(?P<bare>{_STAR})"
)


def find_variants(paper: Paper) -> tuple[str, ...]:
    """The names worth listing, in the order of their first occurrence."""
    seen: dict[str, int] = {}
    prominent: set[str] = set()
    for passage in paper.passages:
        for name in _names(passage.text):
            seen[name] = seen.get(name, 0) + 1
            if passage.is_prominent:
                prominent.add(name)
    return tuple(name for name, n in seen.items() if n > 1 or name in prominent)


def _names(text: str) -> Iterator[str]:
    gene = None
    for found in _NAME.finditer(text):
        if found["rsid"]:
            yield found["rsid"]
        elif found["hla"]:
            yield f"HLA-{found['hla'].removeprefix('hla-').upper()}"
        elif found["phenotype"]:
            gene = found["carrier"].upper()
            phenotype = found["phenotype"].replace("ultra-", "ultra")
            yield f"{gene} {phenotype.replace('metaboliser', 'metabolizer')}"
        elif found["gene"]:
            gene = found["gene"].upper()
            if found["own"]:
                yield gene + _allele(found["own"])
        elif gene:
            yield gene + _allele(found["bare"])


def _allele(star: str) -> str:
    """A star allele's own spelling: capital suffix, but "xN" for copies."""
    return star.upper().replace("XN", "xN")
