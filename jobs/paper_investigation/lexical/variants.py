"""Finds variant names in a paper by their shape.

Kept is what stands in the title, the abstract or a table, or at least twice: a name
that is mentioned once in the text is mostly background.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.paper_investigation.lexical.alleles import GENE, HLA_STAR, STAR
from jobs.paper_investigation.lexical.paper import Paper

_NAME = re.compile(
    rf"\b(?P<rsid>rs\d{{3,}})\b"
    rf"|\b(?P<hla>hla-\w+{HLA_STAR})"
    rf"|\b(?P<gene>{GENE})(?:(?P<star>{STAR})"
    r"|[ ,]+(?P<phenotype>(?:(?:ultra-?)?rapid|normal|extensive|intermediate|poor) "
    r"metaboli[sz]er|(?:slow|rapid|intermediate|fast) acetylator)s?\b)"
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
    """The names in a passage, in PharmGKB's spelling."""
    for found in _NAME.finditer(text):
        if found["rsid"]:
            yield found["rsid"]
        elif found["hla"]:
            yield found["hla"].upper()
        elif found["star"]:
            yield f"{found['gene']}{found['star']}".upper().replace("XN", "xN")
        else:
            phenotype = found["phenotype"].replace("ultra-", "ultra")
            phenotype = phenotype.replace("metaboliser", "metabolizer")
            yield f"{found['gene'].upper()} {phenotype}"
