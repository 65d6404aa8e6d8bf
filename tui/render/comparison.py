"""Renders a comparison of runs: metrics side by side, items, the method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from store.document import plural
from tui.render.format import UNKNOWN, amount, count, duration, money
from tui.render.layout import DOT, TableColumn, one_line
from tui.render.models import short_names
from tui.sources.comparison import (
    ComparedPair,
    ComparisonChoice,
    ComparisonResult,
    ItemPair,
    MetricPair,
    PricedComparison,
    SignificanceTest,
    TaskCost,
    WinLossTie,
    Words,
)

PER = 1_000
"""Number of tasks in displayed costs: a single one often costs a hundredth of a
cent."""
COST = f"$/{PER:,} tasks"
_MANY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonCosts:
    """Costs of the tasks of both sides."""

    a: TaskCost
    b: TaskCost


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """A line of the comparison: two models, or a metric or the costs of both."""

    pair: ComparedPair
    name: str  #: name of the metric, or both models
    path: str = ""  #: of a metric
    figures: MetricPair | ComparisonCosts | None  #: None: a heading of the next lines

    @property
    def heading(self) -> str:
        """Text of a heading; empty for a line with columns."""
        return self.name if self.figures is None else ""


def rows(comparison: PricedComparison) -> Iterator[ComparisonRow]:
    """Yield the lines in the order of the command; each pair ends with its costs."""
    none = TaskCost(usd=None, tasks=0)
    for pair in comparison.compared.pairs:
        yield ComparisonRow(pair=pair, name=_pair(pair), figures=None)
        for path, metric in pair.metrics.items():
            yield ComparisonRow(
                pair=pair, name=metric.name or path, path=path, figures=metric
            )
        costs = ComparisonCosts(
            a=comparison.costs.get((pair.a.run, pair.a.model), none),
            b=comparison.costs.get((pair.b.run, pair.b.model), none),
        )
        yield ComparisonRow(pair=pair, name=COST, figures=costs)


def filter_rows(
    numbered_rows: Mapping[int, ComparisonRow], part: str
) -> dict[int, ComparisonRow]:
    """Return the metrics whose name or path contains *part*, below their models."""
    matching_rows: dict[int, ComparisonRow] = {}
    head: dict[int, ComparisonRow] = {}
    for number, row in numbered_rows.items():
        if row.figures is None:
            head = {number: row}
        elif has(f"{row.name}\n{row.path}", part):
            matching_rows |= {**head, number: row}
            head = {}
    return matching_rows


def filter_items(
    numbered_items: Mapping[int, ItemPair], part: str
) -> dict[int, ItemPair]:
    """Return the items whose keys contain *part*."""
    return {n: gap for n, gap in numbered_items.items() if has(gap.item, part)}


def has(text: str, part: str) -> bool:
    """Return whether *text* contains *part*, ignoring case."""
    return part.lower() in text.lower()


def _pair(pair: ComparedPair) -> str:
    """Return the two models; their run is in the screen's heading if it is one."""
    short = short_names((pair.a.model, pair.b.model))
    names = [
        short[side.model] if pair.a.run == pair.b.run else f"{side.run} {side.model}"
        for side in (pair.a, pair.b)
    ]
    return f"A {names[0]}  ↔  B {names[1]}"


def number(value: float | None, *, is_signed: bool = False) -> str:
    """Format a metric's value, or a difference, in at most six characters.

    >>> number(0.91249), number(-0.35, is_signed=True), number(12_345.6), number(None)
    ('0.912', '−0.350', '12 k', '-')
    """
    if value is None:
        return UNKNOWN
    size = abs(value)
    # larger values need fewer decimals: the leading digits matter
    decimals = sum(size < limit for limit in (9.9995, 99.995, 999.95))
    figure = f"{size:,.{decimals}f}" if size < _MANY - 0.5 else amount(size)
    if not figure.strip("0."):
        return figure  # a value rounded to zero has no sign
    if value < 0:
        return f"−{figure}"
    return f"+{figure}" if is_signed else figure


def _dollars(usd: float | None) -> str:
    """Format dollars in at most six characters; `?` if unknown.

    >>> _dollars(2.1985), _dollars(0.0061), _dollars(1204.5), _dollars(0.0)
    ('$2.20', '$0.006', '$1,204', '$0.00')
    """
    if usd is None:
        return money(None)
    decimals = 3 if 0 < usd < _FEW_CENTS else 2 if usd < _LARGE else 0
    return f"${usd:,.{decimals}f}" if usd < _MANY - 0.5 else f"${amount(usd)}"


