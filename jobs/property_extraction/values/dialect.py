"""The units of materials papers that general software reads otherwise, or not at all.

Plain pint reads A as ampere, k as Boltzmann's constant, m.ohm.cm as metre-ohm-cm, and
gives Oe and T different dimensions. In tables of materials A is angstrom, k is kelvin,
m.ohm.cm is a thousandth of an ohm-cm, and a field in Oe is told in T as its flux
density in vacuum. What stands here goes before pint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from jobs.property_extraction.values.unit import Unit, dimensions

BLANK = frozenset(
    {"", "N/A", "NA", "n/a", "-", "none", "None", "#N/A", "dimensionless"}
)
"""What stands in a unit cell that holds no unit."""

_ELEMENTS = """
Ac Ag Al Am Ar As At Au Ba Be Bh Bi Bk Br Ca Cd Ce Cf Cl Cm Cn Co Cr Cs Cu Db Ds Dy Er
Es Eu Fe Fl Fm Fr Ga Gd Ge He Hf Hg Ho Hs In Ir Kr La Li Lr Lu Lv Mc Md Mn Mo Mt Na
Nb Nd Ne Nh Ni No Np Og Os Pb Pd Pm Po Pr Pt Pu Ra Rb Re Rf Rg Rh Rn Ru Sb Sc Se Sg Si
Sm Sn Sr Ta Tb Tc Te Th Ti Tl Tm Ts Xe Yb Zn Zr
"""
_OTHERS = "at a me"  # as in at.% and a.u.; and electron masses
NO_UNITS = frozenset((_ELEMENTS + _OTHERS).split())
"""Elements, as in uB/Eu, which pint reads as exadaltons, and others it misreads.

Pa stays the pascal, and Mg the megagram of densities.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    names: str
    factor: Fraction  #: in coherent SI units
    powers: Mapping[str, int]
    prefixes: str = ""  #: what may stand before the names, beside nothing


_LENGTH = {"[length]": 1}
_ENERGY = {"[mass]": 1, "[length]": 2, "[time]": -2}
_FLUX_DENSITY = {"[mass]": 1, "[time]": -2, "[current]": -1}
_RESISTANCE = {"[mass]": 1, "[length]": 2, "[time]": -3, "[current]": -2}
_RESISTIVITY = {**_RESISTANCE, "[length]": 3}
_MOMENT = {"[current]": 1, "[length]": 2}

_ROWS = (
    # with prefixes, or kA/cm2 and A/cm2 would be of different dimensions
    _Row(names="A Å A°", factor=Fraction(1, 10**10), powers=_LENGTH, prefixes="uμmkM"),
    _Row(
        names="Oe oersted G Gs gauss",
        factor=Fraction(1, 10**4),
        powers=_FLUX_DENSITY,
        prefixes="uμmkKM",
    ),
    _Row(names="k", factor=Fraction(1), powers={"[temperature]": 1}, prefixes="uμm"),
    _Row(names="ohm Ohm Ω", factor=Fraction(1), powers=_RESISTANCE, prefixes="nuμmkM"),
    _Row(
        names="ohmcm Ohmcm Ωcm",
        factor=Fraction(1, 10**2),
        powers=_RESISTIVITY,
        prefixes="nuμmkM",
    ),
    _Row(names="mj", factor=Fraction(1, 10**3), powers=_ENERGY),
    _Row(names="mole", factor=Fraction(1), powers={"[substance]": 1}),
    _Row(names="cc", factor=Fraction(1, 10**6), powers={"[length]": 3}),
    _Row(names="%", factor=Fraction(1, 10**2), powers={}),
    _Row(names="n", factor=Fraction(1), powers={}),
    # CODATA 2022; pint reads uB as microbyte, and muB so too
    _Row(names="uB μB muB", factor=Fraction("9.2740100657e-24"), powers=_MOMENT),
)


def _unit(factor: Fraction, powers: Mapping[str, int]) -> Unit:
    return Unit(factor, dimensions({k: Fraction(v) for k, v in powers.items()}))


def _named() -> Iterator[tuple[str, Unit]]:
    for row in _ROWS:
        for prefix in ("", *row.prefixes):
            unit = _unit(row.factor * _PREFIXES[prefix], row.powers)
            for name in row.names.split():
                yield prefix + name, unit


NAMES: Mapping[str, Unit] = dict(_named())
"""Single names."""

WHOLE: Mapping[str, Unit] = {
    "m.ohm.cm": _unit(Fraction(1, 10**5), _RESISTIVITY),
    "% per 1 GPa": _unit(
        Fraction(1, 10**11), {"[mass]": -1, "[length]": 1, "[time]": 2}
    ),
}
"""Spellings that mean something else than their parts."""
