"""Compares values that are not quantities: categories, compositions, space groups."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

from jobs.property_extraction.settings import Categorical, Keys, Unparsed
from jobs.property_extraction.values.comparison import (
    ComparisonRule,
    KeyRule,
    PairwiseRule,
)
from jobs.property_extraction.values.numbers import folded, plain_dashes

if TYPE_CHECKING:
    from pymatgen.core.composition import Composition


_WORD = re.compile(r"\w+")


def categorical_rule(
    clusters: Mapping[str, Mapping[str, str]], *, rule: Categorical, keys: Keys
) -> ComparisonRule:
    """Return the rule that compares categories, or texts without a category.

    Args:
        clusters: The category of a text, by property.
        rule: `equal`: apart from case and blanks. `tokens`: or the words of one occur
            in a row in the other. `substring`: one contains the other, and an empty
            text is in every text.
        keys: Whether texts are looked up `exact`, or `folded` if not found that way.
    """
    of = Categories(clusters, keys=keys).of
    match rule:
        case "equal":
            return KeyRule(lambda name, text: folded(of(name, text)))
        case "tokens":
            return PairwiseRule(lambda name, text: _words(of(name, text)), _share_words)
        case "substring":
            return PairwiseRule(lambda name, text: of(name, text).lower(), _contain)


class Categories:
    """The category of a text, by property."""

    def __init__(
        self, clusters: Mapping[str, Mapping[str, str]], *, keys: Keys
    ) -> None:
        self._exact = clusters
        self._folded = {
            name: _folded_keys(cluster) if keys == "folded" else {}
            for name, cluster in clusters.items()
        }

    def of(self, name: str, text: str) -> str:
        """Return the category of a property's value, else its text."""
        exact = self._exact.get(name, {})
        if text in exact:
            return exact[text]
        return self._folded.get(name, {}).get(folded(text), text)


def _folded_keys(cluster: Mapping[str, str]) -> dict[str, str]:
    """Return categories by folded text; none for one in several categories."""
    by_text: dict[str, set[str]] = {}
    for text, category in cluster.items():
        by_text.setdefault(folded(text), set()).add(category)
    return {
        text: categories.pop()
        for text, categories in by_text.items()
        if len(categories) == 1
    }


def _words(text: str) -> tuple[str, str]:
    """Return the folded text, and its words between blanks, to match whole words."""
    plain = folded(text)
    return plain, f" {' '.join(_WORD.findall(plain))} "


def _share_words(a: tuple[str, str], b: tuple[str, str]) -> bool:
    if a[0] == b[0]:
        return True
    shorter, longer = sorted((a[1], b[1]), key=len)
    return bool(shorter.strip()) and shorter in longer


def _contain(a: str, b: str) -> bool:
    return a in b or b in a


_ISOTOPE = re.compile(r"[TD](?![a-z])")
"""Isotopes that pymatgen reads as hydrogen; T may also mean any transition metal."""


_LONGEST = 1000
"""Most characters of a formula; pymatgen takes quadratic time."""


def is_pymatgen_installed() -> bool:
    """Return whether pymatgen is installed; it is in the extra `materials`."""
    return find_spec("pymatgen") is not None


def composition_rule(*, unparsed: Unparsed) -> ComparisonRule:
    """Return the rule that compares formulas within pymatgen's tolerance.

    Args:
        unparsed: If pymatgen cannot read one of two formulas, their `text` apart from
            case and blanks decides, or they are `no_match`.
    """

    def are_equal(a: _Formula, b: _Formula) -> bool:
        if a.composition is None or b.composition is None:
            return unparsed == "text" and a.spelled == b.spelled
        if a.has_isotope != b.has_isotope:
            return a.spelled == b.spelled
        return bool(a.composition.almost_equals(b.composition))

    return PairwiseRule(lambda _, text: _formula(text), are_equal)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Formula:
    spelled: str
    has_isotope: bool
    composition: Composition | None  #: None for a text that is no formula


def _formula(text: str) -> _Formula:
    return _Formula(
        spelled=folded(text).replace(" ", ""),
        has_isotope=_ISOTOPE.search(text) is not None,
        composition=_composition(text),
    )


def _composition(text: str) -> Composition | None:
    if len(text) > _LONGEST:
        return None
    # an extra, and slow to load
    from pymatgen.core.composition import Composition  # noqa: PLC0415 - see above

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about unusual formulas
        try:
            return Composition(text)
        except Exception:  # noqa: BLE001 - it raises various errors on other texts
            return None


