"""Writes logs of inspect_ai, format 2: one file for each model, `.eval` or `.json`.

A sample is a task: its id is the task's key, its epoch the replicate. The header holds
the job as inspect's task, the metrics of a scoring as its results, and the usage.
`inspect view` and `inspect_ai.log.read_eval_log` open them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

import msgspec

from runner.bundle.archive import PIECE, plain_member
from runner.errors import UsageError
from runner.exports.source import (
    COMMON_PARAMETERS,
    CommonParameters,
    ExportedTask,
    ExportSource,
    distinct,
)
from runner.formats.inspect_log import (
    CORRECT,
    HEADER,
    INCORRECT,
    SAMPLES,
    VERSION,
    InspectUsage,
)
from runner.installed import version
from runner.model_names import slugs
from runner.scorecard import Metric, Verdict
from runner.table_files import IN_MEMORY
from store.clock import iso_time
from store.events import AttemptAnswered, AttemptFailed
from store.task import TaskState

SUMMARY_CHARS: Final = 1_000
"""Maximum characters of a text in the summary of a sample, which lists load."""

_STOP_REASONS: Final = {
    "stop": "stop",
    "length": "max_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "tool_calls": "tool_calls",
}
"""Inspect's stop reasons by siftlog's finish reasons; all others are unknown."""

_ROLES: Final = frozenset({"system", "user", "assistant"})

_STATUSES: Final = {
    "run_finished": "success",
    "run_drained": "cancelled",
    "run_cancelled": "cancelled",
}
"""Inspect's status by the last event that ended work; otherwise it has only started."""

Json = dict[str, Any]


def write(source: ExportSource, folder: Path) -> Iterator[Path]:
    """Write a log for each model into *folder*; yield each when it is complete."""
    names = slugs(source.models)
    with ExitStack() as leaving:
        logs = {
            model: _Log(source, model, folder / _name(source, model, slug), leaving)
            for model, slug in names.items()
        }
        for task in source.tasks():
            logs[task.row.model].add(task)
        for log in logs.values():
            yield log.close()


def write_file(source: ExportSource, path: Path) -> None:
    """Write the log of a run with one model, as `.eval` or as `.json`.

    Raises:
        UsageError: the run has several models.
    """
    if len(source.models) != 1:
        raise UsageError(
            f"Run {source.first.run_id} has {len(source.models)} models, and a log of "
            f"inspect has one: name a folder, such as {source.out.with_suffix('')}, for"
            " a log of each."
        )
    (model,) = source.models
    with ExitStack() as leaving:
        log = _Log(source, model, path, leaving)
        for task in source.tasks():
            log.add(task)
        log.close()


def _name(source: ExportSource, model: str, slug: str) -> str:
    """Return a file name as inspect's: time, task and id, between underscores."""
    created = iso_time(source.status.created_us).replace(":", "-")
    task = f"{source.first.job}-{slug}".replace("_", "-")
    return f"{created}_{task}_{_id(source, 'task', model)}.eval"


def _id(source: ExportSource, kind: str, model: str = "") -> str:
    """Return an id that is the same in each export of a run."""
    state = source.status
    names = "\n".join([kind, state.run_id, str(state.created_us), model])
    return hashlib.sha256(names.encode()).hexdigest()[:22]


class _Archive:
    """A log as `.eval`: an archive with a member for each sample."""

    def __init__(self, path: Path, leaving: ExitStack) -> None:
        self._archive = leaving.enter_context(ZipFile(path, "w"))
        self._summaries = _JsonList(leaving)

    def add(self, sample: Json) -> None:
        """Write a sample."""
        self._put(f"{SAMPLES}{sample['id']}_epoch_{sample['epoch']}.json", sample)
        self._summaries.add(_summary(sample))

    def close(self, header: Json) -> None:
        """Write the header."""
        member = plain_member("summaries.json", ZIP_DEFLATED)
        with self._archive.open(member, "w") as file:
            self._summaries.copy_to(file)
        self._put(HEADER, header)
        self._archive.close()

    def _put(self, name: str, content: Json) -> None:
        self._archive.writestr(plain_member(name, ZIP_DEFLATED), _encoded(content))


