"""A unit of measurement, and how a value in one unit reads in another."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

UnitStatus: TypeAlias = Literal[
    "same", "converted", "missing", "unknown", "incompatible"
]

Dimensions: TypeAlias = tuple[tuple[str, Fraction], ...]
"""Powers of the base dimensions, none of them 0, ordered by name."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What one of this unit is in coherent SI units: `factor` of them, plus `offset`.

    Factors are fractions, so that `mOhm.cm` and `m.ohm.cm` are the same unit and not
    two that differ in the last bit.
    """

    factor: Fraction
    dimensions: Dimensions = ()
    offset: Fraction = Fraction(0)  #: of a temperature scale, in kelvin

    def __mul__(self, other: Unit) -> Unit:
        """The product of two units without offset."""
        powers = dict(self.dimensions)
        for name, power in other.dimensions:
            powers[name] = powers.get(name, Fraction(0)) + power
        return Unit(self.factor * other.factor, dimensions(powers))

    def __pow__(self, exponent: int) -> Unit:
        """A power of a unit without offset."""
        powers = {name: power * exponent for name, power in self.dimensions}
        return Unit(self.factor**exponent, dimensions(powers))


ONE = Unit(Fraction(1))
"""The unit of a bare number."""


def dimensions(powers: dict[str, Fraction]) -> Dimensions:
    """Powers of base dimensions in their one order."""
    return tuple(sorted((name, power) for name, power in powers.items() if power))


@dataclass(frozen=True, slots=True)
class StatedUnit:
    """What stands in a unit cell; neither blank nor understood means unknown."""

    text: str  #: in its one spelling
    unit: Unit | None = None
    blank: bool = False


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a value reads in another unit: value * factor + offset."""

    status: UnitStatus
    factor: float = 1.0
    offset: float = 0.0

    def __call__(self, value: float) -> float:
        """The value in the other unit."""
        return value * self.factor + self.offset


def convert(source: StatedUnit, target: StatedUnit) -> Conversion:
    """How a value in one unit is told in another.

    Where a unit is missing or unknown, numbers are compared as they are; where the
    dimensions differ, not at all.
    """
    if source.blank or target.blank:
        return Conversion("missing")
    if source.text == target.text:
        return Conversion("same")
    if source.unit is None or target.unit is None:
        return Conversion("unknown")
    return between(source.unit, target.unit)


def between(source: Unit, target: Unit) -> Conversion:
    """How a value in one known unit is told in another."""
    if source.dimensions != target.dimensions:
        return Conversion("incompatible")
    factor = source.factor / target.factor
    offset = (source.offset - target.offset) / target.factor
    if factor == 1 and not offset:
        return Conversion("same")
    return Conversion("converted", float(factor), float(offset))
