"""What a row of a panel leads to: the filter that lists the tasks it is about."""

from __future__ import annotations


def term(key: str, value: str) -> str:
    r"""A term of the filter language of `store.query`.

    A name with a quote in it cannot be written there: every value of the key stands
    for it.

    >>> term("stage", "ask"), term("err", "two words")
    ('stage:ask', 'err:"two words"')
    """
    if '"' in value or not value:
        return f"{key}:*"
    is_plain = value.isprintable() and not any(map(str.isspace, value))
    return f"{key}:{value}" if is_plain else f'{key}:"{value}"'
