"""The command status: prints a snapshot of a run, for people or as an object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments
from runner.cli.console import (
    CHECK_FAILED,
    DONE,
    print_json,
    print_text,
    warn_of_loss,
)
from runner.score.result import RunResult, stored_result
from store.clock import SystemClock, iso_time
from store.document import Column, Numbers, TableBlock, Words, as_text
from store.events import RecordedEvent, ScoringRecorded, fields_of
from store.runs import RunFolder
from store.task import TaskState

if TYPE_CHECKING:
    from store.read.forecast import EstimateAccuracy, EstimatedFigure, ForecastInterval
    from store.read.limits import ObservedLimits
    from store.read.live import LiveStatus, UnionProgress
    from store.read.status import Status
    from store.read.usage import ReplyShares

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
    from runner.cli.status_page import status_page
    from store.database import open_reader
    from store.read.course import course
    from store.read.live import live_status
    from store.read.status import newest_scoring
    from store.read.tasks import failure_text
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
            past, newest = course(reader), newest_scoring(reader)
            failure = failure_text(reader)
        when, values = [], {}
    else:
        from runner.cli.progress import moment_json, moment_text, time_travel

        with time_travel(folder, moment_name, CLOCK) as (moment, reader):
            seen = live_status(reader, moment.at_us, is_held=moment.is_alive)
            past, newest = course(reader), newest_scoring(reader)
            failure = failure_text(reader)
        when, values = [moment_text(moment)], moment_json(moment)
    if as_json:
        print_json("siftlog.status/4", status_json(seen) | values)
    else:
        scores = _newest_scores(folder, seen.status)
        result = None if scores is None else stored_result(scores)
        page = status_page(
            seen,
            past,
            result or headline_of(newest),
            scores,
            run=folder.run_id,
            failure=failure,
        )
        print_text(as_text([*when, *page.blocks]))
    if not check:
        return DONE
    failed = 3 if seen.state == "finished" and seen.status.tasks.failed else DONE
    return CHECKS.get(seen.state, failed)


def headline_of(newest: RecordedEvent | None) -> RunResult | None:
    """Return what the log knows of a scoring whose folder has no result."""
    event = None if newest is None else newest.event
    if not isinstance(event, ScoringRecorded) or not event.headline:
        return None
    columns: list[Column] = [Words("Metric")]
    columns += [Numbers(model, 3) for model in event.reached]
    row = (event.headline, *event.reached.values())
    table = TableBlock(columns, [row], indent=0, is_wide=True)
    return RunResult(text=as_text([table]))


def _newest_scores(folder: RunFolder, status: Status) -> Path | None:
    """Return the folder of the newest scoring; None: there is none, or it is gone."""
    if not status.scorings:
        return None
    scores = folder.scores / str(status.scorings[-1])
    return scores if scores.is_dir() else None


def forecast_json(present: LiveStatus) -> dict[str, Any] | None:
    """Return the forecast for `status --json`; None if no process works on the run.

    `seconds` is null before anything has shown the run's speed. Intervals hold 9 of 10
    runs. `paused_tasks` wait for a pause to end, and have no part in the time.
    `budget_seconds` is null unless the budget stops the run before its end.
    """
    forecast = present.forecast
    if forecast is None:
        return None
    return {
        "seconds": _span_json(forecast.seconds, 1),
        "paused_tasks": forecast.paused_tasks,
        "comes_to_usd": _span_json(present.comes_to_usd, 6),
        "budget_seconds": _span_json(forecast.budget_seconds, 1),
        "stages": [
            {
                "stage": stage.stage,
                "left": stage.left,
                "seconds": _span_json(stage.seconds, 1),
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


def _prospect_json(prospect: EstimatedFigure, digits: int) -> dict[str, float | None]:
    comes_to = prospect.comes_to
    return {
        "low": round(prospect.low, digits),
        "expected": round(prospect.expected, digits),
        "high": round(prospect.high, digits),
        "so_far": round(prospect.so_far, digits),
        "comes_to": None if comes_to is None else round(comes_to, digits),
    }


def replies_json(replies: Sequence[ReplyShares]) -> list[dict[str, Any]]:
    """Return counts and shares by model."""
    from runner.cli.status_page import shares_of

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
        "job": status.job,
        "job_version": status.job_version,
        "models": dict(status.models),
        "replicates": status.replicates,
        "imported": status.imported,
        "planning_exhausted": status.planning_exhausted,
        "started": iso_time(status.created_us),
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


def parts_json(parts: UnionProgress) -> dict[str, Any]:
    """Return progress of the parts of a split run, for programs."""
    return {
        "logs": len(parts.parts),
        "ended": parts.ended,
        "missing": str(parts.missing),
        "repeated": parts.repeated,
    }


def limits_json(limits: ObservedLimits) -> dict[str, Any]:
    """Return the limits of one model for programs."""
    return {
        "model": limits.model,
        "concurrency": limits.concurrency,
        "ceiling": limits.ceiling,
        "rpm": limits.rpm,
        "tpm": limits.tpm,
        "paused_until_us": limits.paused_until_us,
    }
