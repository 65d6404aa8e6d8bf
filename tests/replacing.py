"""Changes a field of a frozen value, be it an event or a dataclass."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, cast

import msgspec

_T = TypeVar("_T")


def replace(value: _T, /, **changes: Any) -> _T:
    """Return *value* with some fields changed."""
    if isinstance(value, msgspec.Struct):
        return cast("_T", msgspec.structs.replace(value, **changes))
    return cast("_T", dataclasses.replace(cast("Any", value), **changes))
