"""Computes the references of a run from its record; pure.

What the log does not say is undefined: it has no value, and is shown as n/a.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import PurePath
from typing import Any, Final

from jobs.kit.methods.deviations import deviations
from jobs.kit.methods.human import label_references
from jobs.kit.methods.record import RunRecord
from jobs.kit.methods.references import (
    QuotedValue,
    Rounding,
    Value,
    by_name,
    model_text,
    name_of,
)
from runner.sent_requests import RequestExample
from store.task import TaskState

MOST_PROMPTS: Final = 50
"""Forms of requests that are listed: a job may write other instructions for each item,
and then no list of them says much."""

STATES: Final[Mapping[str, tuple[TaskState, ...]]] = {
    "completed": (TaskState.COMPLETED,),
    "failed": (TaskState.FAILED,),
    "skipped": (TaskState.SKIPPED,),
    "open": (TaskState.QUEUED, TaskState.RUNNING, TaskState.WAITING),
}
"""States of tasks by the word of a text."""

SCORECARD_DIGEST: Final = "run:scorecard"


def references(record: RunRecord) -> dict[str, QuotedValue]:
    """Return all references of a run by name."""
    return by_name(
        chain(
            _run(record),
            _tasks(record),
            _queues(record),
            _requests(record),
            _replies(record),
            _served(record),
            _usage(record),
            _settings(record),
            _parameters(record),
            _inputs(record),
            _prompts(record),
            _metrics(record),
            label_references(record.labels),
            *(deviation.references for deviation in deviations(record)),
        )
    )


def _count(
    name: str, value: int | None, unit: str, *, n: int | None = None
) -> Iterator[QuotedValue]:
    """Yield a number, and its share of *n* as a percentage where it is one."""
    yield QuotedValue(name=name, value=value, unit=unit, n=n)
    if n is not None:
        share = value / n if value is not None and n else None
        yield QuotedValue(
            name=f"{name}@share",
            value=share,
            rounding=Rounding.PERCENT,
            unit="%",
            n=n,
        )


def _text(
    name: str,
    value: Value,
    rounding: Rounding = Rounding.EXACT,
    family: str = "",
    model: str = "",
) -> QuotedValue:
    return QuotedValue(
        name=name, value=value, rounding=rounding, family=family, model=model
    )


def _run(record: RunRecord) -> Iterator[QuotedValue]:
    started, scoring = record.started, record.scoring
    yield _text("run:id", started.run_id)
    yield _text("run:job", started.job)
    yield _text("run:job_version", started.job_version)
    yield _text("run:siftlog_version", started.siftlog_version)
    yield _text("run:code", started.code_sha256, Rounding.HASH)
    yield _text("date:started", record.course.started_us, Rounding.DATE)
    yield _text("date:ended", record.course.ended_us, Rounding.DATE)
    yield from _count("count:sessions", record.course.sessions, "sessions")
    yield from _count("count:replicates", started.replicates, "replicates")
    yield from _count("count:stages", len(record.stages), "stages")
    yield from _count("count:models", len(record.models), "models")
    for stage in record.stages:
        yield _text(name_of("stage", stage), stage)
    # a scorecard may have rows of several models together
    for model in dict.fromkeys((*record.models, *record.scorecard.get("models", ()))):
        name = name_of("model", model, "name")
        yield _text(name, model_text(model), family="model", model=model)
    if scoring is not None:
        yield from _count("run:scoring", scoring.number, "")
        yield _text(SCORECARD_DIGEST, scoring.digest, Rounding.HASH)
        yield _text("run:scoring_code", scoring.code_sha256, Rounding.HASH)
        yield _text("run:scoring_version", scoring.job_version)


def _tasks(record: RunRecord) -> Iterator[QuotedValue]:
    tasks = record.status.tasks
    planned = tasks.planned
    yield QuotedValue(
        name="count:tasks.planned", value=planned, unit="tasks", is_denominator=True
    )
    for state in STATES:
        name = f"count:tasks.{state}"
        yield from _count(name, getattr(tasks, state), "tasks", n=planned)
    yield from _count(
        "count:tasks.unparsed", tasks.unparsed, "tasks", n=tasks.completed
    )
    for kind, reasons in (
        ("skipped", record.status.skips),
        ("unparsed", record.status.parse_failures),
        ("reasked", record.status.reasked),
    ):
        for reason, n in reasons.items():
            yield _text(name_of(f"{kind}-reason", reason), reason)
            yield from _count(name_of(kind, reason), n, "tasks")


def _queues(record: RunRecord) -> Iterator[QuotedValue]:
    """Tasks of each stage and model."""
    for queue in record.status.queues:
        planned = sum(queue.states.values())
        counts = {"planned": planned} | {
            word: sum(queue.states.get(state, 0) for state in states)
            for word, states in STATES.items()
        }
        for word, n in counts.items():
            yield QuotedValue(
                name=name_of("tasks", queue.stage, queue.model, word),
                value=n,
                unit="tasks",
                family=f"tasks:{queue.stage}/{word}",
                model=queue.model,
                is_denominator=word == "planned",
            )


def _requests(record: RunRecord) -> Iterator[QuotedValue]:
    attempts = record.status.attempts
    stored = attempts.cached + attempts.reused
    sent = max(0, attempts.started - stored)
    yield from _count("count:requests.sent", sent, "requests")
    yield from _count("count:requests.answered", attempts.answered, "requests")
    yield from _count("count:requests.failed", attempts.failed, "requests", n=sent)
    yield from _count("count:requests.unknown", attempts.unknown, "requests")
    yield from _count("count:requests.cached", attempts.cached, "requests")
    finals = [error.final for error in record.errors]
    again = [error.n - (error.final or 0) for error in record.errors]
    is_known = None not in finals
    yield from _count("count:retries", sum(again) if is_known else None, "requests")
    by_class: Counter[str] = Counter()
    for error in record.errors:
        by_class[error.error] += error.n
    for error_class, n in by_class.most_common():
        yield _text(name_of("error-class", error_class), error_class)
        yield from _count(name_of("error", error_class), n, "requests")


def _replies(record: RunRecord) -> Iterator[QuotedValue]:
    """Replies of each model by their faults."""
    for shares in record.status.replies:
        for word in (
            *("replies", "truncated", "refused", "filtered"),
            *("empty", "unparsed", "failed"),
        ):
            yield QuotedValue(
                name=name_of("replies", shares.model, word),
                value=getattr(shares, word),
                unit="replies",
                n=None if word in {"replies", "failed"} else shares.replies,
                family=f"replies:{word}",
                model=shares.model,
                is_denominator=word == "replies",
            )


def _served(record: RunRecord) -> Iterator[QuotedValue]:
    for counted in record.status.served:
        for at, (name, n) in enumerate(counted.answers.items(), 1):
            served = name_of("served", counted.model, f"{counted.field}.{at}")
            family = f"served:{counted.field}"
            yield _text(served, name or "others", family=family, model=counted.model)
            yield QuotedValue(
                name=f"{served}@replies",
                value=n,
                unit="replies",
                family=f"{family}@replies",
                model=counted.model,
            )


def _usage(record: RunRecord) -> Iterator[QuotedValue]:
    state = record.status
    is_known = not state.imported
    for name, value in (
        ("in", state.tokens_in),
        ("out", state.tokens_out),
        ("cached", state.tokens_cached),
    ):
        yield from _count(f"tokens:{name}", value if is_known else None, "tokens")
    costs: dict[str, float | None] = {
        "cost:total": state.cost_usd if is_known else None,
        "cost:possible": state.possible_usd + state.in_flight_usd,
        "cost:budget": state.budget_usd,
    }
    for name, cost in costs.items():
        yield QuotedValue(
            name=name, value=cost, rounding=Rounding.DOLLARS, unit="US dollars"
        )
    for model in record.models:
        known = is_known and state.cost_usd is not None
        yield QuotedValue(
            name=name_of("cost", model, "total"),
            value=state.model_cost_usd.get(model, 0.0) if known else None,
            rounding=Rounding.DOLLARS,
            unit="US dollars",
            family="cost",
            model=model,
        )


def scoring_settings(record: RunRecord) -> Mapping[str, Any]:
    """Return the settings of the scoring, or else of the run, without paths of files.

    Paths say where somebody keeps files; input files have their hashes.
    """
    if record.scorecard:
        settings: Mapping[str, Any] = record.scorecard["settings"]
        return settings
    values: Mapping[str, Any] = json.loads(record.started.settings)
    return {name: v for name, v in values.items() if "/" not in json.dumps(v)}


def _settings(record: RunRecord) -> Iterator[QuotedValue]:
    settings = scoring_settings(record)
    for name, value in settings.items():
        yield _text(name_of("setting-name", name), name)
        yield _text(name_of("setting", name), setting_text(value))
    level = settings.get("level")
    if isinstance(level, float):
        yield QuotedValue(name="setting:level@percent", value=100 * level, unit="%")


def setting_text(value: object) -> str:
    """Return a setting's value as a text: JSON, but for texts."""
    if isinstance(value, str):
        return value or "(empty)"
    return json.dumps(value, ensure_ascii=False)


