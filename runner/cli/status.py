"""The command status: prints a snapshot of a run, for people or as an object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from runner.cli import arguments
from runner.cli.console import (
    CHECK_FAILED,
    DONE,
    cost,
    duration,
    number,
    print_json,
    print_text,
    warn_of_loss,
)
from store.clock import Clock, SystemClock
from store.document import Block, Fact, PageText, as_text
from store.events import fields_of
from store.read.forecast import (
    EstimateAccuracy,
    EstimatedFigure,
    ForecastInterval,
    progress_text,
    rate_text,
    share_text,
    time_left_text,
)
from store.read.live import LiveStatus, UnionProgress
from store.read.status import UNITS, ObservedLimits, Status, limits_in_words, liveness
from store.read.usage import ReplyShares, dollars
from store.runs import RunFolder
from store.task import TaskState

CLOCK = SystemClock()


CHECKS = {"stalled": 6, "lost": 6, "budget_stop": 4, "drained": 5}
"""Exit codes of `status --check`; finished with failed tasks is 3."""


@click.command()
@arguments.run_argument
@click.option("--check", is_flag=True, help="Set the exit code by state: 3, 4, 5 or 6.")
@arguments.at
@click.option(
    "--ship",
    "place",
    metavar="DIR|URL",
    help="Show what RUN's shards have copied there; opens no log.",
)
@arguments.runs_dir
@arguments.as_json
def status(
    run_name: str,
    check: bool,
    moment_name: str | None,
    place: str | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Show the status of RUN once; siftlog watch keeps showing it.

    With --at, shows an earlier state from the events up to that moment; a million
    events take some seconds. With --check, the exit code gives the state: 6 stalled or
    lost, 4 budget reached, 5 drained, 3 finished with failed tasks, else 0; with
    --ship it is 6 unless every shard has ended.
    """
    if place is not None:
        from runner.cli.merge import print_shipped

        if moment_name is not None:
            raise click.UsageError(
                "--at reads logs, and --ship opens none: omit one of the two."
            )
        has_ended = print_shipped(run_name, place, as_json=as_json)
        return CHECK_FAILED if check and not has_ended else DONE
    from store.database import open_reader
    from store.read.live import live_status
    from store.runs import resolve

    folder = resolve(runs_dir, run_name)
    if check or not folder.shards():  # of which there may be a thousand
        warn_of_loss(folder)
    if moment_name is None:
        # checked before reading, so that the last commit of a dying writer is not
        # missed
        is_held = folder.is_alive()
        with open_reader(folder.log) as reader:
            seen = live_status(reader, CLOCK.now_us(), is_held=is_held)
        when, values = [], {}
    else:
        from runner.cli.progress import moment_json, moment_text, time_travel

        with time_travel(folder, moment_name, CLOCK) as (moment, reader):
            seen = live_status(reader, moment.at_us, is_held=moment.is_alive)
        when, values = [moment_text(moment)], moment_json(moment)
    if as_json:
        print_json(status_json(seen) | values)
    else:
        print_text(as_text([*when, *status_text(seen).blocks]))
    if not check:
        return DONE
    failed = 3 if seen.state == "finished" and seen.status.tasks.failed else DONE
    return CHECKS.get(seen.state, failed)


def forecast_json(present: LiveStatus) -> dict[str, Any] | None:
    """Return the forecast for `status --json`; None if no process works on the run.

    `seconds` is null before anything has shown the run's speed. Intervals hold 9 of 10
    runs. `needs` is 0: the number of tasks that were missing for a forecast, in earlier
    versions.
    """
    forecast = present.forecast
    if forecast is None:
        return None
    return {
        "seconds": _span_json(forecast.seconds, 1),
        "needs": 0,
        "comes_to_usd": _span_json(present.comes_to_usd, 6),
        "stages": [
            {
                "stage": stage.stage,
                "left": stage.left,
                "seconds": _span_json(stage.seconds, 1),
                "needs": 0,
            }
            for stage in forecast.stages
        ],
    }


def progress_json(present: LiveStatus) -> dict[str, Any]:
    """Return progress for `status --json`."""
    progress = present.progress
    return {
        "done": progress.done,
        "remaining": _span_json(progress.remaining, 1),
        "share": round(progress.share, 4),
    }


