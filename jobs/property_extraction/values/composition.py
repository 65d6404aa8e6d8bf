"""When two chemical formulas say the same composition."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from jobs.property_extraction.settings import Unparsed
from jobs.property_extraction.values.comparison import Rule
from jobs.property_extraction.values.folding import folded
from jobs.property_extraction.values.texts import Paired

if TYPE_CHECKING:
    from pymatgen.core.composition import Composition

_ISOTOPE = re.compile(r"[TD](?![a-z])")
"""Pymatgen reads them as hydrogen; T may also be meant as any transition metal."""


_LONGEST = 1000
"""Characters of a formula; pymatgen's time grows with their square."""


def is_pymatgen_installed() -> bool:
    """Whether formulas can be compared at all; pymatgen is in the extra `materials`."""
    return find_spec("pymatgen") is not None


def composition_rule(*, unparsed: Unparsed) -> Rule:
    """How formulas are compared: amounts within pymatgen's tolerance.

    Args:
        unparsed: Where pymatgen cannot read one of two formulas, their `text` apart
            from case and blanks decides, or they are `no_match`.
    """

    def are_equal(a: _Formula, b: _Formula) -> bool:
        if a.composition is None or b.composition is None:
            return unparsed == "text" and a.spelled == b.spelled
        if a.has_isotope != b.has_isotope:
            return a.spelled == b.spelled
        return bool(a.composition.almost_equals(b.composition))

    return Paired(lambda _, text: _formula(text), are_equal)


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
        warnings.simplefilter("ignore")  # of formulas that it finds odd
        try:
            return Composition(text)
        except Exception:  # noqa: BLE001 - it raises what it likes on other texts
            return None
