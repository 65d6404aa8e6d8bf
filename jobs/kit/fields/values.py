"""Reads JSON values of replies as values of a field's type.

Numbers may be texts with separators of thousands; booleans may be words; dates are ISO
and may be partial. Units that differ from the field's are converted with pint where it
is installed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from typing import Any, Final, TypeAlias

from jobs.kit.fields.spec import FieldSpec, PartSpec
from runner.messages import wellformed

Scalar: TypeAlias = str | int | float | bool

Value: TypeAlias = Any
"""A `Scalar`, a tuple of them, a dict of parts, or a tuple of such dicts; or None."""

NOTHING: Final = frozenset(
    {"", "null", "n/a", "not reported", "not stated", "not available"}
    | {"not applicable", "not mentioned", "not specified"}
)
"""Texts that mean null, in lower case without a full stop."""

NOTHING_TYPED: Final = NOTHING | {"none", "na", "nr", "unknown", "-"}
"""Texts that mean null where the field's type has no texts of its own."""

LONGEST_SYMBOL: Final = 3
"""Characters of a unit that may be a symbol, in which case matters."""

_TRUE: Final = frozenset({"true", "yes", "y"})
_FALSE: Final = frozenset({"false", "no", "n"})

_NUMBER: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,3}(?:[, \u00a0\u202f][0-9]{3})+|[0-9]+)?"
    r"(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*(?P<unit>[^0-9].*)?",
    re.DOTALL,
)

_DATE: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?(?:T.*)?")


class Unparsed(Exception):
    """A value does not fit its type.

    Args:
        reason: one of the names that `parsing.Failure` lists.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read_value(
    raw: object, spec: FieldSpec | PartSpec, unit: str | None = None
) -> tuple[Value, str]:
    """Read a value, or one element of a list; None means "not reported".

    Returns:
        The value, and a note on its conversion if its unit was another one.

    Raises:
        Unparsed: it does not fit the type.
    """
    kind = spec.element if isinstance(spec, FieldSpec) else spec.type
    if kind == "one-of" and (option := _option(raw, spec.options)):
        return option, ""  # before null: "unknown" may be an option
    if raw is None or (isinstance(raw, str) and _is_nothing(raw, kind)):
        return None, ""
    if kind in {"integer", "number"}:
        return _number(raw, kind, spec.unit, unit)
    return _reader(kind)(raw, spec), ""


def _reader(kind: str) -> Callable[[object, FieldSpec | PartSpec], Value]:
    """Return the function that reads values of a type without units."""
    return {
        "object": _object,
        "boolean": _boolean,
        "date": _date,
        "one-of": _no_option,
        "string": _text,
    }[kind]


def _is_nothing(text: str, kind: str) -> bool:
    words = NOTHING if kind == "string" else NOTHING_TYPED
    return text.strip().rstrip(".").casefold() in words


def _text(raw: object, _: object) -> str:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise Unparsed("not_a_text")
    return wellformed(str(raw)).strip()


def _number(
    raw: object, kind: str, wanted: str | None, unit: str | None
) -> tuple[int | float, str]:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        raise Unparsed("not_a_number" if kind == "number" else "not_an_integer")
    match = _NUMBER.fullmatch(str(raw).strip())
    digits = match["number"] if match else ""
    written = (unit or (match["unit"] if match else "") or "").strip()
    try:
        value = float(re.sub(r"[, \u00a0\u202f]", "", digits))
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (written and wanted is None and unit is None):
        raise Unparsed("not_a_number" if kind == "number" else "not_an_integer")
    note = ""
    if wanted is not None and written and not _same_unit(written, wanted):
        converted = convert(value, written, wanted)
        if converted is None:
            raise Unparsed("other_unit")
        note = f"converted from {digits} {written}"
        value = converted
    if kind == "number":
        return value, note
    if value != int(value):
        raise Unparsed("not_an_integer")
    return int(value), note


def _same_unit(first: str, second: str) -> bool:
    def plain(unit: str) -> str:
        text = "".join(unit.split()).rstrip(".").replace("\u03bc", "\u00b5")
        # symbols keep their case: mM is not MM
        is_word = len(text) > LONGEST_SYMBOL
        return text.casefold().removesuffix("s") if is_word else text

    return plain(first) == plain(second)


@lru_cache(maxsize=1)
def _registry() -> Any:  # noqa: ANN401 - of pint, which may not be installed
    try:
        import pint  # noqa: PLC0415 - optional, and slow to load
    except ImportError:
        return None
    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)


def convert(value: float, unit: str, wanted: str) -> float | None:
    """Convert a value with pint; None: not installed, or the units do not convert."""
    registry = _registry()
    if registry is None:
        return None
    try:
        quantity = registry.Quantity(value, registry.Unit(unit))
        converted = float(quantity.to(registry.Unit(wanted)).magnitude)
    except Exception:  # noqa: BLE001 - pint raises errors of its parser's many libraries
        return None
    # the conversion's own rounding, as in 0.30000000000000004
    return float(f"{converted:.12g}") if math.isfinite(converted) else None


def _boolean(raw: object, _: object) -> bool:
    if isinstance(raw, bool):
        return raw
    word = str(raw).strip().rstrip(".").casefold()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    raise Unparsed("not_a_boolean")


def _date(raw: object, _: object) -> str:
    match = _DATE.fullmatch(str(raw).strip())
    if match is None:
        raise Unparsed("not_a_date")
    year, month, day = match.groups()
    try:
        date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        raise Unparsed("not_a_date") from None
    return "-".join(filter(None, (year, month, day)))


def _option(raw: object, options: tuple[str, ...]) -> str | None:
    """Return the one option that a reply names; case and punctuation may differ."""

    def plain(text: str) -> str:
        return " ".join(re.findall(r"\w+", text.casefold()))

    matches = [option for option in options if option == raw] or [
        option for option in options if plain(option) == plain(str(raw))
    ]
    return matches[0] if len(matches) == 1 else None


def _no_option(_: object, __: object) -> Value:
    raise Unparsed("not_an_option")


def _object(raw: object, spec: FieldSpec | PartSpec) -> dict[str, Scalar | None]:
    parts = spec.fields if isinstance(spec, FieldSpec) else {}
    if not isinstance(raw, Mapping) or not any(name in raw for name in parts):
        raise Unparsed("not_an_object")
    read = {}
    for name, part in parts.items():
        value: Any = raw.get(name)
        unit = None
        if isinstance(value, Mapping) and part.unit:
            value, unit = value.get("value"), value.get("unit")
        read[name], _ = read_value(value, part, unit if isinstance(unit, str) else None)
        if read[name] is None and part.required:
            raise Unparsed("required")
    return read