class _JsonFile:
    """A log as `.json`: the header with a list of the samples."""

    def __init__(self, path: Path, leaving: ExitStack) -> None:
        self._file = leaving.enter_context(path.open("wb"))
        self._samples = _JsonList(leaving)

    def add(self, sample: Json) -> None:
        """Write a sample."""
        self._samples.add(sample)

    def close(self, header: Json) -> None:
        """Write the header, which comes first, and the samples."""
        self._file.write(_encoded(header).removesuffix(b"}") + b',"samples":')
        self._samples.copy_to(self._file)
        self._file.write(b"}")
        self._file.close()


class _JsonList:
    """A list of JSON values in a temporary file."""

    def __init__(self, leaving: ExitStack) -> None:
        self._file = leaving.enter_context(
            SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - by *leaving*
        )
        self._separator = b"["

    def add(self, value: Json) -> None:
        self._file.write(self._separator + _encoded(value))
        self._separator = b","

    def copy_to(self, file: IO[bytes]) -> None:
        self._file.write(b"[]" if self._separator == b"[" else b"]")
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            file.write(piece)


class _Log:
    """The log of one model, written sample by sample."""

    def __init__(
        self, source: ExportSource, model: str, path: Path, leaving: ExitStack
    ) -> None:
        self._source = source
        self._model = model
        self._path = path
        kind = _JsonFile if path.suffix == ".json" else _Archive
        self._file = kind(path, leaving)
        self._samples = 0
        self._errors = 0
        self._scored: dict[str, int] = {}  #: samples by name of the score
        self._usage: Json = {}
        self._parameters = CommonParameters()

    def add(self, task: ExportedTask) -> None:
        """Write a sample."""
        sample = _sample(task, self._source.sample_id(task.row))
        self._file.add(sample)
        self._samples += 1
        self._errors += "error" in sample
        for name in sample.get("scores", {}):
            self._scored[name] = self._scored.get(name, 0) + 1
        for usage in sample["model_usage"].values():
            self._usage = _sum(self._usage, usage)
        self._parameters.add(task.parameters)

    def close(self) -> Path:
        """Write the rest and close the file."""
        self._file.close(self._header())
        return self._path

    def _header(self) -> Json:
        state = self._source.status
        header: Json = {
            "version": VERSION,
            "status": _STATUSES.get(state.signs.phase, "started"),
            "eval": self._spec(),
            "plan": {
                "name": "plan",
                "steps": [{"solver": "siftlog", "params": {}}],
                "config": self._parameters.values,
            },
            "stats": {
                "started_at": iso_time(state.created_us),
                "completed_at": iso_time(self._source.ended_us),
                "model_usage": {self._model: self._usage} if self._usage else {},
            },
        }
        if self._source.scoring is not None:
            header["results"] = self._results()
        return header

    def _spec(self) -> Json:
        source, first = self._source, self._source.first
        settings = source.settings()
        scoring = source.scoring
        return {
            "eval_id": _id(source, "eval", self._model),
            "run_id": _id(source, "run"),
            "created": iso_time(source.status.created_us),
            "task": first.job,
            "task_id": _id(source, "task", self._model),
            "task_version": first.job_version,
            "task_args": settings,
            "dataset": {"name": first.job, "samples": self._samples},
            "model": self._model,
            "model_generate_config": self._parameters.values,
            "config": {"epochs": first.replicates},
            "packages": {"siftlog": version("siftlog")},
            "metadata": {
                "siftlog_run": first.run_id,
                "siftlog_version": first.siftlog_version,
                "last_event": source.through_seq,
                "code_sha256": first.code_sha256,
                "inputs": {i.setting: i.sha256 for i in first.inputs},
                "scoring": scoring and scoring.number,
                "scorecard_sha256": scoring and scoring.digest,
            },
        }

    def _results(self) -> Json:
        metrics = self._source.metrics(self._model)
        defined = [metric for metric in metrics if metric.value is not None]
        job = self._source.first.job
        scored = self._scored or {job: 0}
        return {
            "total_samples": self._samples,
            "completed_samples": self._samples - self._errors,
            "scores": [
                {
                    "name": name,
                    "scorer": job,
                    "scored_samples": count,
                    "unscored_samples": self._samples - count,
                    # the metrics of a scorecard are those of all verdicts together
                    "metrics": _metrics(defined) if number == 0 else {},
                }
                for number, (name, count) in enumerate(scored.items())
            ],
            "metadata": {
                "undefined": [metric.path for metric in metrics if metric.value is None]
            },
        }