def _fact(label: str, text: str) -> Fact:
    return Fact(label, text, width=10, is_wide=True)


def forecast_facts(present: LiveStatus) -> list[Fact]:
    """Describe progress, rate, time left and projected cost."""
    progress = present.progress
    lines = [
        _fact("progress", f"{share_text(progress.share)}, {progress_text(progress)}")
    ]
    if present.rate is not None:
        lines.append(_fact("rate", rate_text(present.rate)))
    forecast = present.forecast
    if forecast is None:
        return lines
    if forecast.seconds is not None:
        lines.append(_fact("left", time_left_text(forecast.seconds)))
    if present.comes_to_usd is not None and present.comes_to_usd.expected:
        lines.append(_fact("projected", _span_text(present.comes_to_usd, cost)))
    return lines


def _span_json(
    span: ForecastInterval | None, digits: int
) -> dict[str, float | None] | None:
    if span is None:
        return None
    high = None if span.high is None else round(span.high, digits)
    return {
        "low": round(span.low, digits),
        "expected": round(span.expected, digits),
        "high": high,
    }


def _span_text(span: ForecastInterval, format_value: Callable[[float], str]) -> str:
    high = "?" if span.high is None else format_value(span.high)
    return f"{format_value(span.expected)} ({format_value(span.low)} to {high})"


def estimate_accuracy_json(estimate_accuracy: EstimateAccuracy) -> dict[str, Any]:
    """Return the estimate for `status --json`."""
    usd = estimate_accuracy.cost_usd
    return {
        "done": round(estimate_accuracy.done, 4),
        "calls": _prospect_json(estimate_accuracy.calls, 0),
        "tokens_in": _prospect_json(estimate_accuracy.tokens_in, 0),
        "tokens_out": _prospect_json(estimate_accuracy.tokens_out, 0),
        "cost_usd": None if usd is None else _prospect_json(usd, 6),
    }


def estimate_accuracy_lines(estimate_accuracy: EstimateAccuracy) -> list[str]:
    """Describe the estimate in dollars, or in calls and tokens."""
    if estimate_accuracy.cost_usd is not None:
        return [
            _prospect_text(estimate_accuracy.cost_usd, estimate_accuracy.done, cost)
        ]
    return [
        f"{_prospect_text(prospect, estimate_accuracy.done, number)} {unit}"
        for unit, prospect in (
            ("calls", estimate_accuracy.calls),
            ("tokens in", estimate_accuracy.tokens_in),
            ("tokens out", estimate_accuracy.tokens_out),
        )
    ]


def _prospect_text(
    p: EstimatedFigure, done: float, show: Callable[[float], str]
) -> str:
    would = "" if p.comes_to is None else f": projected {show(p.comes_to)}"
    return (
        f"{show(p.expected)} ({show(p.low)} to {show(p.high)}), so far "
        f"{show(p.so_far)} at {100 * done:.0f} %{would}"
    )


def _prospect_json(prospect: EstimatedFigure, digits: int) -> dict[str, float | None]:
    comes_to = prospect.comes_to
    return {
        "low": round(prospect.low, digits),
        "expected": round(prospect.expected, digits),
        "high": round(prospect.high, digits),
        "so_far": round(prospect.so_far, digits),
        "comes_to": None if comes_to is None else round(comes_to, digits),
    }


KINDS: Final = ("truncated", "refused", "filtered", "empty", "unparsed")
LARGE: Final = 0.2
"""Share of a reply kind that turns the closing line into a warning."""


def shares_of(replies: ReplyShares) -> dict[str, float]:
    """Return the nonzero share of each kind of reply."""
    shares = {}
    for kind in KINDS:
        n = getattr(replies, kind)
        # a prompt filtered with an error status has no reply
        of = replies.replies + (replies.failed if kind == "filtered" else 0)
        if n:
            shares[kind] = min(1.0, n / max(1, of))
    return shares


