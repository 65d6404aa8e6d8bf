"""The command `siftlog new`: writes a commented recipe to start from.

It is also imported for the help of all commands, so it imports hardly anything at the
top.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from runner.cli import arguments

if TYPE_CHECKING:
    from jobs.kit.inputs.items import ItemColumn

CATEGORIES: Final = 6
"""Maximum number of distinct values of a column that become options of a question."""

LONG_CHARS: Final = 80
"""Minimum mean length of the cells of a text column, in characters."""


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--from",
    "source",
    metavar="PAPERS",
    help="Folder, file or table of papers; its columns are used.",
)
@click.option(
    "--sample",
    is_flag=True,
    help="Copy the sample of ask: a recipe, twelve invented papers, their gold values.",
)
@arguments.as_json
def new(file: Path, source: str | None, *, sample: bool, as_json: bool) -> int:
    """Write a commented recipe, such as recipe.toml.

    An existing file is not overwritten. With --from, the recipe reads these papers and
    lists their columns. With --sample, papers and gold values lie beside the recipe.
    """
    from runner.cli.console import DONE, print_json, print_text
    from runner.errors import UsageError

    if file.suffix != ".toml":
        raise UsageError(f"{file}: a recipe's name ends with .toml; rename it.")
    if not file.parent.is_dir():
        raise UsageError(f"{file.parent}: no such folder; create it first.")
    if sample and source is not None:
        raise UsageError(
            "--sample and --from exclude each other; leave one of them out."
        )
    copies = _sample_files(file.parent) if sample else ()
    text = SAMPLE_RECIPE.read_text() if sample else recipe_text(source, file.parent)
    try:
        with file.open("x", encoding="utf-8") as created:
            created.write(text)
    except FileExistsError:
        raise UsageError(
            f"{file} exists and was not changed; name another file, or remove it."
        ) from None
    for origin, copy in copies:
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(origin, copy)
    if as_json:
        print_json("siftlog.recipe/1", {"file": str(file), "items": source})
    else:
        further = ", papers and gold values beside it" if sample else ""
        print_text(
            f"Wrote {file}{further}. Edit its fields, then: siftlog run {file} "
            "--limit 5"
        )
    return DONE


SAMPLE_RECIPE: Final = Path(__file__).parents[1] / "ask/sample/recipe.toml"
"""The recipe of the sample that ships with ask, next to its papers and gold values."""


def _sample_files(folder: Path) -> tuple[tuple[Path, Path], ...]:
    """Return the files of the sample, each with its path in *folder*.

    Raises:
        UsageError: one of them already exists.
    """
    from runner.errors import UsageError

    sample = SAMPLE_RECIPE.parent
    origins = (sample / "gold.csv", *sorted((sample / "papers").iterdir()))
    copies = tuple((path, folder / path.relative_to(sample)) for path in origins)
    for _, copy in copies:
        if copy.exists():
            raise UsageError(
                f"{copy} exists and was not changed; choose another folder."
            )
    return copies


def recipe_text(source: str | None, folder: Path) -> str:
    """Return a recipe for *source*, relative to the recipe's folder.

    Raises:
        DatasetError: the papers cannot be read.
    """
    if source is None:
        return _recipe('items = "papers/"', [])
    from jobs.kit.inputs.items import columns, holds_table

    source_columns = columns(source)
    path = os.path.relpath(source, folder)
    lines = [f"items = {_quoted(path)}"]
    if holds_table(source):
        lines += _table_keys(source_columns)
        lines += [_column_line(column) for column in source_columns]
        return _recipe("\n".join(lines), [c for c in source_columns if _is_label(c)])
    return _recipe("\n".join(lines), [])


def _table_keys(columns: tuple[ItemColumn, ...]) -> Iterator[str]:
    """Yield the settings that name the columns of the id and the text."""
    from jobs.kit.inputs.items import KEYS

    by_lower = {column.name.lower(): column.name for column in columns}
    key = next((by_lower[name] for name in KEYS if name in by_lower), columns[0].name)
    texts = [by_lower[name] for name in ("title", "abstract") if name in by_lower]
    if not texts:
        texts = [max(columns, key=lambda column: column.mean_chars).name]
    template = "\\n\\n".join(f"{{{name}}}" for name in texts)
    yield f"id = {_quoted(key)}"
    yield f'text = "{template}"'
    yield "# columns:"


def _column_line(column: ItemColumn) -> str:
    examples = ", ".join(" ".join(cell.split())[:30] for cell in column.examples)
    return f"#   {column.name} ({column.kind}): {examples}".rstrip(": ")


def _is_label(column: ItemColumn) -> bool:
    """Return whether a column may have gold labels of a question."""
    from jobs.kit.inputs.items import KEYS

    return (
        column.kind != "empty"
        and column.mean_chars < LONG_CHARS
        and column.name.lower() not in {*KEYS, "title", "abstract", "text", "file"}
    )


def _recipe(items: str, labels: list[ItemColumn]) -> str:
    text = TEMPLATE
    for name in ("enrolled", "design"):
        # a field must not have the name of a column
        is_column = any(column.name == name for column in labels)
        text = text.replace(f"@{name}@", f"study_{name}" if is_column else name)
    head, _, rest = text.partition("{items}\n")
    return f"{head}{items}\n{rest}" + "".join(map(_suggestion, labels))


def _suggestion(column: ItemColumn) -> str:
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in column.name)
    name = name.lower().strip("_") or "value"
    name = name if name[0].isalpha() else f"f_{name}"
    lines = [f"[fields.{name}]", f'ask = "What is the {column.name}?"']
    if column.kind == "text" and 1 < len(column.distinct) <= CATEGORIES:
        options = ", ".join(map(_quoted, column.distinct))
        lines += ['type = "one-of"', f"options = [{options}]"]
    else:
        kind = "string" if column.kind == "text" else column.kind
        lines.append(f"type = {_quoted(kind)}")
    lines.append(f"gold = {_quoted(column.name)}")
    return "\n" + "".join(f"# {line}\n" for line in lines)


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


TEMPLATE: Final = """\
# A recipe: which questions to ask of which papers.
# siftlog run FILE --limit 5          tries it offline on five papers
# siftlog run FILE --model MODEL      asks a model

