"""HTML built from elements: whatever is not an element already is escaped.

No page is put together from strings elsewhere, so a model's text cannot become markup
by being forgotten.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from store.printable import printable

SHOWN = 400
"""Characters of one text that a page shows; the files hold the rest."""

_VOID = frozenset({"img", "meta", "wbr"})


class Element(str):
    """Text that is HTML already, as content or as the value of an attribute."""

    __slots__ = ()


Child: TypeAlias = str | Iterable["Child"]
"""An element, a text, or several of these."""


def element(name: str, /, *children: Child, **attributes: str | None) -> Element:
    """An element of that name.

    Args:
        name: of a tag.
        children: what is inside, in order; texts are escaped.
        attributes: `_` in a name stands for `-`, one at its end for nothing; None
            leaves an attribute out.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_quoted(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Element(f"<{name}{given}>")
    return Element(f"<{name}{given}>{''.join(map(_rendered, children))}</{name}>")


def _quoted(value: str) -> str:
    return value if isinstance(value, Element) else html.escape(printable(value))


def _rendered(child: Child) -> str:
    if isinstance(child, Element):
        return child
    if isinstance(child, str):
        return html.escape(shown(child))
    return "".join(map(_rendered, child))


def shown(text: str) -> str:
    """What a page shows of a text from outside."""
    safe = printable(text)
    return safe if len(safe) <= SHOWN else f"{safe[: SHOWN - 1]}…"
