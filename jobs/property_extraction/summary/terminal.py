"""The summary of a scoring, for a terminal of 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from jobs.property_extraction.gathering.predicted import State
from jobs.property_extraction.measuring.fate import Fate
from jobs.property_extraction.measuring.limits import told
from jobs.property_extraction.measuring.results import Column, Results
from jobs.property_extraction.measuring.statuses import NUMBERS, UNITS
from jobs.text import WIDTH, hanging_lines, one_line, plural, shortened
from runner.scorecard import LIMITS, Finding, Metric
from store.printable import printable

LINE_CHARS = 240
UNDEFINED = "n/a"

QUOTES = {
    "fabricated": "fabricated_quote_rate",
    "grounded": "grounded_rate",
    "hold number": "value_in_quote",
}

RATES = {"P": "precision", "R": "recall", "F1": "f1"}


def run_text(results: Results, findings: Sequence[Finding]) -> str:
    """What a terminal shows of a scoring."""
    lines = [*_head(results)]
    for column in results.columns.values():
        lines += _model(results, column)
    for own in findings:
        if own.severity != "info" or own.where == LIMITS:
            lines += hanging_lines("note: ", one_line(told(own)))
    return "\n".join([*(printable(line, line=LINE_CHARS) for line in lines), ""])


def _head(results: Results) -> Iterator[str]:
    settings, aliases = results.dataset.settings, results.dataset.aliases
    yield f"Property extraction   profile {settings.profile}"
    if settings.crossfit:
        yield "aliases: of each paper the draft that the others make"
    else:
        acting = f"{aliases.id} ({aliases.status_mix})" if aliases.entries else "none"
        yield from hanging_lines("aliases: ", acting)


def _model(results: Results, column: Column) -> Iterator[str]:
    known = {metric.path: metric for metric in column.metrics}

    def n(path: str) -> str:
        value = known[path].value or 0
        return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"

    yield shortened(one_line(column.model), WIDTH)
    yield (
        f"  {_papers(column)}   rows {n('rows')} predicted, "
        f"{_truth(column):,} truth   abstained {n('abstained')}"
    )
    yield f"  TP {n('tp')}  FP {n('fp')}  FN {n('fn')}"
    yield "  all rows     " + _rates(known, "")
    yield "  by property  " + _rates(known, "macro.")
    if results.dataset.settings.units == "convert":
        yield "  units    " + _statuses(known, "units", UNITS)
    yield "  numbers  " + _statuses(known, "numbers", NUMBERS)
    if len(results.dataset.papers):
        yield "  quotes   " + "  ".join(
            f"{name} {_percent(known[path])}" for name, path in QUOTES.items()
        )
    share = known["encompassment"].value
    yield (
        f"  misses {n('misses')}, name found in {n('name_matches')} "
        f"({UNDEFINED if share is None else f'{share:.1f}%'})"
    )
    yield from _aliases(column)


def _aliases(column: Column) -> Iterator[str]:
    """What the aliases that act have changed."""
    own = column.first
    if not own.aliases.accepted:
        return
    before, after = (
        fates.fates.count(Fate.TP) for fates in (column.unrenamed, own.fates)
    )
    renamed = [row.entries for row in own.fates.renamed if row.entries]
    acting = {entry.key for entries in renamed for entry in entries}
    idle = len(own.aliases.accepted) - len(acting)
    yield (
        f"  aliases  {plural(len(renamed), 'row')} renamed, TP {before:,} without, "
        f"{after:,} with ({after - before:+,}); {idle:,} renamed none"
    )


def _papers(column: Column) -> str:
    """How many papers are scored, and what became of the others."""
    predicted = column.first.fates.predicted
    states = Counter(own.state for own in predicted.outcomes.values())
    del states[State.SCORED]  # a counter does not mind where there is none
    rest = "".join(f", {n:,} {state}" for state, n in sorted(states.items()))
    named = {"parted": "in parts", "partial": "truncated"}
    read = ", ".join(
        f"{n:,} {word}"
        for count, word in named.items()
        if (n := predicted.counts.get(count, 0))
    )
    how = f" ({read})" if read else ""
    return f"papers {len(column.first.fates.papers):,} scored{how}{rest}"


def _truth(column: Column) -> int:
    """Truth rows that count."""
    fates = column.first.fates.truth_fates
    return fates.count(Fate.TP) + fates.count(Fate.FN)


def _rates(known: Mapping[str, Metric], prefix: str) -> str:
    return "  ".join(
        f"{name} {_with_ends(known[prefix + word])}" for name, word in RATES.items()
    )


def _statuses(known: Mapping[str, Metric], prefix: str, statuses: Sequence[str]) -> str:
    return (
        "  ".join(
            f"{status.replace('_', ' ')} {known[f'{prefix}.{status}'].value:,}"
            for status in statuses
            if known[f"{prefix}.{status}"].value
        )
        or "none"
    )


def _with_ends(metric: Metric) -> str:
    if metric.lo is None or metric.hi is None:
        return _shown(metric.value)
    return f"{_shown(metric.value)} [{metric.lo:.2f}, {metric.hi:.2f}]"


def _shown(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.3f}"


def _percent(metric: Metric) -> str:
    if metric.value is None:
        return UNDEFINED
    return f"{metric.value:.1%} of {metric.n:,}"
