"""Builds HTML from escaped elements: page frame, tables, CSV previews.

No page is put together from strings elsewhere, so a model's text cannot become markup
by being forgotten.

A page forbids itself everything but its own style sheet, by hash, and pictures that
stand inside it.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from jobs.kit.text_format import csv_cell, is_numeric
from runner.table_rendering import format_ends
from store.document import Column, Numbers, Words
from store.printable import printable

MAX_TEXT_CHARS = 400
"""Characters of one text that a page shows; the files hold the rest."""

_VOID = frozenset({"img", "meta", "source", "wbr"})


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
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_quoted(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Element(f"<{name}{attribute_text}>")
    return Element(
        f"<{name}{attribute_text}>{''.join(map(_rendered, children))}</{name}>"
    )


def _quoted(value: str) -> str:
    return value if isinstance(value, Element) else html.escape(printable(value))


def _rendered(child: Child) -> str:
    if isinstance(child, Element):
        return child
    if isinstance(child, str):
        return html.escape(display_text(child))
    return "".join(map(_rendered, child))


EXCERPT_CHARS = 700
"""Characters of a prompt or reply that a page shows."""


def excerpt(text: str) -> Element:
    """A text from outside in its own lines, set off from ours."""
    safe = printable(text)
    if len(safe) > EXCERPT_CHARS:
        safe = f"{safe[: EXCERPT_CHARS - 1]}…"
    return element("div", whole_text(safe), class_="excerpt")


def display_text(text: str) -> str:
    """Return a text from outside as a page shows it."""
    safe = printable(text)
    return safe if len(safe) <= MAX_TEXT_CHARS else f"{safe[: MAX_TEXT_CHARS - 1]}…"


def whole_text(text: str) -> Element:
    """A text of ours, such as a caption, however long it is."""
    return Element(html.escape(printable(text)))


def html_page(
    title: str, header: Child, sections: Mapping[str, Iterable[Child]], footer: Child
) -> str:
    """A whole page as text.

    Args:
        title: of the page.
        header: what stands between title and links.
        sections: by title; empty ones are left out.
        footer: the end.
    """
    filled = {name: parts for name, of in sections.items() if (parts := tuple(of))}
    body = element(
        "body",
        element(
            "header",
            element("h1", title),
            header,
            element(
                "nav",
                element("ul", (element("li", _link(section)) for section in filled)),
                aria_label="Sections",
            ),
        ),
        element("main", (_section(*part) for part in filled.items())),
        element("footer", footer),
    )
    root = element("html", _head(title), body, lang="en")
    return f"<!DOCTYPE html>\n{root}\n"


def facts_list(facts: Mapping[str, str]) -> Element:
    """Return a list of facts by name."""
    pairs: Iterable[Child] = (
        (element("dt", name), element("dd", value)) for name, value in facts.items()
    )
    return element("dl", pairs, class_="facts")


def _head(title: str) -> Element:
    style = files("jobs.kit.report").joinpath("page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        # the style sheet is the project's own, and its hash is of these very bytes
        element("style", Element(style)),
    )


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _link(title: str) -> Element:
    return element("a", title, href=f"#{_anchor(title)}")


def _section(title: str, inside: Child) -> Element:
    anchor = _anchor(title)
    return element(
        "section", element("h2", title, id=anchor), inside, aria_labelledby=anchor
    )


FIRST_ROWS = 20
"""Rows of a long file in the report: a million rows make no page."""


_PATH = re.compile(r"\w+([._]\w+)*")


def html_table(
    caption: Child,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Child]],
    keys: Sequence[Child] = (),
    *,
    is_stacked: bool = False,
) -> Element:
    """A table; the first cell of a row is its head.

    Args:
        caption: of the table.
        columns: texts and numbers; of the blocks of a document the titles count.
        rows: a cell for each column.
        keys: a name below the title of each column; "": none.
        is_stacked: whether a narrow screen shows each row as a block of lines, which
            begin with the titles, instead of scrolling it.
    """
    classes = ["n" if isinstance(column, Numbers) else None for column in columns]
    titles = (
        (column.title, key)
        if isinstance(key, Element) and key
        else with_key(column.title, _breaking(str(key)))
        if key
        else _breaking(column.title)
        for column, key in zip(columns, keys or [""] * len(columns), strict=True)
    )
    head = (
        element("th", title, scope="col", class_=kind)
        for title, kind in zip(titles, classes, strict=True)
    )
    body = (
        element(
            "tr",
            element("th", row[0], scope="row", class_=classes[0]),
            (
                element(
                    "td",
                    # beside its title it must be one thing
                    element("span", cell, class_="cell") if is_stacked else cell,
                    class_=kind,
                    data_label=column.title if is_stacked else None,
                )
                for cell, kind, column in zip(
                    row[1:], classes[1:], columns[1:], strict=True
                )
            ),
        )
        for row in rows
    )
    return scrolling(
        element(
            "table",
            element("caption", element("span", caption)),
            element("thead", element("tr", head)),
            element("tbody", body),
            class_="stacked" if is_stacked else None,
        ),
        "table",
    )


def with_key(name: str, key: Child) -> Child:
    """A name with its key below; the key alone where there is no name."""
    code = element("code", key)
    return (name, element("span", code, class_="key")) if name else code


def folded(
    summary: Child, *inside: Child, is_open: bool = False, class_: str | None = None
) -> Element:
    """Return content that a click on its summary opens."""
    heading = element("summary", summary)
    return element(
        "details", heading, inside, open="" if is_open else None, class_=class_
    )


def _breaking(name: str) -> Child:
    """A metric's path may go on in the next line behind its dots and underscores."""
    if not _PATH.fullmatch(name):
        return name
    first, *parts = re.split(r"(?<=[._])", name)
    return (first, ((element("wbr"), part) for part in parts))


