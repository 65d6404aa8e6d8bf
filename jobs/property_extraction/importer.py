"""Imports predictions and verdicts from CSV files as the answers of a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import ClassVar

from jobs.kit.importer import FileImporter, ImportFile, ImportForm
from jobs.kit.inputs.column_map import ColumnMap
from jobs.kit.inputs.hub import table_file
from jobs.property_extraction.input_table import NA
from jobs.property_extraction.inputs import MAPPED_FIELDS, mapped
from jobs.property_extraction.name_pairs import HEURISTIC, read_verdicts
from jobs.property_extraction.name_verification import VERIFY_STAGE
from jobs.property_extraction.prediction_files import (
    PredictedRow,
    column_notes,
    prediction_files,
    read_predictions,
)
from jobs.property_extraction.rows import (
    ROWS_STAGE,
    UNREADABLE,
    ImportedRow,
    text_of_rows,
)
from jobs.property_extraction.settings import PropertySettings
from jobs.property_extraction.tasks import pair_key
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer, TaskSpec


def verdict_answers(
    settings: PropertySettings, model: str | None
) -> Iterator[ImportedAnswer]:
    """Yield an answer for each verdict; several verdicts on a pair are replicates.

    Equal names need no verdict: they are known from the pairs.

    Args:
        settings: of the run; they name the files.
        model: name of the model if no column states it.

    Raises:
        DatasetError: a row is invalid, or a verdict has no model.
        UsageError: no file is named.
    """
    if not settings.verdicts:
        raise UsageError("Name the verdicts: --verdicts FILE.")
    seen: Counter[tuple[str, str]] = Counter()
    columns = mapped(settings, settings.verdicts)
    for verdict in chain.from_iterable(
        read_verdicts(path, columns) for path in settings.verdicts
    ):
        if verdict.model == HEURISTIC:
            continue
        key = pair_key(*verdict.names)
        name = verdict.model or model
        if not name:
            raise DatasetError(
                f"The verdict on {verdict.pred_name!r} names no model (add a column "
                "model, or name it with --model)."
            )
        reply = {"is_match": verdict.is_match, "reason": verdict.reason}
        seen[key, name] += 1
        yield ImportedAnswer(
            spec=TaskSpec(stage=VERIFY_STAGE, key=key),
            model=name,
            replicate=seen[key, name],
            # empty for an unreadable verdict
            text=""
            if verdict.is_match is None
            else json.dumps(reply, ensure_ascii=False),
        )
    if not seen:
        raise DatasetError("The files hold no verdict of a model (add rows).")


FORMAT = "predictions"
VERDICTS = "verdicts"


class PredictionsImporter(FileImporter[PropertySettings]):
    """Imports predictions, and verdicts on pairs of names."""

    forms: ClassVar[Mapping[str, ImportForm]] = {
        FORMAT: ImportForm(recognised="CSV refno, property_name, value_string"),
        VERDICTS: ImportForm(
            recognised="--verdicts FILE, a CSV pred_name, gt_name, is_match"
        ),
    }
    default_form = FORMAT
    fields = MAPPED_FIELDS
    no_files = "Name the predictions: --preds FILE or DIR."

    def named(self, settings: PropertySettings) -> Iterator[ImportFile]:
        """Yield the predictions that settings name."""
        yield from (ImportFile(path=path) for path in settings.preds)

    def paths(self, path: Path) -> Iterator[Path]:
        """Return a file, or those of a folder."""
        return prediction_files((path,))

    def pairs(self, settings: PropertySettings) -> Sequence[str]:  # noqa: ARG002 - of the base
        """Return none: they rename columns of the truth too, see `answers`."""
        return ()

    def read(
        self,
        files: tuple[Path, ...],
        settings: PropertySettings,
        *,
        model: str | None,
        form: str | None,
        replicates: Mapping[Path, int],
    ) -> Iterator[ImportedAnswer]:
        """Read predictions as the base does; settings name the verdict files."""
        if settings.mode == "verify" or form == VERDICTS:
            return verdict_answers(settings, model)
        return super().read(
            files, settings, model=model, form=form, replicates=replicates
        )

    def answers(
        self, files: Sequence[ImportFile], settings: PropertySettings
    ) -> Iterator[ImportedAnswer]:
        """Yield an answer for each paper of each model."""
        truth = () if settings.truth is None else (table_file(settings.truth),)
        paths = (*(file.path for file in files), *truth)
        read = _Read(settings=settings, columns=mapped(settings, paths))
        for file in files:
            read.add(file)
        yield from read.answers()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """The content of the files, filled file by file."""

    settings: PropertySettings
    columns: ColumnMap
    notes: list[str] = field(default_factory=list)
    rows_by_key: dict[tuple[str, int, str], list[ImportedRow]] = field(
        default_factory=dict
    )
    """By model, replicate and paper."""
    without_rows: dict[tuple[str, int, str], PredictedRow] = field(default_factory=dict)
    """Rows that only state the outcome of a paper."""
    unread: list[str] = field(default_factory=list)  #: files that were left out

    def add(self, file: ImportFile) -> None:
        """Read a file; if it may be left out, all its rows or none."""
        path = file.path
        # otherwise one by one: a million rows need not be in memory together
        missing = NA[self.settings.na]
        rows: Iterable[PredictedRow] = read_predictions(path, missing, self.columns)
        if self.settings.skip_bad:
            try:
                rows = list(rows)
            except DatasetError:
                self.unread.append(path.name)
                return
        self.notes.extend(column_notes(path, self.columns))
        for row in rows:
            name = row.model or file.model
            if not name:
                raise row.error(
                    "no model is named (add a column model, or name it with --model)"
                )
            number = file.replicate or row.replicate
            key = (name, number, row.refno)
            paper_rows = self.rows_by_key.setdefault(key, [])
            if row.status:
                self.without_rows[key] = row
            else:
                paper_rows.append(row.imported)

    def answers(self) -> Iterator[ImportedAnswer]:
        """Yield an answer for each paper, and a failure for each omitted file."""
        if not self.rows_by_key:
            raise DatasetError("The files hold no prediction (add rows).")
        for key, paper_rows in self.rows_by_key.items():
            name, number, refno = key
            status_row = None if paper_rows else self.without_rows.get(key)
            status, reason = (
                (status_row.status, status_row.reason) if status_row else ("scored", "")
            )
            skip = (reason or "skipped") if status == "skipped" else None
            error = (reason or "failed") if status == "failed" else None
            yield ImportedAnswer(
                spec=TaskSpec(stage=ROWS_STAGE, key=refno, skip=skip),
                model=name,
                replicate=number,
                text=text_of_rows(paper_rows) if status == "scored" else None,
                error=error,
                notes=tuple(self.notes),
            )
            self.notes.clear()
        first, _, _ = next(iter(self.rows_by_key))
        for file in self.unread:
            # its model is unknown; the run counts it among its failures
            yield ImportedAnswer(
                spec=TaskSpec(stage=ROWS_STAGE, key=file),
                model=first,
                replicate=1,
                error=UNREADABLE,
            )


importer = PredictionsImporter()
