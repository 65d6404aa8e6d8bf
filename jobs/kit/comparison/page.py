"""Renders a comparison for a terminal: a table, what qualifies it, a conclusion.

The table has as many columns as fit; at 80 cells, a metric takes one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jobs.kit.comparison.difference import ComparedMetric
from jobs.kit.comparison.models import (
    ComparedModels,
    ComparisonOptions,
    Side,
    family,
)
from jobs.kit.comparison.pairing import ItemGap
from jobs.kit.comparison.pareto_front import ParetoFront
from jobs.kit.metrics import Agreement, Interval
from jobs.kit.text_format import UNDEFINED, ends, fixed, plural
from store.document import (
    WIDTH,
    Block,
    Cell,
    Column,
    Fact,
    Numbers,
    PageText,
    TableBlock,
    Words,
    as_text,
)
from store.printable import display_width

FITTED: Final = "adjusted"

LEAST_NAME: Final = 12
"""Cells of a metric's name, before columns are left out."""

MOST_NAMED: Final = 3
"""Differences that a conclusion names; the table has all."""

LOWER: Final = "\N{DOWNWARDS ARROW}"
"""Marks metrics of which lower values are better."""


def comparison_text(
    matches: Sequence[ComparedModels],
    front: ParetoFront | None,
    options: ComparisonOptions,
    width: int = WIDTH,
) -> PageText:
    """Return all matches, what their sides cost, how it was done, the conclusions."""
    blocks: list[Block] = []
    for match in matches:
        blocks += (*_match(match, options.level, width), "")
    if front is not None and front.has_expenses:
        blocks += (*_front(front, options.level), "")
    blocks += [*_method(matches, options), ""]
    path = None if front is None else front.path
    blocks += [_fact("result", conclusion(match, options, path)) for match in matches]
    return as_text(blocks, width)


def items_text(path: str, match: ComparedModels, gaps: Sequence[ItemGap]) -> str:
    """The items of one metric on which the sides differ most."""
    heading = f"{path}: {_name(match.a)} (A), {_name(match.b)} (B)"
    if not gaps:
        return as_text(["", heading, "  no item differs"])
    columns = (Numbers("A", 3), Numbers("B", 3), Numbers("B - A", 3), Words("item"))
    rows = [(gap.a, gap.b, fixed(gap.b - gap.a, "+.3f"), gap.item) for gap in gaps]
    return as_text(["", heading, TableBlock(columns, rows, indent=0, is_wide=True)])


def conclusion(
    match: ComparedModels, options: ComparisonOptions, main: str | None = None
) -> str:
    """Say in a sentence which side is better, and how sure that is.

    Args:
        match: two sides.
        options: how they were compared.
        main: path of the metric that speaks for the others; None: the first.
    """
    a, b = _short_names(match)
    shared = _shared(match)
    if not match.compared:
        return f"No metric tells {b} from {a}: none has a value item by item."
    if not shared:
        return f"{b} and {a} cannot be compared: they have no item in common."
    first = next((metric for metric in shared if metric.path == main), shared[0])
    shared.sort(key=lambda metric: metric is not first)
    certain = {
        word: _listed(match, [metric for metric in shared if metric.verdict == word])
        for word in ("better", "worse")
        if any(metric.verdict == word for metric in shared)
    }
    if certain:
        (word, metrics), *second = certain.items()
        clauses = [f"{b} is {word} than {a} in {metrics}"]
        clauses += [f"it is {word} in {metrics}" for word, metrics in second]
        if any(metric.verdict not in certain for metric in shared):
            clauses.append("no other difference is certain")
        return f"{'; '.join(clauses)}."
    gap = f"{fixed(first.gap.value, '+.3f')} {_ends(first.gap.interval)}".rstrip()
    differs = f"{match.a.names.get(first.path, first.path)} differs by {gap}"
    if all(metric.is_from_few for metric in shared):
        n = max(metric.overlap.clusters for metric in shared)
        return (
            f"{plural(n, first.cluster)} {'is' if n == 1 else 'are'} too few to tell "
            f"{b} from {a}; {options.min_clusters} are needed. {differs}."
        )
    return (
        f"No difference between {b} and {a} is certain. {differs} over "
        f"{plural(first.overlap.clusters, first.cluster)}."
    )


