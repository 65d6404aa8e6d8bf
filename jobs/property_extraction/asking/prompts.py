"""What a prompt shows: papers, values and names as blocks between marks.

The wording around them is in `prompts.toml`. What is the same for many requests comes
first, so that a provider's prompt cache can reuse it. What comes from files and models
stands between marks that carry the hash of what they enclose, so no text can close its
own mark, and instructions in it stay data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from jobs.chat import data_block
from jobs.property_extraction.answered import Found
from jobs.property_extraction.parsing.verdict import letter
from jobs.property_extraction.rubric import Property
from runner.messages import TextPart

QUOTE_CHARS: Final = 300
"""Characters of a quote that is asked for, and of an example that is shown."""


def names_part(properties: Iterable[Property], *, are_all: bool) -> TextPart:
    """Properties by name; a provider's cache may end after them.

    Args:
        properties: of the database.
        are_all: no others are asked for.
    """
    lines = "\n".join(_line(**_told(each)) for each in properties)
    return TextPart(
        text=data_block("wanted" if are_all else "names", lines), cache=True
    )


def paper_part(text: str) -> TextPart:
    """A paper or a piece of it; a provider's cache may end after it."""
    return TextPart(text=data_block("paper", text), cache=True)


def rows_part(rows: Sequence[Found]) -> TextPart:
    """Rows that need another quote, by their numbers from 1."""
    lines = (
        _line(
            id=number,
            property=row.name,
            material=row.material,
            value=row.value,
            unit=row.unit,
            condition=row.condition,
            quote=row.quote,
        )
        for number, row in enumerate(rows, start=1)
    )
    return TextPart(text=data_block("rows", "\n".join(lines)))


def predicted_part(field: str, name: str, examples: Sequence[str]) -> TextPart:
    """A name that a model gave, and what it found under it."""
    shown = [example[:QUOTE_CHARS] for example in examples]
    lines = (_line(field=field), _line(name=name), *(_line(found=e) for e in shown))
    return TextPart(text=data_block("predicted", "\n".join(lines)))


def target_part(target: Property) -> TextPart:
    """The property that a name may mean."""
    return TextPart(text=data_block("target", _line(**_told(target))))


def targets_part(targets: Sequence[Property]) -> TextPart:
    """The properties that a name may mean, by their letters."""
    lines = (
        _line(letter=letter(place), **_told(each)) for place, each in enumerate(targets)
    )
    return TextPart(text=data_block("targets", "\n".join(lines)))


def _told(target: Property) -> dict[str, str]:
    told = {"name": target.name, "definition": target.definition, "unit": target.si}
    return {name: text for name, text in told.items() if text}


def _line(**fields: object) -> str:
    """One line whatever the texts hold: a line break in one must not add another."""
    return json.dumps(fields, ensure_ascii=False)
