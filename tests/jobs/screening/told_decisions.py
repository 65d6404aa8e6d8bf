"""Small imports and sheets for tests of scoring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobs.kit.testing import MemoryAnswers
from jobs.screening.data import KINDS
from jobs.screening.decisions import OUTCOMES, Decisions, Records, ScreeningPredictions
from jobs.screening.importer import importer
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.settings import ScreeningSettings
from tests.csv_files import write_csv

COLUMNS = (
    "review_pmid",
    "paper_pmid",
    "label",
    "kind",
    "model",
    "replicate",
    "stage",
    "decision",
    "confidence",
    "status",
    "noted",
    "reason_code",
    "reason",
)
Said = tuple[str, str, str, str, float | None]
"""Review, paper, kind, outcome, p_include."""


def imported(
    folder: Path, lines: Iterable[Mapping[str, object]], **settings: Any
) -> tuple[ScreeningDataset, MemoryAnswers]:
    """The answers of a file of decisions."""
    path = write_csv(folder / "decisions.csv", COLUMNS, lines)
    given = ScreeningSettings(decisions=path, **settings)
    answers = importer.read((), given, model=None, form=None, replicates={})
    return ScreeningDataset(settings=given), MemoryAnswers.of_import(answers)


def sheet(rows: Sequence[Said], *more: Sequence[Said]) -> ScreeningPredictions:
    """What one model says, and others after it."""
    reviews = tuple(sorted({row[0] for row in rows}))
    kinds = tuple(kind for kind in KINDS if kind in {row[2] for row in rows})
    records = Records(
        reviews=reviews,
        papers=tuple(row[1] for row in rows),
        review=np.array([reviews.index(row[0]) for row in rows]),
        label=np.array([int(row[2] == "included") for row in rows]),
        kinds=kinds,
        kind=np.array([kinds.index(row[2]) for row in rows]),  # type: ignore[arg-type]
    )
    columns = tuple(
        Decisions(
            model=f"model {number}",
            outcome=np.array([OUTCOMES.index(row[3]) for row in own]),
            p=np.array([np.nan if row[4] is None else row[4] for row in own]),
            stage=np.zeros(len(own), dtype=np.int64),
            ended=np.zeros(len(own), dtype=np.int64),
            latest=np.array([OUTCOMES.index(row[3]) for row in own]),
            reason_code=[""] * len(own),
            reason=[""] * len(own),
        )
        for number, own in enumerate((rows, *more), start=1)
    )
    return ScreeningPredictions(
        records=records,
        decisions=columns,
        models=tuple(own.model for own in columns),
    )
