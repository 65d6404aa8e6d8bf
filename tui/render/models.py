"""Renders the models of a run: limits, their use, bottlenecks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual.content import Content

from store.fold_state import US_PER_S
from store.read.limits import ObservedLimits
from store.read.live import MinuteRow
from store.task import TaskState
from tui.render.charts import bar
from tui.render.format import UNKNOWN, duration, latency, money, percent, tight
from tui.render.layout import (
    PANEL_GAP,
    PanelColumn,
    Room,
    lines_of,
    middle_cut,
    table_lines,
)
from tui.sources.run_snapshot import US_PER_MINUTE, RunSnapshot, once


def term(key: str, value: str) -> str:
    r"""Return a term of the filter language of `store.query`.

    A name with a quote cannot be expressed: the term then matches every value of the
    key.

    >>> term("stage", "ask"), term("err", "two words")
    ('stage:ask', 'err:"two words"')
    """
    if '"' in value or not value:
        return f"{key}:*"
    is_plain = value.isprintable() and not any(map(str.isspace, value))
    return f"{key}:{value}" if is_plain else f'{key}:"{value}"'


FULL = 0.95
"""Share of a limit from which it counts as the bottleneck."""
BAR, LONGEST = 3, 16
"""Minimum and maximum length of a bar."""
NARROW = 52
"""Cells below which the column of refusals is omitted."""
_WIDTHS = {"in flight": 9, "req/min": 9, "tok/min": 7, "429/m": 5, "wait": 7}
_MORE = {"p50": 6, "p95": 6, "cost": 9}
"""Columns that are added while there is room, each with its width."""
_PAUSED = "$state-waiting bold"
REFUSED = "RateLimited"
"""Error class of status 429 in `runner.errors`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUse:
    """Use of a limit."""

    used: float | None  #: None: no complete minute, or no process
    limit: float | None  #: in force; None: there is no limit
    ceiling: float | None = None  #: set by the user, if the one in force is lower

    @property
    def share(self) -> float | None:
        """0 to 1, or briefly above; None if unknown."""
        return self.used / self.limit if self.limit and self.used is not None else None

    @property
    def is_full(self) -> bool:
        """Whether it is the bottleneck."""
        return self.share is not None and self.share >= FULL

    def usage_text(self, width: int, *, has_share: bool = False) -> str:
        """Format use, limit in force and ceiling, as far as they fit: 2/3 of 4."""
        if has_share and self.limit:
            return percent(self.share)
        used = tight(self.used)
        text = f"{used}/{tight(self.limit)}" if self.limit else used
        whole = text if self.ceiling is None else f"{text} of {tight(self.ceiling)}"
        return next((t for t in (whole, text) if len(t) <= width), used)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """One model, over all stages."""

    model: str
    name: str  #: without provider if unambiguous
    calls: LimitUse
    requests: LimitUse  #: per minute
    tokens: LimitUse  #: per minute
    refused: int | None  #: in the last complete minute; None: unknown
    wait_s: float | None  #: remaining pause requested by its endpoint
    is_paused: bool  #: by a user, in all stages
    p50_ms: float | None  #: of its latest answers
    p95_ms: float | None
    cost_usd: float | None  #: of its recorded answers; None: a price is unknown


@once
def model_rows(snapshot: RunSnapshot) -> list[ModelRow]:
    """Return the models that have planned tasks."""
    limits = {seen.model: seen for seen in snapshot.status.limits}
    minute = last_minute(snapshot)
    is_known = snapshot.rate is not None and bool(snapshot.recent_minutes)
    refused = _refused(snapshot) if is_known else None
    recent = snapshot.facts.answers.models if snapshot.facts.answers else ()
    latest = {answers.model: answers for answers in recent}
    rows = []
    for model, name in names_of(snapshot).items():
        seen = limits.get(model)
        running = sum(
            queue.states.get(TaskState.RUNNING, 0)
            for queue in snapshot.status.queues
            if queue.model == model
        )
        used = [row for row in minute if row.model == model]
        requests = sum(row.started for row in used) if is_known else None
        tokens = sum(row.tokens_in + row.tokens_out for row in used)
        rows.append(
            ModelRow(
                model=model,
                name=name,
                calls=LimitUse(
                    used=running,
                    limit=seen.concurrency if seen else None,
                    ceiling=seen.ceiling if seen and seen.is_lowered else None,
                ),
                requests=LimitUse(used=requests, limit=seen.rpm if seen else None),
                tokens=LimitUse(
                    used=tokens if is_known else None,
                    limit=seen.tpm if seen else None,
                ),
                refused=None if refused is None else refused.get(model, 0),
                wait_s=_wait_s(snapshot, seen),
                is_paused=any(
                    pause.stage is None and pause.model in {None, model}
                    for pause in snapshot.status.pauses
                ),
                p50_ms=latest[model].p50_ms if model in latest else None,
                p95_ms=latest[model].p95_ms if model in latest else None,
                cost_usd=None
                if snapshot.status.cost_usd is None
                else snapshot.status.model_cost_usd.get(model, 0.0),
            )
        )
    return rows


def models_height(snapshot: RunSnapshot) -> int:
    """Return the lines that all models take."""
    return 1 + max(1, len(names_of(snapshot)))