def _shared(match: ComparedModels) -> list[ComparedMetric]:
    """The metrics for which both sides have an item in common."""
    return [metric for metric in match.compared if metric.overlap.n]


def _listed(match: ComparedModels, metrics: Sequence[ComparedMetric]) -> str:
    """Name the first metrics with the size of their difference, count the others."""
    named = [
        f"{match.a.names.get(metric.path, metric.path)} by {_size(metric)}"
        for metric in metrics[:MOST_NAMED]
    ]
    if more := len(metrics) - len(named):
        named.append(plural(more, "more metric"))
    *firsts, last = named
    return f"{', '.join(firsts)} and {last}" if firsts else last


def _size(metric: ComparedMetric) -> str:
    """The size of a difference with its interval, without a sign."""
    value, interval = metric.gap.value, metric.gap.interval
    if value is None:
        return UNDEFINED
    if value < 0 and interval.lo is not None and interval.hi is not None:
        return f"{fixed(-value)} {ends(-interval.hi, -interval.lo)}"
    return f"{fixed(value)} {ends(interval.lo, interval.hi)}".rstrip()


def _short_names(match: ComparedModels) -> tuple[str, str]:
    """The names of both sides, as short as they differ."""
    a, b = match.a, match.b
    if a.source == b.source:
        return a.model, b.model
    if a.model == b.model:
        return a.source, b.source
    return f"{a.model} of {a.source}", f"{b.model} of {b.source}"


def _name(side: Side) -> str:
    return "  ".join(side.key)


@dataclass(frozen=True, slots=True)
class _TableColumn:
    """A column of the table of metrics."""

    column: Column
    cell: Callable[[ComparedMetric], Cell]
    rank: int = 0  #: columns of the highest rank are left out first; 0: none


def _columns(match: ComparedModels, level: float) -> list[_TableColumn]:
    interval = f"B - A [{100 * level:.4g}% interval]"
    return [
        _TableColumn(Words("metric"), lambda metric: _metric_name(match, metric)),
        _TableColumn(Words("key"), lambda metric: metric.path, rank=4),
        _TableColumn(Numbers("A", 3), lambda metric: metric.gap.a),
        _TableColumn(Numbers("B", 3), lambda metric: metric.gap.b),
        _TableColumn(
            Words(interval),
            lambda metric: (
                f"{fixed(metric.gap.value, '+.3f')} "
                f"{_ends(metric.gap.interval)}".rstrip()
            ),
        ),
        _TableColumn(Numbers("p"), _p_value, rank=3),
        _TableColumn(
            Numbers("p (Holm)"), lambda metric: fixed(metric.p_holm, ".2g"), rank=1
        ),
        _TableColumn(Words("won/lost/tied"), _outcomes, rank=2),
        _TableColumn(Numbers("n"), lambda metric: metric.overlap.n),
        _TableColumn(Words("B is"), lambda metric: metric.verdict),
    ]


def _metric_name(match: ComparedModels, metric: ComparedMetric) -> str:
    name = _named(match, metric.path)
    return f"{name} {LOWER}" if metric.lower_is_better else name


def _named(match: ComparedModels, path: str) -> str:
    """Return the name of a metric that the table has, else its path."""
    return match.a.names.get(path, path)


_JOIN = "; "
"""Between names of metrics, which may have commas."""


def _p_value(metric: ComparedMetric) -> str:
    primary = metric.p_values.primary
    return fixed(None if primary is None else primary.p, ".2g")


