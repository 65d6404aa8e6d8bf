"""Renders a run: its header, its panels, and an overview for small screens.

A drawing is a pure function of a snapshot and the available room; content that does not
fit is counted. Untrusted text goes through `tui.render.layout`; markup is not parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from textual.content import Content

from store.document import plural
from store.task import TaskState
from tui.render import errors, models, progress, quality, result
from tui.render.charts import bar
from tui.render.errors import error_rows, last_words
from tui.render.format import UNKNOWN, duration, money, percent, task_name
from tui.render.glyphs import Glyphs
from tui.render.layout import (
    DOT,
    MUTED,
    Room,
    joined,
    lines_of,
    one_line,
    wrapped_lines,
)
from tui.render.models import limited_by, names_of
from tui.render.progress import rate_words, stage_rows
from tui.render.quality import warnings
from tui.render.sentences import (
    budget_stop,
    eta,
    eta_unpaused,
    may_be_billed,
    pause_words,
    sentence,
    span,
    spent,
)
from tui.sources.run_snapshot import RunSnapshot

_CHART = 6
"""Minimum lines for the rate; with fewer, it is omitted."""
_LEAST_BAR = 8
"""Minimum cells of the overall bar."""


def overview(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw stages and models, then lines about the rest; then the rate."""
    if not stage_rows(snapshot):
        return lines_of(["Nothing is planned yet."], room)
    alerts = _quality(snapshot, room)
    texts = [*_replies(snapshot), *_errors(snapshot), *_oldest(snapshot)]
    rows = models.models_height(snapshot) + progress.stages_height(snapshot)
    # a long message takes a second line if one is free
    free = max(0, room.height - rows - len(alerts) - len(texts))
    spare = min(2, free - _CHART if free >= _CHART else free)
    words = wrapped_lines(texts, replace(room, has_lead=False), len(texts) + spare)
    tail = [*alerts, *words.split("\n")]
    space = max(4, room.height - len(tail))
    of_models = min(models.models_height(snapshot), space // 2)
    of_stages = min(progress.stages_height(snapshot), space - of_models)
    parts = [
        progress.stages(snapshot, replace(room, height=of_stages)),
        models.models(snapshot, replace(room, height=of_models)),
        lines_of(tail, room),
    ]
    left = room.height - of_stages - of_models - len(tail)
    if left >= _CHART:
        title = lines_of([Content.styled("completed per minute", MUTED)], room)
        parts += [title, progress.rate(snapshot, replace(room, height=left - 1))]
    lines = Content("\n").join(parts).split("\n")
    return Content("\n").join(lines[: max(1, room.height)])


def _quality(snapshot: RunSnapshot, room: Room) -> list[str | Content]:
    """Return at most two warnings, or that there are none."""
    texts = list(warnings(snapshot))
    if not texts:
        return []
    sign = room.glyphs.stalled
    more = f" (and {len(texts) - 2} more)" if len(texts) > 2 else ""  # noqa: PLR2004
    return [
        Content.styled(one_line(f"{sign} {text}", room.width), "$state-waiting bold")
        for text in [texts[0], *(text + more for text in texts[1:2])]
    ]


def _replies(snapshot: RunSnapshot) -> list[str]:
    """Return the faults of all replies; a reply may have several."""
    replies = snapshot.status.replies
    n = sum(of.replies for of in replies)
    if not n:
        return []
    faults = {
        "unparsed": sum(of.unparsed for of in replies),
        "truncated": sum(of.truncated for of in replies),
        "refused": sum(of.withheld for of in replies),
        "empty": sum(of.empty for of in replies),
    }
    counts = [f"{word} {k:,}" for word, k in faults.items() if k or word == "unparsed"]
    return [f"replies: {n:,}{DOT}{DOT.join(counts)}"]


def _errors(snapshot: RunSnapshot) -> list[str]:
    failures = error_rows(snapshot)
    if not failures:
        return ["errors: none"]
    is_known = failures[0].lately is not None and not snapshot.is_ended
    counts = [(row.error, row.lately if is_known else row.all) for row in failures]
    labels = [f"{error} {n:,}" for error, n in counts if n]
    window = "10 min" if is_known else "whole run"
    lines = [f"errors, {window}: {' · '.join(labels) or 'none'} · p lists their tasks"]
    last = last_words(snapshot)
    return [*lines, last] if last else lines


def _oldest(snapshot: RunSnapshot) -> list[str]:
    if snapshot.is_ended:
        return []
    for call in snapshot.facts.oldest:
        age = duration(snapshot.age_s(call.since_us))
        model = names_of(snapshot).get(call.model, call.model)
        call_text = f"{task_name(call.task)} {call.stage} {model} {age}"
        after = f" after {call.error}" if call.error else ""
        return [f"oldest in flight: {call_text}, try {call.attempt}{after}"]
    return ["oldest in flight: none"]


Draw: TypeAlias = Callable[[RunSnapshot, Room], Content]
Goals: TypeAlias = Callable[[RunSnapshot], Sequence[str]]
Height: TypeAlias = Callable[[RunSnapshot], int | None]


def nowhere(snapshot: RunSnapshot) -> Sequence[str]:
    """Return no goals: the rows of this panel lead to no tasks."""
    del snapshot
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPanel:
    """One panel of the screen."""

    name: str
    title: str
    draw: Draw
    goals: Goals = nowhere  #: the filter of each row, in order
    letter: str = ""  #: selects the panel after the jump key
    #: lines that all its content takes; None: it takes what is left
    height: Height | None = None
    drops: int = 0  #: the highest is dropped first if lines are scarce; 0: never
    is_of_work: bool = False  #: about work to do: not shown of an ended run


OVERVIEW = RunPanel(name="overview", title="overview", draw=overview, letter="v")
RESULT = RunPanel(
    name="result",
    title="result",
    draw=result.result,
    height=result.result_height,
    letter="r",
)
UNFINISHED = RunPanel(
    name="missing",
    title="what is missing, and how to go on",
    draw=result.unfinished,
    height=result.unfinished_height,
    letter="i",
)
ENDINGS = (RESULT, UNFINISHED)
"""A run that has ended begins with one of them."""
LEFT = (
    RunPanel(
        name="rate",
        title="tasks completed per minute",
        draw=progress.rate,
        letter="p",
        height=progress.rate_height,
        drops=2,
    ),
    RunPanel(
        name="stages",
        title="stages",
        draw=progress.stages,
        goals=progress.stage_goals,
        letter="s",
        height=progress.stages_height,
        is_of_work=True,
    ),
    RunPanel(
        name="models",
        title="models, last full minute",
        draw=models.models,
        goals=models.model_goals,
        letter="m",
        height=models.models_height,
        is_of_work=True,
    ),
    RunPanel(
        name="quality",
        title=quality.TITLE,
        draw=quality.quality,
        goals=quality.quality_goals,
        letter="u",
        height=quality.quality_height,
        drops=1,
    ),
    RunPanel(
        name="errors",
        title="errors, last 10 min and whole run · p lists their tasks",
        draw=errors.errors,
        goals=errors.error_goals,
        letter="e",
        height=errors.errors_height,
    ),
)
RIGHT = (
    RunPanel(name="latency", title="latency", draw=progress.latencies, letter="l"),
    RunPanel(
        name="cost",
        title="cost",
        draw=progress.cost,
        letter="c",
        height=progress.cost_height,
    ),
    RunPanel(
        name="oldest",
        title="oldest in flight",
        draw=progress.oldest,
        goals=progress.oldest_goals,
        letter="o",
        height=progress.oldest_height,
        is_of_work=True,
    ),
)
RUN_PANELS = (OVERVIEW, *ENDINGS, *LEFT[1:], LEFT[0], *RIGHT)
"""In the order of the tab key: those with rows come first."""


def panels_of(snapshot: RunSnapshot) -> list[RunPanel]:
    """Return the panels that a run has, in the order of the tab key.

    One that has ended begins with its result.
    """
    if not snapshot.is_ended:
        return [panel for panel in RUN_PANELS if panel not in ENDINGS]
    first = RESULT if snapshot.state in {"finished", "cancelled"} else UNFINISHED
    rest = [p for p in RUN_PANELS if not p.is_of_work and p not in ENDINGS]
    return [first, *rest]


#: Style of a state's word; others look like running.
_STYLES = {
    "finished": "$state-done",
    "stalled": "$state-failed bold",
    "lost": "$state-failed bold",
    "budget_stop": "$state-waiting bold",
    "paused": "$state-waiting bold",
    "quiet": "$state-waiting",
    "draining": "$state-waiting",
}


#: The next step if the sentence names no command.
_NEXT = {
    "quiet": "1 lists the other runs",
    "stalled": "t lists the tasks, e the events",
    "draining": "q quits, and the run continues",
    "cancelled": "t lists the tasks",
    "finished": "t lists the tasks",
}


def sign_of(state: str, glyphs: Glyphs) -> str:
    """Return the glyph of a run's state."""
    if state in {"stalled", "lost", "budget_stop"}:
        return glyphs.stalled
    if state in {"paused", "draining", "drained", "cancelled"}:
        return glyphs.paused
    done = TaskState.COMPLETED if state == "finished" else TaskState.RUNNING
    return glyphs.states[done]


def state_of(snapshot: RunSnapshot, glyphs: Glyphs) -> Content:
    """Render a run's state: glyph, word, and colour."""
    state = snapshot.state
    word = f"{sign_of(state, glyphs)} {state.replace('_', ' ')}"
    return Content.styled(word, _STYLES.get(state, "$state-running bold"))


def header(snapshot: RunSnapshot, room: Room, *, is_read_only: bool = False) -> Content:
    """Draw three lines: the run and its state, its progress, what may need the user."""
    third = _third(snapshot, room, is_read_only=is_read_only)
    return Content("\n").join(
        [_first(snapshot, room), progress_line(snapshot, room), third]
    )


def _first(snapshot: RunSnapshot, room: Room) -> Content:
    status = snapshot.status
    heartbeat_s = snapshot.heartbeat_s
    alive = (
        ""
        if snapshot.is_ended or heartbeat_s is None
        else f" (heartbeat {duration(heartbeat_s)})"
    )
    name = one_line(status.run_id, max(12, room.width // 3))
    job = one_line(f" · {status.job} {status.job_version}", room.width // 3)
    if snapshot.is_ended:
        age = f"  {duration(snapshot.age_s(snapshot.worked_until_us))} ago"
    else:
        age = f"  for {duration(snapshot.age_s(snapshot.created_us))}"
    first = Content.assemble(
        (name, "bold"), job, "  ", state_of(snapshot, room.glyphs), alive, age
    )
    names = DOT.join(names_of(snapshot).values())
    # untrusted names are longer when they are escaped: measured as they are shown
    by_model = one_line(names, room.width)
    if room.width - first.cell_length >= len(by_model) + len(DOT):
        first = Content.assemble(first, f"{DOT}{by_model}" if by_model else "")
    return first.truncate(room.width, ellipsis=True)


def progress_line(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw the overall bar with progress, time left, rate and cost.

    The bar takes what the figures leave.
    """
    share = snapshot.share
    figures = [f"{percent(share, tenths=True):>7}"]
    if snapshot.is_ended:
        figures.append(f"took {duration(snapshot.facts.worked_s)}")
    else:
        figures.append(f"left {eta(snapshot)}")
        figures += filter(UNKNOWN.__ne__, [rate_words(snapshot)])
    cost = f"cost {spent(snapshot)}"
    text = "  ".join([*figures, cost])
    if len(text) > room.width and snapshot.status.pauses and not snapshot.is_ended:
        # the cost is not cut; the line below says what is paused
        text = "  ".join([figures[0], f"left unpaused {eta_unpaused(snapshot)}", cost])
    width = room.width - len(text) - 1
    if width < _LEAST_BAR:
        return Content.styled(one_line(text.strip(), room.width), "bold")
    drawn = bar(share or 0.0, width, room.glyphs)
    return Content.assemble((drawn, "$state-done"), " ", (text, "bold"))


_PAUSABLE = frozenset({"paused", "live"})


def _notice(snapshot: RunSnapshot, room: Room, *, is_read_only: bool) -> str:
    """Explain the state, with a key for the next step; empty if all is well."""
    notice = sentence(snapshot)
    if notice and snapshot.status.pauses and snapshot.state in _PAUSABLE:
        if is_read_only:
            return notice
        words = pause_words(snapshot)
        whole = f"{words}; P resumes it"
        # the key is never cut
        return whole if len(whole) <= room.width else f"P resumes{DOT}{words}"
    key = _NEXT.get(snapshot.state, "")
    if notice and key and len(notice) + len(key) + len(DOT) <= room.width:
        return f"{notice}{DOT}{key}"
    return notice


def _third(snapshot: RunSnapshot, room: Room, *, is_read_only: bool) -> Content:
    notice = _notice(snapshot, room, is_read_only=is_read_only)
    if notice:
        is_well = snapshot.state == "finished" and not snapshot.status.tasks.failed
        style = "" if is_well else "$state-waiting"
        return Content.styled(one_line(notice, room.width), style)
    remaining = snapshot.progress.remaining
    few = round(remaining.low)
    about = f"{plural(round(remaining.expected), 'task')} remaining"
    if remaining.high is None:
        about += f" (at least {few:,})"
    elif few != (many := round(remaining.high)):
        about += f" ({few:,} to {many:,})"
    parts = [about]
    limit, projected = limited_by(snapshot), snapshot.comes_to_usd
    if limit:
        parts.append(f"limited by {limit}")
    parts += filter(None, [budget_stop(snapshot)])
    if projected is not None:
        parts.append(f"projected {span(projected, money)}")
    if snapshot.of_best is not None:
        parts.append(f"{percent(snapshot.of_best)} of the best 10 min")
    parts += filter(None, [may_be_billed(snapshot)])
    return Content(joined(parts, room.width))
