"""Rows can be asked to have a quote that stands in their paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.property_extraction.caveats import findings
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.papers import read_papers
from jobs.property_extraction.predictions import ReplicatePredictions, RunPredictions
from jobs.property_extraction.results import measure_run
from jobs.property_extraction.row_outcomes import RowOutcome
from jobs.property_extraction.rows import Prediction
from jobs.property_extraction.settings import Grounding, PropertySettings
from tests.jobs.property_extraction.scored_rows import RUBRIC, TRUTH

TEXT = "The critical temperature of the single crystal is 10 K in zero field."
QUOTES = (
    TEXT,
    "The critical ... is 10 K",
    TEXT.replace("single crystal", "single-crystal"),
    "A sentence that nobody ever wrote about it.",
    "",
)


@pytest.mark.parametrize(("least", "kept"), [("none", 5), ("near", 3), ("grounded", 2)])
def test_rows_whose_quote_stands_less_well_are_left_out_and_told(
    least: Grounding, kept: int, tmp_path: Path
) -> None:
    (tmp_path / "P1.txt").write_text(TEXT, encoding="utf-8")
    rows = tuple(
        Prediction(refno="P1", name="Tc", value="10", unit="K", quote=quote, row=at)
        for at, quote in enumerate(QUOTES, start=1)
    )
    results = measure_run(
        PropertyDataset(
            settings=PropertySettings(
                min_grounding=least, boot_b=0, pymatgen="leave_out"
            ),
            papers=read_papers(tmp_path),
            truth=TRUTH[:1],
            rubric=RUBRIC,
        ),
        RunPredictions(
            models=("m",),
            replicates=1,
            imported=True,
            predicted=(ReplicatePredictions(model="m", replicate=1, predictions=rows),),
        ),
    )
    column = results.columns["m"]
    counts = [column.metric(word).value for word in ("tp", "fp", "fn")]
    assert counts == [1, kept - 1, 0]
    assert (
        column.first.row_outcomes.prediction_outcomes.count(RowOutcome.UNGROUNDED)
        == len(QUOTES) - kept
    )
    told = {own.code: own.n for own in findings(results)}
    assert told.get("ungrounded", 0) == len(QUOTES) - kept
