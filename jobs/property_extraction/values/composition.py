"""When two chemical formulas say the same composition."""

from __future__ import annotations

import re
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING

from jobs.property_extraction.settings import Unparsed
from jobs.property_extraction.values.folding import folded

if TYPE_CHECKING:
    from pymatgen.core.composition import Composition

#: Pymatgen reads them as hydrogen; in a formula they may be any transition metal, too.
_ISOTOPE = re.compile(r"[TD](?![a-z])")


def is_pymatgen_installed() -> bool:
    """Whether formulas can be compared at all; pymatgen is in the extra `materials`."""
    return find_spec("pymatgen") is not None


class Compositions:
    """Compares formulas by pymatgen, and by their text where it cannot read one."""

    def __init__(self, *, unparsed: Unparsed) -> None:
        self._unparsed = unparsed
        self._parsed: dict[str, Composition | None] = {}

    def are_equal(self, a: str, b: str) -> bool:
        """Whether two formulas say the same, amounts within pymatgen's tolerance."""
        first, second = self._composition(a), self._composition(b)
        if first is None or second is None:
            return self._unparsed == "text" and _spelled(a) == _spelled(b)
        if bool(_ISOTOPE.search(a)) != bool(_ISOTOPE.search(b)):
            return _spelled(a) == _spelled(b)
        return bool(first.almost_equals(second))

    def _composition(self, text: str) -> Composition | None:
        if text not in self._parsed:
            self._parsed[text] = _read(text)
        return self._parsed[text]


def _spelled(text: str) -> str:
    return folded(text).replace(" ", "")


def _read(text: str) -> Composition | None:
    from pymatgen.core.composition import Composition  # noqa: PLC0415 - an extra, and slow to load

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of amounts and names that it finds odd
        try:
            return Composition(text)
        except Exception:  # noqa: BLE001 - it raises what it likes on other texts
            return None
