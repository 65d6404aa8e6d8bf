"""Renders a run for people: its result or its progress first, the details below.

The end of a run and `siftlog status` show the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from runner.cli.console import cost, duration, number
from runner.score.result import RunResult
from store.document import (
    NONE,
    Block,
    Column,
    Fact,
    Numbers,
    PageText,
    TableBlock,
    Words,
    as_text,
    blocks_of,
    plural,
)
from store.read.course import Course
from store.read.forecast import (
    EstimateAccuracy,
    EstimatedFigure,
    ForecastInterval,
    budget_text,
    progress_text,
    rate_text,
    share_text,
    time_left_text,
)
from store.read.limits import UNITS, ObservedLimits, limits_in_words
from store.read.live import LiveStatus, UnionProgress
from store.read.next_steps import NextCommand, next_commands
from store.read.status import Status
from store.read.usage import OpenBatches, ReplyShares, dollars
from store.task import TaskState

STATES: Final[Mapping[str, str]] = {
    "quiet": "no sign of life for some seconds",
    "stalled": "calls are made, but none has succeeded lately",
    "lost": "no process works on it any more",
    "draining": "its calls in flight finish, then it stops",
    "paused": "no new call starts",
    "drained": "it stopped before all tasks were done",
    "budget_stop": "the budget is reached",
    "cancelled": "it was ended for good; its open tasks were skipped",
}
"""Explanations of the states that need one."""

STOPPED: Final = frozenset({"lost", "drained", "budget_stop", "cancelled"})
"""States without a process in which tasks lack an answer."""

UNKNOWN_OUTCOME: Final = "of unknown outcome"
"""Describes calls that were in flight when their process died."""

REPORT: Final = "report.html"

MOST_COMMANDS: Final = 3
"""Next commands that are shown."""

MOST_FINDINGS: Final = 10
"""Findings that are shown; `scorecard.json` has all."""


def status_page(
    present: LiveStatus,
    course: Course,
    result: RunResult | None = None,
    scores: Path | None = None,
    *,
    run: str = "",
    failure: str = "",
) -> PageText:
    """Return the text of `siftlog status`.

    Args:
        present: the run at a moment.
        course: when it was worked on.
        result: of its newest scoring; None: it has none.
        scores: the folder of that scoring; None: it is gone.
        run: the name of its folder, where that differs from its id.
        failure: the most frequent error of failed tasks.
    """
    is_finished = present.state == "finished"
    return as_text(
        [
            _title(present),
            *_meaning(present),
            *([""] if is_finished and result is not None else []),
            *result_blocks(
                present,
                course,
                result if is_finished else None,
                scores if is_finished else None,
                failure=failure,
                commands=next_commands(
                    present,
                    run or present.status.run_id,
                    "" if result is None else result.explain,
                ),
            ),
            "",
            *_details(present),
        ]
    )


def _title(present: LiveStatus) -> str:
    status = present.status
    group = "" if status.group is None else f"  group {status.group}"
    return (
        f"run {status.run_id}  {status.job} {status.job_version}  "
        f"{present.state}{group}"
    )


def _meaning(present: LiveStatus) -> Iterator[Fact]:
    """Say what the state means, unless it is plain."""
    meaning = present.status.why or STATES.get(present.state)
    if meaning is not None:
        yield _fact("state", f"{present.state}: {meaning}{_age(present)}")


def result_blocks(
    present: LiveStatus,
    course: Course,
    result: RunResult | None,
    scores: Path | None,
    *,
    failure: str = "",
    findings: Sequence[str] = (),
    commands: Sequence[NextCommand] = (),
) -> Iterator[Block]:
    """Yield the result of a run, its course, findings, files and next commands.

    Args:
        present: the run; one that is unfinished has progress, and what is missing.
        course: when it was worked on.
        result: of its newest scoring; None: it was not scored.
        scores: the folder of that scoring; None: nothing was written.
        failure: the most frequent error of failed tasks.
        findings: further findings, such as those of the report.
        commands: that make sense now.
    """
    if result is not None:
        yield from blocks_of(result.text)
        yield ""
    if present.state == "finished":
        yield _fact("done", done_text(present.status, course))
        yield _fact("cost", cost_text(present))
    else:
        yield from progress_facts(present, course)
    yield _fact("error", failure)
    every = (*(() if result is None else result.findings), *findings)
    yield from closing_facts(every, scores, commands)


def closing_facts(
    findings: Sequence[str], scores: Path | None, commands: Sequence[NextCommand]
) -> Iterator[Fact]:
    """Yield findings, the files of a scoring, and next commands."""
    for finding in findings[:MOST_FINDINGS]:
        label, _, text = finding.partition(": ")
        yield _fact(label, text)
    if findings[MOST_FINDINGS:]:
        more = len(findings) - MOST_FINDINGS
        yield _fact("", f"and {more:,} more, see scorecard.json")
    if scores is not None:
        yield _fact("files", str(scores))
        if (scores / REPORT).exists():
            yield _fact("report", str(scores / REPORT))
    for at, command in enumerate(commands[:MOST_COMMANDS]):
        yield _fact("" if at else "next", str(command))


def done_text(status: Status, course: Course) -> str:
    """Describe the course of a run: its tasks by how they ended, and the time."""
    tasks = status.tasks
    time = "imported" if status.imported else f"took {_time(course)}"
    skipped = f", {tasks.skipped:,} skipped" if tasks.skipped else ""
    noun = "task" if tasks.completed == 1 else "tasks"
    return (
        f"{tasks.completed:,} {noun} completed ({tasks.unparsed:,} unparsed), "
        f"{tasks.failed:,} failed{skipped}; {time}"
    )


def cost_text(present: LiveStatus) -> str:
    """Describe the recorded cost, by model, what may still be billed, the budget."""
    status = present.status
    is_unknown = status.imported and not status.cost_usd
    parts = [NONE if is_unknown else cost(status.cost_usd)]
    if status.cost_usd is None and not status.attempts.answered:
        parts = ["? (no call was answered)"]  # its price may be known
    shares = {model: usd for model, usd in status.model_cost_usd.items() if usd}
    if len(shares) > 1:
        by_model = ", ".join(f"{model} {dollars(usd)}" for model, usd in shares.items())
        parts[0] += f" ({by_model})"
    if unsettled := status.possible_usd + status.in_flight_usd:
        calls = " and ".join(_unsettled(present))
        parts.append(f"up to {dollars(unsettled)} may still be billed for {calls}")
    if status.budget_usd is not None:
        shared = "" if status.group is None else f" shared in {status.group}"
        parts.append(f"budget {dollars(status.budget_usd)}{shared}")
    return ", ".join(parts)


def _unsettled(present: LiveStatus) -> Iterator[str]:
    """Yield the calls whose bill is not known."""
    from runner.engine.failure_policy import BILLED

    status, unknown = present.status, _unknown(present)
    failed = [f"{name} {n:,}" for name, n in status.errors.items() if name in BILLED]
    if unknown:
        yield f"{plural(unknown, 'call')} {UNKNOWN_OUTCOME}"
    if failed:
        yield f"failed calls ({', '.join(failed)})"
    if status.billing.unknown:
        yield f"{plural(status.billing.unknown, 'answer')} without usage"
    if status.in_flight_usd and (present.is_alive or status.batches.count):
        yield "calls in flight"


def progress_facts(present: LiveStatus, course: Course) -> Iterator[Fact]:
    """Yield the progress of an unfinished run, its time left, cost, what is missing."""
    progress = present.progress
    yield _fact("progress", f"{share_text(progress.share)}, {progress_text(progress)}")
    if present.forecast is not None:
        seconds = present.forecast.seconds
        paused = present.forecast.paused_tasks
        left = "-" if seconds is None else time_left_text(seconds, paused=paused)
        yield _fact("left", f"{left}; 9 of 10 runs end within it" if seconds else left)
        if present.forecast.budget_seconds is not None:
            yield _fact("stops", budget_text(present.forecast.budget_seconds))
    yield _fact("cost", cost_text(present))
    if present.comes_to_usd is not None and present.comes_to_usd.expected:
        yield _fact("projected", _interval_text(present.comes_to_usd, cost))
    if present.rate is not None:
        yield _fact("rate", rate_text(present.rate))
    if present.state in STOPPED:
        yield _fact("missing", missing_text(present))
        yield _fact("took", _time(course))


def _time(course: Course) -> str:
    """Describe how long a run was worked on."""
    sessions = f" in {course.sessions} sessions" if course.sessions > 1 else ""
    return f"{duration(course.worked_s)}{sessions}"


def _age(present: LiveStatus) -> str:
    """Describe how old the last sign of life is, where that matters."""
    heartbeat = present.status.heartbeat
    if heartbeat is None or present.state not in {"lost", "quiet", "stalled"}:
        return ""
    seconds = max(0, present.now_us - heartbeat.at_us) / 1e6
    return f" (heartbeat {duration(seconds)} ago)"


def missing_text(present: LiveStatus) -> str:
    """Describe the tasks that are still expected: by state, and those to be planned."""
    status = present.status
    if present.state == "cancelled":
        return f"{status.skips.get('cancelled', 0):,} tasks, which were skipped"
    by_state = {
        name: sum(queue.states.get(state, 0) for queue in status.queues)
        for state, name in _state_names(present).items()
        if state.is_open
    }
    parts = [f"{n:,} {name}" for name, n in by_state.items() if n]
    remaining = present.progress.remaining.expected
    if planned := round(remaining) - status.tasks.open:
        parts.append(f"about {planned:,} to be planned from replies")
    if present.parts is not None and present.parts.missing:
        parts.append(f"slices {present.parts.missing}, which no shard has started")
    elif not status.planning_exhausted:
        parts.append("the rest of the plan")
    if not remaining:
        return ", ".join(parts) or "nothing"
    return f"{number(remaining)} tasks: {', '.join(parts)}"


def _state_names(present: LiveStatus) -> Mapping[TaskState, str]:
    """Return the labels of the states; nobody knows how calls of a dead process end."""
    lost = "in batches" if present.status.batches.count else UNKNOWN_OUTCOME
    names = {state: state.name.lower() for state in TaskState}
    return names if present.is_alive else {**names, TaskState.RUNNING: lost}


def _fact(label: str, text: str) -> Fact:
    return Fact(label, text, width=10, is_wide=True)


def _interval_text(span: ForecastInterval, format_value: Callable[[float], str]) -> str:
    high = "?" if span.high is None else format_value(span.high)
    return f"{format_value(span.expected)} ({format_value(span.low)} to {high})"


def _details(present: LiveStatus) -> Iterator[Block]:
    """Yield the counts of a run, and what is noteworthy about its course."""
    status = present.status
    yield _fact("tasks", _tasks_text(present))
    yield _fact("attempts", _attempts_text(present))
    yield _fact(
        "tokens",
        f"{status.tokens_in:,} in ({status.tokens_cached:,} cached), "
        f"{status.tokens_out:,} out",
    )
    for label, lines in _notes(present):
        yield from (_fact(label, line) for line in lines)
    yield from _queues(present)


def _tasks_text(present: LiveStatus) -> str:
    tasks = present.status.tasks
    names = _state_names(present)
    open_states = {
        names[TaskState.QUEUED]: tasks.open - tasks.running - tasks.waiting,
        names[TaskState.RUNNING]: tasks.running,
        names[TaskState.WAITING]: tasks.waiting,
    }
    parts = [
        f"{tasks.completed:,} completed ({tasks.unparsed:,} unparsed)",
        f"{tasks.failed:,} failed",
        f"{tasks.skipped:,} skipped",
        *(f"{n:,} {name}" for name, n in open_states.items() if n),
    ]
    return f"{tasks.planned:,} planned: {', '.join(parts)}"


def _unknown(present: LiveStatus) -> int:
    """Return the calls of unknown outcome, those included that a resume will record."""
    status = present.status
    is_lost = _state_names(present)[TaskState.RUNNING] == UNKNOWN_OUTCOME
    return status.attempts.unknown + (status.tasks.running if is_lost else 0)


def _attempts_text(present: LiveStatus) -> str:
    attempts, unknown = present.status.attempts, _unknown(present)
    free = [
        f"{n:,} of them {source}"
        for n, source in (
            (attempts.cached, "from the response cache"),
            (attempts.reused, "reopened by a retry"),
        )
        if n
    ]
    cached = f" ({', '.join(free)})" if free else ""
    return (
        f"{attempts.started:,} started: {attempts.answered:,} answered"
        f"{cached}, {attempts.failed:,} failed, {unknown:,} {UNKNOWN_OUTCOME}"
    )


def _notes(present: LiveStatus) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield labels, each with its lines; most runs have few."""
    status = present.status
    yield "billing", status.billing.findings
    yield "served", status.mixed
    if status.mixed:
        yield (
            "served",
            [f"siftlog drift {status.run_id} tests if answers changed with it"],
        )
    if status.estimate_accuracy is not None:
        yield "estimate", estimate_lines(status.estimate_accuracy)
    if set(status.models) - {"subject"}:
        role_models = (f"{role} {', '.join(of)}" for role, of in status.models.items())
        yield "models", ["; ".join(role_models)]
    yield (
        "limits",
        [
            f"{limits.model}: {limits}{_wait(limits, present.now_us)}"
            for limits in status.limits
        ],
    )
    yield "refused", [fact.sentence for fact in status.refused]
    yield "batches", _batches(status.batches, present.now_us)
    yield "paused", [str(pause) for pause in status.pauses]
    if present.parts is not None:
        yield "shards", [parts_text(present.parts)]
    for title, counts in (
        ("errors", status.errors),
        ("skipped", status.skips),
        ("unparsed", status.parse_failures),
    ):
        if counts:
            yield title, [", ".join(f"{name} {n:,}" for name, n in counts.items())]
    yield "replies", list(replies_lines(status.replies))
    if status.scorings:
        yield "scorings", [", ".join(map(str, status.scorings))]


