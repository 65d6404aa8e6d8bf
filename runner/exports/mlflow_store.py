"""Writes a file store of MLflow: an experiment for the job, a run for each model.

Parameters are the settings, metrics those of a scoring with the usage, artifacts the
answers and metrics as JSON lines. Written without MLflow: each entry is a small file.
MLflow reads file stores with `MLFLOW_ALLOW_FILE_STORE=true`, and moves them to a
database with `mlflow migrate-filestore`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from runner import export
from runner.exports.source import ExportSource
from runner.table_files import ExportTable, write_jsonl
from store.clock import iso_time
from store.read.usage import usage_counts

META: Final = "meta.yaml"

LONGEST_PARAMETER: Final = 6_000
"""Maximum characters of a parameter in MLflow; longer ones are cut."""

LONGEST_NAME: Final = 200
"""Maximum characters of an entry's name, which is a file's; MLflow takes 250."""

_UNSAFE: Final = re.compile(r"^\.+|[^\w.\- ]", re.ASCII)

_STATUSES: Final = {"run_finished": 3, "run_cancelled": 5}
"""MLflow's finished and killed by the last event that ended work; otherwise running."""

_RUNNING: Final = 1
_LOCAL: Final = 4  #: a run's type of source


def write(source: ExportSource, folder: Path) -> Iterator[Path]:
    """Write the store into *folder*; yield the description of each run.

    Raises:
        RunnerError: the scoring cannot be repeated.
    """
    job = source.first.job
    experiment = str(int(_digest("experiment", job)[:15], 16))
    base = f"{source.out.absolute().as_uri()}/{experiment}"
    home = folder / experiment
    home.mkdir()
    created_ms = source.status.created_us // 1000
    _write_yaml(
        home / META,
        {
            "artifact_location": base,
            "creation_time": created_ms,
            "experiment_id": experiment,
            "last_update_time": created_ms,
            "lifecycle_stage": "active",
            "name": job,
        },
    )
    for model in source.models:
        run_id = _digest(source.first.run_id, str(source.status.created_us), model)[:32]
        run = home / run_id
        run.mkdir()
        _write_entries(run / "params", _parameters(source, model), LONGEST_PARAMETER)
        _write_entries(run / "metrics", _metrics(source, model))
        _write_entries(run / "tags", _tags(source, model))
        _write_artifacts(run / "artifacts", source, model)
        meta = {
            "artifact_uri": f"{base}/{run_id}/artifacts",
            "end_time": source.ended_us // 1000,
            "entry_point_name": "",
            "experiment_id": experiment,
            "lifecycle_stage": "active",
            "run_id": run_id,
            "run_name": f"{source.first.run_id} {model}",
            "source_name": "",
            "source_type": _LOCAL,
            "source_version": "",
            "start_time": created_ms,
            "status": _STATUSES.get(source.status.signs.phase, _RUNNING),
            "tags": [],
            "user_id": "",
        }
        _write_yaml(run / META, meta)
        yield run / META


def _parameters(source: ExportSource, model: str) -> Mapping[str, str]:
    first = source.first
    settings = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in source.settings().items()
        if value is not None
    }
    return {
        "model": model,
        "job_version": first.job_version,
        "replicates": str(first.replicates),
        **{f"setting.{name}": value for name, value in settings.items()},
    }


def _metrics(source: ExportSource, model: str) -> Mapping[str, str]:
    """Return the lines of the metrics' files: time in ms, value, step."""
    values: dict[str, float | None] = {
        metric.path: metric.value for metric in source.metrics(model)
    }
    usage = [c for c in usage_counts(source.reader) if c.model == model]
    values |= {
        "siftlog.replies": sum(count.replies for count in usage),
        "siftlog.tokens_in": sum(count.tokens_in for count in usage),
        "siftlog.tokens_out": sum(count.tokens_out for count in usage),
        "siftlog.cost_usd": source.status.model_cost_usd.get(model),
    }
    at_ms = source.ended_us // 1000
    return {
        name: f"{at_ms} {value!r} 0\n"
        for name, value in values.items()
        if value is not None
    }


def _tags(source: ExportSource, model: str) -> Mapping[str, str]:
    first, scoring = source.first, source.scoring
    tags = {
        "mlflow.runName": f"{first.run_id} {model}",
        "mlflow.source.name": f"siftlog {first.job}",
        "mlflow.source.type": "LOCAL",
        "siftlog.run": first.run_id,
        "siftlog.job": first.job,
        "siftlog.version": first.siftlog_version,
        "siftlog.code_sha256": first.code_sha256,
        "siftlog.last_event": str(source.through_seq),
        "siftlog.created": iso_time(source.status.created_us),
    }
    if scoring is not None:
        tags["siftlog.scoring"] = str(scoring.number)
        tags["siftlog.scorecard_sha256"] = scoring.digest
    return tags


def _write_artifacts(folder: Path, source: ExportSource, model: str) -> None:
    folder.mkdir()
    answers = export.answers(
        source.reader, source.through_seq, prompts=source.with_prompts
    )
    write_jsonl(folder / "answers.jsonl", _of_model(answers, model))
    if source.card is not None:
        metrics = export.metrics(source.card, "scores")
        write_jsonl(folder / "metrics.jsonl", _of_model(metrics, model))


def _of_model(table: ExportTable, model: str) -> ExportTable:
    """Return the rows of one model."""
    at = table.names.index("model")
    return replace(table, rows=(row for row in table.rows if row[at] == model))


def _write_entries(
    folder: Path, texts: Mapping[str, str], longest: int | None = None
) -> None:
    """Write a file for each text, under a name that MLflow accepts."""
    folder.mkdir()
    used: set[str] = set()
    for name, text in texts.items():
        safe = _UNSAFE.sub("_", name)
        # also names that differ in case alone, which are one file on some systems
        if safe.lower() in used or len(safe) > LONGEST_NAME:
            safe = f"{safe[:LONGEST_NAME]}-{_digest(name)[:6]}"
        used.add(safe.lower())
        (folder / safe).write_text(text[:longest], "utf-8")


def _write_yaml(path: Path, values: Mapping[str, Any]) -> None:
    # JSON is YAML too
    path.write_text(f"{json.dumps(values, indent=1, ensure_ascii=False)}\n", "utf-8")


def _digest(*names: str) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()