def replies_json(replies: Sequence[ReplyShares]) -> list[dict[str, Any]]:
    """Return counts and shares by model."""
    return [
        {
            **asdict(model_replies),
            "shares": {
                kind: round(share, 6)
                for kind, share in shares_of(model_replies).items()
            },
        }
        for model_replies in replies
    ]


def replies_lines(replies: Sequence[ReplyShares]) -> Iterator[str]:
    """Yield one line per model with a nonzero share."""
    for model_replies in replies:
        shares = shares_of(model_replies)
        if shares:
            shares_text = ", ".join(
                f"{getattr(model_replies, kind):,} {kind} ({_percent(share)})"
                for kind, share in shares.items()
            )
            yield (
                f"{model_replies.model}: of {model_replies.replies:,} replies "
                f"{shares_text}"
            )


def closing_lines(replies: Sequence[ReplyShares]) -> Iterator[str]:
    """Yield the same as sentences at the end; large shares as warnings."""
    for model_replies in replies:
        shares = shares_of(model_replies)
        for line in replies_lines([model_replies]):
            large = max(shares.values()) >= LARGE
            yield f"Warning: {line}{_advice(shares)}." if large else f"{line}."


def _advice(shares: dict[str, float]) -> str:
    """Return the next step for the largest share."""
    if shares.get("truncated", 0.0) >= LARGE:
        return (
            "; raise the output limit (max_output_tokens of the model in a --config "
            "file), or lower the reasoning effort"
        )
    if shares.get("filtered", 0.0) >= LARGE or shares.get("refused", 0.0) >= LARGE:
        return "; inspect some with siftlog tasks, and change the prompt or the model"
    return "; inspect some with siftlog tasks before you use the results"


def _percent(share: float) -> str:
    """Format a share; never 0 % if nonzero, never 100 % if incomplete.

    >>> _percent(0.00001), _percent(0.5), _percent(0.9999), _percent(1.0)
    ('<0.1 %', '50 %', '>99.9 %', '100 %')
    """
    if 0 < share < 0.001:  # noqa: PLR2004 - a tenth of a percent
        return "<0.1 %"
    if 0.999 < share < 1:  # noqa: PLR2004
        return ">99.9 %"
    return f"{100 * share:.3g} %"


SCHEMA = 2
"""Version of the JSON object; raised when the meaning of a field changes."""


def state_of(status: Status, folder: RunFolder, clock: Clock) -> str:
    """Return the run's state in one word."""
    return liveness(status.signs, clock.now_us(), is_alive=folder.is_alive())


def status_json(present: LiveStatus) -> dict[str, Any]:
    """Return the object of `status --json`."""
    status, heartbeat = present.status, present.status.heartbeat
    age = _age_s(None if heartbeat is None else heartbeat.at_us, present.now_us)
    return {
        "run": status.run_id,
        "state": present.state,
        "tasks": {
            "planned": status.tasks.planned,
            "completed": status.tasks.completed,
            "failed": status.tasks.failed,
            "skipped": status.tasks.skipped,
            "open": status.tasks.open,
            "running": status.tasks.running,
            "waiting": status.tasks.waiting,
            "unparsed": status.tasks.unparsed,
        },
        "attempts": {
            "started": status.attempts.started,
            "answered": status.attempts.answered,
            "cached": status.attempts.cached,
            "kept": status.attempts.reused,
            "failed": status.attempts.failed,
            "unknown": status.attempts.unknown,
        },
        "cost_usd": status.cost_usd,
        "possible_usd": status.possible_usd,
        "in_flight_usd": status.in_flight_usd,
        "budget_usd": status.budget_usd,
        "group": status.group,
        "shards": present.parts and parts_json(present.parts),
        "heartbeat_age_s": age,
        "tasks_a_minute": present.rate,
        "progress": progress_json(present),
        "left_s": _span_json(present.forecast.seconds, 1) if present.forecast else None,
        "forecast": forecast_json(present),
        "schema": SCHEMA,
        "job": status.job,
        "job_version": status.job_version,
        "models": dict(status.models),
        "replicates": status.replicates,
        "imported": status.imported,
        "planning_exhausted": status.planning_exhausted,
        "stages": [
            {
                "stage": queue.stage,
                "model": queue.model,
                **{s.name.lower(): queue.states.get(s, 0) for s in TaskState},
            }
            for queue in status.queues
        ],
        "limits": [limits_json(limits) for limits in status.limits],
        "refused": [fields_of(event) for event in status.refused],
        "batches": {
            "open": status.batches.count,
            "requests": status.batches.requests,
            "oldest_age_s": _age_s(status.batches.oldest_us, present.now_us),
        },
        "pauses": [asdict(pause) for pause in status.pauses],
        "errors": dict(status.errors),
        "skips": dict(status.skips),
        "parse_failures": dict(status.parse_failures),
        "replies": replies_json(status.replies),
        "model_cost_usd": dict(status.model_cost_usd),
        "tokens_in": status.tokens_in,
        "tokens_out": status.tokens_out,
        "tokens_cached": status.tokens_cached,
        "usage_unknown": status.billing.unknown,
        "usage_doubtful": status.billing.doubtful,
        "charged_usd": status.billing.charged_usd if status.billing.charged else None,
        "charges_differ": status.billing.differing,
        "served": [
            {"model": served.model, "by": served.field, "answers": dict(served.answers)}
            for served in status.served
        ],
        "estimate": status.estimate_accuracy
        and estimate_accuracy_json(status.estimate_accuracy),
        "scorings": list(status.scorings),
        "last_seq": status.last_seq,
        "why": status.why,
    }


