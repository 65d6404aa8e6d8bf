"""The cells of a matrix: each is one run, with an id that says what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from runner.control.listen import waiting
from runner.errors import RunnerError, UsageError
from runner.job import Job
from runner.matrix.file import JobTable, MatrixFile
from runner.options import RunOptions
from runner.registry import load_job
from runner.roles import fitted
from runner.settings import as_json, resolve
from runner.work import Work, load_work
from store.database import open_reader
from store.read.status import liveness, run_started, status
from store.runs import RunFolder

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One run of a matrix: one model, one job, one choice of settings."""

    folder: RunFolder
    work: Work  #: one for all models that are asked the same
    options: RunOptions
    varied: Mapping[str, Any]  #: the settings that tell it from others of its table
    state: str | None  #: in which it was found; None: it is new

    @property
    def model(self) -> str:
        """The model under test."""
        return self.options.model[0]

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to ask, nor asked of it since."""
        is_ended = self.state in {"finished", "cancelled"}
        return is_ended and not waiting(self.folder)


def cells(file: MatrixFile, runs_dir: Path) -> list[Cell]:
    """Every run of a matrix, its data loaded, in the order of the file.

    Raises:
        UsageError: a table is wrong, naming file, table and key, or a run of that
            name was made of something else.
        DatasetError: an input is wrong.
    """
    if (
        not RunFolder.is_valid_id(file.group)
        or RunFolder(runs_dir / file.group).log.is_file()
    ):
        raise file.wrong(
            "the top",
            "group",
            f"{file.group!r} cannot be the name of a group: use letters, digits, '.', "
            "'_' and '-', and no run's id",
        )
    made: list[Cell] = []
    taken: set[str] = set()
    for number, table in enumerate(file.jobs, start=1):
        place = f"[[jobs]] {number}"
        for cell in _of_table(file, place, table, runs_dir):
            run_id = cell.folder.run_id
            if not RunFolder.is_valid_id(run_id):
                raise file.wrong(
                    place, "name", f"{run_id!r} is too long for a run's id"
                )
            if run_id in taken:
                why = f"{run_id} is made twice; give one table another name"
                raise file.wrong(place, "name", why)
            taken.add(run_id)
            made.append(cell)
    return made


def _of_table(
    file: MatrixFile, place: str, table: JobTable, runs_dir: Path
) -> Iterator[Cell]:
    try:
        job = load_job(table.job)
    except UsageError as error:
        raise UsageError(f"{file.path}, {place}, job: {error}") from error
    for values in product(*table.vary.values()):
        varied = dict(zip(table.vary, values, strict=True))
        asked = file.options.model_copy(
            update={"model": table.model or file.options.model}
        )
        work = _work(file, place, job, {**table.settings, **varied}, asked)
        said = "".join(f"-{key}-{_slug(value)}" for key, value in varied.items())
        for model in asked.model:
            run_id = f"{file.group}-{table.name or job.name}-{_slug(model)}{said}"
            folder = RunFolder(runs_dir / run_id)
            options = _options(file.options, model, work)
            yield Cell(
                folder=folder,
                work=work,
                options=options,
                varied=varied,
                state=_found(file, place, folder, work, options),
            )


def _work(
    file: MatrixFile,
    place: str,
    job: Job,
    values: Mapping[str, Any],
    asked: RunOptions,
) -> Work:
    """The job with its data, the sample's where no input is named.

    Its settings fit all models of the table, so that all are asked the same.
    """
    try:
        settings = resolve(
            job, typed={}, environment={}, file=values, folder=file.path.parent
        )
        settings = getattr(job, "with_sample", lambda given: given)(settings)
        getattr(job, "require", lambda _: None)(settings)
        return load_work(job, fitted(job, settings, asked), starts=True)
    except RunnerError as error:
        raise type(error)(f"{file.path}, {place}, settings: {error}") from error


def _options(every: RunOptions, model: str, work: Work) -> RunOptions:
    """Those of one run: the tables of the models that it asks alone."""
    own = every.model_copy(update={"model": (model,)})
    tables = {name: each for name, each in every.models.items() if name in own.asked}
    times = getattr(work.job, "replicates", None)
    usual = {}
    if times is not None and "replicates" not in every.model_fields_set:
        usual = {"replicates": times(work.settings)}
    return own.model_copy(update={"models": tables, **usual})


def _found(
    file: MatrixFile, place: str, folder: RunFolder, work: Work, options: RunOptions
) -> str | None:
    """The state of the run that is there; raise where it is not this one."""
    if not folder.log.is_file():
        return None
    with open_reader(folder.log) as reader:
        first, signs = run_started(reader), status(reader).signs
    differs = {
        "group": first.group != file.group,
        "job": first.job != work.job.name,
        "model": first.models["subject"] != list(options.model),
        "replicates": first.replicates != options.replicates,
        "settings": first.settings != as_json(work.settings),
    }
    for key, is_other in differs.items():
        if is_other:
            raise file.wrong(
                place,
                key,
                f"the run {folder.run_id} was begun with another; put it back, or give "
                "the table another name",
            )
    return liveness(signs, signs.phase_us, is_alive=False)


def _slug(value: object) -> str:
    """A value as a part of a run's id."""
    return _UNSAFE.sub("_", str(value)).strip("._-") or "_"
