"""Defines the workload of a run: a job, its settings, its data, and their hashes.

Settings are resolved from flags, `--set`, the environment and the configuration file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from runner.errors import UnknownSetting, UsageError
from runner.fingerprint import code_hash, input_hashes
from runner.job import JOB_FILE, Dataset, InputFile, Job
from runner.job_faults import calling
from runner.messages import ABSENT
from runner.options import RunOptions
from runner.registry import typed_word
from runner.reply_labels import settings_model
from store.errors import ignore_progress
from store.events import Input

ENVIRONMENT = "SIFTLOG_SET_"


def resolve(
    job: Job,
    *,
    typed: Mapping[str, Sequence[str]],
    environment: Mapping[str, str],
    file: Mapping[str, Any],
    folder: Path = Path(),
) -> BaseModel:
    """Return the job's settings: command line before environment before file.

    Args:
        job: the job.
        typed: values from the command line, by name.
        environment: the process environment; `SIFTLOG_SET_<NAME>` counts.
        file: the `[settings]` table of a configuration file.
        folder: the file's folder; paths in the file are relative to it. Paths of the
            command line and the environment are relative to the current folder.

    Raises:
        UsageError: a name is unknown or a value is invalid.
    """
    fields = job.Settings.model_fields
    values: dict[str, Any] = {}
    for key, value in file.items():
        name = _name(job, key)
        is_path = _is_path(fields[name].annotation)
        values[name] = _resolved_path(folder, value) if is_path else value
    for name, field in fields.items():
        text = environment.get(ENVIRONMENT + name.upper())
        if text is not None:
            values[name] = _typed(field, [text])
    for key, texts in typed.items():
        name = _name(job, key)
        values[name] = _typed(fields[name], texts)
    return validated(job, values)


def validated(job: Job, values: Mapping[str, Any]) -> BaseModel:
    """Validate plain values; raise `UsageError` naming the invalid one."""
    settings = fitting(job, values)
    # settings that the user left out stay unset: a job may adapt them to its models
    fields_set = settings.model_fields_set
    return settings.model_copy(
        update={
            name: _absolute(value) for name, value in settings if name in fields_set
        }
    )


def fitting(job: Job, values: Mapping[str, Any]) -> BaseModel:
    """Validate values with paths as written, of this machine or another.

    Raises:
        UsageError: a value is invalid.
    """
    try:
        return settings_model(job, values).model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        # a rule about several settings names none; its message is the job's
        subject = f"Setting {name}" if name else "Settings"
        raise UsageError(
            f"{subject} of {job.name}: {first['msg'].removeprefix('Value error, ')}; "
            f"siftlog jobs {typed_word(job)} --all lists all settings."
        ) from error


def switches(job: Job) -> frozenset[str]:
    """Return the names of boolean settings, whose flag needs no value."""
    fields = job.Settings.model_fields.items()
    return frozenset(name for name, field in fields if field.annotation is bool)


def file_lists(job: Job) -> frozenset[str]:
    """Return the names of settings that take several files."""
    fields = job.Settings.model_fields.items()
    return frozenset(
        name
        for name, field in fields
        if _is_list(field.annotation) and _is_path(field.annotation)
    )


def list_settings(job: Job) -> frozenset[str]:
    """Return the names of settings that take several values."""
    fields = job.Settings.model_fields.items()
    return frozenset(name for name, field in fields if _is_list(field.annotation))


def as_json(settings: BaseModel) -> str:
    """Encode all settings, defaults included, as compact JSON with sorted keys."""
    return json.dumps(
        settings.model_dump(mode="json"), sort_keys=True, separators=(",", ":")
    )


def _absolute(value: Any) -> Any:  # noqa: ANN401 - of a field of any job
    """Return absolute paths: a resume may start in another folder."""
    if isinstance(value, Path):
        return value.resolve()
    if isinstance(value, tuple | list):
        return type(value)(map(_absolute, value))
    return value


def _name(job: Job, key: str) -> str:
    name = key.replace("-", "_")
    if name in job.Settings.model_fields:
        return name
    # flags that are no options of the command arrive here too
    if name in RunOptions.model_fields:
        raise UsageError(
            f"{job.name} has no setting {key!r}, and this command has no such option; "
            f"set {name} in a file for siftlog run --config."
        )
    setting_names = [*job.Settings.model_fields, *RunOptions.model_fields]
    see = f"see siftlog jobs {typed_word(job)} --all and siftlog run --help-all."
    raise UnknownSetting.of(job.name, key, setting_names, see)


def _typed(field: FieldInfo, texts: Sequence[str]) -> object:
    """Convert a setting's texts to its field's type: lists by commas or repetition."""
    if _is_list(field.annotation):
        extra = field.json_schema_extra
        if isinstance(extra, dict) and extra.get("commas") is False:
            return list(texts)  # sentences: only repetition makes several
        return [part.strip() for text in texts for part in text.split(",") if part]
    text, kinds = texts[-1], get_args(field.annotation)
    for choice in _choices(field.annotation):
        # a choice that is a number or a boolean is typed as text
        if not isinstance(choice, str) and text.lower() == str(choice).lower():
            return choice
    is_none = text == "" or (text == ABSENT and str not in kinds)
    return None if is_none and type(None) in kinds else text


def _choices(annotation: object) -> tuple[object, ...]:
    """Return the values of a `Literal`, which may be nested in an annotation."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(choice for part in get_args(annotation) for choice in _choices(part))


def _resolved_path(folder: Path, value: object) -> object:
    """Resolve a path, or a list of paths, of a configuration file."""
    if isinstance(value, list):
        return [_resolved_path(folder, path) for path in value]
    return folder / value if isinstance(value, str) else value


def _is_path(annotation: object) -> bool:
    return annotation is Path or any(map(_is_path, get_args(annotation)))


def _is_list(annotation: object) -> bool:
    return get_origin(annotation) in {tuple, list} or any(
        _is_list(part) for part in get_args(annotation) if part is not annotation
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A job with its settings and data."""

    job: Job
    settings: BaseModel
    dataset: Dataset
    inputs: list[Input]
    code_sha256: str

    def titles(self) -> Iterator[tuple[str, str]]:
        """Yield the items' titles; an exception of the job's code ends them."""
        try:
            yield from self.job.titles(self.dataset)
        except Exception:  # noqa: BLE001 - a run does not depend on them
            return

    @property
    def settings_json(self) -> str:
        """The settings in the form of the log."""
        return as_json(self.settings)


def load_workload(
    job: Job,
    settings: BaseModel,
    *,
    starts: bool = False,
    progress: Callable[[str], None] = ignore_progress,
) -> Workload:
    """Load and validate all inputs.

    Args:
        job: the job.
        settings: its settings.
        starts: the data are for a new run, which the job may refuse.
        progress: receives one-line messages of a job that loads slowly.

    Raises:
        DatasetError: an input is invalid (names file and row), or not usable for a run.
    """
    with calling(job, "load"):
        dataset = job.load_with_progress(settings, progress)
    if starts:
        with calling(job, "admit"):
            job.admit(dataset)
    return Workload(
        job=job,
        settings=settings,
        dataset=dataset,
        inputs=input_hashes((*job.inputs(settings), *_job_file(job))),
        code_sha256=code_hash(job),
    )


def _job_file(job: Job) -> tuple[InputFile, ...]:
    """Return the file of a job that is not installed: a resume needs the same one."""
    return () if job.file is None else (InputFile(setting=JOB_FILE, path=job.file),)