_SYMBOLS = """
P1 P-1 P2 P21 C2 Pm Pc Cm Cc P2/m P21/m C2/m P2/c P21/c C2/c P222 P2221 P21212 P212121
C2221 C222 F222 I222 I212121 Pmm2 Pmc21 Pcc2 Pma2 Pca21 Pnc2 Pmn21 Pba2 Pna21 Pnn2 Cmm2
Cmc21 Ccc2 Amm2 Abm2 Ama2 Aba2 Fmm2 Fdd2 Imm2 Iba2 Ima2 Pmmm Pnnn Pccm Pban Pmma Pnna
Pmna Pcca Pbam Pccn Pbcm Pnnm Pmmn Pbcn Pbca Pnma Cmcm Cmca Cmmm Cccm Cmma Ccca Fmmm
Fddd Immm Ibam Ibca Imma P4 P41 P42 P43 I4 I41 P-4 I-4 P4/m P42/m P4/n P42/n I4/m I41/a
P422 P4212 P4122 P41212 P4222 P42212 P4322 P43212 I422 I4122 P4mm P4bm P42cm P42nm P4cc
P4nc P42mc P42bc I4mm I4cm I41md I41cd P-42m P-42c P-421m P-421c P-4m2 P-4c2 P-4b2 P-4n2
I-4m2 I-4c2 I-42m I-42d P4/mmm P4/mcc P4/nbm P4/nnc P4/mbm P4/mnc P4/nmm P4/ncc P42/mmc
P42/mcm P42/nbc P42/nnm P42/mbc P42/mnm P42/nmc P42/ncm I4/mmm I4/mcm I41/amd I41/acd P3
P31 P32 R3 P-3 R-3 P312 P321 P3112 P3121 P3212 P3221 R32 P3m1 P31m P3c1 P31c R3m R3c
P-31m P-31c P-3m1 P-3c1 R-3m R-3c P6 P61 P65 P62 P64 P63 P-6 P6/m P63/m P622 P6122 P6522
P6222 P6422 P6322 P6mm P6cc P63cm P63mc P-6m2 P-6c2 P-62m P-62c P6/mmm P6/mcc P63/mcm
P63/mmc P23 F23 I23 P213 I213 Pm-3 Pn-3 Fm-3 Fd-3 Im-3 Pa-3 Ia-3 P432 P4232 F432 F4132
I432 P4332 P4132 I4132 P-43m F-43m I-43m P-43n F-43c I-43d Pm-3m Pn-3n Pm-3n Pn-3m Fm-3m
Fm-3c Fd-3m Fd-3c Im-3m Ia-3d
"""
SYMBOLS = tuple(_SYMBOLS.split())


_MOST_CHARS = 230

# NFKC leaves a blank before a separate overline
_OVERLINED = re.compile("([0-9]) ?[\u0304\u0305]")
_DROPPED = re.compile(r"[^a-z0-9/-]+")
_NUMBER = re.compile(r"[1-9][0-9]{0,2}")


class SpaceGroupReader:
    """Looks up symbols: the given ones, or all that gemmi knows, or the short ones.

    gemmi is in the extra `materials`.
    """

    def __init__(self, symbols: Mapping[str, int] | None = None) -> None:
        self._symbols = symbols

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        symbols = _built_in() if self._symbols is None else self._symbols
        return {normal_symbol(symbol): number for symbol, number in symbols.items()}

    def number(self, text: str) -> int | None:
        """Return the number of a space group, from its symbol or a plain integer."""
        match = _NUMBER.fullmatch(text.strip())
        if match is not None:
            number = int(match[0])
            return number if number <= _MOST_CHARS else None
        return self._numbers.get(normal_symbol(text))


def normal_symbol(text: str) -> str:
    """Return a symbol with only letters, digits, `/` and `-`: `P6₃mc` as `p63mc`.

    An overline becomes a minus sign; without it, R3̅m would become R3m.
    """
    plain = plain_dashes(unicodedata.normalize("NFKC", text))
    return _DROPPED.sub("", _OVERLINED.sub(r"-\1", plain).lower())


def _built_in() -> dict[str, int]:
    if find_spec("gemmi") is None:
        return {symbol: number for number, symbol in enumerate(SYMBOLS, start=1)}
    import gemmi  # noqa: PLC0415 - an extra

    return {
        symbol: group.number
        for group in gemmi.spacegroup_table()
        for symbol in (group.hm, group.short_name())
    }