def _outcomes(metric: ComparedMetric) -> str | None:
    won = metric.outcomes
    return f"{won.wins}/{won.losses}/{won.ties}" if won else None


def _table(
    match: ComparedModels, metrics: Sequence[ComparedMetric], level: float, width: int
) -> TableBlock:
    """The metrics in as many columns as fit; then their names are cut."""
    columns = _columns(match, level)
    rows = [[column.cell(metric) for column in columns] for metric in metrics]
    indexes = list(range(len(columns)))

    def table(name_width: int | None) -> TableBlock:
        visible = [columns[at].column for at in indexes]
        visible[0] = Words(visible[0].title, name_width)
        cells = [[row[at] for at in indexes] for row in rows]
        return TableBlock(visible, cells, indent=0, is_wide=True)

    for rank in (4, 3, 2, 1):
        if _width(table(None)) <= width:
            return table(None)
        indexes = [at for at in indexes if columns[at].rank != rank]
    excess = _width(table(None)) - width
    if excess <= 0:
        return table(None)
    longest = max(display_width(str(row[0])) for row in rows)
    return table(max(LEAST_NAME, longest - excess))


def _width(table: TableBlock) -> int:
    return max(map(display_width, as_text([table]).split("\n")))


def _match(match: ComparedModels, level: float, width: int) -> Iterator[Block]:
    for name, side in (("A", match.a), ("B", match.b)):
        yield Fact(name, _name(side), width=3)
    yield ""
    shared = _shared(match)
    if shared:
        yield _table(match, shared, level, width)
    elif not (match.compared or match.refused):
        yield "no metric to compare (a truth is needed, see 'siftlog score')"
    if any(metric.lower_is_better for metric in shared):
        yield f"{LOWER} lower is better"
    yield from _paired_values(match, shared)
    yield from _uncompared(match)
    yield from _independent_tests(match, shared)
    yield from _agreed(match, shared)
    if match.label_agreement is not None:
        labels = match.label_agreement
        yield _fact(
            "agreement",
            f"of the {labels.what}s on {labels.n} items, with kappa and AC1: "
            f"{_agreement(labels.agreement)}",
        )
    for metric in shared:
        interval = metric.gap.interval
        if interval.flagged:
            yield _fact(
                "unstable",
                f"interval of {_named(match, metric.path)}: undefined in "
                f"{interval.b - interval.b_used} of {interval.b} replicates",
            )


def _paired_values(
    match: ComparedModels, shared: Sequence[ComparedMetric]
) -> Iterator[Fact]:
    """Say why the values differ from those of each side alone, with an example."""
    for metric in shared:
        overlap = metric.overlap
        if left_out := overlap.only_a + overlap.only_b + overlap.undefined:
            name = _named(match, metric.path)
            yield _fact(
                "values",
                "are over the n items that both have (such as "
                f"{overlap.n:,} of {overlap.n + left_out:,} for {name}); a scorecard's "
                "are over all items of its side",
            )
            return


def _uncompared(match: ComparedModels) -> Iterator[Fact]:
    """Yield what the table lacks: items of one side, metrics of one side."""
    paths = [metric.path for metric in match.compared if not metric.overlap.n]
    if apart := [_named(match, path) for path in paths]:
        yield _fact("left out", f"no item in common: {_JOIN.join(apart)}")
    yield from _left_out(match)
    for refused in match.refused:
        yield _fact("left out", f"{_named(match, refused.path)}: {refused.reason}")
    for side, names, only in (
        ("A", match.a.names, match.only_a),
        ("B", match.b.names, match.only_b),
    ):
        if only:
            has = _JOIN.join(names.get(path, path) for path in only)
            yield _fact(f"only {side}", f"has {has}")


def _fact(label: str, text: str) -> Fact:
    return Fact(label, text)


