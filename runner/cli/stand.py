"""How a run stands, as one object for programs and as a few lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from runner.cli.figures import duration
from runner.cli.foretold import forecast_json, forecast_lines
from runner.cli.outlook import outlook_json, outlook_lines
from runner.cli.replies import replies_json, replies_lines
from store.clock import Clock
from store.read.live import LiveStatus, UnionProgress
from store.read.status import UNITS, ObservedLimits, Status, limits_in_words, liveness
from store.read.usage import dollars
from store.runs import RunFolder
from store.task import TaskState

SCHEMA = 2
"""Version of the object; a field that changes its meaning raises it."""


def state_of(status: Status, folder: RunFolder, clock: Clock) -> str:
    """The run's state in one word."""
    return liveness(status.signs, clock.now_us(), is_alive=folder.is_alive())


def status_json(present: LiveStatus) -> dict[str, Any]:
    """What `status --json` prints."""
    status, beat = present.status, present.status.heartbeat
    age = _age_s(None if beat is None else beat.at_us, present.now_us)
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
            "kept": status.attempts.kept,
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
        "forecast": present.forecast and forecast_json(present),
        "schema": SCHEMA,
        "job": status.job,
        "job_version": status.job_version,
        "models": dict(status.models),
        "replicates": status.replicates,
        "imported": status.imported,
        "planning_exhausted": status.planning_exhausted,
        "stages": [
            {
                "stage": lane.stage,
                "model": lane.model,
                **{s.name.lower(): lane.states.get(s, 0) for s in TaskState},
            }
            for lane in status.lanes
        ],
        "limits": [limits_json(limits) for limits in status.limits],
        "refused": [asdict(fact) for fact in status.refused],
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
            {"model": each.model, "by": each.field, "answers": dict(each.answers)}
            for each in status.served
        ],
        "estimate": status.outlook and outlook_json(status.outlook),
        "scorings": list(status.scorings),
        "last_seq": status.last_seq,
        "why": status.why,
    }


def _age_s(at_us: int | None, now_us: int) -> float | None:
    """Seconds since then, to a tenth."""
    return None if at_us is None else round(max(0, now_us - at_us) / 1e6, 1)


def status_text(present: LiveStatus) -> str:
    """What `status` prints for people."""
    status, shown = present.status, status_json(present)
    tasks, attempts = status.tasks, status.attempts
    beat = shown["heartbeat_age_s"]
    age = f" (heartbeat {beat:g} s ago)" if beat is not None else ""
    free = [
        f"{n:,} of them {how}"
        for n, how in (
            (attempts.cached, "from the response cache"),
            (attempts.kept, "taken up again after a retry"),
        )
        if n
    ]
    cached = f" ({', '.join(free)})" if free else ""
    is_live = shown["state"] in {
        "live",
        "quiet",
        "stalled",
        "lost",
        "draining",
        "paused",
    }
    group = "" if status.group is None else f"  group {status.group}"
    lines = [
        (
            f"run {status.run_id}  {status.job} {status.job_version}  "
            f"{shown['state']}{age if is_live else ''}{group}"
        ),
        (
            f"tasks     {tasks.planned:,} planned: {tasks.completed:,} completed "
            f"({tasks.unparsed:,} unparsed), {tasks.failed:,} failed, "
            f"{tasks.skipped:,} skipped, {tasks.open:,} open"
        ),
        (
            f"attempts  {attempts.started:,} started: {attempts.answered:,} answered"
            f"{cached}, {attempts.failed:,} failed, {attempts.unknown:,} unknown"
        ),
        (
            f"tokens    {status.tokens_in:,} in ({status.tokens_cached:,} cached), "
            f"{status.tokens_out:,} out"
        ),
        f"cost      {_cost(status)}",
    ]
    lines += [f"billing   {said}" for said in status.billing.findings]
    lines += [f"served    {said}" for said in status.mixed]
    lines += forecast_lines(present)
    if status.outlook is not None:
        lines += [f"estimate  {said}" for said in outlook_lines(status.outlook)]
    if set(status.models) - {"subject"}:
        named = (f"{role} {', '.join(of)}" for role, of in status.models.items())
        lines.append(f"models    {'; '.join(named)}")
    # with nobody there to receive them, calls in flight are calls given up
    left = "left in batches" if status.batches.count else "given up in flight"
    names = {} if present.is_alive else {TaskState.RUNNING: left}
    for lane in status.lanes:
        states = ", ".join(
            f"{n:,} {names.get(state, state.name.lower())}"
            for state, n in sorted(lane.states.items())
            if n
        )
        lines.append(f"  {lane.stage:12} {lane.model:32} {states}")
    lines += [
        f"limits    {seen['model']}: {limits_text(seen)}{_wait(seen, present.now_us)}"
        for seen in shown["limits"]
    ]
    lines += [f"refused   {fact.sentence}" for fact in status.refused]
    lines += [f"batches   {said}" for said in _batches(shown["batches"])]
    lines += [f"paused    {pause}" for pause in status.pauses]
    if present.parts is not None:
        lines.append(f"shards    {parts_text(present.parts)}")
    for title, counts in (
        ("errors", status.errors),
        ("skipped", status.skips),
        ("unparsed", status.parse_failures),
    ):
        if counts:
            said = ", ".join(f"{name} {n:,}" for name, n in counts.items())
            lines.append(f"{title:9} {said}")
    lines += [f"replies   {said}" for said in replies_lines(status.replies)]
    if status.scorings:
        lines.append(f"scorings  {', '.join(map(str, status.scorings))}")
    if status.why is not None:
        lines.append(status.why)
    return "\n".join(lines)


