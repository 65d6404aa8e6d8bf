"""Units of measurement: conversion, the grammar of unit cells, the units of papers.

Names are separated by `.`, `·`, `*` or blanks; everything after the first `/` divides,
so that W/m.K is W/(m·K); brackets are ignored. Cells come from models, so nothing in
them is evaluated, and a text with more factors than a unit, or unknown ones, is no
unit.

Plain pint reads A as ampere, k as Boltzmann's constant, m.ohm.cm as metre-ohm-cm, and
gives Oe and T different dimensions. In tables of materials A is angstrom, k is kelvin,
m.ohm.cm is a thousandth of an ohm-cm, and a field in Oe is given in T as its flux
density in vacuum. The definitions here take precedence over pint.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from jobs.property_extraction.values.numbers import plain_dashes, plain_superscripts

UnitStatus: TypeAlias = Literal[
    "same", "converted", "missing", "unknown", "incompatible"
]

Dimensions: TypeAlias = tuple[tuple[str, Fraction], ...]
"""Powers of the base dimensions, none of them 0, ordered by name."""


@dataclass(frozen=True, slots=True)
class PhysicalUnit:
    """A unit in coherent SI units: `factor` of them, plus `offset`.

    Factors are fractions, so that `mOhm.cm` and `m.ohm.cm` are the same unit and not
    two that differ in the last bit.
    """

    factor: Fraction
    dimensions: Dimensions = ()
    offset: Fraction = Fraction(0)  #: of a temperature scale, in kelvin

    def __mul__(self, other: PhysicalUnit) -> PhysicalUnit:
        """Return the product of two units without offset."""
        powers = dict(self.dimensions)
        for name, power in other.dimensions:
            powers[name] = powers.get(name, Fraction(0)) + power
        return PhysicalUnit(self.factor * other.factor, dimensions(powers))

    def __pow__(self, exponent: int) -> PhysicalUnit:
        """Return a power of a unit without offset."""
        powers = {name: power * exponent for name, power in self.dimensions}
        return PhysicalUnit(self.factor**exponent, dimensions(powers))


DIMENSIONLESS = PhysicalUnit(Fraction(1))
"""The unit of a bare number."""


def dimensions(powers: dict[str, Fraction]) -> Dimensions:
    """Return powers of base dimensions in a fixed order."""
    return tuple(sorted((name, power) for name, power in powers.items() if power))


@dataclass(frozen=True, slots=True)
class StatedUnit:
    """The content of a unit cell; neither blank nor a unit means unknown."""

    text: str  #: in its normal form
    unit: PhysicalUnit | None = None
    blank: bool = False


@dataclass(frozen=True, slots=True)
class Conversion:
    """A conversion of values to another unit: value * factor + offset."""

    status: UnitStatus
    factor: float = 1.0
    offset: float = 0.0

    def __call__(self, value: float) -> float:
        """Return the value in the other unit."""
        return value * self.factor + self.offset


def convert(source: StatedUnit, target: StatedUnit) -> Conversion:
    """Return the conversion from one stated unit to another.

    If a unit is missing or unknown, numbers are compared unchanged; if the dimensions
    differ, not at all.
    """
    if source.blank or target.blank:
        return Conversion("missing")
    if source.text == target.text:
        return Conversion("same")
    if source.unit is None or target.unit is None:
        return Conversion("unknown")
    return between(source.unit, target.unit)


def between(source: PhysicalUnit, target: PhysicalUnit) -> Conversion:
    """Return the conversion from one known unit to another."""
    if source.dimensions != target.dimensions:
        return Conversion("incompatible")
    factor = source.factor / target.factor
    offset = (source.offset - target.offset) / target.factor
    if factor == 1 and not offset:
        return Conversion("same")
    return Conversion("converted", float(factor), float(offset))


MOST_FACTORS = 12
MOST_EXPONENT = 12

_SPELLINGS = str.maketrans({"˚": "°", "º": "°", "⋅": "·", "∙": "·", "•": "·"})
_AT = re.compile(r" at .*", re.DOTALL)
_BRACKETS = str.maketrans("", "", "()")
_POWER_OF_TEN = re.compile(
    r"(?:10\^([+-]?\d{1,2})|[eE]([+-]\d{1,2}))(?!\d) ?", re.ASCII
)
_SEPARATORS = re.compile(r"[ .·*]+")
_FACTOR = re.compile(r"(°?[^\W\d]+°?|[%°])(?:\^?([+-]?[0-9]{1,2}))?")
_WIDEST = Fraction(10**100)
"""Limit of factors; larger ones come from absurd exponents and may overflow floats."""


def normal_form(text: str) -> str:
    """Return the normal form of a unit cell, without a trailing "at 100 K"."""
    plain = plain_superscripts(text).translate(_SPELLINGS)
    plain = plain_dashes(unicodedata.normalize("NFKC", plain))
    return _AT.sub("", " ".join(plain.split()))


def parse_unit(
    text: str, unit_of: Callable[[str], PhysicalUnit | None]
) -> PhysicalUnit | None:
    """Return the unit that a cell spells, or None.

    Args:
        text: The cell, in its normal form.
        unit_of: Returns the unit of a single name, or None.
    """
    text = text.translate(_BRACKETS)
    ten = _POWER_OF_TEN.match(text)
    text = text if ten is None else text[ten.end() :]
    above, divided, below = text.partition("/")
    numerator = _factors("" if divided and above.strip() == "1" else above, unit_of, 1)
    denominator = _factors(below.replace("/", " "), unit_of, -1)
    if numerator is None or denominator is None or (divided and not denominator):
        return None
    factors = numerator + denominator
    if not factors or len(factors) > MOST_FACTORS:
        return None
    if any(unit.offset for unit, _ in factors):
        (unit, exponent), *others = factors
        return None if others or exponent != 1 or ten is not None else unit
    product = (
        DIMENSIONLESS
        if ten is None
        else PhysicalUnit(Fraction(10) ** int(ten[1] or ten[2]))
    )
    for unit, exponent in factors:
        product *= unit**exponent
    return product if 1 / _WIDEST < product.factor < _WIDEST else None


def _factors(
    text: str, unit_of: Callable[[str], PhysicalUnit | None], sign: int
) -> list[tuple[PhysicalUnit, int]] | None:
    """Return units and exponents of a product; None if one of them is unreadable."""
    factors = []
    for word in filter(None, _SEPARATORS.split(text)):
        match = _FACTOR.fullmatch(word)
        unit = None if match is None else unit_of(match[1])
        if match is None or unit is None:
            return None
        exponent = int(match[2] or 1)
        if abs(exponent) > MOST_EXPONENT:
            return None
        factors.append((unit, sign * exponent))
    return factors


BLANK = frozenset(
    {"", "N/A", "NA", "n/a", "-", "none", "None", "#N/A", "dimensionless"}
)
"""Contents of a unit cell without a unit."""

_ELEMENTS = """
Ac Ag Al Am Ar As At Au Ba Be Bh Bi Bk Br Ca Cd Ce Cf Cl Cm Cn Co Cr Cs Cu Db Ds Dy Er
Es Eu Fe Fl Fm Fr Ga Gd Ge He Hf Hg Ho Hs In Ir Kr La Li Lr Lu Lv Mc Md Mn Mo Mt Na
Nb Nd Ne Nh Ni No Np Og Os Pb Pd Pm Po Pr Pt Pu Ra Rb Re Rf Rg Rh Rn Ru Sb Sc Se Sg Si
Sm Sn Sr Ta Tb Tc Te Th Ti Tl Tm Ts Xe Yb Zn Zr
"""
_OTHERS = "at a me"  # as in at.% and a.u.; and electron masses
NO_UNITS = frozenset((_ELEMENTS + _OTHERS).split())
"""Elements, as in uB/Eu, which pint reads as exadaltons, and others it misreads.

