"""Whether a variant's name occurs in the paper's text.

Names stand in a text as whole words: rs12 is not found in rs123, nor *1 in *17. A star
allele is also found where the text splits it, as in "CYP2C9 alleles *2 and *3": then
its gene and the rest from its star on must both occur.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from jobs.paper_investigation.variants import (
    VariantClass,
    normalize,
    plain_signs,
    variant_class,
)

JUDGED: frozenset[VariantClass] = frozenset({"rsID", "HLA", "star_allele"})
"""Classes whose names can be looked up; a phenotype has too many wordings."""

_WORD = re.compile(r"[^\W_]+")

# Folding joins a star to the word before it, as in "CYP2C9 *2". A gene is written in
# capitals, so a star behind a lower-case word ("and *3") starts a name of its own.
_OWN_STAR = re.compile(r"(?<=[a-z])\s+(?=\*)")


def ground(text: str, variants: Iterable[str]) -> dict[str, bool | None]:
    """Whether each of *variants* occurs in *text*; None where that is not judged.

    The text is folded and read once, whatever the number of variants.
    """
    ways = {variant: tuple(_ways(variant)) for variant in variants}
    names = {name for either in ways.values() for way in either for name in way}
    found = _occurring(normalize(_OWN_STAR.sub(",", plain_signs(text)), "fold"), names)
    return {
        variant: any(found.issuperset(way) for way in either) if either else None
        for variant, either in ways.items()
    }


def _ways(variant: str) -> Iterator[tuple[str, ...]]:
    """The ways in which a variant can occur: each is names that must all be found."""
    name = normalize(variant, "fold")
    if variant_class(name) not in JUDGED:
        return
    yield (name,)
    gene, star, rest = name.partition("*")
    if star and gene:
        yield (gene.removeprefix("hla-"), star + rest)


def _occurring(text: str, names: Iterable[str]) -> set[str]:
    """Those of *names* that occur in the folded *text* as whole words.

    Each is filed under its first run of letters and digits, so that it is compared only
    where that very run stands in the text.
    """
    by_word: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for name in names:
        if word := _WORD.search(name):
            by_word[word[0]].append((name, word.start()))
    found = set()
    for word in _WORD.finditer(text):
        for name, offset in by_word.get(word[0], ()):
            start = word.start() - offset
            if text.startswith(name, start) and _stands_alone(text, start, len(name)):
                found.add(name)
    return found


def _stands_alone(text: str, start: int, length: int) -> bool:
    before, after = text[start - 1 : start], text[start + length : start + length + 1]
    return not before.isalnum() and not after.isalnum()
