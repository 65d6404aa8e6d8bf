"""Normalises and classifies variant names, and finds them in a paper's text.

Two variants are the same if their normalised forms are equal. No synonyms are known and
no prefixes added: "HLA-B*58:01" and "B*58:01" are two variants.

Names occur in a text as whole words: rs12 is not found in rs123, nor *1 in *17. A star
allele is also found if the text splits it, as in "CYP2C9 alleles *2 and *3": then its
gene and the rest from its star on must both occur.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from jobs.paper_investigation.settings import Case

VariantClass: TypeAlias = Literal["rsID", "HLA", "star_allele", "phenotype", "other"]

_CLASS_RULES: tuple[tuple[VariantClass, re.Pattern[str]], ...] = (
    ("rsID", re.compile(r"^rs\d", re.IGNORECASE)),
    ("HLA", re.compile(r"^HLA-", re.IGNORECASE)),
    ("star_allele", re.compile(r"\*\d")),
    ("phenotype", re.compile(r"metaboli[sz]er|acetylator", re.IGNORECASE)),
    ("other", re.compile("")),
)

VARIANT_CLASSES: tuple[VariantClass, ...] = tuple(name for name, _ in _CLASS_RULES)
"""In display order."""

VariantKind: TypeAlias = Literal[
    "rsID",
    "star_allele",
    "reference_allele",
    "HLA",
    "phenotype",
    "activity",
    "gene_presence",
    "other_allele",
]

VARIANT_KINDS: Mapping[VariantKind, str] = {
    "rsID": "variants by reference number, such as rs9923231",
    "star_allele": "star alleles other than the reference, such as CYP2C19*2",
    "reference_allele": "reference alleles, such as CYP2C19*1 or G6PD B (reference)",
    "HLA": "HLA alleles, such as HLA-B*57:01",
    "phenotype": "metabolizer and acetylator phenotypes",
    "activity": "activity of a gene's product, such as G6PD deficiency",
    "gene_presence": "presence or absence of a whole gene, such as GSTM1 null",
    "other_allele": "alleles by name or by nucleotide change",
}
"""The kinds in curated lists and in the prompt, in display order.

They are finer than the classes: a list that leaves out all reference alleles, or all of
the class "other", is recognised by its recall of them.
"""

_REFERENCE = re.compile(r"\(reference\)", re.IGNORECASE)
_ALLELES = re.compile(r"\*\w+")
_PRESENCE = re.compile(r"\bnull\b", re.IGNORECASE)
_ACTIVITY = re.compile(
    r"\bdeficien(?:t|cy)\b"
    r"|\b(?:no|low|intermediate|normal|high|decreased|increased)[ -]activity\b",
    re.IGNORECASE,
)

# Typesetters' signs for the same character: hyphens, en and em dashes, the minus sign
# and the full-width hyphen; the asterisk operator, the full-width asterisk, the black
# star and the low asterisk.
_SIGNS = {
    "-": "\u2010\u2011\u2012\u2013\u2014\u2212\uff0d",
    "*": "\u2217\uff0a\u2605\u204e",
}
_STAR = re.compile(r"\s*\*\s*")


def normalize(text: str, case: Case) -> str:
    """Return the form in which variants are compared.

    "keep" only strips and removes blanks around `*`. "fold" also unifies Unicode forms,
    dashes, stars, white space and letter case. It is idempotent.
    """
    if case == "keep":
        text = text.strip()
        return _STAR.sub("*", text) if "*" in text else text
    text = " ".join(plain_signs(text).split())
    if "*" in text:
        text = text.replace(" *", "*").replace("* ", "*")
    if text.isascii():
        return text.lower()
    # Folding the case of a ligature can leave a letter that composes with its mark.
    return unicodedata.normalize("NFC", text.casefold())


def plain_signs(text: str) -> str:
    """Return *text* composed, with every dash as "-" and every star as "*"."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    # a search per sign is faster than a pattern of all signs
    for plain, signs in _SIGNS.items():
        for sign in signs:
            text = text.replace(sign, plain)
    return text


