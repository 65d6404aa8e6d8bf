"""What has to be typed for a request, and what it is read as. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = str | int | float | None


class NotAValue(Exception):
    """What was typed cannot be used; the message says what can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Something to be typed."""

    key: str  #: of the payload
    label: str
    read: Callable[[str], Value]  #: raises `NotAValue`
    value: str = ""  #: to begin with
    is_number: bool = True  #: a digit is meant for it, wherever one is in the dialog


def as_typed(typed: str) -> Value:
    """Words, without the blanks around them."""
    return typed.strip()


def whole(typed: str) -> Value:
    """A count of 1 or more.

    Raises:
        NotAValue: it is none.
    """
    if not re.fullmatch(r"[1-9]\d{0,8}", typed.strip(), re.ASCII):
        raise NotAValue("type a whole number from 1 on")
    return int(typed)


def positive(typed: str) -> Value:
    """An amount above 0.

    Raises:
        NotAValue: it is none.
    """
    number = re.fullmatch(r"\d{1,12}(\.\d{1,6})?", typed.strip(), re.ASCII)
    if number is None or float(typed) == 0:
        raise NotAValue("type a number above 0")
    return float(typed)


def ceiling(typed: str) -> Value:
    """An amount above 0; None: no limit.

    Raises:
        NotAValue: it is neither.
    """
    if typed.strip() == "none":
        return None
    try:
        return positive(typed)
    except NotAValue:
        raise NotAValue("type a number above 0, or none: no limit") from None
