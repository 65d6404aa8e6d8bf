"""Runs several jobs with several models and settings from one file, in one process."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from runner.engine.background import obey_signals
from runner.errors import RunnerError, UsageError
from runner.job import Job
from runner.limits.limiter import MOST_CALLS, Limits
from runner.money.budget import Budget
from runner.options import ModelName, RunOptions, Variable, options_from, read_toml
from runner.registry import choose_job
from runner.roles import fitted
from runner.run import launch
from runner.run.context import RunContext
from runner.run.control import waiting
from runner.run.end import RunOutcome
from runner.run.endpoints import SharedEndpoints
from runner.run.folder import elsewhere
from runner.workload import Workload, as_json, load_workload, resolve
from store.database import open_reader
from store.errors import StoreError
from store.nearest import did_you_mean, nearest
from store.read.status import liveness, run_started, status
from store.runs import RunFolder
from store.task import pico

MATRIX_KEYS = ("group", "endpoints", "jobs")
"""Top-level keys that configuration files of single runs do not have."""

T = TypeVar("T", bound=BaseModel)


class JobTable(BaseModel):
    """A `[[jobs]]` table: one job under some settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    job: str
    name: str | None = Field(None, description="in the runs' ids; the job's if not set")
    model: tuple[ModelName, ...] | None = Field(
        None, min_length=1, description="asked here in place of those at the top"
    )
    settings: Mapping[str, Any] = Field(default_factory=dict)
    vary: Mapping[str, tuple[Any, ...]] = Field(
        default_factory=dict, description="settings with several values: a run for each"
    )