def _age_s(at_us: int | None, now_us: int) -> float | None:
    """Return the age in seconds, to a tenth."""
    return None if at_us is None else round(max(0, now_us - at_us) / 1e6, 1)


def status_text(present: LiveStatus) -> PageText:
    """Return the text of `status`."""
    status, status_fields = present.status, status_json(present)
    tasks, attempts = status.tasks, status.attempts
    age_s = status_fields["heartbeat_age_s"]
    age = f" (heartbeat {age_s:g} s ago)" if age_s is not None else ""
    free = [
        f"{n:,} of them {source}"
        for n, source in (
            (attempts.cached, "from the response cache"),
            (attempts.reused, "reopened by a retry"),
        )
        if n
    ]
    cached = f" ({', '.join(free)})" if free else ""
    is_live = status_fields["state"] in {
        "live",
        "quiet",
        "stalled",
        "lost",
        "draining",
        "paused",
    }
    group = "" if status.group is None else f"  group {status.group}"
    lines: list[Block] = [
        (
            f"run {status.run_id}  {status.job} {status.job_version}  "
            f"{status_fields['state']}{age if is_live else ''}{group}"
        ),
        _fact(
            "tasks",
            f"{tasks.planned:,} planned: {tasks.completed:,} completed "
            f"({tasks.unparsed:,} unparsed), {tasks.failed:,} failed, "
            f"{tasks.skipped:,} skipped, {tasks.open:,} open",
        ),
        _fact(
            "attempts",
            f"{attempts.started:,} started: {attempts.answered:,} answered"
            f"{cached}, {attempts.failed:,} failed, {attempts.unknown:,} unknown",
        ),
        _fact(
            "tokens",
            f"{status.tokens_in:,} in ({status.tokens_cached:,} cached), "
            f"{status.tokens_out:,} out",
        ),
        _fact("cost", _cost(status)),
    ]
    lines += [_fact("billing", finding) for finding in status.billing.findings]
    lines += [_fact("served", sentence) for sentence in status.mixed]
    lines += forecast_facts(present)
    if status.estimate_accuracy is not None:
        lines += [
            _fact("estimate", line)
            for line in estimate_accuracy_lines(status.estimate_accuracy)
        ]
    if set(status.models) - {"subject"}:
        role_models = (f"{role} {', '.join(of)}" for role, of in status.models.items())
        lines.append(_fact("models", "; ".join(role_models)))
    # without a process to receive them, calls in flight are lost
    left = "left in batches" if status.batches.count else "lost in flight"
    names = {} if present.is_alive else {TaskState.RUNNING: left}
    for queue in status.queues:
        states = ", ".join(
            f"{n:,} {names.get(state, state.name.lower())}"
            for state, n in sorted(queue.states.items())
            if n
        )
        lines.append(f"  {queue.stage:12} {queue.model:32} {states}")
    lines += [
        _fact(
            "limits",
            f"{seen['model']}: {limits_text(seen)}{_wait(seen, present.now_us)}",
        )
        for seen in status_fields["limits"]
    ]
    lines += [_fact("refused", fact.sentence) for fact in status.refused]
    lines += [_fact("batches", line) for line in _batches(status_fields["batches"])]
    lines += [_fact("paused", str(pause)) for pause in status.pauses]
    if present.parts is not None:
        lines.append(_fact("shards", parts_text(present.parts)))
    for title, counts in (
        ("errors", status.errors),
        ("skipped", status.skips),
        ("unparsed", status.parse_failures),
    ):
        if counts:
            counts_text = ", ".join(f"{name} {n:,}" for name, n in counts.items())
            lines.append(_fact(title, counts_text))
    lines += [_fact("replies", line) for line in replies_lines(status.replies)]
    if status.scorings:
        lines.append(_fact("scorings", ", ".join(map(str, status.scorings))))
    if status.why is not None:
        lines.append(status.why)
    return as_text(lines)


