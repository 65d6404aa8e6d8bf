"""Builds a page of answers, each next to its quote in context; filtered by a script.

The page is one file without network. It is written row by row: `page_start`, a
`page_row` per item and model, `page_end`. Rows are JSON data, of which the script shows
some at a time, so that thousands of papers can be browsed. Texts reach the document as
text nodes only, and the page forbids every script but its own, by hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from jobs.kit.report.html import Element, display_text, element, facts_list
from store.printable import printable

CONTEXT_CHARS: Final = 240
"""Most characters of text before a quote and after it: two or three sentences."""

QUOTE_CHARS: Final = 1_200
"""Longest quote that the page shows."""

_SENTENCE_ENDS: Final = (". ", "? ", "! ", "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteInContext:
    """A quote with the text around it."""

    quote: str  #: as in the text; as the model wrote it if it is not there
    before: str = ""
    after: str = ""
    place: str = ""  #: page and section
    is_located: bool = True

    @classmethod
    def of(cls, text: str, start: int, end: int, place: str = "") -> QuoteInContext:
        """Return a piece of a text with some sentences around it."""
        return cls(
            quote=text[start:end],
            before=_end_of(text[max(0, start - CONTEXT_CHARS) : start], start),
            after=_start_of(text[end : end + CONTEXT_CHARS], len(text) - end),
            place=place,
        )


def _end_of(text: str, available: int) -> str:
    """Return the end of a text from the first whole sentence, or word, on."""
    if available <= len(text):
        return text
    starts = [text.find(mark) + len(mark) for mark in _SENTENCE_ENDS if mark in text]
    if starts and min(starts) < len(text):
        return text[min(starts) :]
    return "…" + text[text.find(" ") + 1 :]


def _start_of(text: str, available: int) -> str:
    """Return the beginning of a text up to its last whole sentence, or word."""
    if available <= len(text):
        return text
    last = max(text.rfind(mark) for mark in _SENTENCE_ENDS)
    if last > 0:
        return text[: last + 1]
    return text[: max(text.rfind(" "), 0)] + "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageValue:
    """A value of the page."""

    field: str
    value: str | None  #: None: there is none
    state: str  #: shown in place of a value that there is not
    flags: Sequence[str] = ()  #: keys of the page's flags
    quotes: Sequence[QuoteInContext] = ()
    notes: Sequence[str] = ()  #: such as the gold value


def page_start(
    title: str,
    facts: Mapping[str, str],
    *,
    fields: Iterable[str],
    models: Iterable[str],
    flags: Mapping[str, str],
    file: str,
) -> str:
    """Return the beginning of a page.

    Args:
        title: of the page.
        facts: what the page is about, by name.
        fields: names of the fields.
        models: names of the models.
        flags: labels of the filters, by the key that values have.
        file: with the same answers, for browsers without scripts.
    """
    folder = files("jobs.kit.report")
    style, page_style, script = (
        folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("page.css", "answers.css", "answers.js")
    )
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; "
        f"style-src '{_digest(style)}' '{_digest(page_style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        # our own files, whose bytes the policy names
        element("style", Element(style)),
        element("style", Element(page_style)),
    )
    controls = element(
        "form",
        _choice("field", "all fields", {name: name for name in fields}),
        _choice("model", "all models", {name: name for name in models}),
        _choice("flag", "all answers", flags),
        element(
            "input",
            id="search",
            type="search",
            placeholder="search in answers, quotes and ids",
            aria_label="search",
        ),
        class_="filters",
        id="filters",
    )
    body = (
        element("header", element("h1", title), facts_list(facts)),
        element(
            "noscript",
            element("p", f"This page needs scripts; {file} has the same answers."),
        ),
        controls,
        element(
            "nav",
            element("button", "previous", id="previous", type="button"),
            element("span", "", id="count", aria_live="polite"),
            element("button", "next", id="next", type="button"),
            class_="pager",
        ),
        element("main", "", id="rows"),
    )
    legend = {"flags": dict(flags)}
    return (
        f'<!DOCTYPE html>\n<html lang="en">{head}<body>{"".join(body)}\n'
        f'<script type="application/json" id="data">[{_json(legend)}'
    )


def _choice(name: str, every: str, options: Mapping[str, str]) -> Element:
    return element(
        "select",
        element("option", every, value=""),
        (element("option", label, value=key) for key, label in options.items()),
        id=name,
        aria_label=name,
    )


def page_row(key: str, title: str, model: str, values: Iterable[PageValue]) -> str:
    """Return the answers of one model about one item."""
    row = {
        "id": display_text(key),
        "title": display_text(title),
        "model": model,
        "values": [
            {
                "field": value.field,
                "value": None if value.value is None else display_text(value.value),
                "state": value.state,
                "flags": list(value.flags),
                "notes": [display_text(note) for note in value.notes],
                "quotes": [
                    [
                        _one_line(quote.before),
                        _one_line(quote.quote)[:QUOTE_CHARS],
                        _one_line(quote.after),
                        quote.place,
                        quote.is_located,
                    ]
                    for quote in value.quotes
                ],
            }
            for value in values
        ],
    }
    return f",\n{_json(row)}"


def page_end() -> str:
    """Return the end of a page."""
    script = files("jobs.kit.report").joinpath("answers.js").read_text(encoding="utf-8")
    return f"]</script>\n<script>{script}</script></body></html>\n"


def _one_line(text: str) -> str:
    """Return a text without its line breaks, which are those of a printed page."""
    return re.sub(r"\s+", " ", printable(text))


def _json(value: object) -> str:
    """Return JSON that cannot end the element which it is in."""
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"sha256-{digest}"