_FEW_CENTS, _LARGE = 0.0995, 99.995
"""Dollars below which tenths of cents are shown, and from which cents are omitted."""


def _some(n: int) -> str:
    """Format a count; from ten thousand on in thousands."""
    return count(n) if n < _MANY else amount(n)


def _value(row: ComparisonRow, *, is_b: bool) -> str:
    match row.figures:
        case MetricPair(a=a, b=b):
            return number(b if is_b else a)
        case ComparisonCosts(a=before, b=after):
            return _dollars(per_thousand(after if is_b else before))
        case None:
            return ""


def per_thousand(cost: TaskCost) -> float | None:
    """Return dollars per thousand tasks; None: unknown, or no tasks yet."""
    return None if cost.usd is None or not cost.tasks else PER * cost.usd / cost.tasks


def _difference(row: ComparisonRow) -> str:
    match row.figures:
        case MetricPair(difference=difference):
            return number(difference, is_signed=True)
        case ComparisonCosts(a=a, b=b):
            before, after = per_thousand(a), per_thousand(b)
            if before is None or after is None:
                return money(None)
            sign = "−" if after < before else "+" if after > before else ""
            return f"{sign}{_dollars(abs(after - before))}"
        case None:
            return ""


def _interval(row: ComparisonRow) -> str:
    match row.figures:
        case MetricPair(lo=float() as lo, hi=float() as hi):
            return f"{number(lo, is_signed=True)} … {number(hi, is_signed=True)}"
        case MetricPair():
            return UNKNOWN
        case _:
            return ""


_DECIDED = {"better", "worse"}
"""Verdicts with a winner."""


def _verdict(row: ComparisonRow) -> str:
    match row.figures:
        case MetricPair(n=0):
            return "no pairs"
        case MetricPair(verdict=verdict):
            return f"B {verdict}" if verdict in _DECIDED else verdict
        case _:
            return ""


def _verdict_tone(row: ComparisonRow) -> str:
    """Highlight only verdicts with a winner."""
    match row.figures:
        case MetricPair(verdict=verdict) if verdict in _DECIDED:
            return ""
        case _:
            return "dim"


def _win_loss_tie(row: ComparisonRow) -> str:
    match row.figures:
        case MetricPair(standing=WinLossTie(wins=wins, losses=losses, ties=ties)):
            return "/".join(map(_some, (wins, losses, ties)))
        case MetricPair():
            return UNKNOWN
        case _:
            return ""


def _pairs(row: ComparisonRow) -> str:
    return _some(row.figures.n) if isinstance(row.figures, MetricPair) else ""


def _p(row: ComparisonRow) -> str:
    match row.figures:
        case MetricPair(test=SignificanceTest(p_holm=p)):
            return f"{p:.2g}"
        case MetricPair():
            return UNKNOWN
        case _:
            return ""


def _figure(
    title: str, width: int, text: Callable[[ComparisonRow], str], *, drops: int = 0
) -> TableColumn[ComparisonRow]:
    return TableColumn(title=title, width=width, text=text, is_right=True, drops=drops)


METRIC_COLUMNS: tuple[TableColumn[ComparisonRow], ...] = (
    TableColumn(
        title="metric",
        width=16,
        text=lambda row: row.name,
        grows=True,
        is_middle_cut=True,
    ),
    _figure("A", 6, lambda row: _value(row, is_b=False)),
    _figure("B", 6, lambda row: _value(row, is_b=True)),
    _figure("B - A", 7, _difference),
    _figure("interval", 15, _interval),
    TableColumn(title="verdict", width=9, text=_verdict, tone=_verdict_tone),
    _figure("pairs", 5, _pairs),
    _figure("won/lost/tied", 16, _win_loss_tie, drops=1),
    _figure("p (Holm)", 8, _p, drops=3),
)


def about(row: ComparisonRow) -> str:
    """Describe a line beyond its columns."""
    match row.figures:
        case MetricPair() as metric:
            names = dict.fromkeys((row.name, row.path))
            return " · ".join((*names, *_about_metric(metric)))
        case ComparisonCosts(a=a, b=b):
            tasks = f"{count(a.tasks)} tasks ended in A, {count(b.tasks)} in B"
            return f"{COST} · {tasks} · as the logs had it then"
        case None:
            return " · ".join(_about_pair(row.pair))