def _metrics(metrics: Iterable[Metric]) -> Json:
    return {
        metric.path: {
            "name": metric.path,
            "value": metric.value,
            "metadata": _without_none(
                {
                    "n": metric.n,
                    "n_defined": metric.n_defined,
                    "lo": metric.lo,
                    "hi": metric.hi,
                    "subset": metric.subset or None,
                    "definition": metric.definition,
                    "note": metric.note,
                    "headline": metric.is_headline or None,
                }
            ),
        }
        for metric in metrics
    }


def _sample(task: ExportedTask, sample_id: str) -> Json:
    row = task.row
    sent = [_message(role, text) for role, text in task.messages]
    reply = _reply(task)
    only_user = len(sent) == 1 and sent[0]["role"] == "user"
    usage = None if task.answered is None else _usage(task.answered)
    sample: Json = {
        "id": sample_id,
        "epoch": row.replicate,
        "input": sent[0]["content"] if only_user else sent,
        "target": _target(task.verdicts),
        "messages": [*sent, *([reply] if reply else [])],
        "output": _output(task, reply, usage),
        "metadata": _metadata(task),
        "model_usage": {row.model: usage} if usage else {},
    }
    if scores := _scores(task):
        sample["scores"] = scores
    sample["events"] = [*_model_events(task, sample), *_score_events(task, sample)]
    # the prompt of all calls, to which their events refer
    sample["events_data"] = {"messages": sent, "calls": []}
    if task.started_us is not None:
        sample["started_at"] = iso_time(task.started_us)
    if task.ended_us is not None:
        sample["completed_at"] = iso_time(task.ended_us)
        if task.started_us is not None:
            sample["total_time"] = (task.ended_us - task.started_us) / 1e6
    if row.latency_ms is not None:
        sample["working_time"] = row.latency_ms / 1e3
    failures = [_error(f"{f.error}: {f.message}") for f in task.failed_attempts]
    if row.state is TaskState.FAILED:
        sample["error"] = _error(task.error or "unknown")
        failures = failures[:-1]
    if failures:
        sample["error_retries"] = failures
    return sample


def _model_events(task: ExportedTask, sample: Json) -> Iterator[Json]:
    """Yield the calls of a task, which `inspect view` shows as its transcript."""
    last = len(task.attempts) - 1
    for number, attempt in enumerate(task.attempts):
        outcome = attempt.outcome
        event: Json = {
            **_event("model", task, attempt.started_us or attempt.ended_us, number),
            "model": task.row.model,
            "input": [],
            "input_refs": [[0, len(task.messages)]] if task.messages else [],
            "tools": [],
            "tool_choice": "none",
            "config": _without_none(
                {name: getattr(task.parameters, name) for name in COMMON_PARAMETERS}
            ),
            "output": {"model": task.row.model, "choices": []},
        }
        if attempt.ended_us is not None:
            event["completed"] = iso_time(attempt.ended_us)
        if isinstance(outcome, AttemptFailed):
            event["error"] = f"{outcome.error}: {outcome.message}"
        elif isinstance(outcome, AttemptAnswered):
            if number == last and task.answered is not None:
                event["output"] = sample["output"]
            else:
                event["output"]["usage"] = _usage(outcome)
            if outcome.latency_ms is not None:
                event["working_time"] = outcome.latency_ms / 1e3
            if outcome.cached:
                event["cache"] = "read"
        yield event


def _score_events(task: ExportedTask, sample: Json) -> Iterator[Json]:
    for number, (name, score) in enumerate(sample.get("scores", {}).items()):
        yield {
            **_event("score", task, task.ended_us, number),
            "score": score,
            "target": sample["target"],
            "scorer": name,
        }


def _event(kind: str, task: ExportedTask, at_us: int | None, number: int) -> Json:
    """Return what all events have; a time that is not known is that of 1970."""
    start_us = task.started_us or at_us or 0
    return {
        "event": kind,
        "uuid": f"{kind}-{task.row.task}-{number + 1}",
        "timestamp": iso_time(at_us or 0),
        "working_start": max(0, (at_us or 0) - start_us) / 1e6,
    }


def _message(role: str, text: str) -> Json:
    return {
        "role": role if role in _ROLES else "user",
        "content": text,
        "source": "input",
    }


