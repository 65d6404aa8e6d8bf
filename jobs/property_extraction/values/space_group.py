"""Which of the 230 space groups a text names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cached_property
from importlib.util import find_spec

from jobs.property_extraction.values.folding import plain_dashes
from jobs.property_extraction.values.space_group_symbols import SYMBOLS

_MOST = 230

# NFKC leaves a blank before the overline that stands alone
_OVERLINED = re.compile("([0-9]) ?[\u0304\u0305]")
_DROPPED = re.compile(r"[^a-z0-9/-]+")
_NUMBER = re.compile(r"[1-9][0-9]{0,2}")


class SpaceGroups:
    """Looks symbols up: those given, or all that gemmi knows, or the short ones.

    gemmi is in the extra `materials`.
    """

    def __init__(self, symbols: Mapping[str, int] | None = None) -> None:
        self._symbols = symbols

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        symbols = _built_in() if self._symbols is None else self._symbols
        return {normal_symbol(symbol): number for symbol, number in symbols.items()}

    def number(self, text: str) -> int | None:
        """The number of a space group, from its symbol or a plain integer."""
        found = _NUMBER.fullmatch(text.strip())
        if found is not None:
            number = int(found[0])
            return number if number <= _MOST else None
        return self._numbers.get(normal_symbol(text))


def normal_symbol(text: str) -> str:
    """A symbol in letters, digits, `/` and `-` alone: `P6₃mc` as `p63mc`.

    An overline becomes a minus sign, as without it R3̅m would be R3m.
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