def model_goals(snapshot: RunSnapshot) -> list[str]:
    """Return the filter of each row."""
    return [term("model", model) for model in names_of(snapshot)]


def models(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw a row for each model."""
    planned_models = model_rows(snapshot)
    if not planned_models:
        return lines_of(["No model has been called yet."], room)
    longest = max(len("model"), *(len(row.name) for row in planned_models))
    widths = dict(_WIDTHS)
    if room.width < NARROW:
        del widths["429/m"]
    space = room.width - sum(width + len(PANEL_GAP) for width in widths.values())
    for head, width in _MORE.items():
        if space - longest - len(PANEL_GAP) - width >= 3 * (BAR + 1):
            widths[head] = width
            space -= width + len(PANEL_GAP)
    name = PanelColumn("model", max(6, min(longest, space)), is_right=False)
    # three bars, each with a cell before its figures; too short ones are omitted
    bars = min(LONGEST, (space - name.width) // 3 - 1)
    bars = bars if bars >= BAR else 0
    lead = bars + 1 if bars else 0
    barred = {"in flight", "req/min", "tok/min"}
    columns = [
        name,
        *(
            PanelColumn(head, width + (lead if head in barred else 0))
            for head, width in widths.items()
        ),
    ]
    rows: list[list[str | Content]] = []
    for row in planned_models:
        cells: list[str | Content] = [middle_cut(row.name, name.width)]
        for use, head in (
            (row.calls, "in flight"),
            (row.requests, "req/min"),
            (row.tokens, "tok/min"),
        ):
            usage = use.usage_text(widths[head], has_share=head == "tok/min")
            cells.append(_barred(use, usage.rjust(widths[head]), bars, room))
        if "429/m" in widths:
            cells.append(tight(row.refused))
        wait = UNKNOWN if snapshot.is_ended else "none"
        wait = duration(row.wait_s) if row.wait_s else wait
        is_held = row.is_paused and not snapshot.is_ended
        paused = Content.styled("paused".rjust(widths["wait"]), _PAUSED)
        cells.append(paused if is_held else wait)
        further = {
            "p50": latency(row.p50_ms),
            "p95": latency(row.p95_ms),
            "cost": money(row.cost_usd),
        }
        cells += [text for head, text in further.items() if head in widths]
        rows.append(cells)
    return table_lines(columns, rows, room)


def _barred(use: LimitUse, usage: str, width: int, room: Room) -> Content:
    """Draw a bar and its figures, both in a warning colour if full."""
    style = "$state-waiting bold" if use.is_full else ""
    if not width:
        return Content.styled(usage, style)
    limit_bar = " " * width if use.share is None else bar(use.share, width, room.glyphs)
    tone = "$state-waiting" if use.is_full else "$state-done"
    return Content.assemble((limit_bar, tone), " ", (usage, style))


def short_names(models: Iterable[str]) -> dict[str, str]:
    """Return models by name, without providers if unambiguous.

    >>> short_names(["openai/m", "openai/n"])
    {'openai/m': 'm', 'openai/n': 'n'}
    """
    names = list(dict.fromkeys(models))
    short = {name: name.rpartition("/")[2] for name in names}
    return short if len(set(short.values())) == len(names) else {n: n for n in names}


@once
def names_of(snapshot: RunSnapshot) -> dict[str, str]:
    """Return the display names of the run's models."""
    return short_names(queue.model for queue in snapshot.status.queues)


def limited_by(snapshot: RunSnapshot) -> str:
    """Describe the current bottleneck in a few words; empty if there is none.

    It is that of the model that ends last, if that is known.
    """
    rows = model_rows(snapshot)
    left_s = snapshot.forecast.models if snapshot.forecast else {}
    if left_s:
        last = max(left_s, key=left_s.__getitem__)
        rows = [row for row in rows if row.model == last]
    for row in rows:
        for name, use in (("tokens/min", row.tokens), ("requests/min", row.requests)):
            if use.is_full:
                return f"{name} of {row.name}"
    full = next((row for row in rows if row.calls.is_full), None)
    if full is None:
        return ""
    if full.calls.ceiling is None:
        return f"calls at a time of {full.name}"
    # the learned limit is lower: raising what the user allows would change nothing
    limit, ceiling = tight(full.calls.limit), tight(full.calls.ceiling)
    return f"calls at a time of {full.name} ({limit} of at most {ceiling})"


def last_minute(snapshot: RunSnapshot) -> list[MinuteRow]:
    """Return the rows of the last complete minute."""
    last = snapshot.now_us // US_PER_MINUTE - 1
    return [row for row in snapshot.facts.minutes if row.t == last]


def _refused(snapshot: RunSnapshot) -> dict[str, int] | None:
    """Count answers with status 429 in the last complete minute, by model."""
    if snapshot.facts.failures is None:
        return None
    last = snapshot.now_us // US_PER_MINUTE - 1
    refusals: dict[str, int] = {}
    for row in snapshot.facts.failures:
        if row.t == last and row.error == REFUSED:
            refusals[row.model] = refusals.get(row.model, 0) + row.n
    return refusals


def _wait_s(snapshot: RunSnapshot, seen: ObservedLimits | None) -> float | None:
    until_us = seen.paused_until_us if seen else None
    if until_us is None or until_us <= snapshot.now_us:
        return None
    return (until_us - snapshot.now_us) / US_PER_S