def _about_metric(metric: MetricPair) -> Iterator[str]:
    pairs = f"{count(metric.n)} pairs in {count(metric.clusters)} {metric.cluster}s"
    yield f"{pairs}, only A {count(metric.only_a)}, only B {count(metric.only_b)}"
    if metric.standing is not None:
        won = metric.standing
        yield f"won {count(won.wins)}, lost {count(won.losses)}, tied {count(won.ties)}"
    if metric.undefined:
        yield f"{count(metric.undefined)} without a value"
    if metric.few:
        yield f"{count(metric.clusters)} {metric.cluster}s are too few for a winner"
    elif metric.lo is None or metric.hi is None:
        yield "no interval, so neither is called better"
    if metric.test is None:
        yield "no test, so neither is called better"
    else:
        yield f"p {metric.test.p:.2g}: {metric.test.name}"
    yield metric.definition


def _about_pair(pair: ComparedPair) -> Iterator[str]:
    yield f"{count(len(pair.metrics))} metrics"
    if not any(metric.n for metric in pair.metrics.values()):
        yield "nothing in common: no item has a value on both sides"
    for name, paths in (("A", pair.only_a), ("B", pair.only_b)):
        if paths:
            yield f"{count(len(paths))} that only {name} has"
    if pair.not_compared:
        yield f"{count(len(pair.not_compared))} that cannot be compared"
    yield "enter shows all"


def about_items(row: ComparisonRow, n: int) -> str:
    """Describe a list of items.

    Args:
        row: the metric in which they differ.
        n: number of items.
    """
    differ = "item differs" if n == 1 else "items differ"
    return f"{row.name} · {_pair(row.pair)} · {count(n)} {differ} · enter: its tasks"


ITEM_COLUMNS: tuple[TableColumn[ItemPair], ...] = (
    TableColumn(title="item", width=30, text=lambda gap: gap.item, grows=True),
    TableColumn(title="A", width=8, text=lambda gap: number(gap.a), is_right=True),
    TableColumn(title="B", width=8, text=lambda gap: number(gap.b), is_right=True),
    TableColumn(
        title="B - A",
        width=8,
        text=lambda gap: number(gap.b - gap.a, is_signed=True),
        is_right=True,
    ),
)


_REASON = 600
"""Maximum cells of a reason: some lines, with the next keys below."""


def sides(words: Words) -> str:
    """Describe the compared sides.

    >>> sides(("first", "second:m")), sides(("first",))
    ('A first  ↔  B second:m', 'the models of first')
    """
    if len(words) == 1:
        return f"the models of {words[0]}"
    a, b = words
    return f"A {a}  ↔  B {b}"


def waiting(activity: str, seconds: float) -> str:
    """Describe a running computation, with its duration and priority."""
    return (
        f"{activity}: {duration(seconds)} so far.\n\nA separate "
        "low-priority process reads the logs, so the runs are not "
        "disturbed. Stop it with esc."
    )


def stopped(activity: str, seconds: float) -> str:
    """Describe a stopped computation."""
    return f"{activity}: stopped after {duration(seconds)}"


def failed(sentence: str) -> str:
    """Describe why there is nothing to show, and the next keys."""
    reason = one_line(sentence, _REASON)
    return (
        f"{reason}.\n\nTry again with r, choose another one with b, or go back "
        "with esc."
    )


def no_choice(job: str, runs_dir: str, typed: str, *, is_whole: bool) -> str:
    """Describe why there is nothing to choose, and the next step.

    Args:
        job: job of the watched run.
        runs_dir: the folder whose runs are offered.
        typed: the input; empty: none.
        is_whole: whether all runs of the folder were read.
    """
    if typed:
        return f"No listed side matches {typed}: enter compares with it as typed."
    if not is_whole:
        return "Looking for runs …"
    return (
        f"No other run of {job} in {runs_dir}: start one with 'siftlog run {job}', or "
        "press / and type the folder of a run."
    )


