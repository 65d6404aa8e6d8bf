"""Facts about people's work on a run: labels, agreement, decisions; pure.

The one place of the methods text that reads labels. People are counted, not named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from jobs.kit.labels.people import FieldAgreement, field_agreement, rating_table
from jobs.kit.methods.references import QuotedValue, Rounding, name_of
from store.labels.fold import LabelSet

LEVEL: Final = 0.95
REPLICATES: Final = 2000

MOST_FIELDS: Final = 20
"""Fields whose agreement is stated: a job may have one for each reply."""

COEFFICIENTS: Final = {
    "percent": "agreement",
    "cohen": "Cohen's kappa",
    "krippendorff": "Krippendorff's alpha",
    "gwet": "Gwet's AC1",
}
"""Coefficients by their name in `RaterAgreement`, in the words of a text."""

_WHOLE: Final = "item"
"""Stands for the field of a label that is about the item itself."""

_NO_LABELS: Final = (
    "No labels by people are recorded with this run. [To be completed by the authors: "
    "who checked which answers, and how disagreements were resolved]"
)


def label_references(labels: LabelSet) -> Iterator[QuotedValue]:
    """Yield the references of a run's labels; none where nobody labelled."""
    if not labels.current:
        return
    gold = labels.gold()
    current = list(labels.current.values())
    blind = sum(label.event.is_blind is True for label in current)
    withdrawn = sum(label.is_withdrawn for label in labels.labels)
    adjudicated = sum(value.is_adjudicated for value in gold.values())
    yield _count("labels:count", len(current), "labels", is_denominator=True)
    yield _count("labels:people", len(labels.authors), "people")
    yield _count("labels:items", len({about.item for about in gold}), "items")
    yield _count("labels:blind", blind, "labels", n=len(current))
    yield _count("labels:withdrawn", withdrawn, "labels")
    yield _count("labels:adjudicated", adjudicated, "fields of items")
    yield _count("labels:disputed", len(labels.disputed()), "fields of items")
    for design, n in Counter(draw.event.design for draw in labels.draws).items():
        yield QuotedValue(name=name_of("draw-design", design), value=design)
        yield _count(name_of("draw", design), n, "items")
    if len(labels.authors) > 1:
        yield QuotedValue(name="labels:level", value=100 * LEVEL, unit="%")
        for agreement in _agreements(labels):
            yield from _agreement(agreement)


def _count(
    name: str,
    value: int,
    unit: str,
    *,
    n: int | None = None,
    is_denominator: bool = False,
) -> QuotedValue:
    return QuotedValue(
        name=name, value=value, unit=unit, n=n, is_denominator=is_denominator
    )


def _agreements(labels: LabelSet) -> Iterator[FieldAgreement]:
    fields = sorted({about.field for about in labels.by_field})
    for field in fields[:MOST_FIELDS]:
        table = rating_table(labels, field, replies={})
        yield field_agreement(field, table, level=LEVEL, replicates=REPLICATES)


def _agreement(agreement: FieldAgreement) -> Iterator[QuotedValue]:
    field, people = agreement.field, agreement.people
    if not people.items:
        return
    yield QuotedValue(name=name_of("label-field", field), value=field or _WHOLE)
    yield _count(
        name_of("agreement", field, "items"), people.items, "items", is_denominator=True
    )
    for key in COEFFICIENTS:
        coefficient = getattr(people, key)
        if coefficient is None:
            continue
        for end in ("value", "lo", "hi"):
            yield QuotedValue(
                name=name_of(
                    "agreement", field, key, suffix="" if end == "value" else end
                ),
                value=getattr(coefficient, end),
                rounding=Rounding.METRIC,
                n=people.items,
            )


def human_part(known: dict[str, QuotedValue]) -> Iterator[str]:
    """Yield the sentences about the work of people, as templates."""
    if "labels:count" not in known:
        yield _NO_LABELS
        return
    yield (
        "{labels:people|person|people} gave {labels:count|label|labels} on "
        "{labels:items|item|items}; {labels:blind|label was|labels were} given without "
        "a view of the answer of a model or the label of another person."
    )
    draws = [
        f"{{{name}}} by the design {{{name.replace('draw:', 'draw-design:', 1)}}}"
        for name in known
        if name.startswith("draw:")
    ]
    if draws:
        yield f"Of the items, these were drawn at random: {', '.join(draws)}."
    fields = [name for name in known if name.startswith("label-field:")]
    for name in fields:
        yield from _agreement_part(name, known)
    if fields or known["labels:adjudicated"].value:
        yield (
            "{labels:adjudicated|disagreement was|disagreements were} settled by "
            "adjudication, and {labels:disputed|is|are} open."
        )


def _agreement_part(field: str, known: dict[str, QuotedValue]) -> Iterator[str]:
    name = field.replace("label-field:", "agreement:", 1)
    values = [
        f"{words} {{{name}/{key}}} ({{labels:level}}% interval {{{name}/{key}@lo}} to "
        f"{{{name}/{key}@hi}})"
        for key, words in COEFFICIENTS.items()
        if f"{name}/{key}" in known and known[f"{name}/{key}"].has_value
    ]
    where = "" if known[field].value == _WHOLE else f" ({{{field}}})"
    if values:
        yield (
            f"On {{{name}/items|item|items}} with more than one label{where}: "
            f"{', '.join(values)}."
        )
