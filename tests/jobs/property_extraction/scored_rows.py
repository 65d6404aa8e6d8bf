"""Small scorings, made of rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jobs.property_extraction.aliases.alias_set import AliasEntry, AliasSet
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.predictions import (
    PaperOutcome,
    ReplicatePredictions,
    RunPredictions,
)
from jobs.property_extraction.results import PropertyResults, measure_run
from jobs.property_extraction.rows import (
    ROWS_STAGE,
    ImportedRow,
    Prediction,
    TruthRow,
    text_of_rows,
)
from jobs.property_extraction.settings import PropertySettings
from jobs.property_extraction.values.comparison import ComparisonKind, Property, Rubric
from runner.job import Answer, Task
from runner.messages import Reply

RUBRIC = Rubric(
    properties={
        name: Property(name=name, kind=kind, si=si)
        for name, kind, si in (
            ("Tc", ComparisonKind.SI, "K"),
            ("field", ComparisonKind.SI, "T"),
            ("structure", ComparisonKind.CATEGORICAL, ""),
            ("formula", ComparisonKind.PYMATGEN, ""),
        )
    }
)


def truth(refno: str, name: str, value: str, unit: str = "") -> TruthRow:
    return TruthRow(refno=refno, name=name, value=value, unit=unit)


def stated(refno: str, name: str, value: str, unit: str = "") -> Prediction:
    return Prediction(refno=refno, name=name, value=value, unit=unit)


TRUTH = (
    truth("P1", "Tc", "10", "K"),
    truth("P1", "field", "2", "T"),
    truth("P1", "formula", "NbN"),
    truth("P2", "Tc", "20", "K"),
    truth("P2", "structure", "cubic"),
)

STATED = (
    stated("P1", "Tc", "10", "K"),
    stated("P1", "Hc2", "20", "kOe"),
    stated("P1", "formula", "NbN"),
    stated("P2", "Tc", "21", "K"),
    stated("P2", "structure", "NOT_FOUND"),
)
"""One value is found; of four others one has another name, one is wrong, one is left
out or found, and one is said to be missing."""

ALIAS = AliasSet(
    entries=(
        AliasEntry(
            pred_name="Hc2",
            gt_name="field",
            status="accepted",
            source="human",
            reason="the same limit",
        ),
        AliasEntry(
            pred_name="Tonset", gt_name="Tc", status="rejected", source="llm", votes=1
        ),
    )
)


def scored(
    *models: tuple[Prediction, ...],
    rows: tuple[TruthRow, ...] = TRUTH,
    aliases: AliasSet | None = None,
    outcomes: Mapping[str, PaperOutcome] | None = None,
    **settings: Any,
) -> PropertyResults:
    """What the rows of each model, m1 and so on, come to."""
    columns = (
        ReplicatePredictions(
            model=f"m{number}", replicate=1, predictions=own, outcomes=outcomes or {}
        )
        for number, own in enumerate(models, start=1)
    )
    return scored_columns(*columns, rows=rows, aliases=aliases, **settings)


def scored_columns(
    *columns: ReplicatePredictions,
    rows: tuple[TruthRow, ...] = TRUTH,
    aliases: AliasSet | None = None,
    **settings: Any,
) -> PropertyResults:
    """What replicates of models come to."""
    given = {"boot_b": 20, "pymatgen": "leave_out"} | settings
    return measure_run(
        PropertyDataset(
            settings=PropertySettings(**given),
            truth=rows,
            rubric=RUBRIC,
            aliases=aliases or AliasSet(),
        ),
        RunPredictions(
            models=tuple(dict.fromkeys(own.model for own in columns)),
            replicates=max((own.replicate for own in columns), default=1),
            imported=True,
            predicted=columns,
        ),
    )


@dataclass(frozen=True)
class RowAnswers:
    """Imported rows of one model, as a run holds them."""

    rows: tuple[Prediction, ...]
    models: tuple[str, ...] = ("m1",)
    replicates: int = 1
    imported: bool = True

    def families(self) -> Iterator[tuple[Answer, ...]]:
        for number, refno in enumerate(sorted({row.refno for row in self.rows}), 1):
            told = [
                ImportedRow(
                    row=at,
                    name=row.name,
                    value=row.value,
                    unit=row.unit,
                    material=row.material,
                    condition=row.condition,
                    quote=row.quote,
                )
                for at, row in enumerate(self.rows, start=2)
                if row.refno == refno
            ]
            task = Task(
                number=number, stage=ROWS_STAGE, key=refno, model="m1", replicate=1
            )
            yield (Answer(task=task, reply=Reply(text=text_of_rows(told))),)
