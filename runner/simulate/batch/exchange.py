"""A request to the batch endpoints and the answer to it, without the HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

import msgspec

_T = TypeVar("_T")

NOT_FOUND: Final = 404
"""The status that tells of what there is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A part of a form that was filled in."""

    name: str  #: of the file, empty for a plain field
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What came over the wire."""

    now_us: int
    base_url: str  #: what the addresses of results begin with
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)  #: names in small letters
    body: bytes = b""
    fields: Mapping[str, Upload] = field(default_factory=dict)  #: of a form


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What goes back, with status 200."""

    body: bytes
    is_download: bool = False  #: of lines that may be cut off anywhere
    created: str = ""  #: the batch that this tells of for the first time


class Refusal(Exception):
    """The request is turned away, with a status and a message for its sender."""

    def __init__(
        self, message: str, *, status: int = 400, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param


Handler = Callable[..., Answer]
"""Takes an `Asking`, and the id in its path, where the route has one."""


class Form(Protocol):
    """One provider's batch endpoints."""

    routes: Mapping[tuple[str, str], Handler]
    """From a method and a path, in which `*` stands for an id, to what answers."""

    headers: Mapping[tuple[str, ...], int]
    """Headers of which every request has one, and the status where it has none."""

    def advance(self, now_us: int) -> None:
        """Get on with all batches."""
        ...

    def complaint(self, refusal: Refusal) -> bytes:
        """The body that tells of *refusal*."""
        ...


def encoded(value: object) -> bytes:
    """*value* as JSON."""
    return msgspec.json.encode(value)


def joined(lines: Sequence[object]) -> bytes:
    """*lines* as JSON Lines."""
    return b"".join(encoded(line) + b"\n" for line in lines)


def read(body: bytes, form: type[_T]) -> _T:
    """The JSON in *body*; a `Refusal` where it has not that form."""
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refusal(f"The body is not as it should be ({error}).") from None