Pa remains the pascal, and Mg the megagram of densities.
"""

_PREFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "μ": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    "k": Fraction(10**3),
    "K": Fraction(10**3),
    "M": Fraction(10**6),
}


@dataclass(frozen=True, slots=True)
class _DialectRow:
    names: str
    factor: str  #: in coherent SI units
    powers: Mapping[str, int]
    prefixes: str = ""  #: optional prefixes of the names


_LENGTH = {"[length]": 1}
_ENERGY = {"[mass]": 1, "[length]": 2, "[time]": -2}
_FLUX_DENSITY = {"[mass]": 1, "[time]": -2, "[current]": -1}
_RESISTANCE = {"[mass]": 1, "[length]": 2, "[time]": -3, "[current]": -2}
_RESISTIVITY = {**_RESISTANCE, "[length]": 3}
_MOMENT = {"[current]": 1, "[length]": 2}

_DIALECT = (
    # with prefixes: otherwise kA/cm2 and A/cm2 would have different dimensions
    _DialectRow("A Å A°", "1e-10", _LENGTH, "uμmkM"),
    _DialectRow("Oe oersted G Gs gauss", "1e-4", _FLUX_DENSITY, "uμmkKM"),
    _DialectRow("k", "1", {"[temperature]": 1}, "uμm"),
    _DialectRow("ohm Ohm Ω", "1", _RESISTANCE, "nuμmkM"),
    _DialectRow("ohmcm Ohmcm Ωcm", "1e-2", _RESISTIVITY, "nuμmkM"),
    _DialectRow("mj", "1e-3", _ENERGY),
    _DialectRow("mole", "1", {"[substance]": 1}),
    _DialectRow("cc", "1e-6", {"[length]": 3}),
    _DialectRow("%", "1e-2", {}),
    _DialectRow("n", "1", {}),
    # CODATA 2022; pint reads uB as microbyte, and muB too
    _DialectRow("uB μB muB", "9.2740100657e-24", _MOMENT),
)


def _dialect_unit(factor: Fraction, powers: Mapping[str, int]) -> PhysicalUnit:
    return PhysicalUnit(factor, dimensions({k: Fraction(v) for k, v in powers.items()}))


def _dialect_names() -> Iterator[tuple[str, PhysicalUnit]]:
    for row in _DIALECT:
        for prefix in ("", *row.prefixes):
            unit = _dialect_unit(Fraction(row.factor) * _PREFIXES[prefix], row.powers)
            for name in row.names.split():
                yield prefix + name, unit


DIALECT_UNITS: Mapping[str, PhysicalUnit] = dict(_dialect_names())
"""Units of the dialect, by single names."""

WHOLE_CELLS: Mapping[str, PhysicalUnit] = {
    "m.ohm.cm": _dialect_unit(Fraction(1, 10**5), _RESISTIVITY),
    "% per 1 GPa": _dialect_unit(
        Fraction(1, 10**11), {"[mass]": -1, "[length]": 1, "[time]": 2}
    ),
}
"""Spellings with another meaning than their parts."""


_PREFIXED: Final = {
    "K": ("", "m", "u", "μ"),
    "T": ("", "m", "u", "μ"),
    "eV": ("", "m", "k", "M"),
    "Pa": ("", "h", "k", "M", "G"),
    "bar": ("", "m", "k", "M"),
    "J": ("", "m", "u", "μ", "k"),
    "W": ("", "m", "u", "μ", "k"),
    "V": ("", "m", "u", "μ", "n", "k"),
    "S": ("", "m"),
    "Hz": ("", "k", "M", "G", "T"),
    "s": ("", "m", "u", "μ", "n", "p", "f"),
    "g": ("", "m", "k"),
    "mol": ("", "m", "u", "μ"),
    "m": ("", "c", "m", "u", "μ", "n", "p"),
    "emu": ("", "m"),
}
_PLAIN: Final = ("°C", "°F", "℃", "deg", "min", "h", "states", "atom")

UNITS: Final = frozenset(
    {
        *DIALECT_UNITS,
        *_PLAIN,
        *(
            f"{prefix}{name}"
            for name, prefixes in _PREFIXED.items()
            for prefix in prefixes
        ),
    }
)
"""Single names of units."""


@lru_cache(maxsize=4096)
def is_unit(text: str) -> bool:
    """Return whether a text is a unit, such as "mJ/mol K2"; a blank one is none."""
    spelled = normal_form(text)
    if spelled in BLANK:
        return False
    return spelled in WHOLE_CELLS or parse_unit(spelled, _named_unit) is not None


def _named_unit(name: str) -> PhysicalUnit | None:
    return DIMENSIONLESS if name in UNITS else None
