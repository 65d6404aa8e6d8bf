"""Formats numbers, counts and metrics as text, and names of models for files.

Tables, labelled texts and quotes are blocks of `store.document`.
"""

from __future__ import annotations

from collections.abc import Iterable

from runner import model_names, table_rendering
from runner.scorecard import Metric
from runner.table_rendering import format_ends, format_number
from store import document
from store.document import NONE

plural = document.plural
slugs = model_names.slugs


def joined_words(values: Iterable[object]) -> str:
    """Values one after the other, or `NONE` where there are none."""
    return " ".join(map(str, values)) or NONE


def listed(texts: Iterable[str], most: int = 6) -> str:
    """The first *most* texts without their full stops, and how many more there are.

    >>> listed(["dose", "age", "sex"], most=2)
    'dose; age; and 1 more'
    """
    every = [text.strip().rstrip(".") for text in texts]
    more = len(every) - most
    return "; ".join([*every[:most], *([f"and {more:,} more"] if more > 0 else [])])


UNDEFINED = table_rendering.UNDEFINED
"""Printed for a value that is undefined, such as 0/0."""


def fixed(value: float | None, form: str = ".3f", undefined: str = UNDEFINED) -> str:
    """A number in one format, such as `+.2f` or `.1%`; `n/a` where it is None."""
    return undefined if value is None else f"{value:{form}}"


def ends(lo: float | None, hi: float | None, form: str = ".3f") -> str:
    """`[lo, hi]`, each in one format; empty where either is None."""
    return "" if lo is None or hi is None else f"[{lo:{form}}, {hi:{form}}]"


def with_ends(metric: Metric, form: str = ".3f", of_ends: str = ".2f") -> str:
    """A metric's value, and its interval where it has one."""
    return f"{fixed(metric.value, form)} {ends(metric.lo, metric.hi, of_ends)}".rstrip()


def metric_interval(metric: Metric) -> str:
    """`[lo, hi]`; empty where the metric has none."""
    if metric.lo is None and metric.hi is None:
        return ""
    return f"[{', '.join(format_ends([metric.lo, metric.hi]))}]"


def metric_spread(metric: Metric) -> str:
    """`mean ± std`; empty where the metric has none."""
    if metric.mean is None and metric.std is None:
        return ""
    return f"{format_number(metric.mean)} ± {format_number(metric.std)}"


def metric_count(metric: Metric) -> str:
    """Return the number of items of a metric, and of those with a value."""
    if metric.n_defined is None or metric.n_defined == metric.n:
        return f"{metric.n:,}"
    return f"{metric.n_defined:,} of {metric.n:,}"


def n_text(metrics: Iterable[Metric | None]) -> str:
    """Return the number of items with a value: `n = 12`, `n = 9 to 12`."""
    sizes = [
        metric.n if metric.n_defined is None else metric.n_defined
        for metric in metrics
        if metric is not None
    ]
    low, high = min(sizes, default=0), max(sizes, default=0)
    return f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"


def metric_target(metric: Metric) -> str:
    """The bound and how the metric stands to it; empty where it has none."""
    if metric.target is None:
        return ""
    return f"{metric.target} {metric.verdict or UNDEFINED}"


def is_numeric(text: str) -> bool:
    """Whether a cell of a CSV file holds a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def csv_cell(text: str) -> str:
    """A number of a CSV file, which holds all digits, with those a reader needs."""
    if not text:
        return UNDEFINED
    # whole numbers may be ids: they stay as they are
    return text if text.lstrip("-").isdigit() else format_number(float(text))