def parts_json(parts: UnionProgress) -> dict[str, Any]:
    """How far the parts of a split run are, for programs."""
    return {
        "logs": len(parts.parts),
        "ended": parts.ended,
        "missing": str(parts.missing),
        "repeated": parts.repeated,
    }


def parts_text(parts: UnionProgress) -> str:
    """How far the parts of a split run are."""
    said = logs_text(len(parts.parts), parts.ended, has_all=not parts.unfinished)
    if parts.missing:
        said += f"; slices {parts.missing} have not begun"
    if parts.repeated:
        said += f"; {parts.repeated:,} answers paid for more than once"
    return said


def logs_text(count: int, ended: int, *, has_all: bool) -> str:
    """How many logs there are, and whether they have come to their end.

    Args:
        count: of the logs.
        ended: how many of them have.
        has_all: whether all slices have ended in some log; what others began may then
            have been left to it.
    """
    said = f"{count:,} log{'' if count == 1 else 's'}"
    return f"{said}, all slices ended" if has_all else f"{said}, {ended:,} ended"


def _batches(shown: Mapping[str, Any]) -> list[str]:
    """How many batches are open, and for how long; nothing where there are none."""
    if not shown["open"]:
        return []
    waits = f"{shown['open']:,} open: {shown['requests']:,} requests wait"
    return [f"{waits}, the oldest batch for {duration(shown['oldest_age_s'])}"]


def limits_json(limits: ObservedLimits) -> dict[str, Any]:
    """The limits of one model for programs."""
    return {
        "model": limits.model,
        "concurrency": limits.concurrency,
        "rpm": limits.rpm,
        "tpm": limits.tpm,
        "paused_until_us": limits.paused_until_us,
    }


def limits_text(limits: Mapping[str, Any]) -> str:
    """The limits in force, of those in `limits_json`."""
    return limits_in_words(
        {name: limits[name] for name in UNITS if limits[name] is not None}
    )


def _wait(limits: Mapping[str, Any], now_us: int) -> str:
    """How long its endpoint still asks to be left alone."""
    wait_s = ((limits["paused_until_us"] or 0) - now_us) / 1e6
    return f"; asks to wait another {duration(wait_s)}" if wait_s > 0 else ""


def _cost(status: Status) -> str:
    """What was spent, may have been, and still may be."""
    said = ["nothing" if status.cost_usd == 0 else dollars(status.cost_usd)]
    shares = {model: usd for model, usd in status.model_cost_usd.items() if usd}
    if len(shares) > 1:
        said += [f"{model} {dollars(usd)}" for model, usd in shares.items()]
    if status.possible_usd:
        said.append(f"up to {dollars(status.possible_usd)} more, billed or not")
    if status.in_flight_usd:
        said.append(f"up to {dollars(status.in_flight_usd)} for calls in flight")
    if status.budget_usd is not None:
        shared = "" if status.group is None else f" shared in {status.group}"
        said.append(f"budget {dollars(status.budget_usd)}{shared}")
    return ", ".join(said)
