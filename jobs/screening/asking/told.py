"""What a model is told of a review, and where that comes from.

In order: the file of criteria, the sections of the review's abstract, its title alone.
With `criteria_source=llm` a model's own reading comes first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from jobs.screening.asking.sections import sections
from jobs.screening.corpus import Criteria, Text
from jobs.screening.inputs.criteria import PICO
from jobs.screening.settings import Settings
from jobs.screening.validation_set import SetReview

Source: TypeAlias = Literal["llm", "file", "sections", "title"]

Lines: TypeAlias = tuple[tuple[str, str], ...]
"""Labels and what they say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What stands in the prompt of a review."""

    source: Source
    lines: Lines


def told(settings: Settings, review: SetReview, context: str | None = None) -> Told:
    """What is told of *review*.

    Args:
        settings: which sources count.
        review: its text, and its criteria from the file.
        context: of a task that follows a model's criteria; see `carrying`.
    """
    if context is not None:
        return Told(source="llm", lines=_lines(review.text, _carried(context)))
    criteria = review.criteria
    if settings.criteria_source != "llm" and criteria and not criteria.is_empty:
        return Told(source="file", lines=_lines(review.text, criteria))
    return from_abstract(review)


def from_abstract(review: SetReview) -> Told:
    """What the review's own abstract says, else its title."""
    found = sections(review.text.abstract)
    return Told(
        source="sections" if found else "title",
        lines=(*_title(review.text), *found.items()),
    )


def carrying(criteria: Criteria) -> str:
    """A model's criteria as the context of the tasks that follow."""
    return json.dumps(asdict(criteria), ensure_ascii=False)


def _carried(context: str) -> Criteria:
    fields = json.loads(context)
    return Criteria(
        question=fields["question"],
        pico=fields["pico"],
        inclusion=tuple(fields["inclusion"]),
        exclusion=tuple(fields["exclusion"]),
    )


def _lines(text: Text, criteria: Criteria) -> Lines:
    return (*_title(text), *_criteria(criteria))


def _title(text: Text) -> Iterator[tuple[str, str]]:
    if text.title:
        yield "Title", text.title


def _criteria(criteria: Criteria) -> Iterator[tuple[str, str]]:
    if criteria.question:
        yield "Question", criteria.question
    for name in PICO:
        if name in criteria.pico:
            yield name.capitalize(), criteria.pico[name]
    for each in criteria.inclusion:
        yield "Inclusion criterion", each
    for each in criteria.exclusion:
        yield "Exclusion criterion", each
    for heading, each in criteria.headings.items():
        yield f"Criterion ({heading})", each
