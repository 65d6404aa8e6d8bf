"""Builds the prompts of ask and the schemas of its replies from a recipe.

The constant part (instructions, fields, examples) comes first and is the same for all
items, so that providers can cache it; the text comes last.

A field is one line of the prompt, in a form that the offline baseline reads too:

    - enrolled (integer, with quote): How many people were enrolled?
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobs.ask.parsing import REASONING, VERDICT_WORDS
from jobs.ask.recipe import Example, FieldSpec, PartSpec, Recipe
from jobs.kit.chat import data_block
from runner.messages import Schema
from runner.prompts import Placeholder, PromptBlock, PromptCatalog

_FORM: Final = Placeholder(
    name="form", meaning="the JSON object to answer with", needed=True
)

WORDING: Final = PromptCatalog(
    job="ask",
    file=Path(__file__).with_name("prompts.toml"),
    blocks=(
        PromptBlock(
            name="ask",
            meaning="the fields of a recipe, about one text or one chunk of it",
            parts={
                "system": (
                    Placeholder(
                        name="instructions", meaning="the instructions of the recipe"
                    ),
                    Placeholder(
                        name="fields",
                        meaning="a line for each field: name, type and question",
                        needed=True,
                    ),
                    Placeholder(
                        name="examples", meaning="solved examples of the recipe"
                    ),
                    _FORM,
                ),
                "user": (
                    Placeholder(
                        name="text", meaning="the text, between marks", needed=True
                    ),
                ),
            },
        ),
        PromptBlock(
            name="check",
            meaning="is a value supported by its quote",
            parts={
                "system": (_FORM,),
                "user": (
                    Placeholder(
                        name="values",
                        meaning="question, value and quote of each field, between "
                        "marks",
                        needed=True,
                    ),
                ),
            },
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskPrompt:
    """The constant part of a request: texts by placeholder, and the schema."""

    values: Mapping[str, str]
    schema: Schema


def constant_prompts(recipe: Recipe) -> tuple[AskPrompt, ...]:
    """Return the constant parts of the first request and of each follow-up."""
    return tuple(_constant(recipe, n) for n in range(len(recipe.then) + 1))


def _constant(recipe: Recipe, number: int) -> AskPrompt:
    specs = recipe.requested(number)
    instructions = recipe.instructions
    if number and recipe.then[number - 1].instructions:
        instructions = recipe.then[number - 1].instructions
    examples = "" if number else _examples(recipe, specs)
    return AskPrompt(
        values={
            "instructions": f"{instructions.strip()}\n" if instructions.strip() else "",
            "fields": "\n".join(_lines(specs)),
            "examples": f"\n{examples}" if examples else "",
            "form": _form(specs, explain=recipe.explain),
        },
        schema=reply_schema(specs, explain=recipe.explain),
    )


def _lines(specs: Mapping[str, FieldSpec]) -> Iterable[str]:
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


def _scalar_words(kind: str, spec: FieldSpec | PartSpec) -> str:
    if kind == "one-of":
        return "one of " + " | ".join(map(json_text, spec.options))
    if kind == "date":
        return "date YYYY, YYYY-MM or YYYY-MM-DD"
    return f"{kind} in {spec.unit}" if spec.unit else kind


def json_text(value: object) -> str:
    """Return JSON as a prompt shows it."""
    return json.dumps(value, ensure_ascii=False)


def _form(specs: Mapping[str, FieldSpec], *, explain: bool) -> str:
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


def _examples(recipe: Recipe, specs: Mapping[str, FieldSpec]) -> str:
    start: dict[str, Any] = {REASONING: "..."} if recipe.explain else {}
    return "".join(
        f"Example:\n{data_block('example', example.text)}"
        f"Answer: {json_text({**start, **_example_reply(example, specs)})}\n"
        for example in recipe.examples
    )


def _example_reply(example: Example, specs: Mapping[str, FieldSpec]) -> dict[str, Any]:
    reply: dict[str, Any] = {}
    for name, spec in specs.items():
        value = example.answers.get(name)
        if spec.is_list:
            elements = value if isinstance(value, list) else []
            reply[name] = [_wrapped(e, spec, None) for e in elements]
        else:
            reply[name] = _wrapped(value, spec, example.quotes.get(name))
    return reply


def _wrapped(value: object, spec: FieldSpec, quote: str | None) -> object:
    if not (spec.quote or spec.unit):
        return value
    wrapped: dict[str, object] = {"quote": quote} if spec.quote else {}
    wrapped["value"] = value
    if spec.unit:
        wrapped["unit"] = None if value is None else spec.unit
    return wrapped


# Schemas

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
    return _schema("answers", _object(properties))


def check_schema(names: Iterable[str]) -> Schema:
    """Return the strict schema of a check's reply."""
    verdict = {"type": "string", "enum": list(VERDICT_WORDS)}
    entry = _object({"reason": {"type": "string"}, "verdict": verdict})
    return _schema("checks", _object(dict.fromkeys(names, entry)))


def check_form(names: Iterable[str]) -> str:
    """Return the shape of a check's reply."""
    verdicts = " | ".join(map(json_text, VERDICT_WORDS))
    inner = f'{{"reason": text, "verdict": {verdicts}}}'
    return "{" + ", ".join(f'"{name}": {inner}' for name in names) + "}"


def _schema(name: str, node: dict[str, Any]) -> Schema:
    return Schema(name=name, json=json.dumps(node, separators=(",", ":")))


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _element_schema(spec: FieldSpec) -> dict[str, Any]:
    if spec.element == "object":
        parts = {
            part: _scalar_schema(inner.type, inner, nullable=not inner.required)
            for part, inner in spec.fields.items()
        }
        value = _object(parts)
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
    return _object(wrapped)


def _scalar_schema(
    kind: str, spec: FieldSpec | PartSpec, *, nullable: bool
) -> dict[str, Any]:
    node: dict[str, Any] = (
        {"type": "string", "enum": list(spec.options)}
        if kind == "one-of"
        else _PLAIN[kind]
    )
    return {"anyOf": [node, _NULL]} if nullable else node