def _parameters(record: RunRecord) -> Iterator[QuotedValue]:
    seen: Counter[tuple[str, str, str]] = Counter()
    for sent in record.parameters:
        key = (sent.stage, sent.model, sent.name)
        seen[key] += 1
        name = name_of("parameter", sent.stage, sent.model, f"{sent.name}.{seen[key]}")
        family = f"parameter:{sent.stage}/{sent.name}"
        yield _text(name, sent.value, family=family, model=sent.model)
        yield _text(f"{name}@name", sent.name)
        yield from _count(f"{name}@requests", sent.requests, "requests")


def _inputs(record: RunRecord) -> Iterator[QuotedValue]:
    scoring = record.scoring
    inputs = record.started.inputs if scoring is None else scoring.inputs
    seen: Counter[str] = Counter()
    for recorded_input in inputs:
        setting = recorded_input.setting
        seen[setting] += 1
        name = name_of("input", f"{setting}.{seen[setting]}")
        yield _text(name, recorded_input.sha256, Rounding.HASH)
        yield _text(f"{name}@setting", setting)
        # its folder would say where somebody keeps files
        yield _text(f"{name}@file", PurePath(recorded_input.path).name)


def prompt_sha256(example: RequestExample) -> str:
    """Return the SHA-256 of the messages of a request, as JSON in UTF-8."""
    text = example.request.json.encode(errors="surrogatepass")
    return hashlib.sha256(text).hexdigest()


