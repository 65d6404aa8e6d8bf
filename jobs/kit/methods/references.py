"""References: named values of a run, as a text shows them.

The name of a reference stands in a manuscript beside its value, in macros of LaTeX and
comments of HTML, so it consists of few characters; all others, such as those in names
of models, are written as `=XX` for each byte of UTF-8.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePath
from typing import Final, TypeAlias

from store.printable import one_line

Value: TypeAlias = int | float | str | None
"""None: undefined, or unknown."""

UNDEFINED: Final = "n/a"

_PLAIN: Final = re.compile(rb"[A-Za-z0-9._+-]")


class Rounding(Enum):
    """Rounding of a value; the value of a member describes it."""

    EXACT = "exact"
    METRIC = "3 decimals, <0.001 below that, none from 1,000 on"
    PERCENT = "1 decimal of a percentage"
    DOLLARS = "cents; 4 decimals below a dollar"
    DATE = "day"
    HASH = "first 12 hexadecimal digits"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedValue:
    """A value of a run under a stable name."""

    name: str
    value: Value
    rounding: Rounding = Rounding.EXACT
    unit: str = ""  #: such as "tasks", "%" or "US dollars"; empty: none
    n: int | None = None  #: denominator; None: not a share of anything
    family: str = ""  #: what the same values of other models share; empty: none
    model: str = ""  #: whose value it is; empty: of the whole run
    is_denominator: bool = False

    @property
    def text(self) -> str:
        """The value as the text shows it, without its unit."""
        return _RENDERED[self.rounding](self.value) if self.has_value else UNDEFINED

    @property
    def has_value(self) -> bool:
        """Whether the value is defined."""
        return self.value is not None and not (
            isinstance(self.value, float) and math.isnan(self.value)
        )


QuotedValues: TypeAlias = Mapping[str, QuotedValue]
"""Values by name."""


def encoded(text: str, *, safe: str = "") -> str:
    """Encode a part of a name; characters of *safe* stay.

    >>> encoded("openai/gpt-4o", safe="/"), encoded("50 %"), encoded("a--b")
    ('openai/gpt-4o', '50=20=25', 'a-=2Db')
    """
    plain = safe.encode()
    pieces = [
        bytes([byte]).decode()
        if _PLAIN.match(bytes([byte])) or byte in plain
        else f"={byte:02X}"
        for byte in text.encode(errors="surrogatepass")
    ]
    # two hyphens may not occur in a comment of HTML
    return re.sub(r"(?<=-)-", "=2D", "".join(pieces))


RECORDED: Final = "recorded:"
"""Begins the name of a model whose replies were read from a file."""


def model_text(model: str) -> str:
    """Return the name of a model for readers, who need no place of a file."""
    is_file = model.startswith(RECORDED)
    return f"{RECORDED}{PurePath(model).name}" if is_file else model


def _word(part: str) -> str:
    """Return a part without the place of a file, which stays distinct by a hash."""
    if not part.startswith(RECORDED):
        return part
    sha256 = hashlib.sha256(part.encode(errors="surrogatepass")).hexdigest()
    return f"{RECORDED}{sha256[:8]}-{PurePath(part).name}"


def name_of(kind: str, *parts: str, suffix: str = "") -> str:
    """Return a name such as `metric:JOB/MODEL/PATH@n`.

    Of the parts, only a name of a model keeps its slashes; it is never the last one.
    """
    last = len(parts) - 1
    words = [
        encoded(_word(part), safe="" if at == last else "/")
        for at, part in enumerate(parts)
    ]
    return f"{kind}:{'/'.join(words)}{f'@{suffix}' if suffix else ''}"


def by_name(references: Iterable[QuotedValue]) -> dict[str, QuotedValue]:
    """Return references by name; of two with one name, the first."""
    named: dict[str, QuotedValue] = {}
    for reference in references:
        named.setdefault(reference.name, reference)
    return named


def siblings(references: QuotedValues, reference: QuotedValue) -> Iterator[QuotedValue]:
    """Yield the same value of the other models."""
    for other in references.values():
        is_same = reference.family and other.family == reference.family
        if is_same and other.model != reference.model:
            yield other


def _exact(value: Value) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return one_line(str(value)) if isinstance(value, str) else f"{value:.6g}"


def _metric(value: Value) -> str:
    if not isinstance(value, float):
        return _exact(value)
    if value == 0:
        return "0.000"  # the sign of 0.0 is meaningless
    size = abs(value)
    if size >= 999.9995:  # noqa: PLR2004 - from here on 3 decimals give 1000.000
        return f"{value:,.0f}"
    if size < 0.0005:  # noqa: PLR2004 - from here on 3 decimals give 0.000
        return "<0.001" if value > 0 else ">-0.001"
    return f"{value:.3f}"


def _percent(value: Value) -> str:
    return f"{100 * float(value or 0):.1f}"


def _dollars(value: Value) -> str:
    amount = float(value or 0)
    return f"{amount:,.2f}" if amount >= 1 or amount == 0 else f"{amount:.4f}"


def _date(value: Value) -> str:
    when = datetime.fromtimestamp(float(value or 0) / 1e6, UTC)
    return f"{when.day} {when:%B %Y}"


def _hash(value: Value) -> str:
    return one_line(str(value))[:12]


_RENDERED: Final = {
    Rounding.EXACT: _exact,
    Rounding.METRIC: _metric,
    Rounding.PERCENT: _percent,
    Rounding.DOLLARS: _dollars,
    Rounding.DATE: _date,
    Rounding.HASH: _hash,
}
