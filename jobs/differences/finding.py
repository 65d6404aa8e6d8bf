"""Finds the causes of a difference: a scoring for each step, held against the last.

Nothing is recorded and no model is called. What code that is gone had made of a scoring
stands in its scorecard, which the log holds under its digest; the code's own part is
what the same basis gives today, held against that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from jobs.differences.causes import Cause, code, steps
from jobs.differences.difference import Difference
from jobs.differences.ledger import Ledger
from jobs.differences.seen import Seen, replayed, stored
from runner.errors import DatasetError, RunnerError, UsageError
from runner.score.repeat import Rescorer, ScoringBasis
from store.events import ScoringRecorded

Stop: TypeAlias = tuple[tuple[Cause, ...], Seen]
"""What the scoring before did not go by, and what came of it."""


def difference(
    run: Rescorer,
    before: ScoringRecorded,
    after: ScoringRecorded,
    *,
    progress: Callable[[str], None],
) -> Difference:
    """What lies between two recorded scorings of a run.

    Args:
        run: opened for scoring again.
        before: one of its scorings.
        after: another.
        progress: is told each cause whose scoring begins.

    Raises:
        DatasetError: an input is not what it was, and the log does not keep it.
        RunnerError: the code has changed, and a scorecard that it had made is gone.
        UsageError: the job has not all of its settings any more.
    """
    with TemporaryDirectory(prefix="siftlog-") as scratch:
        stops = _stops(run, before, after, Path(scratch), progress)
        _, first = next(stops)
        ledger = Ledger(run, first)
        for causes, seen in stops:
            ledger.enter(causes, seen)
    return Difference(
        run=run.folder.run_id,
        job=run.job.name,
        before=before.number,
        after=after.number,
        digests=(before.digest, after.digest),
        headline=after.headline or before.headline,
        headlines=ledger.headlines(),
        stages=tuple(ledger.stages),
        changed=ledger.changed(),
        unchanged=ledger.unchanged(),
        notes=tuple(_notes(before, after)),
    )


def _stops(
    run: Rescorer,
    before: ScoringRecorded,
    after: ScoringRecorded,
    scratch: Path,
    progress: Callable[[str], None],
) -> Iterator[Stop]:
    """One scoring after the other, from the first as recorded to the last."""
    begin, end = (ScoringBasis.of(run.job, each) for each in (before, after))
    if run.is_still_after(min(begin.seq, end.seq)):
        begin = replace(begin, seq=end.seq)  # only scorings and the like came between
    way = steps(begin, end, tuple(run.job.Settings.model_fields))
    progress(f"scoring {before.number}")
    made = run.scored(begin)
    if made.digest == before.digest:
        yield (), replayed(made, scratch / "0.db")
    else:
        yield (), _as_recorded(run, before)
        told = f"scoring {before.number}"
        for each in _between(run, begin, before, after):
            if each.digest == made.digest:
                break  # what is replayed shows more than what was recorded
            yield (code(told, f"scoring {each.number}"),), _as_recorded(run, each)
            told = f"scoring {each.number}"
        yield (code(told, "today"),), replayed(made, scratch / "0.db")
    waiting: tuple[Cause, ...] = ()
    for number, step in enumerate(way, 1):
        waiting += (step.cause,)
        progress(step.cause.label)
        try:
            made = run.scored(step.basis)
        except (DatasetError, UsageError):
            if number == len(way):
                raise
            # settings and inputs that stand or fall together are one step
            continue
        yield waiting, replayed(made, scratch / f"{number}.db")
        waiting = ()
    if made.digest != after.digest:
        now = code("today", f"scoring {after.number}")
        yield (now,), _as_recorded(run, after)


def _between(
    run: Rescorer, begin: ScoringBasis, before: ScoringRecorded, after: ScoringRecorded
) -> Iterator[ScoringRecorded]:
    """Scorings that later code made on the basis of the first.

    They divide the code's part: whose parser changed, scored, and changed the scorer
    then, sees what each did.
    """
    digest = before.digest
    for each in run.scorings():
        is_between = before.number < each.number <= after.number
        if is_between and each.digest != digest and run.stored(each) is not None:
            other = ScoringBasis.of(run.job, each)
            if begin.is_like(other) and run.is_still_after(min(begin.seq, other.seq)):
                digest = each.digest
                yield each


def _as_recorded(run: Rescorer, recorded: ScoringRecorded) -> Seen:
    scorecard = run.stored(recorded)
    if scorecard is None:
        raise RunnerError(
            f"Scoring {recorded.number} was made by other code, and its scorecard.json "
            f"is gone: siftlog score {run.folder.run_id} makes one to hold others "
            "against."
        )
    folder = run.folder.scores / str(recorded.number)
    return stored(scorecard, folder / "verdicts.db")


def _notes(before: ScoringRecorded, after: ScoringRecorded) -> Iterator[str]:
    if before.digest == after.digest:
        yield "Both scorecards are the same, byte for byte."
