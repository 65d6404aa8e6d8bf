"""Single unit names as pint knows them.

Only names ever reach pint, never an expression: its parser takes `cm-2` for a
subtraction, and evaluates `9**9**9`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from jobs.property_extraction.values.unit import Unit, dimensions

if TYPE_CHECKING:
    from pint import UnitRegistry


def is_pint_installed() -> bool:
    """Whether names can be looked up; pint is in the extra `materials`."""
    return find_spec("pint") is not None


def pint_unit(name: str) -> Unit | None:
    """The unit of a name, prefix included; None for one that pint does not know.

    Logarithmic units are not known either: no factor makes them others.

    Args:
        name: Letters, perhaps after a degree sign.
    """
    registry = _registry()
    found = registry.parse_unit_name(name)
    if not found:
        return None
    prefix, stem, _suffix = found[0]
    units = registry.UnitsContainer({prefix + stem: 1})
    try:
        zero, one = (
            registry.Quantity(Fraction(n), units).to_base_units() for n in range(2)
        )
    except TypeError:  # a fraction has no logarithm
        return None
    offset = Fraction(str(zero.magnitude))
    powers = {str(k): Fraction(str(v)) for k, v in one.dimensionality.items()}
    return Unit(Fraction(str(one.magnitude)) - offset, dimensions(powers), offset)


@cache
def _registry() -> UnitRegistry[Fraction]:
    """Pint's default definitions, in exact fractions."""
    import pint  # noqa: PLC0415 - an extra, and slow to load

    return pint.UnitRegistry(non_int_type=Fraction)
