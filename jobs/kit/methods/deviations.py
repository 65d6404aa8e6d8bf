"""Names what happened to a run that its plan did not say; pure.

A deviation is a sentence with references. Its template writes a reference as `{name}`,
or as `{name|task|tasks}` with the words that follow its number.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from jobs.kit.methods.record import RunRecord
from jobs.kit.methods.references import (
    QuotedValue,
    Rounding,
    Value,
    encoded,
    model_text,
)
from store.events import (
    AttemptsAbandoned,
    CommandAccepted,
    CommandApplied,
    Event,
    Input,
    RunCancelled,
    RunDrained,
    RunPaused,
    RunResumed,
    RunStarted,
    TasksReopened,
    UnknownEvent,
)
from store.lineage import StageAdded
from store.results import ComparisonDecided

_Events: TypeAlias = Sequence[Event | UnknownEvent]

_STOPS: Final[Mapping[str, str]] = {
    "operator": "was stopped by an operator",
    "budget": "stopped because its budget was spent",
    "endpoint": "stopped because an endpoint did not serve it",
    "held": "stopped because tasks were waiting for a decision",
    "lease": "stopped because another process had taken over its work",
    "decision": "stopped early because a comparison of models was decided",
    "futility": "stopped early because a comparison could not be decided any more",
    "job": "stopped because of an error in the job",
}
"""Reasons why a process ended with open tasks, by `RunDrained.by`."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """A deviation from the plan."""

    code: str
    template: str
    references: tuple[QuotedValue, ...]

    @classmethod
    def of(cls, code: str, template: str, **values: Value) -> Deviation:
        """Return a deviation; `{field}` of the template becomes a reference."""
        return cls(
            code=code,
            template=re.sub(r"\{(\w+)", rf"{{deviation:{code}.\1", template),
            references=tuple(
                QuotedValue(
                    name=f"deviation:{code}.{field}",
                    value=value,
                    rounding=_rounding(field, value),
                )
                for field, value in values.items()
            ),
        )


def _rounding(field: str, value: Value) -> Rounding:
    if field == "usd":
        return Rounding.DOLLARS
    is_hash = isinstance(value, str) and _SHA256.fullmatch(value)
    return Rounding.HASH if is_hash else Rounding.EXACT


def deviations(record: RunRecord) -> tuple[Deviation, ...]:
    """Return the deviations of a run, in the order in which a text states them."""
    events = [recorded.event for recorded in record.interventions]
    return (
        *_ends(record, events),
        *_losses(events),
        *_on_resume(record, events),
        *_commands(events),
        *_refused_parameters(record),
        *_mixed_origins(record),
        *_scoring(record, events),
        *_stale(record),
    )


def _ends(record: RunRecord, events: _Events) -> Iterator[Deviation]:
    """Yield why the run ended before its plan did, and how it was continued."""
    # of a stop by a person, the log has the name
    drains = Counter(
        event.by if event.by in _STOPS else "operator"
        for event in events
        if isinstance(event, RunDrained)
    )
    for by, n in drains.items():
        sentence = f"The run {_STOPS[by]} ({{n|time|times}})."
        yield Deviation.of(f"stopped-{by}", sentence, n=n)
    # those of a fork were there when it began
    added = [
        event
        for event, following in pairwise(events)
        if isinstance(event, StageAdded) and isinstance(following, RunResumed)
    ]
    for stage in added:
        yield Deviation.of(
            f"added-{stage.stage}",
            "The stage {stage}, answered by {model}, was added after the run had "
            "ended; stored answers were kept.",
            stage=stage.stage,
            model=stage.model,
        )
    # adding a stage resumes the run once
    resumes = sum(isinstance(event, RunResumed) for event in events) - len(added)
    if resumes:
        yield Deviation.of(
            "resumed",
            "The run was resumed {n|time|times}; stored answers were kept, and only "
            "open tasks were sent.",
            n=resumes,
        )
    if any(isinstance(event, RunCancelled) for event in events):
        yield Deviation.of(
            "cancelled",
            "The run was cancelled; {n|open task was|open tasks were} skipped.",
            n=record.status.skips.get("cancelled", 0),
        )
    if any(isinstance(event, ComparisonDecided) for event in events):
        yield Deviation.of(
            "decided",
            "A comparison of models was decided before the run had ended, by a rule "
            "that had been set at its start.",
        )


def _losses(events: _Events) -> Iterator[Deviation]:
    """Yield requests and events that are missing from the log."""
    unknown = sum(
        len(event.attempts) for event in events if isinstance(event, AttemptsAbandoned)
    )
    if unknown:
        yield Deviation.of(
            "unknown",
            "{n|request was|requests were} in flight when a process ended without "
            "recording the outcome.",
            n=unknown,
        )
    lost = sum(event.lost for event in events if isinstance(event, RunResumed))
    if lost:
        yield Deviation.of(
            "lost",
            "At least {n|recorded event was|recorded events were} missing from the log "
            "when the run was resumed, which was accepted.",
            n=lost,
        )


def _on_resume(record: RunRecord, events: _Events) -> Iterator[Deviation]:
    """Yield code, settings and inputs that had changed when the run was resumed."""
    resumes = [event for event in events if isinstance(event, RunResumed)]
    states: list[RunStarted | RunResumed] = [record.started, *resumes]
    for at, (before, now) in enumerate(pairwise(states), 1):
        if before.code_sha256 != now.code_sha256:
            yield Deviation.of(
                f"code-{at}",
                "The code of the job had changed when the run was resumed (SHA-256 "
                "{before} before, {after} after).",
                before=before.code_sha256,
                after=now.code_sha256,
            )
        for setting, old, new in _changed(record, before.settings, now.settings):
            yield Deviation.of(
                f"setting-{at}-{encoded(setting)}",
                "The setting {name} was changed from {before} to {after} when the run "
                "was resumed.",
                name=setting,
                before=old,
                after=new,
            )
    changed = [changed_input for event in resumes for changed_input in event.changed]
    for at, changed_input in enumerate(changed, 1):
        yield Deviation.of(
            f"input-{at}",
            "The input {setting} had changed when the run was resumed (SHA-256 "
            "{sha256} from then on).",
            setting=changed_input.setting,
            sha256=changed_input.sha256,
        )


def _changed(
    record: RunRecord, before: str, after: str
) -> Iterator[tuple[str, str, str]]:
    """Yield settings that differ, with both values; input files are no settings."""
    inputs = [*record.started.inputs]
    if record.scoring is not None:
        inputs += record.scoring.inputs
    files = {recorded_input.setting for recorded_input in inputs}
    old, new = json.loads(before), json.loads(after)
    for name in sorted({*old, *new} - files):
        then, now = (
            json.dumps(values.get(name), ensure_ascii=False) for values in (old, new)
        )
        if then != now:
            yield name, then, now


def _commands(events: _Events) -> Iterator[Deviation]:
    """Yield what people changed while the run was going on."""
    applied = {event.command for event in events if isinstance(event, CommandApplied)}
    # every shard of a run records the same command
    commands = {
        event.command: event
        for event in events
        if isinstance(event, CommandAccepted) and event.command in applied
    }.values()
    limits = sum(command.kind == "limits" for command in commands)
    if limits:
        yield Deviation.of(
            "limits",
            "Request limits were changed {n|time|times} during the run.",
            n=limits,
        )
    added = [
        float(json.loads(command.payload).get("add_usd", 0))
        for command in commands
        if command.kind == "budget"
    ]
    if added:
        yield Deviation.of(
            "budget",
            "The budget was raised {n|time|times}, by US${usd} in total.",
            n=len(added),
            usd=sum(added),
        )
    pauses = sum(isinstance(event, RunPaused) and event.paused for event in events)
    if pauses:
        yield Deviation.of(
            "paused", "The run or a part of it was paused {n|time|times}.", n=pauses
        )
    reopened = sum(
        len(event.tasks) for event in events if isinstance(event, TasksReopened)
    )
    if reopened:
        yield Deviation.of(
            "retried",
            "An operator had {n|finished task|finished tasks} repeated.",
            n=reopened,
        )


def _refused_parameters(record: RunRecord) -> Iterator[Deviation]:
    for at, refused in enumerate(record.status.refused, 1):
        if refused.how == "ignored":
            rest = "had no effect on the replies of {model}."
        elif refused.instead is None:
            rest = "was not sent to {model}, whose endpoint does not accept it."
        else:
            rest = "was sent to {model} as {instead}, as its endpoint requires."
        yield Deviation.of(
            f"parameter-{at}",
            f"The parameter {{name}} {rest}",
            name=refused.name,
            model=model_text(refused.model),
            instead=refused.instead,
        )


def _mixed_origins(record: RunRecord) -> Iterator[Deviation]:
    mixed = [served for served in record.status.served if served.is_mixed]
    for at, served in enumerate(mixed, 1):
        yield Deviation.of(
            f"mixed-{at}",
            "Replies of {model} did not all have the same origin: they report {n} "
            "different values of {field}.",
            model=model_text(served.model),
            n=len(served.answers),
            field=served.field,
        )


def _scoring(record: RunRecord, events: _Events) -> Iterator[Deviation]:
    """Yield how the scoring differs from what the run was planned with."""
    scoring = record.scoring
    if scoring is None:
        return
    last: RunStarted | RunResumed = record.started
    for event in events:
        last = event if isinstance(event, RunResumed) else last
    if scoring.code_sha256 != last.code_sha256:
        yield Deviation.of(
            "parser",
            "Replies were parsed and scored by another version of the job's code "
            "(SHA-256 {after}) than the version that had requested them ({before}).",
            after=scoring.code_sha256,
            before=last.code_sha256,
        )
    for setting, old, new in _changed(record, last.settings, scoring.settings):
        yield Deviation.of(
            f"scored-{encoded(setting)}",
            "The answers were scored with {name} = {after}; in the plan it was "
            "{before}.",
            name=setting,
            after=new,
            before=old,
        )
    then, now = _hashes(record.started.inputs), _hashes(scoring.inputs)
    for setting in then:
        if setting in now and then[setting] != now[setting]:
            yield Deviation.of(
                f"scored-input-{encoded(setting)}",
                "The answers were scored with another version of the input {setting} "
                "than the plan was made from.",
                setting=setting,
            )


def _hashes(inputs: Iterable[Input]) -> dict[str, list[str]]:
    hashes: dict[str, list[str]] = {}
    for recorded_input in inputs:
        hashes.setdefault(recorded_input.setting, []).append(recorded_input.sha256)
    return hashes


def _stale(record: RunRecord) -> Iterator[Deviation]:
    """Yield tasks and answers that are not in both, the run and the scoring's plan."""
    missing, stale = (record.scorecard.get(what, 0) for what in ("missing", "stale"))
    if missing:
        yield Deviation.of(
            "missing",
            "{n|task|tasks} that the settings of the scoring ask for had not been run "
            "and were not counted.",
            n=missing,
        )
    if stale:
        yield Deviation.of(
            "stale",
            "{n|stored answer was|stored answers were} not used, because the settings "
            "of the scoring do not ask for them.",
            n=stale,
        )
