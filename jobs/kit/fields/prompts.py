"""Describes typed fields to a model: a line for each, and the form of the reply.

A field is one line of the prompt, in a form that the offline baseline reads too:

    - enrolled (integer, with quote): How many people were enrolled?
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from jobs.kit.chat import closed_object, json_schema
from jobs.kit.fields.parsing import REASONING, VERDICT_WORDS
from jobs.kit.fields.spec import FieldSpec, PartSpec
from runner.messages import Schema


def field_lines(specs: Mapping[str, FieldSpec]) -> Iterable[str]:
    """Yield a line for each field and each part of an object."""
    for name, spec in specs.items():
        quote = ", with quote" if spec.quote else ""
        yield f"- {name} ({type_words(spec)}{quote}): {_one_line(spec.ask)}"
        for part, inner in spec.fields.items():
            yield f"  - {part} ({type_words(inner)}): {_one_line(inner.ask)}"


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def type_words(spec: FieldSpec | PartSpec) -> str:
    """Return the type of a field as a prompt describes it."""
    if isinstance(spec, PartSpec):
        return _scalar_words(spec.type, spec)
    match spec.type:
        case "list":
            return f"list of {_scalar_words(spec.of, spec)}"
        case "list of objects" | "object":
            return spec.type
        case kind:
            return _scalar_words(kind, spec)


def definition(spec: FieldSpec) -> str:
    """Return the type of a field with the units and types of its parts."""
    parts = (f"{name}: {type_words(part)}" for name, part in spec.fields.items())
    inside = "; ".join(parts)
    return f"{type_words(spec)} ({inside})" if inside else type_words(spec)


def _scalar_words(kind: str, spec: FieldSpec | PartSpec) -> str:
    if kind == "one-of":
        return "one of " + " | ".join(map(json_text, spec.options))
    if kind == "date":
        return "date YYYY, YYYY-MM or YYYY-MM-DD"
    return f"{kind} in {spec.unit}" if spec.unit else kind


def json_text(value: object) -> str:
    """Return JSON as a prompt shows it."""
    return json.dumps(value, ensure_ascii=False)


def reply_form(specs: Mapping[str, FieldSpec], *, explain: bool) -> str:
    """Return the shape of the reply, in words that stand for values."""
    parts = [f'"{REASONING}": a few sentences'] if explain else []
    for name, spec in specs.items():
        shape = _value_form(spec)
        if spec.quote or spec.unit:
            quote = '"quote": verbatim text or null, ' if spec.quote else ""
            unit = ', "unit": text' if spec.unit else ""
            shape = f'{{{quote}"value": {shape}{unit}}}'
        parts.append(f'"{name}": {f"[{shape}, ...]" if spec.is_list else shape}')
    return "{" + ", ".join(parts) + "}"


def _value_form(spec: FieldSpec) -> str:
    if spec.element != "object":
        return {"string": "text", "date": '"YYYY-MM-DD"', "one-of": "option"}.get(
            spec.element, spec.element
        ) + ("" if spec.is_list or spec.required else " or null")
    inner = ", ".join(f'"{part}": {_part_form(p)}' for part, p in spec.fields.items())
    return f"{{{inner}}}"


def _part_form(part: PartSpec) -> str:
    return {"string": "text", "date": '"YYYY-MM-DD"', "one-of": "option"}.get(
        part.type, part.type
    ) + ("" if part.required else " or null")


def reply_value(value: object, spec: FieldSpec, quote: str | None) -> object:
    """Return a value in the form of a reply, for solved examples."""
    if not (spec.quote or spec.unit):
        return value
    wrapped: dict[str, object] = {"quote": quote} if spec.quote else {}
    wrapped["value"] = value
    if spec.unit:
        wrapped["unit"] = None if value is None else spec.unit
    return wrapped


_PLAIN: Final = {
    "string": {"type": "string"},
    "date": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
}

_NULL: Final = {"type": "null"}


def reply_schema(specs: Mapping[str, FieldSpec], *, explain: bool) -> Schema:
    """Return the strict schema of a reply, its properties in declared order."""
    properties: dict[str, Any] = {REASONING: {"type": "string"}} if explain else {}
    for name, spec in specs.items():
        element = _element_schema(spec)
        properties[name] = (
            {"type": "array", "items": element} if spec.is_list else element
        )
    return json_schema("answers", closed_object(properties))


def _element_schema(spec: FieldSpec) -> dict[str, Any]:
    if spec.element == "object":
        parts = {
            part: _scalar_schema(inner.type, inner, nullable=not inner.required)
            for part, inner in spec.fields.items()
        }
        value = closed_object(parts)
        if not (spec.is_list or spec.required):
            value = {"anyOf": [value, _NULL]}
    else:
        is_nullable = not (spec.is_list or spec.required)
        value = _scalar_schema(spec.element, spec, nullable=is_nullable)
    if not (spec.quote or spec.unit):
        return value
    text = {"anyOf": [{"type": "string"}, _NULL]}
    wrapped: dict[str, Any] = {"quote": text} if spec.quote else {}
    wrapped["value"] = value
    if spec.unit:
        wrapped["unit"] = text
    return closed_object(wrapped)


def _scalar_schema(
    kind: str, spec: FieldSpec | PartSpec, *, nullable: bool
) -> dict[str, Any]:
    node: dict[str, Any] = (
        {"type": "string", "enum": list(spec.options)}
        if kind == "one-of"
        else _PLAIN[kind]
    )
    return {"anyOf": [node, _NULL]} if nullable else node


def check_schema(names: Iterable[str]) -> Schema:
    """Return the strict schema of a check's reply."""
    verdict = {"type": "string", "enum": list(VERDICT_WORDS)}
    entry = closed_object({"reason": {"type": "string"}, "verdict": verdict})
    return json_schema("checks", closed_object(dict.fromkeys(names, entry)))


def check_form(names: Iterable[str]) -> str:
    """Return the shape of a check's reply."""
    verdicts = " | ".join(map(json_text, VERDICT_WORDS))
    inner = f'{{"reason": text, "verdict": {verdicts}}}'
    return "{" + ", ".join(f'"{name}": {inner}' for name in names) + "}"
