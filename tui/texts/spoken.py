"""What a model said, in the reply that brought it; no wire form needs to be known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]

#: Names under which endpoints put the model's words; other texts are longer at times.
_NAMES = ("content", "text", "output_text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A reply and, within it, the model's own words."""

    reply: Any  #: JSON; of a reply that is none: its text
    path: Path
    text: str

    def marked(self, at: int, mark: str) -> Any:  # noqa: ANN401 - any JSON
        """The reply with *mark* put into the words before character *at*."""
        return _put(self.reply, self.path, self.text[:at] + mark + self.text[at:])


def spoken(body: bytes) -> Spoken:
    """The words in a reply: the longest text that is called one, else the longest."""
    text = body.decode(errors="replace")
    try:
        reply = json.loads(text)
        texts = list(_texts((), reply))
    except (ValueError, RecursionError):
        return Spoken(reply=text, path=(), text=text)
    named = [found for found in texts if set(_NAMES).intersection(found[0][-1:])]
    path, words = max(named or texts, key=lambda found: len(found[1]), default=((), ""))
    return Spoken(reply=reply, path=path, text=words)


def _texts(path: Path, value: Any) -> Iterator[tuple[Path, str]]:  # noqa: ANN401 - any JSON
    match value:
        case dict():
            for key, inner in value.items():
                yield from _texts((*path, key), inner)
        case list():
            for number, inner in enumerate(value):
                yield from _texts((*path, number), inner)
        case str():
            yield path, value
        case _:
            pass


def _put(value: Any, path: Path, text: str) -> Any:  # noqa: ANN401 - any JSON
    if not path:
        return text
    step, *rest = path
    if isinstance(value, dict):
        return {
            key: _put(inner, tuple(rest), text) if key == step else inner
            for key, inner in value.items()
        }
    return [
        _put(inner, tuple(rest), text) if number == step else inner
        for number, inner in enumerate(value)
    ]
