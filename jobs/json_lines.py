"""What an entry of a JSON file is: an object, or a complaint that says what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from runner.errors import DatasetError

_DECODER = msgspec.json.Decoder()


def object_of(text: str, where: str) -> dict[str, Any]:
    """The object that a line holds.

    Args:
        text: of the line.
        where: file and number of the line, as an error names them.

    Raises:
        DatasetError: it holds something else.
    """
    try:
        value = _DECODER.decode(text)
    except msgspec.DecodeError as error:
        seems_csv = text[:1] not in {"{", "["} and any(map(text.count, ",;\t"))
        hint = "; this looks like CSV, write its rows as objects" if seems_csv else ""
        raise DatasetError(
            f"{where}: not valid JSON, {error} (each line must hold one object{hint})."
        ) from error
    if not isinstance(value, dict):
        raise DatasetError(
            f"{where}: {kind_of(value)} instead of an object "
            "(each line must hold one object)."
        )
    return value


def kind_of(value: object) -> str:
    """What sort of JSON value it is, in words."""
    return _KINDS[type(value)]


_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
