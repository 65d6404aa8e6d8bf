"""Writes records of Every Eval Ever, schema 0.3.0, in the folders of its datastore.

One aggregate record for each model, `data/JOB/DEVELOPER/MODEL/UUID.json`, with a result
for each metric, and beside it `UUID_samples.jsonl` with a line for each verdict that is
right or wrong, and for each score that another tool gave an imported reply.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec

from runner.exports.source import (
    CommonParameters,
    ExportedTask,
    ExportSource,
    distinct,
)
from runner.formats.every_eval_ever import RIGHT, SCHEMA, InstanceUsage
from runner.installed import version
from runner.model_names import slugs
from runner.scorecard import Metric, Verdict

UNKNOWN: Final = "unknown"
"""Value of fields that the schema requires and a run does not state."""

Json = dict[str, Any]


def write(source: ExportSource, folder: Path) -> Iterator[Path]:
    """Write the records into *folder*; yield each when it is complete.

    Raises:
        RunnerError: the scoring cannot be repeated.
    """
    identities = {model: _identity(model) for model in source.models}
    # the datastore finds a model by its identity, so that its folder is not the model's
    # whole name
    names = slugs(name for _, name in identities.values())
    with ExitStack() as leaving:
        records = {
            model: _Record(
                source,
                model,
                model_id=f"{developer}/{name}",
                place=Path(slugs([developer])[developer], names[name]),
                folder=folder,
                leaving=leaving,
            )
            for model, (developer, name) in identities.items()
        }
        for task in source.tasks():
            records[task.row.model].add(task)
        for record in records.values():
            yield from record.close()


def _identity(model: str) -> tuple[str, str]:
    """Return who made a model, and its name there; nothing else says who made it."""
    developer, _, name = model.partition("/")
    return (developer, name) if name else (UNKNOWN, model)


class _Record:
    """The records of one model, written verdict by verdict."""

    def __init__(
        self,
        source: ExportSource,
        model: str,
        *,
        model_id: str,
        place: Path,
        folder: Path,
        leaving: ExitStack,
    ) -> None:
        self._source = source
        self._model = model
        self._model_id = model_id
        started_s = source.status.created_us // 1_000_000
        job = source.first.job
        self._id = f"{job}/{self._model_id}/{source.first.run_id}/{started_s}"
        digest = hashlib.sha256(self._id.encode()).digest()
        uuid = UUID(bytes=digest[:16], version=4)
        home = Path("data", slugs([job])[job]) / place
        self._path = folder / home / f"{uuid}.json"
        self._samples_name = home / f"{uuid}_samples.jsonl"
        self._samples_path = folder / self._samples_name
        self._path.parent.mkdir(parents=True)
        self._samples = leaving.enter_context(self._samples_path.open("wb"))
        self._digest = hashlib.sha256()
        self._rows = 0
        self._without_truth = 0
        self._parameters = CommonParameters()

    def add(self, task: ExportedTask) -> None:
        """Write the verdicts of a task that are right or wrong, and imported scores.

        A score replaces a verdict of its name: an import reads both as one.
        """
        self._parameters.add(task.parameters)
        instances: dict[str, Json] = {}
        job = self._source.first.job
        names = distinct(".".join(filter(None, (job, v.part))) for v in task.verdicts)
        for name, verdict in zip(names, task.verdicts, strict=True):
            if verdict.correct is None:
                self._without_truth += 1
            else:
                instances[name] = self._of_verdict(task, name, verdict)
        for name, score in task.imported_scores.items():
            instances[name] = self._of_score(task, name, score)
        for instance in instances.values():
            line = f"{_encoded(instance)}\n".encode()
            self._digest.update(line)
            self._samples.write(line)
            self._rows += 1

    def close(self) -> Iterator[Path]:
        """Write the aggregate record; yield it, and the samples if there are any."""
        self._samples.close()
        record = self._aggregate()
        if self._rows:
            record["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": self._samples_name.as_posix(),
                "hash_algorithm": "sha256",
                "checksum": self._digest.hexdigest(),
                "total_rows": self._rows,
            }
        else:
            self._samples_path.unlink()
        self._path.write_text(f"{_encoded(record, indent=1)}\n", "utf-8")
        yield self._path
        if self._rows:
            yield self._samples_path

    def _aggregate(self) -> Json:
        source, first = self._source, self._source.first
        scoring = source.scoring
        details = {
            "run": first.run_id,
            "job": first.job,
            "job_version": first.job_version,
            "code_sha256": first.code_sha256,
            "last_event": str(source.through_seq),
            "verdicts_without_truth": str(self._without_truth),
        }
        if scoring is not None:
            details["scoring"] = str(scoring.number)
            details["scorecard_sha256"] = scoring.digest
        return {
            "schema_version": SCHEMA,
            "evaluation_id": self._id,
            "evaluation_timestamp": _seconds(source.status.created_us),
            "retrieved_timestamp": _seconds(source.ended_us),
            "source_metadata": {
                "source_name": "siftlog",
                "source_type": "evaluation_run",
                "source_organization_name": UNKNOWN,
                "evaluator_relationship": "other",
                "additional_details": details,
            },
            "eval_library": {"name": "siftlog", "version": version("siftlog")},
            "model_info": {
                "name": self._model,
                "id": self._model_id,
                "additional_details": {
                    "deployment_type": UNKNOWN,
                    "model_availability": UNKNOWN,
                },
            },
            "evaluation_results": [
                self._result(metric, float(metric.value))
                for metric in source.metrics(self._model)
                if metric.value is not None and math.isfinite(metric.value)
            ],
        }

    def _result(self, metric: Metric, value: float) -> Json:
        first = self._source.first
        uncertainty: Json = {"num_samples": metric.n}
        ends = (metric.lo, metric.hi)
        if all(end is not None and math.isfinite(end) for end in ends):
            uncertainty["confidence_interval"] = {
                "lower": metric.lo,
                "upper": metric.hi,
            }
        parts = (first.job, metric.subset)
        return {
            "evaluation_result_id": f"{self._id}#{metric.path}",
            "evaluation_name": ".".join(filter(None, parts)),
            "source_data": {
                "dataset_name": first.job,
                "source_type": "other",
                "additional_details": {
                    f"{read.setting}_{number}_sha256": read.sha256
                    for number, read in enumerate(first.inputs, 1)
                },
            },
            "metric_config": {
                "evaluation_description": metric.meaning or metric.label,
                "metric_id": f"siftlog.{first.job}.{metric.path}",
                "metric_name": metric.label,
                "lower_is_better": metric.direction == "lower",
                "additional_details": {
                    "direction": metric.direction,
                    "definition": metric.definition,
                    **({"note": metric.note} if metric.note else {}),
                },
            },
            "score_details": {"score": value, "uncertainty": uncertainty},
            "generation_config": {"generation_args": dict(self._parameters.values)},
        }

    def _of_verdict(self, task: ExportedTask, name: str, verdict: Verdict) -> Json:
        return {
            **self._instance(task, name, [verdict.expected]),
            "answer_attribution": [
                {
                    "turn_idx": 0,
                    "source": "output.raw",
                    "extracted_value": verdict.value,
                    "extraction_method": verdict.rule,
                    "is_terminal": True,
                }
            ],
            "evaluation": {
                "score": float(bool(verdict.correct)),
                "is_correct": verdict.correct,
            },
            "metadata": _texts(
                **_metadata(task),
                part=verdict.part or None,
                confidence=verdict.confidence,
                grounded=verdict.is_grounded,
            ),
        }

    def _of_score(self, task: ExportedTask, name: str, score: float) -> Json:
        expected = [verdict.expected for verdict in task.verdicts if verdict.expected]
        return {
            **self._instance(task, name, expected),
            "answer_attribution": [],
            "evaluation": {"score": score, "is_correct": score == RIGHT},
            "metadata": _texts(**_metadata(task)),
        }

    def _instance(self, task: ExportedTask, name: str, reference: list[str]) -> Json:
        """Return what the records of a task share, whatever gave the score."""
        row = task.row
        raw = "\n\n".join(text for _, text in task.messages)
        instance: Json = {
            "schema_version": SCHEMA,
            "evaluation_id": self._id,
            "model_id": self._model_id,
            "evaluation_name": name,
            "sample_id": self._source.sample_id(row),
            "interaction_type": "single_turn",
            "input": {"raw": raw, "reference": reference},
            "output": {
                "raw": [task.text],
                **({"reasoning_trace": [task.reasoning]} if task.reasoning else {}),
            },
            "performance": {"latency_ms": row.latency_ms},
        }
        if task.sent is not None:
            instance["sample_hash"] = _sample_hash(raw, reference)
        if task.answered is not None:
            usage = InstanceUsage.of(task.answered)
            instance["token_usage"] = msgspec.to_builtins(usage)
        if task.error is not None:
            instance["error"] = task.error
        return instance


def _sample_hash(raw: str, reference: list[str]) -> str:
    """Hash a sample, so that records of several models join, by the schema's recipe."""
    content = {"raw": raw, "reference": reference}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _metadata(task: ExportedTask) -> Json:
    row = task.row
    return {
        "task": row.task,
        "stage": row.stage,
        "key": row.key,
        "replicate": row.replicate,
        "cost_usd": row.cost_usd,
        "request_sha256": task.request_sha256,
    }


def _texts(**values: object) -> Json:
    """Return values as the texts that the schema takes; None is left out."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
        if value is not None
    }


def _seconds(at_us: int) -> str:
    return str(at_us // 1_000_000)


def _encoded(content: Mapping[str, Any], indent: int | None = None) -> str:
    # escaped beyond ASCII: a reply may hold half a surrogate pair
    return json.dumps(content, indent=indent, allow_nan=False)
