"""Requests and parses replies in the form of a pydantic model.

A job defines the object as a model, puts its `schema_of` into the request, describes
the object in its prompt, and uses `read_object` as its parser. Endpoints without schema
support answer in fences and prose, so the parser searches the whole reply for the
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
"""Keywords that say nothing about the form; strict modes refuse a default."""

_PATH_CHARS: Final = 200
"""Characters that are told of a place: its keys are the model's own words."""

_decoder: Final = json.JSONDecoder()


def schema_of(form: type[BaseModel], name: str) -> Schema:
    """The schema of *form*, as the strict modes of providers want it.

    Every field is required there and none beyond them is allowed: a field that may be
    missing is one that may be null. The properties keep the order in which *form*
    declares them, since models fill them in that order: declare a reason before the
    decision that it is for. A subclass declares its fields after those of its base.
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
    """The first JSON object in *reply* that is of *form*.

    Failures: `truncated`, `empty_reply`, `no_json`, and `schema_mismatch`, which says
    where the first object departs from the form, for a model that is asked again.
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
    """Whether a JSON object stands anywhere in a reply."""
    return next(_objects(reply), None) is not None


def _objects(reply: Reply) -> Iterator[dict[str, Any]]:
    """The outermost JSON objects in the text by their place, in fences or prose."""
    text = reply.text
    start = text.find("{")
    while start >= 0:
        end = start + 1
        try:
            value, end = _decoder.raw_decode(text, start)
            yield value
        except RecursionError:
            return  # thousands of levels, each of which would be tried
        except ValueError:
            if reply.is_truncated:
                return  # what stands inside a cut object are its remains
        start = text.find("{", end)


def _first_fault(error: ValidationError) -> str:
    """Where the object departs from the form, and how: `items.2.n: ...`."""
    first, *others = error.errors(include_url=False)
    path = ".".join(str(part) for part in first["loc"]) or "the object"
    more = f" (and {len(others)} more)" if others else ""
    return f"{path[:_PATH_CHARS]}: {first['msg']}{more}"


def _syntax_fault(text: str) -> str | None:
    """Where the JSON breaks off, if there is any."""
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
