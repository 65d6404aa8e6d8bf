"""Requests and parses replies in the form of a pydantic model.

A job defines the object as a model, puts its `schema_of` into the request, describes
the object in its prompt, and uses `read_object` as its parser. Endpoints without schema
support reply with fences and prose, so the parser searches the whole reply for the
object. It never repairs one: a reply cut by the output limit is `truncated`, even if
the rest could be guessed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from runner.messages import ParseFailure, Reply, Schema

M = TypeVar("M", bound=BaseModel)

_ANNOTATIONS: Final = ("title", "default")
"""Keywords without effect on the form; strict modes refuse a default."""

_PATH_CHARS: Final = 200
"""Maximum characters of a location in an error: its keys come from the model."""

_decoder: Final = json.JSONDecoder()


def schema_of(form: type[BaseModel], name: str) -> Schema:
    """Return the schema of *form* for the strict modes of providers.

    Strict modes require every field and allow no others, so an optional field must be
    nullable. The properties keep the order of *form*, since models fill them in that
    order: declare a reason before its decision. The fields of a subclass follow those
    of its base.
    """
    schema = _strict(form.model_json_schema())
    return Schema(name=name, json=json.dumps(schema, separators=(",", ":")))


def _strict(node: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(node, list):
        return [_strict(element) for element in node]
    if not isinstance(node, dict):
        return node
    schema = {key: _strict(value) for key, value in node.items() if key != "properties"}
    for name in _ANNOTATIONS:
        schema.pop(name, None)
    if "properties" in node:
        fields = {name: _strict(field) for name, field in node["properties"].items()}
        schema |= {
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        }
    return schema


def read_object(reply: Reply, form: type[M]) -> M | ParseFailure:
    """Return the first JSON object in *reply* that matches *form*.

    Failures: `truncated`, `empty_reply`, `no_json`, and `schema_mismatch`, whose detail
    locates the first error, for a re-ask.
    """
    mismatch: ValidationError | None = None
    for value in _objects(reply):
        try:
            return form.model_validate(value)
        except ValidationError as error:
            mismatch = mismatch or error
    if reply.is_truncated:
        return ParseFailure(reason="truncated")
    if mismatch is not None:
        return ParseFailure(reason="schema_mismatch", detail=_first_fault(mismatch))
    if not reply.text.strip():
        return ParseFailure(reason="empty_reply")
    return ParseFailure(reason="no_json", detail=_syntax_fault(reply.text))


def has_object(reply: Reply) -> bool:
    """Return whether a reply contains a JSON object."""
    return next(_objects(reply), None) is not None


def _objects(reply: Reply) -> Iterator[dict[str, Any]]:
    """Yield the outermost JSON objects in the text in order, in fences or prose."""
    text = reply.text
    start = text.find("{")
    while start >= 0:
        end = start + 1
        try:
            value, end = _decoder.raw_decode(text, start)
            yield value
        except RecursionError:
            return  # thousands of levels, each of which would be tried again
        except ValueError:
            if reply.is_truncated:
                return  # objects inside a truncated one are only its parts
        start = text.find("{", end)


def _first_fault(error: ValidationError) -> str:
    """Return location and kind of the first error: `items.2.n: ...`."""
    first, *others = error.errors(include_url=False)
    path = ".".join(str(part) for part in first["loc"]) or "the object"
    more = f" (and {len(others)} more)" if others else ""
    return f"{path[:_PATH_CHARS]}: {first['msg']}{more}"


def _syntax_fault(text: str) -> str | None:
    """Return where the JSON ends or is invalid, if there is any."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        _decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        return "too deep, or a number too long"
    return None