def method(compared: ComparisonResult) -> str:
    """Describe the method of intervals and p-values."""
    metrics = [metric for pair in compared.pairs for metric in pair.metrics.values()]
    clusters = ", ".join(sorted({metric.cluster for metric in metrics}))
    tests = sum(metric.test is not None for metric in metrics)
    level = f"{100 * compared.level:.4g} % intervals"
    draws = f"{count(compared.b)} draws by {clusters}"
    return f"{level} of {draws} · Holm over {count(tests)} tests"


def amount_compared(compared: ComparisonResult) -> str:
    """Describe the number of metrics and pairs of models."""
    pairs = compared.pairs
    metrics = f"{count(sum(len(pair.metrics) for pair in pairs))} metrics"
    of = "" if len(pairs) == 1 else f" of {len(pairs)} pairs of models"
    return f"{metrics}{of}, paired by item"


def as_of(compared: ComparisonResult, now: Mapping[str, int]) -> str:
    """Describe the last compared events, and newer ones.

    Args:
        compared: the displayed comparison.
        now: the last event of each run by id, if known.
    """
    first = compared.pairs[0]
    sides = {"A": first.a} | ({"B": first.b} if first.b.run != first.a.run else {})
    positions = " and ".join(f"{count(s.seq)} of {name}" for name, s in sides.items())
    since = sum(max(0, now.get(s.run, 0) - s.seq) for s in sides.values())
    news = f" · {plural(since, 'event')} since: r" if since else ""
    return f"as of event {positions}{news}"


def notes(compared: ComparisonResult) -> str:
    """Return notes that affect the comparison but not its numbers."""
    several = f"{len(compared.notes)} notes, enter on the first line shows them: "
    lead = several if len(compared.notes) > 1 else "note: "
    return lead + " · ".join(compared.notes) if compared.notes else ""


def pair_details(compared: ComparisonResult, pair: ComparedPair) -> str:
    """Describe two models beyond the table."""
    lines = [
        f"A  {pair.a.run}  {pair.a.model}",
        f"B  {pair.b.run}  {pair.b.model}",
        "",
        f"{method(compared)}; only items that both sides have.",
        *(f"note: {note}" for note in compared.notes),
    ]
    for name, paths in (("A", pair.only_a), ("B", pair.only_b)):
        lines += (f"only {name} has {path}" for path in paths)
    lines += (
        f"not compared: {path}: {reason}" for path, reason in pair.not_compared.items()
    )
    for path, metric in pair.metrics.items():
        names = dict.fromkeys((metric.name or path, path))
        lines += ["", f"{DOT.join(names)}, {count(metric.n)} pairs", metric.definition]
    return "\n".join(lines)


def tasks_of(pair: ComparedPair, item: str) -> tuple[str, ...]:
    """Return filters for the tasks of an item in A's run, the best first.

    A task for several items has another key, which starts with the same document.
    """
    models = f" model:{_quoted(pair.a.model)}" if pair.a.run != pair.b.run else ""
    keys = dict.fromkeys((item, item.partition("/")[0]))
    return tuple(f"item:{_quoted(key)}{models}" for key in keys)


def _quoted(value: str) -> str:
    """Quote *value* for a filter; only its longest part without quotes is used.

    >>> _quoted('a "b'), _quoted("PMC1/q:1")
    ('"a "', 'PMC1/q:1')
    """
    part = max(value.split('"'), key=len)
    return part if part.isprintable() and " " not in part and part else f'"{part}"'


def filter_choices(
    numbered_choices: Mapping[int, ComparisonChoice], part: str
) -> dict[int, ComparisonChoice]:
    """Return the choices whose runs or models contain *part*."""
    return {
        n: choice
        for n, choice in numbered_choices.items()
        if has(" ".join(choice.words), part)
    }


def about_choice(choice: ComparisonChoice) -> str:
    """Describe in full what would be compared."""
    return f"enter compares {sides(choice.words)} · {_state(choice)}"


def _state(choice: ComparisonChoice) -> str:
    return choice.state.replace("_", " ")


def _ended(choice: ComparisonChoice) -> str:
    return f"{count(choice.ended)} of {count(choice.planned)}"


CHOICE_COLUMNS: tuple[TableColumn[ComparisonChoice], ...] = (
    TableColumn(
        title="A, of this run", width=24, text=lambda choice: choice.a, grows=True
    ),
    TableColumn(title="B", width=40, text=lambda choice: choice.b, grows=True),
    TableColumn(title="run", width=12, text=_state, drops=1),
    TableColumn(title="done", width=17, text=_ended, is_right=True, drops=2),
)