def scrolling(inside: Element, name: str) -> Element:
    """Return content that scrolls sideways where it is too wide, by keyboard too."""
    return element(
        "div", inside, class_="scroll", tabindex="0", role="group", aria_label=name
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvPreview:
    """The beginning of a CSV file."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int  #: rows of the whole file

    @classmethod
    def of(cls, path: Path, most: int = FIRST_ROWS) -> CsvPreview:
        """Read the beginning of a file, *most* rows of it, and count the rest."""
        with path.open(encoding="utf-8", newline="") as file, _cells_of_any_size():
            reader = csv.reader(file)
            columns = tuple(next(reader))
            rows = tuple(map(tuple, islice(reader, most)))
            total = len(rows) + sum(1 for _ in reader)
        return cls(columns=columns, rows=rows, total=total)

    def grid(self, caption: Child, titles: Mapping[str, str]) -> Element:
        """The rows as a table: interval ends below their value, no empty column.

        Args:
            caption: of the table.
            titles: of columns, in the words of a reader.
        """
        by_name = dict(zip(self.columns, self._cells(), strict=True))
        columns: list[Column] = []
        keys: list[str] = []
        cell_columns: list[Sequence[Child]] = []
        ends = {
            name: _ends(name) for name in by_name if by_name.keys() >= {*_ends(name)}
        }
        behind = {end for both in ends.values() for end in both}
        for name, cells in by_name.items():
            is_empty = self.rows and not any(cells) and self.total == len(self.rows)
            if is_empty or name in behind:
                continue
            is_number = any(cells) and all(map(is_numeric, filter(None, cells)))
            title = titles.get(name, "")
            columns.append((Numbers if is_number else Words)(title or name))
            keys.append(name if title else "")
            texts = list(map(csv_cell, cells)) if is_number else cells
            if name in ends:
                low, high = (by_name[end] for end in ends[name])
                cell_columns.append(list(map(_with_interval, texts, low, high)))
            else:
                cell_columns.append(texts)
        rows = list(zip(*cell_columns, strict=True))
        return html_table(caption, columns, rows, keys)

    def _cells(self) -> list[Sequence[str]]:
        """The rows by column."""
        return list(zip(*self.rows, strict=True)) or [()] * len(self.columns)


def _ends(name: str) -> tuple[str, str]:
    """The columns that hold the interval ends of another, if there are such."""
    return f"{name}.lo", f"{name}.hi"


def _with_interval(text: str, lo: str, hi: str) -> Child:
    if not lo or not hi:
        return text
    # whole numbers are counts
    ends = [int(end) if end.lstrip("-").isdigit() else float(end) for end in (lo, hi)]
    interval = ", ".join(format_ends(ends))
    return text, element("span", f"[{interval}]", class_="ends")


@contextmanager
def _cells_of_any_size() -> Iterator[None]:
    """A reply in a cell may be longer than the 131,072 characters that csv allows."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
