"""The fields of a JSON object, with complaints that say where.

Input files are written by hand and by many programs: a text may be missing, null or
blank, an identifier a text or a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from jobs.inputs.rows import kind_of
from jobs.review_benchmark.answered import word_of
from runner.errors import DatasetError

_Word = TypeVar("_Word", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """An object of an input file."""

    where: str  #: file and place, as an error names them
    values: Mapping[str, Any]

    def error(self, what: str) -> DatasetError:
        """A complaint about this object; *what* ends with the cure."""
        return DatasetError(f"{self.where}: {what}.")

    def text(self, name: str) -> str:
        """A text without outer blanks; empty where it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(f"{name} is {kind_of(value)} (a text is expected)")
        return value.strip()

    def identifier(self, name: str) -> str:
        """A text or a whole number, as text; empty where it is missing or null."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float | str | None):
            raise self.error(f"{name} is {kind_of(value)} (put the id in quotes)")
        return "" if value is None else str(value).strip()

    def year(self, name: str) -> int | None:
        """A whole number, also as `1999.0` or "1999"; None where it is not given."""
        value = self.values.get(name)
        if value is None or value == "":
            return None
        try:
            number = float(value) if not isinstance(value, bool) else None
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or not number.is_integer():
            raise self.error(f"{name} is {value!r} (a year such as 1999 is expected)")
        return int(number)

    def word(self, name: str, allowed: tuple[_Word, ...]) -> _Word | None:
        """One of some words; None where it is missing, null or blank."""
        text = self.text(name)
        found = word_of(text, allowed)
        if text and found is None:
            raise self.error(f"{name} is {text!r} (use one of {', '.join(allowed)})")
        return found

    def number(self, name: str) -> float | None:
        """A number; None where it is missing or null."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise self.error(f"{name} is {kind_of(value)} (a number is expected)")
        try:
            return None if value is None else float(value)
        except OverflowError as error:
            raise self.error(f"{name} is too large (correct it)") from error

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts without the blank ones; empty where it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.error(f"{name} is {kind_of(value)} (a list is expected)")
        for place, each in enumerate(value):
            if not isinstance(each, str):
                raise self.error(
                    f"{name}[{place}] is {kind_of(each)} (a text is expected)"
                )
        return tuple(each.strip() for each in value if each.strip())

    def object(self, name: str) -> Fields | None:
        """An object inside this one; None where it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(f"{name} is {kind_of(value)} (an object is expected)")
        return Fields(where=f"{self.where}: {name}", values=value)

    def objects(self, name: str) -> tuple[Fields, ...]:
        """The objects in a list; empty where it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.error(f"{name} is {kind_of(value)} (a list is expected)")
        found = []
        for place, each in enumerate(value):
            if not isinstance(each, dict):
                raise self.error(
                    f"{name}[{place}] is {kind_of(each)} (an object is expected)"
                )
            found.append(Fields(where=f"{self.where}: {name}[{place}]", values=each))
        return tuple(found)

    def without(self, names: Sequence[str]) -> dict[str, Any]:
        """The fields of other names."""
        known = set(names)
        return {name: each for name, each in self.values.items() if name not in known}
