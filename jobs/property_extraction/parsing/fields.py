"""A JSON value as the text of a field; numbers come as they were written."""

from __future__ import annotations

from jobs.replies import wellformed


def text_of(value: object) -> str:
    """The text that a value says, trimmed; empty where it is null, or deeper.

    A list is its texts and an object its fields, joined by semicolons: a condition
    often comes as `{"temperature": "4 K"}`.
    """
    match value:
        case list():
            return "; ".join(filter(None, map(scalar, value)))
        case dict():
            fields = ((scalar(key), scalar(each)) for key, each in value.items())
            return "; ".join(f"{key}={text}" for key, text in fields if text)
        case _:
            return scalar(value)


def scalar(value: object) -> str:
    """The text of a text, a number, true or false; empty for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return wellformed(value).strip() if isinstance(value, str) else ""
