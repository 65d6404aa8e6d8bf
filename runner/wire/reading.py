"""What every decoder does with bytes that somebody else wrote."""

from __future__ import annotations

import json
import math
from typing import Final, TypeVar

import msgspec

_T = TypeVar("_T")

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What bytes that are no JSON of ours raise; the last: brackets in brackets in ..."""


def read_body(decoder: msgspec.json.Decoder[_T], body: bytes) -> _T:
    """What *decoder* makes of *body*; raises one of `UNREADABLE`.

    What careless JSON writers leave is no reason to lose what was paid for: half a
    surrogate pair, where an emoji was cut in two, becomes a question mark, and NaN, as
    the logarithm of a probability of 0, becomes null.
    """
    try:
        return decoder.decode(body)
    except msgspec.DecodeError:
        try:
            found = json.loads(body, parse_constant=_nothing, parse_float=_finite)
        except ValueError:
            found = None
        if found is None:
            raise
    content = json.dumps(found, ensure_ascii=False)
    return decoder.decode(content.encode(errors="replace"))


def _nothing(constant: str) -> None:
    del constant


def _finite(written: str) -> float | None:
    number = float(written)
    return number if math.isfinite(number) else None