def _prompts(record: RunRecord) -> Iterator[QuotedValue]:
    yield from _count("count:prompts", len(record.prompts), "prompts")
    for at, example in enumerate(record.prompts[:MOST_PROMPTS], 1):
        name = f"prompt:{at}"
        yield _text(name, prompt_sha256(example), Rounding.HASH)
        yield _text(f"{name}@stage", example.stage)
        yield from _count(f"{name}@requests", example.requests, "requests")


def metric_name(record: RunRecord, model: str, path: str, suffix: str = "") -> str:
    """Return the name of a metric, or of its `n`, `n_defined`, `lo`, `hi` or `name`."""
    return name_of("metric", record.started.job, model, path, suffix=suffix)


def _metrics(record: RunRecord) -> Iterator[QuotedValue]:
    card = record.scorecard
    for what in ("missing", "stale"):
        if what in card:
            yield from _count(f"count:{what}", card[what], "tasks")
    for model, scored in card.get("models", {}).items():
        for path, metric in scored["metrics"].items():
            yield from _metric(record, model, path, metric)


def _metric(
    record: RunRecord, model: str, path: str, metric: Mapping[str, Any]
) -> Iterator[QuotedValue]:
    for suffix, key in (("", "value"), ("lo", "lo"), ("hi", "hi")):
        value = metric[key]
        yield QuotedValue(
            name=metric_name(record, model, path, suffix),
            value=value,
            rounding=Rounding.EXACT if isinstance(value, int) else Rounding.METRIC,
            n=metric["n"],
            family=f"metric:{path}@{suffix}",
            model=model,
        )
    for suffix in ("n", "n_defined"):
        yield QuotedValue(
            name=metric_name(record, model, path, suffix),
            value=metric[suffix],
            family=f"metric:{path}@{suffix}",
            model=model,
            is_denominator=True,
        )
    yield _text(metric_name(record, model, path, "name"), metric["name"])