def _queues(present: LiveStatus) -> Iterator[Block]:
    """Yield the tasks of each stage and model, by state; without empty states."""
    names = _state_names(present)
    columns: list[Column] = [Words("stage"), Words("model")]
    columns += [Numbers(names[state].removeprefix("of ")) for state in TaskState]
    rows = [
        (queue.stage, queue.model, *(queue.states.get(s) or None for s in TaskState))
        for queue in present.status.queues
    ]
    if rows:
        yield TableBlock(columns, rows, is_wide=True).filled()


def estimate_lines(accuracy: EstimateAccuracy) -> list[str]:
    """Describe the estimate in dollars, or in calls and tokens."""
    if accuracy.cost_usd is not None:
        return [f"{_estimate_text(accuracy.cost_usd, cost)} before the start"]
    return [
        f"{_estimate_text(figure, number)} {unit} before the start; "
        f"{number(figure.so_far)} so far"
        for unit, figure in (
            ("calls", accuracy.calls),
            ("tokens in", accuracy.tokens_in),
            ("tokens out", accuracy.tokens_out),
        )
    ]


def _estimate_text(figure: EstimatedFigure, show: Callable[[float], str]) -> str:
    return f"{show(figure.expected)} ({show(figure.low)} to {show(figure.high)})"


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


