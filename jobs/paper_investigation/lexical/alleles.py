"""Spells alleles out: a star without a gene belongs to the nearest gene before it.

"CYP2C19 *2/*3" reads "cyp2c19*2/cyp2c19*3" afterwards and "B*15:02" reads
"hla-b*15:02", so that looking for a name is looking for its text. Texts are folded.
"""

from __future__ import annotations

import re

# Genes end in a digit or in a digit and a letter, but for two that are often studied.
GENE = r"(?!rs\d)(?:tpmt|dpyd|[a-z]{2,6}\d[a-z0-9]*)"
STAR = r"\*\d+(?:xn|[a-z])?(?![a-z0-9%]|\.\d)"
HLA_STAR = r"\*\d{2,3}(?::\d{2,3})+"

_HLA_GENE = r"d[rqp][ab]\d?|[abc]"
_MENTION = re.compile(
    rf"\b(?:hla-)?(?P<hla>{_HLA_GENE})(?P<type>{HLA_STAR})"
    rf"|\b(?P<gene>{GENE})(?: ?(?P<allele>{STAR}))?"
    rf"|(?<!\w)(?P<bare>{HLA_STAR}|{STAR})"
)


def spell_out(text: str) -> str:
    """*text* with a gene before every allele that has one somewhere before it."""
    gene = ""

    def spelt(mention: re.Match[str]) -> str:
        nonlocal gene
        if mention["hla"]:
            gene = f"hla-{mention['hla']}"
        elif mention["gene"]:
            gene = mention["gene"]
        return gene + (mention["type"] or mention["allele"] or mention["bare"] or "")

    return _MENTION.sub(spelt, text)
