"""Finds the text of an item in a request, and what a reply took from it.

A reply's quotes and values are looked up as they stand, except for blanks, case,
hyphens and quotation marks. A job may match quotes less strictly; `siftlog show` prints
its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from store.document import plural

Span: TypeAlias = tuple[int, int]
"""Offsets of a passage in a text: its start, and the one after its end."""

OPEN, CLOSE = "⟪", "⟫"
"""Signs around a passage that a reply took from the text."""
_WORDS = 4
"""Words from which a text of a reply is a quote; shorter ones are values."""
_LEAST = 3
"""Characters of the shortest value that is looked up."""
_MOST_TEXTS = 300
"""Maximum texts of a reply that are looked up."""
_MOST_PLACES = 40
"""Maximum places of one value that are marked."""
_MOST_CHARS = 500_000
"""Characters of an item's text that are searched."""
_SAME = str.maketrans("‐‑–—−“”‘’\u00a0", "-----\"\"'' ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """An item's text with the passages of a reply."""

    text: str  #: with `OPEN` and `CLOSE` around each passage
    quotes: int = 0  #: texts of several words in the reply
    located_quotes: int = 0
    values: int = 0  #: short texts in the reply
    located_values: int = 0
    missing: str = ""  #: the first quote that is not in the text

    @property
    def about(self) -> str:
        """Return what was found, in one line."""
        parts = []
        if self.quotes:
            parts.append(
                f"{self.located_quotes} of {plural(self.quotes, 'quote')} found"
            )
        if self.values:
            parts.append(
                f"{self.located_values} of {plural(self.values, 'value')} found"
            )
        if self.missing:
            parts.append(f"not found: {self.missing}")
        return " · ".join(parts) or "the reply has no text to look up"


def item_text(request: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the longest part of a request's last message, or its longest text."""
    match request:
        case {"messages": [*_, {"parts": [*parts]}]}:
            texts = [part for part in parts if isinstance(part, str)]
        case _:
            texts = [text for _, text in _texts("", request)]
    return max(texts, key=len, default="")


def marked(text: str, reply: Any) -> Marked:  # noqa: ANN401 - any JSON
    """Mark in *text* what a reply took from it.

    Args:
        text: of the item.
        reply: the JSON of the reply; None: it has none.
    """
    searched = _Searched(text[:_MOST_CHARS])
    spans: list[Span] = []
    located = {True: 0, False: 0}
    total = {True: 0, False: 0}
    missing = ""
    for words, is_quote in _wanted(reply):
        places = list(searched.places(words, is_quote=is_quote))
        spans += places
        total[is_quote] += 1
        located[is_quote] += bool(places)
        if is_quote and not places and not missing:
            missing = words
    return Marked(
        text=with_signs(text, _merged(spans)),
        quotes=total[True],
        located_quotes=located[True],
        values=total[False],
        located_values=located[False],
        missing=missing,
    )


def quoted_spans(text: str, quotes: Iterable[str]) -> list[Span]:
    """Return where *text* has each quote first; overlapping passages become one."""
    searched = _Searched(text[:_MOST_CHARS])
    return _merged(
        place
        for quote in dict.fromkeys(quotes)
        for place in searched.places(quote, is_quote=True)
    )


def _wanted(reply: Any) -> Iterator[tuple[str, bool]]:  # noqa: ANN401 - any JSON
    """Yield the texts of a reply once each, and whether they are quotes."""
    seen: set[str] = set()
    for key, words in _texts("", reply):
        if len(seen) == _MOST_TEXTS:
            return
        if len(words.strip()) >= _LEAST and words not in seen:
            seen.add(words)
            yield words, "quote" in key.lower() or len(words.split()) >= _WORDS


def _texts(key: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON
    """Yield all texts of JSON with the name of their field."""
    match value:
        case dict():
            for name, inner in value.items():
                yield from _texts(str(name), inner)
        case list():
            for inner in value:
                yield from _texts(key, inner)
        case str():
            yield key, value
        case _:
            pass


class _Searched:
    """A text in a form for searching, with the places of its characters."""

    def __init__(self, text: str) -> None:
        self._starts: list[int] = []
        characters = []
        was_blank = True
        for at, character in enumerate(text.translate(_SAME)):
            is_blank = character.isspace()
            if is_blank and was_blank:
                continue
            lower = character.lower()
            characters.append(
                " " if is_blank else lower if len(lower) == 1 else character
            )
            self._starts.append(at)
            was_blank = is_blank
        self._form = "".join(characters)

    def places(self, words: str, *, is_quote: bool) -> Iterator[Span]:
        """Yield where *words* are: a quote once, a value wherever it is a word."""
        form = " ".join(words.translate(_SAME).lower().split())
        at = self._form.find(form) if form else -1
        places = 0
        while at >= 0 and places < _MOST_PLACES:
            end = at + len(form)
            if is_quote or self._is_word(at, end):
                places += 1
                yield self._starts[at], self._starts[end - 1] + 1
                if is_quote:
                    return
            at = self._form.find(form, end)

    def _is_word(self, begin: int, end: int) -> bool:
        before, after = self._form[begin - 1 : begin], self._form[end : end + 1]
        return not (before.isalnum() or after.isalnum())


def with_signs(text: str, spans: Iterable[Span]) -> str:
    """Insert `OPEN` and `CLOSE` around passages that follow one another."""
    pieces, at = [], 0
    for begin, end in spans:
        pieces += [text[at:begin], OPEN, text[begin:end], CLOSE]
        at = end
    return "".join([*pieces, text[at:]])


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Sort passages; those that overlap become one."""
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged
