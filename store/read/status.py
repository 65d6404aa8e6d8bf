"""Summarises a run from its projections: counts, limits, pauses, its state.

Reading it costs the same for ten tasks and ten million.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter

from store.database import SQL
from store.errors import CorruptLog, NotALog
from store.events import (
    ParameterRefused,
    RecordedEvent,
    RunStarted,
    ScoringRecorded,
)
from store.fold_state import BUCKET_RATIO, US_PER_S, RunState
from store.lineage import StageAdded
from store.log.interface import Heartbeat
from store.read.forecast import (
    EstimateAccuracy,
    UsageSoFar,
    estimate_accuracy,
)
from store.read.limits import ObservedLimits, observed_limits
from store.read.observed_work import Break, CallTime, call_times, work_breaks
from store.read.remaining import (
    Remaining,
    RemainingCost,
    remaining_cost,
    remaining_tasks,
)
from store.read.usage import (
    Billing,
    OpenBatches,
    ReplyShares,
    ServedCount,
    error_counts,
    lost_starts,
    open_batches,
    queue_costs,
    reply_shares,
    served_counts,
    spending,
)
from store.served_by import PREFIX
from store.tables import (
    event_in,
    last_seq,
    load_run_state,
    payload,
    recorded_rows,
    visible_seq,
)
from store.task import TaskState, usd

#: Age limits of the heartbeat, which is recorded once a second.
LIVE_S = 3.0
LOST_S = 15.0
#: Without a success for this long, and for this many p95 latencies, a run is stalled.
STALL_S = 120.0
STALL_LATENCIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LivenessSigns:
    """Signs from which the state of a run is derived."""

    phase: str  #: kind of the last event that started or ended work
    phase_by: str | None
    phase_us: int  #: when that was, or when a pause in it was last lifted
    paused_by: str | None
    draining_by: str | None
    heartbeat_us: int | None
    success_us: int | None  #: when a task was last completed
    running: int  #: tasks with an attempt in flight
    p95_ms: float | None
    batches: int = 0  #: open at a provider, which may take a day


def liveness(signs: LivenessSigns, now_us: int, *, is_alive: bool | None) -> str:
    """Return the state of a run in one word.

    `live`, `quiet`, `lost`, `stalled`, `paused`, `draining`, `drained`, `cancelled`,
    `finished` or `budget_stop`: never more than the signs prove. A run that makes calls
    without any success is `stalled`, whatever its heartbeat says.

    Args:
        signs: what the log shows.
        now_us: the current time, microseconds since 1970 UTC.
        is_alive: whether its process holds the log; None if unknown.
    """
    seen = _Seen(signs, now_us, is_alive)
    return next((word for word, holds in _RULES if holds(seen)), "live")


@dataclass(frozen=True, slots=True)
class _Seen:
    """The signs at a moment."""

    signs: LivenessSigns
    now_us: int
    is_alive: bool | None

    def ended(self, phase: str, by: str | None = None) -> bool:
        """Return whether the last such event ended the work in this way."""
        return self.signs.phase == phase and by in {None, self.signs.phase_by}

    @property
    def silence_s(self) -> float:
        """Time since the last sign of life, which may be the start of work."""
        last_sign_us = max(self.signs.heartbeat_us or 0, self.signs.phase_us)
        return (self.now_us - last_sign_us) / US_PER_S

    @property
    def is_stalled(self) -> bool:
        """Whether calls are made and none has succeeded for too long."""
        signs = self.signs
        timeout_s = max(STALL_S, STALL_LATENCIES * (signs.p95_ms or 0.0) / 1000)
        success_us = max(signs.success_us or 0, signs.phase_us)
        if signs.batches:
            return False
        return signs.running > 0 and (self.now_us - success_us) / US_PER_S > timeout_s


#: The first one that applies is the state; none of them: live.
_RULES: tuple[tuple[str, Callable[[_Seen], bool]], ...] = (
    ("finished", lambda seen: seen.ended("run_finished")),
    ("cancelled", lambda seen: seen.ended("run_cancelled")),
    ("budget_stop", lambda seen: seen.ended("run_drained", "budget")),
    ("drained", lambda seen: seen.ended("run_drained")),
    ("lost", lambda seen: seen.is_alive is False or seen.silence_s > LOST_S),
    ("quiet", lambda seen: seen.silence_s >= LIVE_S),
    ("draining", lambda seen: seen.signs.draining_by is not None),
    ("paused", lambda seen: seen.signs.paused_by is not None),
    ("stalled", lambda seen: seen.is_stalled),
)

STATES = (*(word for word, _ in _RULES), "live")
"""Every value that `liveness` may return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A pause by a user; None: every stage, every model."""

    stage: str | None
    model: str | None
    by: str

    @property
    def scope(self) -> tuple[str | None, str | None]:
        """Its stage and model."""
        return self.stage, self.model

    def holds(self, stage: str, model: str) -> bool:
        """Return whether nothing of this stage and model is started."""
        return self.stage in {None, stage} and self.model in {None, model}

    def __str__(self) -> str:
        """Describe what is paused, and by whom, in a few words."""
        names = [
            f"{label} {name}"
            for label, name in (("stage", self.stage), ("model", self.model))
            if name is not None
        ]
        return f"{' of '.join(names) or 'the run'} (by {self.by})"


def pauses(conn: sqlite3.Connection, run: RunState) -> tuple[Pause, ...]:
    """Return the active pauses, that of the whole run first."""
    whole = [] if run.paused_by is None else [("", "", run.paused_by)]
    return tuple(
        Pause(stage=stage or None, model=model or None, by=by)
        for stage, model, by in (*whole, *conn.execute(SQL["rows_pause"]).fetchall())
    )


def paused_by(
    active_pauses: Sequence[Pause], open_keys: Iterable[tuple[str, str]]
) -> str | None:
    """Return who paused the whole run, by one pause or queue by queue.

    Args:
        active_pauses: the pauses.
        open_keys: stage and model of the tasks that are open.
    """
    whole = [pause.by for pause in active_pauses if pause.scope == (None, None)]
    keys = list(open_keys)
    is_paused = all(any(pause.holds(*key) for pause in active_pauses) for key in keys)
    if keys and is_paused:
        whole += [pause.by for pause in active_pauses]
    return whole[0] if whole else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCounts:
    """Tasks by state; `planned` is their sum."""

    planned: int
    completed: int
    failed: int
    skipped: int
    open: int  #: queued, running or waiting
    running: int
    waiting: int
    unparsed: int  #: of the completed ones


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCounts:
    """Attempts by how they ended."""

    started: int
    answered: int
    cached: int  #: of the answered ones, those from the cache or the run's other logs
    reused: int  #: of the answered ones, earlier answers reused after a `retry`
    failed: int
    unknown: int  #: sent by a process that was gone before the outcome was recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCounts:
    """Tasks of one stage and model, by state."""

    stage: str
    model: str
    states: Mapping[TaskState, int]

    @property
    def key(self) -> tuple[str, str]:
        """Its stage and model."""
        return self.stage, self.model

    @property
    def is_open(self) -> bool:
        """Whether any of its tasks can still get a reply."""
        return any(n and state.is_open for state, n in self.states.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The status of a run after event `last_seq`."""

    run_id: str
    job: str
    job_version: str
    siftlog_version: str
    models: Mapping[str, list[str]]  #: role -> models
    first: tuple[str, ...]  #: stages that the plan starts with; empty: unknown
    breaks: tuple[Break, ...]  #: periods without work, of the run and of models
    call_times: Mapping[tuple[str, str], CallTime]  #: by stage and model
    remaining: Remaining  #: tasks that remain, follow-ups to come included
    remaining_cost: RemainingCost | None  #: of them; None: unknown
    replicates: int
    imported: bool
    created_us: int
    last_seq: int
    tasks: TaskCounts
    attempts: AttemptCounts
    queues: tuple[QueueCounts, ...]
    replies: tuple[ReplyShares, ...]  #: by model
    limits: tuple[ObservedLimits, ...]
    pauses: tuple[Pause, ...]
    errors: Mapping[str, int]  #: failed attempts by class
    skips: Mapping[str, int]  #: skipped tasks by reason, most frequent first
    parse_failures: Mapping[str, int]  #: unparsed tasks by reason
    reasked: Mapping[str, int]  #: answers refused and requested again, by reason
    tokens_in: int  #: used by this run: the response cache's answers used none
    tokens_out: int
    tokens_cached: int
    billing: Billing
    served: tuple[ServedCount, ...]  #: by model and field
    cost_usd: float | None  #: None while the price of an answer is unknown
    possible_usd: float  #: may be billed in addition, without a reply or usage
    in_flight_usd: float  #: maximum cost of calls without an outcome
    budget_usd: float | None  #: cap of the whole run; None: no cap
    group: str | None  #: of the runs that it was started with, which share the cap
    model_cost_usd: Mapping[str, float]  #: known cost by model
    planning_exhausted: bool  #: no first-stage task is left to plan
    heartbeat: Heartbeat | None
    scorings: tuple[int, ...]  #: numbers of the recorded scorings
    signs: LivenessSigns  #: input of `store.read.status.liveness`
    why: str | None  #: why it was drained, as a sentence
    batches: OpenBatches  #: at a provider
    estimate_accuracy: (
        EstimateAccuracy | None
    )  #: None: there was no estimate, or not all is planned
    #: parameters that endpoints do not accept
    refused: tuple[ParameterRefused, ...] = ()

    @property
    def mixed(self) -> tuple[str, ...]:
        """Models served by several origins, as sentences without full stops."""
        return tuple(str(count) for count in self.served if count.is_mixed)

    @property
    def findings(self) -> tuple[str, ...]:
        """Notes on the run's replies for readers of its figures."""
        return (*self.billing.findings, *self.mixed)


def run_started(conn: sqlite3.Connection) -> RunStarted:
    """Return the run's first event.

    Raises:
        NotALog: the run never started.
    """
    return _beginning(conn)[0]


def _beginning(conn: sqlite3.Connection) -> tuple[RunStarted, int]:
    row = conn.execute(SQL["first_event"]).fetchone()
    first = None if row is None else event_in(1, *row[:3])
    if not isinstance(first, RunStarted) and last_seq(conn):
        raise CorruptLog(
            "the beginning of the log is missing: see 'siftlog verify', then restore a "
            "copy of the run's folder"
        )
    if not isinstance(first, RunStarted):
        raise NotALog(
            "this run was created but never started: delete its folder "
            "and start it again"
        )
    return first, row[3]


def scorings(conn: sqlite3.Connection) -> list[ScoringRecorded]:
    """Return the recorded scorings, oldest first."""
    return [
        recorded.event
        for recorded in recorded_rows(conn, SQL["marked"], ("scoring_recorded", 0, -1))
        if isinstance(recorded.event, ScoringRecorded)
    ]


def added_stages(
    conn: sqlite3.Connection, through_seq: int | None = None
) -> list[tuple[StageAdded, bytes]]:
    """Return the stages that were added to the run, each with its declaration.

    Args:
        conn: of the log.
        through_seq: the last event that counts; None: all do.
    """
    return [
        (recorded.event, payload(conn, recorded.seq) or b"")
        for recorded in recorded_rows(conn, SQL["marked"], ("stage_added", 0, -1))
        if isinstance(recorded.event, StageAdded)
        and (through_seq is None or recorded.seq <= through_seq)
    ]


def refused_parameters(conn: sqlite3.Connection) -> tuple[ParameterRefused, ...]:
    """Return the parameters that endpoints refused, oldest first, each fact once.

    Each shard of a run finds them separately, so a union has some of them twice.
    """
    refusals: dict[tuple[str, str, str, str | None, str], ParameterRefused] = {}
    for recorded in recorded_rows(conn, SQL["marked"], ("parameter_refused", 0, -1)):
        event = recorded.event
        if isinstance(event, ParameterRefused):
            key = (event.endpoint, event.model, event.name, event.instead, event.how)
            refusals.setdefault(key, event)
    return tuple(refusals.values())


def newest_scoring(conn: sqlite3.Connection) -> RecordedEvent | None:
    """Return the newest scoring; None: there is none, or a later siftlog wrote it."""
    rows = recorded_rows(conn, SQL["last_marked"], ("scoring_recorded",))
    if not rows or not isinstance(rows[0].event, ScoringRecorded):
        return None
    return rows[0]


def status(conn: sqlite3.Connection) -> Status:
    """Return the status of the run.

    Raises:
        NotALog: the run never started.
    """
    first, started_us = _beginning(conn)
    run_id, created_us = conn.execute(SQL["run_header"]).fetchone()
    run = load_run_state(conn)
    active_pauses = pauses(conn, run)
    counters = dict(conn.execute(SQL["counters"]).fetchall())
    queues = _queue_counts(conn.execute(SQL["counts"]).fetchall())
    states: Counter[TaskState] = Counter()
    for queue in queues:
        states.update(queue.states)
    row = conn.execute(SQL["heartbeat"]).fetchone()
    heartbeat = (
        None if row is None else Heartbeat(at_us=row[0], pid=row[1], host=row[2])
    )
    errors: Counter[str] = Counter()
    for error in error_counts(conn):
        errors[error.error] += error.n
    reasons: dict[str, dict[str, int]] = {"skip": {}, "parse": {}, "re-ask": {}}
    served: list[tuple[str, str, int]] = []
    for kind, reason, n in conn.execute(SQL["reasons"]).fetchall():
        if kind.startswith(PREFIX):
            served.append((kind, reason, n))
        else:
            reasons[kind][reason] = n
    order = stage_order(conn)
    firsts = _first_stages(order, first)
    remaining = remaining_tasks(
        queues,
        order=list(order),
        first=firsts,
        expected=first.expected,
        consumed=run.consumed,
        is_exhausted=run.exhausted,
        replicates=first.replicates,
        ended_items=_ended_items(conn, firsts)
        if first.expected is not None and first.expected.follow_ups
        else {},
    )
    money = spending(conn)
    cost = (
        None
        if money.spent_usd is None
        else remaining_cost(remaining, queue_costs(conn), first.expected)
    )
    batches = open_batches(conn)
    so_far = UsageSoFar(
        # cached answers were no calls and used no tokens
        calls=counters.get("attempts_answered", 0) - counters.get("answers_cached", 0),
        tokens_in=counters.get("tokens_in", 0),
        tokens_out=counters.get("tokens_out", 0),
        cost_usd=money.spent_usd,
    )
    return Status(
        run_id=run_id,
        job=first.job,
        job_version=first.job_version,
        siftlog_version=first.siftlog_version,
        models=first.models,
        first=firsts,
        breaks=work_breaks(conn),
        call_times=call_times(conn),
        remaining=remaining,
        remaining_cost=cost,
        replicates=first.replicates,
        imported=first.imported,
        created_us=created_us,
        last_seq=visible_seq(conn),
        tasks=TaskCounts(
            planned=run.tasks,
            completed=states[TaskState.COMPLETED],
            failed=states[TaskState.FAILED],
            skipped=states[TaskState.SKIPPED],
            open=sum(n for state, n in states.items() if state.is_open),
            running=states[TaskState.RUNNING],
            waiting=states[TaskState.WAITING],
            unparsed=counters.get("tasks_unparsed", 0),
        ),
        attempts=AttemptCounts(
            started=counters.get("attempts_started", 0),
            answered=counters.get("attempts_answered", 0),
            cached=counters.get("answers_cached", 0) - counters.get("answers_kept", 0),
            reused=counters.get("answers_kept", 0),
            failed=counters.get("attempts_failed", 0),
            unknown=counters.get("attempts_unknown", 0) + len(lost_starts(conn)),
        ),
        queues=queues,
        replies=reply_shares(conn),
        limits=observed_limits(conn),
        pauses=active_pauses,
        errors=dict(sorted(errors.items())),
        skips=reasons["skip"],
        parse_failures=reasons["parse"],
        reasked=reasons["re-ask"],
        tokens_in=so_far.tokens_in,
        tokens_out=so_far.tokens_out,
        tokens_cached=counters.get("tokens_cached", 0),
        billing=Billing(
            unknown=counters.get("usage_unknown", 0),
            is_reserved=not first.imported,
            doubtful=counters.get("usage_doubtful", 0),
            charged=counters.get("answers_charged", 0),
            charged_usd=usd(counters.get("charged_pico", 0)),
            differing=counters.get("charges_differ", 0),
        ),
        served=served_counts(served),
        cost_usd=money.spent_usd,
        possible_usd=money.possible_usd,
        in_flight_usd=money.in_flight_usd,
        budget_usd=money.cap_usd,
        group=first.group,
        model_cost_usd={
            model: usd(cost)
            for model, cost in conn.execute(SQL["model_costs"]).fetchall()
        },
        planning_exhausted=run.exhausted,
        heartbeat=heartbeat,
        scorings=tuple(scoring.number for scoring in scorings(conn)),
        signs=LivenessSigns(
            phase=run.phase,
            phase_by=run.phase_by,
            phase_us=run.phase_us or started_us,
            paused_by=paused_by(
                active_pauses, (queue.key for queue in queues if queue.is_open)
            ),
            draining_by=run.draining_by,
            heartbeat_us=None if heartbeat is None else heartbeat.at_us,
            success_us=run.success_us,
            running=states[TaskState.RUNNING],
            p95_ms=percentiles_ms(conn.execute(SQL["latencies"]).fetchall(), [0.95])[0],
            batches=batches.count,
        ),
        why=run.phase_why,
        batches=batches,
        estimate_accuracy=estimate_accuracy(
            first.expected,
            run.consumed,
            so_far,
            done=remaining.progress.share,
            projected_usd=None
            if cost is None or money.spent_usd is None
            else money.spent_usd + cost.usd.expected,
        )
        # the estimate does not know a stage that was added later
        if first.expected is not None and run.exhausted and not added_stages(conn)
        else None,
        refused=refused_parameters(conn),
    )


def stage_order(conn: sqlite3.Connection) -> dict[str, bool]:
    """Return the stages in the order of their first tasks.

    The value tells whether that task is an item of the plan, rather than a follow-up.
    """
    rows = conn.execute(SQL["first_tasks"]).fetchall()
    order: dict[str, bool] = {}
    for stage, task, root in sorted(rows, key=itemgetter(1)):
        order.setdefault(stage, task == root)
    return order


def _ended_items(
    conn: sqlite3.Connection, stages: Iterable[str]
) -> dict[str, list[int]]:
    """Return how many tasks of each item have ended, by model."""
    ended: dict[str, list[int]] = {}
    for stage in stages:
        for model, n in conn.execute(SQL["ended_items"], (stage,)):
            ended.setdefault(model, []).append(n)
    return ended


def _first_stages(order: Mapping[str, bool], started: RunStarted) -> tuple[str, ...]:
    """Return the stages that the plan starts with, as far as they are planned."""
    if started.expected is not None:
        return tuple(started.expected.first)
    return tuple(stage for stage, is_first in order.items() if is_first)


def _queue_counts(rows: Iterable[tuple[str, str, int, int]]) -> tuple[QueueCounts, ...]:
    states_by_queue: dict[tuple[str, str], dict[TaskState, int]] = {}
    for stage, model, state, n in rows:
        states_by_queue.setdefault((stage, model), {})[TaskState(state)] = n
    return tuple(
        QueueCounts(stage=stage, model=model, states=states)
        for (stage, model), states in states_by_queue.items()
    )


def percentiles_ms(
    buckets: Sequence[tuple[int, int]], shares: Sequence[float]
) -> list[float | None]:
    """Return latencies below which *shares* of the answers are, to the bucket's 2 %.

    Args:
        buckets: (bucket, count) in ascending order.
        shares: such as 0.95.

    Returns:
        One for each share; None: there is no answer.
    """
    if not buckets:
        return [None] * len(shares)
    seen = list(accumulate(n for _, n in buckets))
    places = (bisect_left(seen, share * seen[-1]) for share in shares)
    return [float(BUCKET_RATIO ** (buckets[at][0] + 1)) for at in places]