def _left_out(match: ComparedModels) -> Iterator[Fact]:
    """Yield what is left out, once for all metrics that leave out the same."""
    groups: dict[tuple[int, int, int], list[str]] = {}
    for metric in match.compared:
        overlap = metric.overlap
        left_out = (overlap.only_a, overlap.only_b, overlap.undefined)
        groups.setdefault(left_out, []).append(_named(match, metric.path))
    for (only_a, only_b, undefined), names in groups.items():
        kinds = {
            "only in A": only_a,
            "only in B": only_b,
            "in both without a value": undefined,
        }
        counts = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items() if n)
        if counts:
            where = "every metric" if len(groups) == 1 else _JOIN.join(names)
            yield _fact("left out", f"items {counts}: {where}")


def _independent_tests(
    match: ComparedModels, compared: Sequence[ComparedMetric]
) -> Iterator[Fact]:
    """Tests that would hold if items did not hang together in clusters."""
    by_name: dict[str, list[str]] = {}
    for metric in compared:
        if independent := metric.p_values.independent:
            test_text = f"{_named(match, metric.path)} {independent.p:.2g}"
            by_name.setdefault(independent.name, []).append(test_text)
    for name, tests in by_name.items():
        yield _fact(name, f"p, if items were independent: {_JOIN.join(tests)}")


def _agreed(
    match: ComparedModels, compared: Sequence[ComparedMetric]
) -> Iterator[Fact]:
    """Return how often both are right or both wrong, and agreement beyond chance."""
    agreements = [
        f"{_named(match, metric.path)} {_agreement(agreement)}"
        for metric in compared
        if (agreement := metric.agreement)
    ]
    if agreements:
        yield _fact(
            "agreement",
            f"in being right, with kappa and AC1: {_JOIN.join(agreements)}",
        )


def _agreement(agreement: Agreement) -> str:
    return " ".join(map(fixed, (agreement.percent, agreement.kappa, agreement.ac)))


def _front(front: ParetoFront, level: float) -> Iterator[Block]:
    lower = " (lower is better)" if front.lower_is_better else ""
    yield f"{front.path}{lower}, cost and latency"
    columns = (
        Numbers("quality", 3),
        Words(f"{100 * level:.4g}% interval"),
        Numbers(f"USD/{front.unit}"),
        Numbers("median s"),
        Words("side"),
    )
    rows = [
        (
            point.quality.value,
            ends(point.quality.interval.lo, point.quality.interval.hi) or UNDEFINED,
            fixed(point.expense.usd, ".3g"),
            fixed(point.expense.seconds, ".3g"),
            _name(point.side),
        )
        for point in front.points
    ]
    yield TableBlock(columns, rows, indent=0, is_wide=True)
    yield _fact("items", f"{front.n:,} that all sides have")
    for point in front.points:
        for dominance in point.dominated:
            yield _fact(
                "dominated",
                f"{_name(point.side)} by {_name(dominance.by)} "
                f"(quality {dominance.quality})",
            )


def _method(
    matches: Sequence[ComparedModels], options: ComparisonOptions
) -> Iterator[Fact]:
    compared = [metric for match in matches for metric in match.compared]
    if not compared and not any(match.refused for match in matches):
        yield _fact("method", "common items only")
        return
    clusters = ", ".join(sorted({metric.cluster for metric in compared})) or "cluster"
    names = sorted(
        {metric.p_values.primary.name for metric in compared if metric.p_values.primary}
    )
    adjusted = ", adjusted where that is too narrow" if options.form == FITTED else ""
    yield _fact(
        "method",
        f"common items only; intervals at {options.level:.10g}: percentile bootstrap "
        f"by {clusters}, B={options.b}, seed={options.seed}{adjusted}",
    )
    if names:
        yield _fact("p", ", ".join(names))
        yield _fact("p (Holm)", f"over {family(matches)}")
    yield _fact("verdicts", options.rule.sentence(clusters.partition(",")[0]))


def _ends(interval: Interval) -> str:
    return ends(interval.lo, interval.hi, "+.3f") or ""
