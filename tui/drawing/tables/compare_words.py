"""What the Compare screen says in words: of what, made how, and how old."""

from __future__ import annotations

from collections.abc import Mapping

from tui.drawing.clip import one_line
from tui.drawing.format import count, duration
from tui.sources.comparing import Compared, Pair, Words

_REASON = 600
"""Cells of a reason that are shown: some lines, with the next keys below."""


def sides(words: Words) -> str:
    """What is compared.

    >>> sides(("first", "second:m")), sides(("first",))
    ('A first  ↔  B second:m', 'the models of first')
    """
    if len(words) == 1:
        return f"the models of {words[0]}"
    a, b = words
    return f"A {a}  ↔  B {b}"


def waiting(what: str, seconds: float) -> str:
    """That a process works on it, since when, and what it does to the runs: nothing."""
    return (
        f"{what}: {duration(seconds)} so far.\n\n"
        "A process of its own reads the logs, at low priority: the runs are not "
        "disturbed. Stop it with esc."
    )


def stopped(what: str, seconds: float) -> str:
    """That nobody works on it any more."""
    return f"{what}: stopped after {duration(seconds)}"


def failed(sentence: str) -> str:
    """Why there is nothing to show, and the next keys."""
    told = one_line(sentence, _REASON)
    return (
        f"{told}.\n\nTry again with r, choose another one with b, or go back with esc."
    )


def no_choice(job: str, runs_dir: str, wanted: str, *, is_whole: bool) -> str:
    """Why there is nothing to choose, and what to do about it.

    Args:
        job: of the run that is watched.
        runs_dir: the folder whose runs are offered.
        wanted: what was typed; empty: nothing.
        is_whole: whether all runs of the folder have been read.
    """
    if wanted:
        return f"Nothing listed fits {wanted}: enter compares with it as it is typed."
    if not is_whole:
        return "Looking for runs …"
    return (
        f"No other run of {job} in {runs_dir}: start one with 'siftlog run {job}', or "
        "press / and type the folder of a run."
    )


def method(compared: Compared) -> str:
    """How intervals and p-values came about."""
    metrics = [metric for pair in compared.pairs for metric in pair.metrics.values()]
    clusters = ", ".join(sorted({metric.cluster for metric in metrics}))
    tests = sum(metric.test is not None for metric in metrics)
    level = f"{100 * compared.level:.4g} % intervals"
    draws = f"{count(compared.b)} draws by {clusters}"
    return f"{level} of {draws} · Holm over {count(tests)} tests"


def amount(compared: Compared) -> str:
    """How many metrics of how many pairs of models are shown."""
    pairs = compared.pairs
    metrics = f"{count(sum(len(pair.metrics) for pair in pairs))} metrics"
    return metrics if len(pairs) == 1 else f"{metrics} of {len(pairs)} pairs of models"


def as_of(compared: Compared, now: Mapping[str, int]) -> str:
    """How far the logs were written, and what has come since.

    Args:
        compared: what is shown.
        now: the last event of each run by its id, where it is known.
    """
    first = compared.pairs[0]
    sides = {"A": first.a} | ({"B": first.b} if first.b.run != first.a.run else {})
    told = " and ".join(f"{count(s.seq)} of {name}" for name, s in sides.items())
    since = sum(max(0, now.get(s.run, 0) - s.seq) for s in sides.values())
    news = f" · {count(since)} events since: r" if since else ""
    return f"as of event {told}{news}"


def notes(compared: Compared) -> str:
    """What bears on the comparison and does not show in its numbers."""
    several = f"{len(compared.notes)} notes, enter on the first line shows them: "
    said = several if len(compared.notes) > 1 else "note: "
    return said + " · ".join(compared.notes) if compared.notes else ""


def more(compared: Compared, pair: Pair) -> str:
    """All that is to be said of two models and has no place in a table."""
    lines = [
        f"A  {pair.a.run}  {pair.a.model}",
        f"B  {pair.b.run}  {pair.b.model}",
        "",
        f"{method(compared)}; only items that both sides have.",
        *(f"note: {note}" for note in compared.notes),
    ]
    for name, paths in (("A", pair.only_a), ("B", pair.only_b)):
        lines += (f"only {name} has {path}" for path in paths)
    lines += (f"not compared: {path}: {why}" for path, why in pair.not_compared.items())
    lines.append("")
    lines += (f"{path}: {m.definition}" for path, m in pair.metrics.items())
    return "\n".join(lines)


def tasks_of(pair: Pair, item: str) -> tuple[str, ...]:
    """Filters for the tasks of A's run that have to do with an item, the best first.

    A task that was asked in a batch has the batch's key; its document begins both.
    """
    models = f" model:{_quoted(pair.a.model)}" if pair.a.run != pair.b.run else ""
    keys = dict.fromkeys((item, item.partition("/")[0]))
    return tuple(f"item:{_quoted(key)}{models}" for key in keys)


def _quoted(value: str) -> str:
    """*value* for a filter, which knows no quote in quotes: the longest part without.

    >>> _quoted('a "b'), _quoted("PMC1/q:1")
    ('"a "', 'PMC1/q:1')
    """
    part = max(value.split('"'), key=len)
    return part if part.isprintable() and " " not in part and part else f'"{part}"'