def variant_class(text: str) -> VariantClass:
    """Return the class of a normalised *text*, regardless of letter case.

    "CYP2D6*4 poor metabolizer" is an allele rather than a phenotype.
    """
    return next(name for name, pattern in _CLASS_RULES if pattern.search(text))


def variant_kind(text: str) -> VariantKind:
    """Return the kind of a normalised *text*, regardless of letter case.

    >>> variant_kind("cyp2c19*1"), variant_kind("cyp2c19*17"), variant_kind("*1/*2")
    ('reference_allele', 'star_allele', 'star_allele')
    """
    match variant_class(text):
        case "star_allele":
            is_reference = set(_ALLELES.findall(text)) == {"*1"}
            return "reference_allele" if is_reference else "star_allele"
        case "other":
            if _REFERENCE.search(text):
                return "reference_allele"
            if _PRESENCE.search(text):
                return "gene_presence"
            return "activity" if _ACTIVITY.search(text) else "other_allele"
        case kind:
            return kind


def parts(field: str, case: Case) -> tuple[str, ...]:
    """Return the distinct normalised variants of a comma-separated field."""
    return tuple(distinct(field.split(","), case))


def distinct(variants: Iterable[str], case: Case) -> dict[str, str]:
    """Return normalised forms in order, with their first spelling, without blanks."""
    spellings: dict[str, str] = {}
    for variant in variants:
        if name := normalize(variant, case):
            spellings.setdefault(name, variant.strip())
    return spellings


JUDGED: frozenset[VariantClass] = frozenset({"rsID", "HLA", "star_allele"})
"""Classes whose names can be searched; a phenotype has too many wordings."""

_LETTER = re.compile(r"[^\W_]")


def ground(text: str, variants: Iterable[str]) -> dict[str, bool | None]:
    """Return whether each of *variants* occurs in *text*; None if not searchable.

    The text is folded once for all variants.
    """
    ways = {variant: tuple(_ways(variant)) for variant in variants}
    names = {name for either in ways.values() for way in either for name in way}
    folded = normalize(_with_separate_stars(plain_signs(text)), "fold")
    present = {name for name in names if _occurs(folded, name)}
    return {
        variant: any(present.issuperset(way) for way in either) if either else None
        for variant, either in ways.items()
    }


def _ways(variant: str) -> Iterator[tuple[str, ...]]:
    """Yield the ways in which a variant can occur, each a set of required names."""
    name = normalize(variant, "fold")
    if variant_class(name) not in JUDGED:
        return
    yield (name,)
    gene, star, rest = name.partition("*")
    if star and gene:
        yield (gene.removeprefix("hla-"), star + rest)


def _with_separate_stars(text: str) -> str:
    """Replace white space between a lower-case word and a star by a comma.

    Folding joins a star to the word before it, as in "CYP2C9 *2". A gene is written in
    capitals, so a star after a lower-case word ("and *3") starts another name.
    """
    before = text.split("*")
    for index, part in enumerate(before[:-1]):
        word = part.rstrip()
        if len(word) < len(part) and "a" <= word[-1:] <= "z":
            before[index] = f"{word},"
    return "*".join(before)


def _occurs(text: str, name: str) -> bool:
    """Return whether *name*, which has a letter or digit, is a whole word of *text*.

    A search for each name is faster than one pass over all words of the text: there are
    few names, and most do not occur in it.
    """
    start = text.find(name) if _LETTER.search(name) else -1
    while start >= 0 and not _is_whole_word(text, start, len(name)):
        start = text.find(name, start + 1)
    return start >= 0


def _is_whole_word(text: str, start: int, length: int) -> bool:
    before, after = text[start - 1 : start], text[start + length : start + length + 1]
    return not before.isalnum() and not after.isalnum()