def replies_lines(replies: Sequence[ReplyShares]) -> Iterator[str]:
    """Yield one line per model with a nonzero share."""
    for model_replies in replies:
        shares = _visible_shares(model_replies)
        if shares:
            shares_text = ", ".join(
                f"{n:,} {kind} ({_percent(share)})"
                for kind, (n, share) in shares.items()
            )
            overlap = "; one reply may have several faults" if len(shares) > 1 else ""
            yield (
                f"{model_replies.model}: of {model_replies.replies:,} replies "
                f"{shares_text}{overlap}"
            )


def _visible_shares(replies: ReplyShares) -> dict[str, tuple[int, float]]:
    """Return counts and shares under the names for readers.

    What the model and what its provider refused has one name.
    """
    shares = shares_of(replies)
    visible = {}
    for kind in ("truncated", "refused", "empty", "unparsed"):
        n, share = getattr(replies, kind), shares.get(kind, 0.0)
        if kind == "refused":
            n, share = n + replies.filtered, share + shares.get("filtered", 0.0)
        if n:
            visible[kind] = n, min(1.0, share)
    return visible


def reply_findings(replies: Sequence[ReplyShares]) -> Iterator[str]:
    """Yield the same for the end of a run; large shares as warnings."""
    for model_replies in replies:
        shares = shares_of(model_replies)
        for line in replies_lines([model_replies]):
            is_large = max(shares.values()) >= LARGE
            yield f"warn: {line}{_advice(shares)}" if is_large else f"replies: {line}"


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
    text = plural(count, "log")
    return f"{text}, all slices ended" if has_all else f"{text}, {ended:,} ended"


def _batches(batches: OpenBatches, now_us: int) -> list[str]:
    """Describe open batches and the age of the oldest; empty if there are none."""
    if not batches.count or batches.oldest_us is None:
        return []
    waits = f"{batches.count:,} open: {batches.requests:,} requests wait"
    age = duration(max(0, now_us - batches.oldest_us) / 1e6)
    return [f"{waits}, the oldest batch for {age}"]


def limits_text(limits: Mapping[str, float | None]) -> str:
    """Describe the limits in force; None: no such limit."""
    return limits_in_words(
        {name: limits[name] for name in UNITS if limits[name] is not None}
    )


def _wait(limits: ObservedLimits, now_us: int) -> str:
    """Describe the remaining pause that the endpoint asked for."""
    wait_s = ((limits.paused_until_us or 0) - now_us) / 1e6
    return f"; it requested a wait of {duration(wait_s)} more" if wait_s > 0 else ""