class EndpointTable(BaseModel):
    """An `[endpoints.NAME]` table: an address, and its limits for all runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str
    models: tuple[ModelName, ...] = Field(min_length=1, description="asked there")
    api_key_env: Variable = None
    concurrency: int | None = Field(None, ge=1, le=MOST_CALLS)
    rpm: float | None = Field(None, gt=0, description="requests a minute")
    tpm: float | None = Field(None, gt=0, description="tokens a minute")

    @property
    def limits(self) -> Limits:
        """Limits for all models and runs together."""
        return Limits(
            concurrency=self.concurrency or MOST_CALLS, rpm=self.rpm, tpm=self.tpm
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFile:
    """A file's content, validated except for the jobs' settings."""

    path: Path
    group: str
    options: RunOptions  #: options of every run, without its model
    jobs: Sequence[JobTable]
    endpoints: Sequence[EndpointTable]

    @property
    def limits(self) -> dict[str, Limits]:
        """Limits of whole endpoints, by address."""
        return {endpoint.base_url: endpoint.limits for endpoint in self.endpoints}

    def wrong(self, table: str, key: str, reason: str) -> UsageError:
        """Return an error that names the location."""
        return _wrong(self.path, table, key, reason)


def read_matrix(path: Path) -> MatrixFile:
    """Read a matrix file; raise `UsageError` naming file, table and key."""
    content = read_toml(path)
    raw = content.get("jobs")
    if not isinstance(raw, list) or not raw:
        (near,) = nearest("jobs", content) or ("",)
        hint = f"rename [[{near}]]" if near else "each entry names a job to run"
        raise _wrong(path, "[[jobs]]", "jobs", f"missing; {hint}")
    jobs = [
        _table(path, f"[[jobs]] {number}", JobTable, values)
        for number, values in enumerate(raw, start=1)
    ]
    tables = content.get("endpoints", {})
    if not isinstance(tables, dict):
        raise _wrong(path, "the top", "endpoints", "write [endpoints.NAME] tables")
    endpoints = {
        name: _table(path, f"[endpoints.{name}]", EndpointTable, values)
        for name, values in tables.items()
    }
    _check_apart(path, endpoints)
    plain = {key: value for key, value in content.items() if key not in MATRIX_KEYS}
    group = content.get("group", path.stem)
    if not isinstance(group, str):
        raise _wrong(path, "the top", "group", "give a name in quotes")
    return MatrixFile(
        path=path,
        group=group,
        options=_options(path, plain, endpoints, jobs),
        jobs=jobs,
        endpoints=tuple(endpoints.values()),
    )


def _options(
    path: Path,
    plain: Mapping[str, Any],
    endpoints: Mapping[str, EndpointTable],
    jobs: Sequence[JobTable],
) -> RunOptions:
    """Return the options of every run, for all models of the file."""
    if "settings" in plain:
        raise _wrong(
            path, "the top", "settings", "settings belong under their [[jobs]]"
        )
    for key in plain:
        if key not in RunOptions.model_fields:
            hint = did_you_mean(
                key,
                [*RunOptions.model_fields, *MATRIX_KEYS],
                "see siftlog run --help-all",
            )
            raise _wrong(path, "the top", key, f"there is no such option; {hint}")
    try:
        # every model of the file, so that each model table belongs to a used model
        first = options_from({k: v for k, v in plain.items() if k != "models"})
        model_names = [model for job in jobs for model in job.model or ()]
        model_names += first.model if any(job.model is None for job in jobs) else ()
        every = options_from({**plain, "model": model_names})
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    models = dict(every.models)
    for name, table in endpoints.items():
        for model in table.models:
            if model not in every.all_models:
                names = ", ".join(every.all_models)
                reason = f"no run uses {model}; used are {names}"
                raise _wrong(path, f"[endpoints.{name}]", "models", reason)
            models[model] = every.of(model).model_copy(
                update={
                    "base_url": table.base_url,
                    "api_key_env": table.api_key_env or every.of(model).api_key_env,
                    # so that they also apply when one of the runs is resumed alone
                    **_lowest(every, model, table),
                }
            )
    return every.model_copy(update={"model": first.model, "models": models})


def _lowest(options: RunOptions, model: str, table: EndpointTable) -> dict[str, Any]:
    model_options = options.of(model)
    return {
        name: min(
            (
                x
                for x in (getattr(model_options, name), getattr(table, name))
                if x is not None
            ),
            default=None,
        )
        for name in ("concurrency", "rpm", "tpm")
    }


def _check_apart(path: Path, endpoints: Mapping[str, EndpointTable]) -> None:
    """Check that an address has one table, and a model one address."""
    addresses: dict[str, str] = {}
    models: dict[str, str] = {}
    for name, table in endpoints.items():
        label = f"[endpoints.{name}]"
        if table.base_url in addresses:
            reason = f"[endpoints.{addresses[table.base_url]}] has that address already"
            raise _wrong(path, label, "base_url", reason)
        addresses[table.base_url] = name
        for model in table.models:
            if model in models:
                reason = f"{model} is already at [endpoints.{models[model]}]"
                raise _wrong(path, label, "models", reason)
            models[model] = name


def _table(path: Path, name: str, form: type[T], values: object) -> T:
    try:
        return form.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "?"
        reason = {
            "missing": "it is missing",
            "extra_forbidden": f"there is no such key; {', '.join(form.model_fields)}",
        }.get(first["type"], first["msg"].removeprefix("Value error, "))
        raise _wrong(path, name, key, reason) from error


def _wrong(path: Path, table: str, key: str, reason: str) -> UsageError:
    end = "" if reason.endswith("?") else "."
    return UsageError(f"{path}, {table}, {key}: {reason}{end}")


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """One run of a matrix: one model, one job, one set of settings."""

    folder: RunFolder
    work: Workload  #: shared by all models with the same settings
    options: RunOptions
    varied: Mapping[str, Any]  #: settings that differ from other runs of its table
    state: str | None  #: state of an existing run; None: new

    @property
    def model(self) -> str:
        """The model under test."""
        return self.options.model[0]

    @property
    def is_over(self) -> bool:
        """Return whether it has ended and has no pending command."""
        is_ended = self.state in {"finished", "cancelled"}
        return is_ended and not waiting(self.folder)


def cells(file: MatrixFile, runs_dir: Path) -> list[MatrixCell]:
    """Return every run of a matrix, its data loaded, in the order of the file.

    Raises:
        UsageError: a table is invalid (names file, table and key), or an existing run
            of that name differs.
        DatasetError: an input is invalid.
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
    matrix_cells: list[MatrixCell] = []
    taken: set[str] = set()
    for number, table in enumerate(file.jobs, start=1):
        label = f"[[jobs]] {number}"
        for cell in _of_table(file, label, table, runs_dir):
            run_id = cell.folder.run_id
            if not RunFolder.is_valid_id(run_id):
                raise file.wrong(
                    label, "name", f"{run_id!r} is too long for a run's id"
                )
            if run_id in taken:
                reason = f"{run_id} is made twice; give one table another name"
                raise file.wrong(label, "name", reason)
            taken.add(run_id)
            matrix_cells.append(cell)
    return matrix_cells


def _of_table(
    file: MatrixFile, label: str, table: JobTable, runs_dir: Path
) -> Iterator[MatrixCell]:
    try:
        choice = choose_job(table.job, folder=file.path.parent)
    except UsageError as error:
        raise UsageError(f"{file.path}, {label}, job: {error}") from error
    job = choice.job
    for values in product(*table.vary.values()):
        varied = dict(zip(table.vary, values, strict=True))
        table_options = file.options.model_copy(
            update={"model": table.model or file.options.model}
        )
        work = _work(
            file,
            label,
            job,
            {**choice.settings, **table.settings, **varied},
            table_options,
        )
        suffix = "".join(f"-{key}-{_slug(value)}" for key, value in varied.items())
        for model in table_options.model:
            run_id = f"{file.group}-{table.name or job.name}-{_slug(model)}{suffix}"
            folder = RunFolder(runs_dir / run_id)
            options = _run_options(file.options, model, work)
            yield MatrixCell(
                folder=folder,
                work=work,
                options=options,
                varied=varied,
                state=_existing_state(file, label, folder, work, options),
            )