def _reply(task: ExportedTask) -> Json | None:
    if task.answered is None:
        return None
    content: Any = task.text
    if task.reasoning:
        content = [
            {"type": "reasoning", "reasoning": task.reasoning},
            {"type": "text", "text": task.text},
        ]
    return {
        "role": "assistant",
        "content": content,
        "source": "generate",
        "model": task.served.model or task.row.model,
    }


def _output(task: ExportedTask, reply: Json | None, usage: Json | None) -> Json:
    answered = task.answered
    if answered is None or reply is None:
        return {"model": task.row.model, "choices": [], "error": task.error}
    reason = _STOP_REASONS.get(answered.finish_reason, "unknown")
    output = {
        "model": reply["model"],
        "choices": [{"message": reply, "stop_reason": reason}],
        "completion": task.text,
        "usage": usage,
        "time": answered.latency_ms and answered.latency_ms / 1e3,
    }
    return _without_none(output)


def _usage(answered: AttemptAnswered) -> Json | None:
    usage = InspectUsage.of(answered)
    return None if usage is None else msgspec.to_builtins(usage)


def _sum(total: Json, usage: Json) -> Json:
    names = dict.fromkeys([*total, *usage])
    return {name: total.get(name, 0) + usage.get(name, 0) for name in names}


def _target(verdicts: tuple[Verdict, ...]) -> str | list[str]:
    expected = [verdict.expected for verdict in verdicts]
    return expected if len(expected) > 1 else "".join(expected)


def _scores(task: ExportedTask) -> Json:
    """Return verdicts by name, the item's part or the stage, and imported scores."""
    names = distinct(verdict.part or verdict.stage for verdict in task.verdicts)
    verdicts = dict(zip(names, map(_score, task.verdicts), strict=True))
    imported = task.imported_scores.items()
    return verdicts | {name: {"value": value} for name, value in imported}


def _score(verdict: Verdict) -> Json:
    if verdict.correct is None:
        value = verdict.value
    else:
        value = CORRECT if verdict.correct else INCORRECT
    return {
        "value": value,
        "answer": verdict.value,
        "explanation": verdict.rule,
        "metadata": _without_none(
            {
                "expected": verdict.expected,
                "confidence": verdict.confidence,
                "grounded": verdict.is_grounded,
                "unparsed": verdict.is_unparsed or None,
            }
        ),
    }


def _metadata(task: ExportedTask) -> Json:
    row, answered, served = task.row, task.answered, task.served
    return _without_none(
        {
            "siftlog_task": row.task,
            "stage": row.stage,
            "key": row.key,
            "attempts": row.attempts or None,
            "unparsed": row.reason if row.state is TaskState.COMPLETED else None,
            "cached": (answered is not None and answered.cached) or None,
            # of all attempts; the usage is that of the reply
            "cost_usd": row.cost_usd,
            "request_sha256": task.request_sha256,
            "fingerprint": served.fingerprint,
            "provider": served.provider,
            "request_id": served.request_id,
        }
    )


def _summary(sample: Json) -> Json:
    """Return what lists of samples show, with texts cut."""
    copied = ("id", "epoch", "metadata", "model_usage", "started_at", "completed_at")
    summary = {
        name: sample[name]
        for name in (*copied, "total_time", "working_time")
        if name in sample
    }
    summary |= {
        "input": _cut(sample["input"]),
        "target": _cut(sample["target"]),
        "completed": True,
        "message_count": len(sample["messages"]),
    }
    if "scores" in sample:
        summary["scores"] = {n: _cut(score) for n, score in sample["scores"].items()}
    if "error" in sample:
        summary["error"] = _cut(sample["error"]["message"])
    if "error_retries" in sample:
        summary["retries"] = len(sample["error_retries"])
    return summary


def _cut(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return JSON with texts of at most `SUMMARY_CHARS`."""
    match value:
        case str():
            is_long = len(value) > SUMMARY_CHARS
            return f"{value[: SUMMARY_CHARS - 1]}…" if is_long else value
        case list():
            return [_cut(item) for item in value]
        case dict():
            return {name: _cut(item) for name, item in value.items()}
        case _:
            return value


def _error(message: str) -> Json:
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _without_none(values: Mapping[str, Any]) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _encoded(content: Json) -> bytes:
    # inspect reads NaN and Infinity; half a surrogate pair of a reply is escaped
    text = json.dumps(content, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace")
