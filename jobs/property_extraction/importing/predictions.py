"""Work in CSV files as the answers of a run: of predictions one answer a paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jobs.property_extraction.importing.told import STAGE, Told, text_of
from jobs.property_extraction.importing.verdicts import verdict_answers
from jobs.property_extraction.inputs.columns import NA
from jobs.property_extraction.inputs.predictions import (
    Predicted,
    prediction_files,
    read_predictions,
)
from jobs.property_extraction.settings import Settings
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer
from runner.task import TaskSpec

FORMAT = "predictions"
VERDICTS = "verdicts"


class PredictionsImporter:
    """The job's `runner.job.Importer`."""

    formats: Mapping[str, str] = {
        FORMAT: "CSV refno, property_name, value_string",
        VERDICTS: "--verdicts FILE, a CSV pred_name, gt_name, is_match",
    }

    def read(
        self,
        files: tuple[Path, ...],
        settings: Settings,
        *,
        model: str | None,
        form: str | None,
        replicates: Mapping[Path, int],
    ) -> Iterator[ImportedAnswer]:
        """An answer for each paper of each model, or for each verdict on two names.

        Args:
            files: named by their place; those that settings name come first.
            settings: of the run.
            model: name of the model where no column says it.
            form: a name in `formats`, or None.
            replicates: number of the replicate that a file holds, where no column says
                it.

        Raises:
            DatasetError: a file or row is off; names file and row.
            UsageError: no file is named, or the truth is not.
        """
        if form not in {None, *self.formats}:
            raise UsageError(
                f"There is no format {form!r}; there are {' and '.join(self.formats)}."
            )
        if settings.mode == "verify" or form == VERDICTS:
            yield from verdict_answers(settings, model)
            return
        named = (*settings.preds, *files)
        if not named:
            raise UsageError("Name the predictions: --preds FILE or DIR.")
        if settings.truth is None:
            raise UsageError("Name the curated values: --truth FILE.")
        found: dict[tuple[str, int, str], list[Told]] = {}
        for path in prediction_files(named):
            for row in _rows(path, settings):
                name = row.model or model
                if not name:
                    raise DatasetError(
                        f"{path.name} row {row.row}: no model is named (add a column "
                        "model, or name it with --model)."
                    )
                number = replicates.get(path, row.replicate)
                found.setdefault((name, number, row.refno), []).append(_told(row))
        if not found:
            raise DatasetError("The files hold no prediction (add rows).")
        for (name, number, refno), told in found.items():
            yield ImportedAnswer(
                spec=TaskSpec(stage=STAGE, key=refno),
                model=name,
                replicate=number,
                text=text_of(told),
            )


def _rows(path: Path, settings: Settings) -> Iterable[Predicted]:
    """The rows of a file; all of them or none, where a file may be left out."""
    rows = read_predictions(path, NA[settings.na])
    if not settings.skip_bad:
        return rows  # one by one: a million of them need not be there at once
    try:
        return list(rows)
    except DatasetError:
        return []


def _told(row: Predicted) -> Told:
    return Told(
        row=row.row,
        name=row.name,
        value=row.value,
        unit=row.unit,
        material=row.material,
        condition=row.condition,
        quote=row.quote,
        extra=row.extra,
    )


importer = PredictionsImporter()
