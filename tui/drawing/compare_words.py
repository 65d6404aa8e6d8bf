"""What the Compare screen says in words: of what, made how, and how old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from tui.drawing.clip import one_line
from tui.drawing.format import count, duration
from tui.sources.comparing import Compared, Pair, Words, run_of

NOTES = 3
"""Lines of notes that are shown at most."""


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
        "disturbed. Stop it with escape."
    )


def stopped(what: str, seconds: float) -> str:
    """That nobody works on it any more."""
    return f"{what}: stopped after {duration(seconds)}"


def failed(sentence: str) -> str:
    """Why there is nothing to show, and the next keys."""
    return f"{sentence}.\n\nTry again with r, choose another one with b, or escape."


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
        "type a run's folder after /."
    )


def method(compared: Compared) -> str:
    """How intervals and p-values came about."""
    metrics = (metric for pair in compared.pairs for metric in pair.metrics.values())
    clusters = sorted({metric.cluster for metric in metrics})
    drawn = f"{count(compared.b)} draws by {', '.join(clusters)}"
    level = f"{100 * compared.level:.4g} %"
    return f"{level} intervals: {drawn} · Holm over {compared.family}"


def amount(compared: Compared) -> str:
    """How many metrics of how many pairs of models are shown."""
    pairs = compared.pairs
    metrics = f"{count(sum(len(pair.metrics) for pair in pairs))} metrics"
    return metrics if len(pairs) == 1 else f"{metrics} of {len(pairs)} pairs of models"


def as_of(pairs: Sequence[Pair], now: Mapping[str, int]) -> str:
    """How far the logs were written, and what has come since.

    Args:
        pairs: what is shown.
        now: the last event of each run by its id, where it is known.
    """
    seqs = scored(pairs)
    told = " and ".join(f"event {count(seq)} of {run}" for run, seq in seqs.items())
    since = sum(max(0, now.get(run, seq) - seq) for run, seq in seqs.items())
    news = f" · {count(since)} events since, r compares again" if since else ""
    return f"as of {told}{news}"


def scored(pairs: Sequence[Pair]) -> dict[str, int]:
    """The last event that was scored of each run, by its id, A before B."""
    return {side.run: side.seq for pair in pairs for side in (pair.a, pair.b)}


def notes(compared: Compared, width: int) -> str:
    """What bears on the comparison, a line for each; of many, how many more."""
    lines = [one_line(f"note: {note}", width) for note in compared.notes]
    if len(lines) <= NOTES:
        return "\n".join(lines)
    more = len(lines) - NOTES + 1
    return "\n".join((*islice(lines, NOTES - 1), f"and {more} notes more"))


def tasks_of(words: Words, pair: Pair, item: str) -> str:
    """A filter for the tasks of A that have to do with an item."""
    parts = [f"item:{_quoted(item)}"]
    if run_of(words[0]) != run_of(words[-1]):
        parts.append(f"model:{_quoted(pair.a.model)}")
    return " ".join(parts)


def _quoted(value: str) -> str:
    """*value* for a filter, which knows no quote in quotes: the longest part without.

    >>> _quoted('a "b'), _quoted("PMC1/q:1")
    ('"a "', 'PMC1/q:1')
    """
    part = max(value.split('"'), key=len)
    return part if part.isprintable() and " " not in part and part else f'"{part}"'
