"""Compares the references of a manuscript with the values of a run; pure.

A number may be typeset in any usual way: thousands with or without separators, a
minus sign or a hyphen, a decimal point or a raised one, the zero before it or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, Literal, TypeAlias

from jobs.kit.methods.manuscript import Manuscript, Mark, Source
from jobs.kit.methods.references import (
    QuotedValue,
    QuotedValues,
    Rounding,
    model_text,
    siblings,
)
from store.nearest import nearest

FaultKind: TypeAlias = Literal[
    "digit",
    "rounding",
    "denominator",
    "model",
    "stale",
    "unit",
    "unknown",
    "broken",
]

SENTENCES: Final[dict[FaultKind, str]] = {
    "digit": "the log gives another value",
    "rounding": "the value is rounded in another way",
    "denominator": "the log gives another denominator",
    "model": "this is the value of another model",
    "stale": "the value has changed since the text was written",
    "unit": "this is a share where a percentage stands, or the other way round",
    "unknown": "the run has no value of this name",
    "broken": "the mark of the value is not complete",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A value in a manuscript that is not what the log gives."""

    kind: FaultKind
    line: int
    column: int
    name: str
    written: str  #: what stands there
    expected: str  #: what should stand there; empty: unknown
    detail: str = ""  #: such as the model whose value it is

    @property
    def sentence(self) -> str:
        """The fault for people, without its place."""
        expected = f", not {self.expected}" if self.expected else ""
        detail = f" ({self.detail})" if self.detail else ""
        return (
            f"{self.name} is {self.written or 'empty'}{expected}: "
            f"{SENTENCES[self.kind]}{detail}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ManuscriptVerdict:
    """The result of a check."""

    checked: int
    faults: tuple[Fault, ...]
    elsewhere: int  #: references of other runs, which were not checked
    redacted: int  #: references to what a redacted bundle hides, likewise


Earlier: TypeAlias = Callable[[Source], QuotedValues | None]
"""Returns the values that a run had when a text was written; None: unknown."""


def check_manuscript(
    manuscript: Manuscript,
    known: QuotedValues,
    run: str,
    *,
    earlier: Earlier = lambda _: None,
    any_precision: bool = False,
    redacted: Container[str] = frozenset(),
) -> ManuscriptVerdict:
    """Compare a manuscript with a run.

    Args:
        manuscript: its references.
        known: the run's values by name.
        run: the run's id; references of other runs are counted, not checked.
        earlier: called for values that differ.
        any_precision: accept correct values with more or fewer digits.
        redacted: names of values that are not known.
    """
    of_run = [m for m in manuscript.marks if m.source is None or m.source.run == run]
    marks = [mark for mark in of_run if mark.name not in redacted]
    faults = [
        fault
        for mark in marks
        for fault in _faults(mark, known, earlier, any_precision=any_precision)
    ]
    return ManuscriptVerdict(
        checked=len(marks),
        faults=tuple(faults),
        elsewhere=len(manuscript.marks) - len(of_run),
        redacted=len(of_run) - len(marks),
    )


def _faults(
    mark: Mark, known: QuotedValues, earlier: Earlier, *, any_precision: bool
) -> Iterator[Fault]:
    reference = known.get(mark.name)
    if mark.text is None:
        yield _fault("broken", mark)
    elif reference is None:
        near = nearest(mark.name, sorted(known), ratio=0.6)
        yield _fault("unknown", mark, f"the nearest is {near[0]}" if near else "")
    elif not _agree(mark.text, reference):
        kind, detail = _diagnosis(mark, reference, known, earlier)
        if not (any_precision and _is_exact(mark, reference)):
            yield _fault(kind, mark, detail, reference.text)


def _fault(kind: FaultKind, mark: Mark, detail: str = "", expected: str = "") -> Fault:
    return Fault(
        kind=kind,
        line=mark.line,
        column=mark.column,
        name=mark.name,
        written=mark.text or "",
        expected=expected,
        detail=detail,
    )


def _agree(text: str, reference: QuotedValue) -> bool:
    """Return whether a text shows a value as its rounding demands."""
    printed = " ".join(reference.text.split())
    if text == printed:
        return True
    if isinstance(reference.value, str) or reference.rounding is Rounding.DATE:
        return False
    return canonical(text) == canonical(printed)


_SIGNS: Final = str.maketrans({"\u2212": "-", "\u2013": "-", "·": ".", "\u2019": ","})
_GROUPED: Final = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?")


def canonical(text: str) -> str:
    """Return a number without the freedoms of typesetting.

    >>> [canonical(text) for text in ("1,234", "1 234", "\u2212.5", "97.1 %")]
    ['1234', '1234', '-0.5', '97.1']
    """
    plain = re.sub(r"\s", "", text).translate(_SIGNS)
    plain = re.sub(r"^(-?)(?:US)?\$", r"\1", plain).removesuffix("%")
    if _GROUPED.fullmatch(plain):
        plain = plain.replace(",", "")
    return re.sub(r"^(-?)\.", r"\g<1>0.", plain)


def _diagnosis(
    mark: Mark, reference: QuotedValue, known: QuotedValues, earlier: Earlier
) -> tuple[FaultKind, str]:
    """Return what is wrong with a value, and details."""
    text = mark.text or ""
    then = earlier(mark.source) if mark.source is not None else None
    before = (then or {}).get(mark.name)
    if before is not None and before.text != reference.text and _agree(text, before):
        return "stale", "the run was scored or continued since"
    if kind := _number_fault(text, reference):
        return kind, reference.rounding.value if kind == "rounding" else ""
    for other in siblings(known, reference):
        if _agree(text, other):
            return "model", f"of {model_text(other.model)}"
    return ("denominator" if reference.is_denominator else "digit"), ""


def _number_fault(text: str, reference: QuotedValue) -> FaultKind | None:
    """Return whether a number is the value in another rounding or unit."""
    printed, value = _decimal(text), reference.value
    if printed is None or isinstance(value, str | None):
        return None
    exact = Decimal(value)
    if reference.rounding is Rounding.PERCENT:
        exact *= 100
    if isinstance(value, int):
        return None
    if _is_near(printed, exact):
        return "rounding"
    if _is_near(printed, exact * 100) or _is_near(printed, exact / 100):
        return "unit"
    return None


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(canonical(text))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _is_near(printed: Decimal, exact: Decimal) -> bool:
    """Return whether they differ by less than a unit of the last place that is written.

    A single digit is near to too much to be taken for a rounded value.
    """
    exponent = printed.as_tuple().exponent
    has_digits = len(printed.as_tuple().digits) > 1
    if not isinstance(exponent, int) or not printed or not has_digits:
        return printed == exact
    return abs(printed - exact) < Decimal(1).scaleb(exponent)


def _is_exact(mark: Mark, reference: QuotedValue) -> bool:
    """Return whether a number is correctly rounded to the digits that it has.

    At least one of them must say something: 1 is no value for a recall of 0.917.
    """
    printed, value = _decimal(mark.text or ""), reference.value
    if printed is None or not isinstance(value, float):
        return False
    exact = Decimal(value) * (100 if reference.rounding is Rounding.PERCENT else 1)
    exponent = printed.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exact) < Decimal(1).scaleb(exponent):
        return False
    return abs(printed - exact) <= Decimal(1).scaleb(exponent) / 2
