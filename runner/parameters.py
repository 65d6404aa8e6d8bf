"""Parameters of requests that people set, for a run or for one model.

They go into every request to the model, and are part of the request's hash and so of
the response cache's key. The secret in a header is neither: it is named by its
variable, read when the client is opened, and masked wherever it comes back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

ABSENT: Final = "none"
"""What people write for a parameter that is not to be sent at all."""

OMITTABLE: Final = ("temperature", "max_output_tokens")
"""Parameters that a job sets by itself, so that leaving them out has to be said."""

_VARIABLE: Final = re.compile(r"(?P<before>.*\s)?env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)")

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""A token of RFC 9110, section 5.6.2."""

_SECRET_HEADER: Final = re.compile(
    r"authorization|cookie|key|token|secret|password|credential", re.IGNORECASE
)

OWN_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
    }
)
"""Headers that describe how this client sends and reads."""

OWN_FIELDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("model", "messages", "input", "instructions", "query", "documents"),
        "the job writes it",
    ),
    **dict.fromkeys(("stream", "stream_options"), "replies are read whole"),
    **dict.fromkeys(("n", "best_of"), "ask several times with --replicates"),
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens", "max_output_tokens"),
        "write it as max_output_tokens of the model",
    ),
    **{
        name: f"write it as {name}"
        for name in (
            "temperature",
            "top_p",
            "reasoning_effort",
            "thinking",
            "service_tier",
        )
    },
    "seed": "write it as seed of the model, or as --model-seed",
}
"""Fields that `extra_body` may not set, and what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What people set of the requests to one model; None: nothing."""

    temperature: float | None = None
    max_output_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    thinking: str | None = None  #: JSON
    service_tier: str | None = None
    extra_body: str | None = None  #: JSON object: further fields of the request
    extra_headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case, sorted, with values in which `env:NAME` is a variable's."""
    absent: frozenset[str] = frozenset()
    """Those of `OMITTABLE` that are not to be sent, whatever the job asks."""

    @property
    def names(self) -> frozenset[str]:
        """Fields of a request that a person set."""
        set_here = (name for name in _FIELDS if getattr(self, name) is not None)
        return frozenset((*set_here, *decoded(self.extra_body)))

    def fields(self) -> dict[str, Any]:
        """Fields of a chat request beside its temperature and its token limit."""
        plain = ("top_p", "seed", "reasoning_effort", "service_tier")
        fields: dict[str, Any] = {
            name: value for name in plain if (value := getattr(self, name)) is not None
        }
        if self.thinking is not None:
            fields["thinking"] = json.loads(self.thinking)
        return {**fields, **decoded(self.extra_body)}

    def facts(self) -> dict[str, Any]:
        """What of them is hashed with a request, beside temperature and token limit.

        A header whose value is read from a variable counts by its name alone: another
        key is no other question.
        """
        facts = self.fields()
        if self.extra_headers:
            facts["headers"] = {
                name: None if _VARIABLE.fullmatch(value) else value
                for name, value in self.extra_headers
            }
        if "max_output_tokens" in self.absent:
            facts["max_output_tokens"] = None
        return facts


_FIELDS: Final = (
    "temperature",
    "max_output_tokens",
    "top_p",
    "seed",
    "reasoning_effort",
    "thinking",
    "service_tier",
)

NOTHING_SET: Final = Parameters()


@cache
def decoded(text: str | None) -> Mapping[str, Any]:
    """A JSON object; nothing where there is none."""
    return {} if text is None else json.loads(text)


def json_object(value: object) -> str | None:
    """A table, or JSON text of one, as compact JSON in the order that was written.

    The order is kept because it can matter: a server's own field for a schema, such as
    `guided_json`, says in which order a reply is written.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"{value!r} is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError('this is not an object, such as {"name": "value"}')  # noqa: TRY004 - pydantic wants it
    return json.dumps(value, separators=(",", ":")) if value else None


def check_body(text: str | None) -> str | None:
    """`extra_body` without fields that have another place; raise `ValueError`."""
    for name in decoded(text):
        if name in OWN_FIELDS:
            raise ValueError(f"extra_body may not set {name!r}: {OWN_FIELDS[name]}")
    return text


def check_headers(text: str | None) -> str | None:
    """`extra_headers` that can be sent and hold no secret; raise `ValueError`."""
    for name, value in decoded(text).items():
        if not _HEADER.fullmatch(name) or name.lower() in OWN_HEADERS:
            raise ValueError(f"{name!r} cannot be set as a header")
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise ValueError(f"the value of header {name} is not a line of ASCII text")
        if _SECRET_HEADER.search(name) and not _VARIABLE.fullmatch(value):
            raise ValueError(
                f"header {name} holds a secret: put the secret into the environment "
                "or into .env, and write env:NAME here"
            )
    return text


def headers_of(text: str | None) -> tuple[tuple[str, str], ...]:
    """`extra_headers` as `Parameters` holds them."""
    return tuple(sorted((name.lower(), value) for name, value in decoded(text).items()))


def variable_in(value: str) -> tuple[str, str] | None:
    """What stands before a variable in a header's value, and the variable's name.

    >>> variable_in("Bearer env:GATEWAY_KEY")
    ('Bearer ', 'GATEWAY_KEY')
    """
    found = _VARIABLE.fullmatch(value)
    return None if found is None else (found["before"] or "", found["name"])