def parts_json(parts: UnionProgress) -> dict[str, Any]:
    """Return progress of the parts of a split run, for programs."""
    return {
        "logs": len(parts.parts),
        "ended": parts.ended,
        "missing": str(parts.missing),
        "repeated": parts.repeated,
    }


def parts_text(parts: UnionProgress) -> str:
    """Describe progress of the parts of a split run."""
    text = logs_text(len(parts.parts), parts.ended, has_all=not parts.unfinished)
    if parts.missing:
        text += f"; slices {parts.missing} have not started"
    if parts.repeated:
        text += f"; {parts.repeated:,} answers paid for more than once"
    return text


def logs_text(count: int, ended: int, *, has_all: bool) -> str:
    """Describe the number of logs and how many have ended.

    Args:
        count: number of logs.
        ended: number of ended logs.
        has_all: every slice has ended in some log, though not every log has.
    """
    text = f"{count:,} log{'' if count == 1 else 's'}"
    return f"{text}, all slices ended" if has_all else f"{text}, {ended:,} ended"


def _batches(batches: Mapping[str, Any]) -> list[str]:
    """Describe open batches and the age of the oldest; empty if there are none."""
    if not batches["open"]:
        return []
    waits = f"{batches['open']:,} open: {batches['requests']:,} requests wait"
    return [f"{waits}, the oldest batch for {duration(batches['oldest_age_s'])}"]


def limits_json(limits: ObservedLimits) -> dict[str, Any]:
    """Return the limits of one model for programs."""
    return {
        "model": limits.model,
        "concurrency": limits.concurrency,
        "rpm": limits.rpm,
        "tpm": limits.tpm,
        "paused_until_us": limits.paused_until_us,
    }


def limits_text(limits: Mapping[str, Any]) -> str:
    """Describe the limits in force from `limits_json`."""
    return limits_in_words(
        {name: limits[name] for name in UNITS if limits[name] is not None}
    )


def _wait(limits: Mapping[str, Any], now_us: int) -> str:
    """Describe the remaining pause that the endpoint asked for."""
    wait_s = ((limits["paused_until_us"] or 0) - now_us) / 1e6
    return f"; it requested a wait of {duration(wait_s)} more" if wait_s > 0 else ""


def _cost(status: Status) -> str:
    """Describe the cost so far, the possible cost, and the cost in flight."""
    parts = ["nothing" if status.cost_usd == 0 else dollars(status.cost_usd)]
    shares = {model: usd for model, usd in status.model_cost_usd.items() if usd}
    if len(shares) > 1:
        parts += [f"{model} {dollars(usd)}" for model, usd in shares.items()]
    if status.possible_usd:
        parts.append(f"up to {dollars(status.possible_usd)} more, billed or not")
    if status.in_flight_usd:
        parts.append(f"up to {dollars(status.in_flight_usd)} for calls in flight")
    if status.budget_usd is not None:
        shared = "" if status.group is None else f" shared in {status.group}"
        parts.append(f"budget {dollars(status.budget_usd)}{shared}")
    return ", ".join(parts)
