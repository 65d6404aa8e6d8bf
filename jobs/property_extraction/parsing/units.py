"""Whether a text is a unit of a material's property, as far as replies go.

It decides whether "2.8 K" is a number with its unit or a text of its own. The names are
those of materials papers, and no more than these: what a reply was read as must not
depend on which libraries are installed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from jobs.property_extraction.values.dialect import BLANK, NAMES, WHOLE
from jobs.property_extraction.values.unit import ONE, Unit
from jobs.property_extraction.values.unit_grammar import normal_form, parse_unit

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
        *NAMES,
        *_PLAIN,
        *(f"{prefix}{name}" for name, given in _PREFIXED.items() for prefix in given),
    }
)
"""Single names."""


@lru_cache(maxsize=4096)
def is_unit(text: str) -> bool:
    """Whether a text is a unit, such as "mJ/mol K2"; a blank one is none."""
    spelled = normal_form(text)
    if spelled in BLANK:
        return False
    return spelled in WHOLE or parse_unit(spelled, _named) is not None


def _named(name: str) -> Unit | None:
    return ONE if name in UNITS else None
