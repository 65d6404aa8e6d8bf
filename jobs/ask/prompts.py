"""Builds the prompts of ask and the schemas of its replies from a recipe.

The constant part (instructions, fields, examples) comes first and is the same for all
items, so that providers can cache it; the text comes last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobs.ask.recipe import Example, Recipe
from jobs.kit.chat import data_block
from jobs.kit.fields.parsing import REASONING
from jobs.kit.fields.prompts import (
    field_lines,
    json_text,
    reply_form,
    reply_schema,
    reply_value,
)
from jobs.kit.fields.spec import FieldSpec
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
                        meaning="question, type, value and quote of each field, "
                        "between marks",
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
            "fields": "\n".join(field_lines(specs)),
            "examples": f"\n{examples}" if examples else "",
            "form": reply_form(specs, explain=recipe.explain),
        },
        schema=reply_schema(specs, explain=recipe.explain),
    )


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
            reply[name] = [reply_value(e, spec, None) for e in elements]
        else:
            reply[name] = reply_value(value, spec, example.quotes.get(name))
    return reply
