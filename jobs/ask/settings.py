"""Defines the settings of ask, and finds their recipe.

A recipe comes from a file, or from questions on the command line. A new run records its
text as the setting `recipe_text`, so that a run can be scored after the file has moved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, get_args

import tomli_w
from pydantic import BaseModel, ConfigDict, Field

from jobs.ask.recipe import Recipe, read_recipe
from jobs.kit.fields.spec import FieldType
from jobs.kit.inputs.files import read_text
from jobs.kit.inputs.toml_tables import near_hint
from runner.errors import UsageError

EVERYDAY: Final = (
    "papers",
    "question",
    "type",
    "recipe",
    "id",
    "text",
    "chunk",
    "gold",
    "limit",
)

QUESTION_RECIPE: Final = "recipe"
"""Name of a recipe built from questions, in errors and in the log."""


class AskSettings(BaseModel):
    """Settings of ask."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    papers: tuple[Path, ...] = Field(
        (), description="folder, glob or files of papers, or a table of them"
    )
    question: tuple[str, ...] = Field(
        (),
        description="question to ask of each paper; NAME=QUESTION names its field",
        json_schema_extra={"commas": False},
    )
    type: tuple[str, ...] = Field(
        (),
        description="type of each question's answer: string, integer, number, number:"
        "UNIT, boolean, date, list, or options such as yes|no|unclear",
        json_schema_extra={"commas": False},
    )
    quote: bool = Field(
        default=True, description="ask for a verbatim quote with each answer"
    )
    recipe: Path | None = Field(None, description="TOML file of fields to ask for")
    recipe_text: str = Field(
        "", description="text of the recipe, recorded by a run (not for users)"
    )
    recipe_name: str = Field(
        "", description="file of that text, recorded by a run (not for users)"
    )
    recipe_sha256: str = Field("", description="hash of that text (not for users)")
    id: str | None = Field(None, description="column of a table that names the paper")
    text: str | None = Field(
        None, description="column with the text, or template such as {title} {abstract}"
    )
    document: str | None = Field(
        None, description="column of a table that names the file with the text"
    )
    gold: Path | None = Field(
        None, description="CSV or JSON lines of right values: id, and fields by name"
    )
    limit: int = Field(0, ge=0, description="number of papers, from the first; 0: all")
    prompts: Path | None = Field(None, description="TOML of prompts to replace")

    chunk: int | None = Field(
        None, ge=50, description="split longer texts into chunks of this many tokens"
    )
    vision: bool = Field(
        default=False, description="show pages of PDF files as images too"
    )
    context_tokens: int | None = Field(
        None, ge=1, description="longest prompt; default: of the models, if known"
    )
    max_pages: int = Field(400, ge=1, description="most pages of a PDF")
    max_output_tokens: int = Field(2048, ge=1, description="longest reply, in tokens")
    temperature: float | None = Field(0.0, ge=0.0, description="sampling temperature")
    structured: Literal["auto", "off"] = Field(
        "auto", description="request JSON by schema if the endpoint supports it"
    )

    boot_b: int = Field(2000, ge=0, description="bootstrap replicates; 0: no intervals")
    boot_seed: int = Field(20260118, ge=0, description="seed of the bootstrap")
    level: float = Field(0.95, gt=0.0, lt=1.0, description="level of the intervals")


def recipe_of(settings: AskSettings) -> Recipe:
    """Return the recipe of the settings.

    Raises:
        UsageError: there is none, or questions and types do not match.
        DatasetError: the recipe is not valid.
    """
    text, name = recipe_source(settings)
    return _read(text, name)


@lru_cache(maxsize=16)
def _read(text: str, name: str) -> Recipe:
    return read_recipe(text, name)


def recipe_source(settings: AskSettings) -> tuple[str, str]:
    """Return the text of the recipe and the name of its file."""
    if settings.recipe is not None:
        if settings.question:
            raise UsageError(
                "--question and --recipe exclude each other: add the question to the "
                "recipe as [fields.NAME], or leave one of them out."
            )
        return read_text(settings.recipe), settings.recipe.name
    if settings.recipe_text:
        return settings.recipe_text, settings.recipe_name or QUESTION_RECIPE
    if not settings.question:
        raise UsageError(
            "Nothing is asked: give --question TEXT, or --recipe FILE (siftlog new "
            "recipe.toml writes one)."
        )
    return question_recipe(settings), QUESTION_RECIPE


_NAMED: Final = re.compile(r"([a-z][a-z0-9_]*)\s*=\s*(\S.*)", re.DOTALL)


def question_recipe(settings: AskSettings) -> str:
    """Return questions of the command line as the text of a recipe.

    >>> print(question_recipe(AskSettings(question=["How many?"], type=["integer"])))
    [fields.answer]
    ask = "How many?"
    type = "integer"
    quote = true
    <BLANKLINE>
    """
    questions, types = settings.question, settings.type
    if len(types) > 1 and len(types) != len(questions):
        raise UsageError(
            f"{len(questions)} --question but {len(types)} --type: give one type for "
            "each question, or one for all."
        )
    fields: dict[str, object] = {}
    for number, question in enumerate(questions, 1):
        named = _NAMED.fullmatch(question.strip())
        default = "answer" if len(questions) == 1 else f"answer{number}"
        name, sentence = named.groups() if named else (default, question.strip())
        if name in fields:
            raise UsageError(
                f"--question {question}: {name} names two questions (rename one)."
            )
        word = types[min(number, len(types)) - 1] if types else "string"
        fields[name] = {
            "ask": sentence,
            **dict(_type(word)),
            "quote": settings.quote,
        }
    return tomli_w.dumps({"fields": fields})


def _type(word: str) -> Iterator[tuple[str, object]]:
    """Yield the keys of a field for a word of `--type`."""
    if "|" in word:
        yield "type", "one-of"
        yield "options", [option.strip() for option in word.split("|") if option]
        return
    name, _, unit = word.partition(":")
    known = [kind for kind in get_args(FieldType) if "object" not in kind]
    if name not in known or (unit and name not in {"number", "integer"}):
        raise UsageError(
            f"--type {word} is unknown{near_hint(name, known)}; options are written "
            "as yes|no|unclear, units as number:mg."
        )
    yield "type", name
    if unit:
        yield "unit", unit