def _work(
    file: MatrixFile,
    label: str,
    job: Job,
    values: Mapping[str, Any],
    table_options: RunOptions,
) -> Workload:
    """Load the job with its data; the sample's if no input is named.

    Its settings fit all models of the table, so that all get the same requests.
    """
    try:
        settings = resolve(
            job, typed={}, environment={}, file=values, folder=file.path.parent
        )
        settings = job.with_sample(settings)
        job.require(settings)
        return load_workload(job, fitted(job, settings, table_options), starts=True)
    except RunnerError as error:
        raise type(error)(f"{file.path}, {label}, settings: {error}") from error


def _run_options(every: RunOptions, model: str, work: Workload) -> RunOptions:
    """Return the options of one run, with the tables of its models only."""
    run_options = every.model_copy(update={"model": (model,)})
    tables = {
        name: table
        for name, table in every.models.items()
        if name in run_options.all_models
    }
    times = work.job.replicates(work.settings)
    usual = {}
    if times is not None and "replicates" not in every.model_fields_set:
        usual = {"replicates": times}
    return run_options.model_copy(update={"models": tables, **usual})


def _existing_state(
    file: MatrixFile, label: str, folder: RunFolder, work: Workload, options: RunOptions
) -> str | None:
    """Return the state of an existing run; raise if it is another one."""
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
                label,
                key,
                f"the run {folder.run_id} was started with another; restore "
                "it, or give the table another name",
            )
    return liveness(signs, signs.phase_us, is_alive=False)


def _slug(value: object) -> str:
    """Return a value as part of a run's id."""
    return _UNSAFE.sub("_", str(value)).strip("._-") or "_"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """Result of one run of a matrix."""

    cell: MatrixCell
    ended: RunOutcome | None  #: None: it failed with an error
    error: str | None = None  #: the error, in a sentence

    @property
    def is_clean(self) -> bool:
        """Return whether nothing failed in it so far."""
        if self.ended is None or self.ended.outcome == "endpoint":
            return False
        with open_reader(self.cell.folder.log) as reader:
            return not status(reader).tasks.failed


Shells = Callable[[MatrixCell], RunContext]


async def carry_out(
    file: MatrixFile,
    cells: Sequence[MatrixCell],
    context_of: Shells,
    notify: Callable[[str], None],
    *,
    fail_fast: bool,
) -> list[CellResult]:
    """Run the rest of a matrix; return the results in the order of *cells*.

    Args:
        file: the matrix.
        cells: the runs that are not over.
        context_of: returns the context of each run.
        notify: receives messages about all runs.
        fail_fast: drain all runs after the first failure.
    """
    shared_endpoints = SharedEndpoints(file.limits, _budget(file, cells))
    obey_signals(shared_endpoints, notify)
    results: dict[str, CellResult] = {}

    async def carry(cell: MatrixCell) -> None:
        run = results[cell.folder.run_id] = await _carry(
            file, cell, shared_endpoints, context_of(cell)
        )
        if fail_fast and not run.is_clean:
            notify(f"{cell.folder.run_id} failed; the other runs finish their calls.")
            shared_endpoints.drain()

    async with asyncio.TaskGroup() as runs:
        for cell in cells:
            runs.create_task(carry(cell))
    return [results[cell.folder.run_id] for cell in cells]


def _budget(file: MatrixFile, cells: Sequence[MatrixCell]) -> Budget | None:
    """Return the shared budget, less the earlier spending of the group."""
    if file.options.budget is None or not cells:
        return None
    before = elsewhere(cells[0].folder.path.parent, file.group)
    return Budget(
        pico(file.options.budget),
        spent_pico=before.spent_pico,
        possible_pico=before.possible_pico,
    )


async def _carry(
    file: MatrixFile,
    cell: MatrixCell,
    shared_endpoints: SharedEndpoints,
    context: RunContext,
) -> CellResult:
    try:
        if cell.state is None:
            ended = await launch.start(
                cell.folder,
                cell.work,
                cell.options,
                context,
                shared_endpoints=shared_endpoints,
                group=file.group,
            )
        else:
            ended = await launch.resume(
                cell.folder,
                cell.work,
                cell.options,
                context,
                accept_changes=False,
                shared_endpoints=shared_endpoints,
            )
    except (RunnerError, StoreError) as error:
        return CellResult(cell=cell, ended=None, error=str(error))
    except Exception as error:  # noqa: BLE001 - one job's mistake is not the others'
        return CellResult(
            cell=cell, ended=None, error=f"{type(error).__name__}: {error}"
        )
    return CellResult(cell=cell, ended=ended)
