"""The file of a matrix: jobs, models, endpoints, one budget; read and validated.

What stands at the top is what a configuration file of one run may hold, and goes for
every run. Whatever is wrong is one sentence with file, table and key.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from runner.errors import UsageError
from runner.limits.limiter import MOST_CALLS, Limits
from runner.options import ModelName, RunOptions, Variable, options_from, read_toml

OWN = ("group", "endpoints", "jobs")
"""Keys at the top that no configuration file of one run has."""

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
    """An `[endpoints.NAME]` table: an address, and what holds there over all runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str
    models: tuple[ModelName, ...] = Field(min_length=1, description="asked there")
    api_key_env: Variable = None
    concurrency: int | None = Field(None, ge=1, le=MOST_CALLS)
    rpm: float | None = Field(None, gt=0, description="requests a minute")
    tpm: float | None = Field(None, gt=0, description="tokens a minute")

    @property
    def limits(self) -> Limits:
        """What holds over all models and runs."""
        return Limits(
            concurrency=self.concurrency or MOST_CALLS, rpm=self.rpm, tpm=self.tpm
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFile:
    """A file's content, validated but for the jobs' own settings."""

    path: Path
    group: str
    options: RunOptions  #: of every run, but its model
    jobs: Sequence[JobTable]
    endpoints: Sequence[EndpointTable]

    @property
    def limits(self) -> dict[str, Limits]:
        """What holds at whole endpoints, by address."""
        return {each.base_url: each.limits for each in self.endpoints}

    def wrong(self, table: str, key: str, why: str) -> UsageError:
        """An error that names the place."""
        return _wrong(self.path, table, key, why)


def read_matrix(path: Path) -> MatrixFile:
    """Read a matrix; raise `UsageError` naming file, table and key."""
    content = read_toml(path)
    raw = content.get("jobs")
    if not isinstance(raw, list) or not raw:
        raise _wrong(path, "[[jobs]]", "jobs", "there is none; each names a job to run")
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
    plain = {key: value for key, value in content.items() if key not in OWN}
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
    """The options of every run, for all models that any run asks."""
    if "settings" in plain:
        raise _wrong(path, "the top", "settings", "settings stand under their [[jobs]]")
    for key in plain:
        if key not in RunOptions.model_fields:
            near = difflib.get_close_matches(key, [*RunOptions.model_fields, *OWN], n=1)
            hint = f"did you mean {near[0]!r}" if near else "see siftlog run --help"
            raise _wrong(path, "the top", key, f"there is no such option; {hint}")
    try:
        # every model of the file, so that each table of a model is of one that is asked
        first = options_from({k: v for k, v in plain.items() if k != "models"})
        own = [model for job in jobs for model in job.model or ()]
        own += first.model if any(job.model is None for job in jobs) else ()
        every = options_from({**plain, "model": own})
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    models = dict(every.models)
    for name, table in endpoints.items():
        for model in table.models:
            if model not in every.asked:
                why = f"no run asks {model}; asked are {', '.join(every.asked)}"
                raise _wrong(path, f"[endpoints.{name}]", "models", why)
            models[model] = every.of(model).model_copy(
                update={
                    "base_url": table.base_url,
                    "api_key_env": table.api_key_env or every.of(model).api_key_env,
                    # so that they hold too where one of the runs is resumed alone
                    **_lowest(every, model, table),
                }
            )
    return every.model_copy(update={"model": first.model, "models": models})


def _lowest(options: RunOptions, model: str, table: EndpointTable) -> dict[str, Any]:
    own = options.of(model)
    return {
        name: min(
            (x for x in (getattr(own, name), getattr(table, name)) if x is not None),
            default=None,
        )
        for name in ("concurrency", "rpm", "tpm")
    }


def _check_apart(path: Path, endpoints: Mapping[str, EndpointTable]) -> None:
    """An address has one table, and a model one address."""
    addresses: dict[str, str] = {}
    models: dict[str, str] = {}
    for name, table in endpoints.items():
        place = f"[endpoints.{name}]"
        if table.base_url in addresses:
            why = f"[endpoints.{addresses[table.base_url]}] has that address already"
            raise _wrong(path, place, "base_url", why)
        addresses[table.base_url] = name
        for model in table.models:
            if model in models:
                why = f"{model} is asked at [endpoints.{models[model]}] already"
                raise _wrong(path, place, "models", why)
            models[model] = name


def _table(path: Path, name: str, form: type[T], values: object) -> T:
    try:
        return form.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "?"
        why = {
            "missing": "it is missing",
            "extra_forbidden": f"there is no such key; {', '.join(form.model_fields)}",
        }.get(first["type"], first["msg"].removeprefix("Value error, "))
        raise _wrong(path, name, key, why) from error


def _wrong(path: Path, table: str, key: str, why: str) -> UsageError:
    return UsageError(f"{path}, {table}, {key}: {why}.")