# A folder, glob or file: PDF, text, Markdown, HTML, JATS, TEI, CSV, JSON lines, RIS ...
{items}

instructions = "The texts are reports of medical studies."
# gold = "gold.csv"                   # right values: id, and a column per field
# explain = true                      # ask for a reasoning before the values
# replicates = 3                      # ask three times, to see where answers differ
# chunk = { tokens = 6000, overlap = 300 }   # split longer texts

# A field is a question and the type of its answer: string, integer, number, boolean,
# date, one-of, list, object, "list of objects".
[fields.@enrolled@]
ask = "How many people were enrolled?"
type = "integer"
quote = true                          # with a verbatim quote, checked against the text
# required = true                     # null counts as an answer that cannot be read
# gold = "enrolled"                   # column with the right value

[fields.@design@]
ask = "Which design did the study have?"
type = "one-of"
options = ["randomised trial", "cohort study", "case-control study", "other"]

# [fields.dose]
# ask = "Which dose was given?"
# type = "number"
# unit = "mg"
# quote = true
# score = { method = "tolerance", relative = 0.05 }

# [fields.arms]
# ask = "Which groups were compared?"
# type = "list of objects"
# [fields.arms.fields.name]
# ask = "Name of the group"
# [fields.arms.fields.size]
# ask = "Number of people in it"
# type = "integer"

# Follow-up questions, if the answers meet a condition:
# [[then]]
# when = '@design@ == "randomised trial" and @enrolled@ > 20'
# [then.fields.blinded]
# ask = "Were the participants blinded?"
# type = "boolean"

# A second model (--judge-model) verifies values against their quotes:
# [[check]]
# fields = ["@enrolled@"]

# Solved examples for the prompt:
# [[examples]]
# text = "We enrolled 12 men in a cohort study."
# answers = { @enrolled@ = 12 }
# quotes = { @enrolled@ = "We enrolled 12 men" }
"""
