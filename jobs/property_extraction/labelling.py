"""Declares what people label in property extraction: the values of each property.

An item is a paper, with a field per property. A label is the values that the paper
reports, separated by `;`, or `none`:

    39 K
    39 | K | MgB2 | single crystal; 38.2 | K | MgB2 | powder

A value is its number or text, its unit, the material and the condition, separated by
`|`; omitted parts at the end are blank. A number with a unit needs no `|`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from jobs.property_extraction.aliases.alias_set import Renaming
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.predictions import (
    PaperState,
    ReplicatePredictions,
    run_predictions,
)
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.tasks import paper_of
from jobs.property_extraction.values.comparison import ComparisonKind, Property
from jobs.property_extraction.values.numbers import is_abstention, read_number
from runner.errors import DatasetError
from runner.job import Answers, QuotedPassage
from runner.labelling import (
    LabelChoice,
    LabelField,
    LabelItem,
    Labelling,
    ModelLabel,
)

NONE: Final = "none"
"""Label of a property that a paper does not report."""

_CHOICES: Final = (
    LabelChoice(value=NONE, key="n"),
    LabelChoice(value="undecided", key="u", is_gold=False),
)
_ROWS, _CELLS = ";", "|"
_CELL_COUNT: Final = 4


class PropertyLabelling(Labelling):
    """The values of each listed property in a paper."""

    gold_setting = "truth"

    def of_run(
        self, dataset: PropertyDataset, answers: Answers
    ) -> PropertyLabelling | None:
        """Return this; None if names are verified, or no property is listed."""
        del answers
        if dataset.questions or not dataset.papers or not _properties(dataset):
            return None
        return self

    def fields(self, dataset: PropertyDataset) -> tuple[LabelField, ...]:
        """Return the properties of the rubric, then others of the truth."""
        return tuple(
            LabelField(
                name=prop.name,
                question=_question(prop),
                choices=_CHOICES,
                is_open=True,
            )
            for prop in _properties(dataset)
        )

    def items(self, dataset: PropertyDataset) -> Iterator[str]:
        """Return the papers that have a text, ascending."""
        return (refno for refno in dataset.papers if dataset.papers.text(refno).strip())

    def item(self, dataset: PropertyDataset, key: str) -> LabelItem:
        """Return the text of a paper."""
        return LabelItem(key=key, title="", text=dataset.papers.text(key))

    def items_of_task(self, dataset: PropertyDataset, key: str) -> tuple[str, ...]:
        """Return the paper of a chunk."""
        del dataset
        return (paper_of(key)[0],)

    def replies(
        self, dataset: PropertyDataset, answers: Answers
    ) -> Iterator[ModelLabel]:
        """Yield the values of each property that a model extracted from a paper."""
        names = [prop.name for prop in _properties(dataset)]
        renaming = Renaming.of(
            dataset.aliases, dataset.settings.name_match, canonical=dataset.canonical
        )
        for replicate in run_predictions(dataset, answers).predicted:
            rows = _by_property(replicate, renaming)
            for refno, outcome in replicate.outcomes.items():
                if (
                    outcome.state is not PaperState.SCORED
                    or refno not in dataset.papers
                ):
                    continue
                text = dataset.papers.text(refno)
                for name in names:
                    of_property = rows.get((refno, name), [])
                    yield ModelLabel(
                        item=refno,
                        field=name,
                        model=replicate.model,
                        replicate=replicate.replicate,
                        value=label_of(of_property),
                        quotes=tuple(
                            QuotedPassage(
                                quote=row.quote,
                                passage=row.quote if row.quote in text else None,
                                label=name,
                            )
                            for row in of_property
                            if row.quote
                        ),
                    )

    def gold_changes(self, dataset: PropertyDataset) -> Mapping[str, object]:
        """Return changes that limit scoring to labelled papers."""
        del dataset
        return {"paper_set": "truth"}

    def gold_rows(
        self, dataset: PropertyDataset, gold: Mapping[str, Mapping[str, str]]
    ) -> Iterator[Mapping[str, str]]:
        """Yield a row per value, of papers with a label for each property.

        A property without a value has a blank row, so that a paper that reports none of
        them is scored too; a partly labelled paper is not.

        Raises:
            DatasetError: a label has more parts than a value has.
        """
        properties = _properties(dataset)
        for refno, values in gold.items():
            if any(prop.name not in values for prop in properties):
                continue
            for prop in properties:
                is_number = dataset.rubric.kind(prop.name) is ComparisonKind.SI
                rows = rows_of(refno, prop.name, values[prop.name], is_number=is_number)
                for row in rows or [TruthRow(refno=refno, name=prop.name, value="")]:
                    yield {
                        "refno": refno,
                        "label": row.name,
                        "property_value": row.value,
                        "property_unit": row.unit,
                        "material": row.material,
                        "condition": row.condition,
                    }


def label_of(rows: list[Prediction]) -> str:
    """Return the label that is equivalent to some rows of one property."""
    cells = (
        [row.value, row.unit, row.material, row.condition]
        for row in rows
        if not is_abstention(row.value)
    )
    texts = (f" {_CELLS} ".join(map(_plain, row)).rstrip(f" {_CELLS}") for row in cells)
    return f"{_ROWS} ".join(dict.fromkeys(texts)) or NONE


def rows_of(
    refno: str, name: str, label: str, *, is_number: bool = False
) -> list[TruthRow]:
    """Return the values that a label states; none for `none`.

    Args:
        refno: of the paper.
        name: of the property.
        label: the text that a person typed.
        is_number: whether `39 K` is a number with its unit.

    Raises:
        DatasetError: a value has more parts than value, unit, material and condition.
    """
    rows = []
    for text in label.split(_ROWS):
        cells = [" ".join(cell.split()) for cell in text.split(_CELLS)]
        if len(cells) > _CELL_COUNT or (any(cells) and not cells[0]):
            raise DatasetError(
                f"The label of {name} in {refno} is {label!r}: label it again as "
                "'value | unit | material | condition', with ';' between values, or "
                f"with {NONE}."
            )
        if not any(cells) or label == NONE:
            continue
        if is_number and len(cells) == 1:
            cells = _number_and_unit(cells[0])
        value, unit, material, condition, *_ = (*cells, "", "", "")
        rows.append(
            TruthRow(
                refno=refno,
                name=name,
                value=value,
                unit=unit,
                material=material,
                condition=condition,
            )
        )
    return rows


def _number_and_unit(text: str) -> list[str]:
    """Split a text behind the longest part that is a number.

    >>> _number_and_unit("1.2 x 10^3 cm")
    ['1.2 x 10^3', 'cm']
    """
    words = text.split()
    for at in range(len(words), 0, -1):
        number = " ".join(words[:at])
        if read_number(number, "scientific").status == "value":
            return [number, " ".join(words[at:])]
    return [text]


def _plain(text: str) -> str:
    """Return a cell without the separators of cells and rows."""
    return " ".join(text.replace(_CELLS, "/").replace(_ROWS, ",").split())


def _question(prop: Property) -> str:
    unit = f" in {prop.si}, such as '39 {prop.si}'" if prop.si else ""
    meaning = f" ({prop.definition})" if prop.definition else ""
    return f"Which values does the paper report{unit}? {prop.name}{meaning}"


def _properties(dataset: PropertyDataset) -> tuple[Property, ...]:
    """Return the properties to label: those listed, then others of the truth."""
    listed = dataset.listed_properties
    names = dataset.truth_names - {prop.name for prop in listed}
    return (
        *listed,
        *(Property(name=name, kind=ComparisonKind.EXACT) for name in sorted(names)),
    )


def _by_property(
    replicate: ReplicatePredictions, renaming: Renaming
) -> Mapping[tuple[str, str], list[Prediction]]:
    """Return the rows of a replicate, by paper and the target of their name."""
    rows: dict[tuple[str, str], list[Prediction]] = {}
    for row in replicate.predictions:
        name = renaming.renamed(row.refno, row.name).name
        rows.setdefault((row.refno, name), []).append(row)
    return rows


labelling = PropertyLabelling()
