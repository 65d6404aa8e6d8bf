"""Models of runs that go on, compared by what is finished, as often as one likes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobs.comparison.sequential import decide
from jobs.comparison.sides import Chosen, Named, Source, chosen
from runner.cli.console import print_json, print_note, print_text
from runner.errors import UsageError
from runner.registry import load_job
from runner.run.early_stopping import (
    FinishedItems,
    InterimResult,
    InterimScores,
    interim_scores,
)
from runner.score.scoring import settings_in
from store.database import open_reader
from store.events import RunStarted
from store.read.status import run_started
from store.results import StoppingRule
from store.runs import resolve

_SAID = {
    "better": "B is better",
    "worse": "B is worse",
    "close": "they are as good",
    "undecided": "undecided",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched:
    """A run and its front."""

    run: str
    started: RunStarted
    front: InterimScores


def show(
    named: Sequence[Named],
    runs_dir: Path,
    typed: Mapping[str, Sequence[str]],
    stopping: StoppingRule,
    *,
    is_json: bool,
) -> None:
    """Print how the models of the named runs stand to each other.

    Of several comparisons each gets its part of alpha, so that the chance of any wrong
    decision is at most alpha in all.

    Raises:
        UsageError: a recorded scoring is named, the runs are of different jobs, or the
            metric cannot be watched.
    """
    runs = {each.source: _watched(each.source, runs_dir, typed) for each in named}
    if len({run.started.job for run in runs.values()}) > 1:
        raise UsageError("The runs are of different jobs; compare runs of one job.")
    models = {source: run.started.models["subject"] for source, run in runs.items()}
    pairs = chosen(named, models)
    own = replace(stopping, alpha=stopping.alpha / len(pairs))
    looks = [(a, b, _look(runs, a, b, own)) for a, b in pairs]
    notes = list(_notes(runs.values()))
    for note in notes:
        print_note(f"note: {note}")
    if is_json:
        print_json(
            {
                "metric": stopping.metric,
                "margin": stopping.margin,
                "alpha": stopping.alpha,
                "alpha_each": own.alpha,
                "notes": notes,
                "comparisons": [_json(runs, *each) for each in looks],
            }
        )
        return
    print_text(
        f"{stopping}, B minus A, mean over documents; wrong at any look with a chance "
        f"of at most {stopping.alpha:g}"
    )
    for (_, a), (_, b), look in looks:
        gap = "n/a" if look.difference is None else f"{look.difference:+.3f}"
        print_text(
            f"A {a}  B {b}  {gap} [{look.lo:.3f}, {look.hi:.3f}]  "
            f"{look.clusters:,} {look.cluster}s  {_SAID[look.standing]}"
        )


def _watched(
    source: Source, runs_dir: Path, typed: Mapping[str, Sequence[str]]
) -> _Watched:
    if source.number is not None:
        raise UsageError(
            f"{source} is a recorded scoring, which does not go on; name the run."
        )
    folder = resolve(runs_dir, source.run)
    with open_reader(folder.log) as reader:
        started = run_started(reader)
        job = load_job(started.job)
        dataset = job.load(settings_in(job, reader, typed))
        return _Watched(
            run=folder.run_id,
            started=started,
            front=interim_scores(job, dataset, reader),
        )


def _look(
    runs: Mapping[Source, _Watched], a: Chosen, b: Chosen, stopping: StoppingRule
) -> InterimResult:
    left, right = (runs[source].front for source, _ in (a, b))
    return decide(
        left.comparable.get(a[1], {}),
        right.comparable.get(b[1], {}),
        _both(left.finished, right.finished),
        stopping,
    )


def _both(a: FinishedItems, b: FinishedItems) -> FinishedItems:
    """What both runs have finished, in the order of A's plan, without a gap."""
    theirs = set(b.keys)
    if a.is_whole and b.is_whole:
        keys = tuple(key for key in a.keys if key in theirs)
        return FinishedItems(keys=keys, is_whole=True)
    shared = 0
    while shared < len(a.keys) and a.keys[shared] in theirs:
        shared += 1
    return FinishedItems(keys=a.keys[:shared], is_whole=False)


def _notes(runs: Iterable[_Watched]) -> Iterator[str]:
    for run in runs:
        if run.started.stopping is None:
            yield (
                f"{run.run} asks in the order of its data: the interval holds if that "
                "order says nothing of which model is better."
            )


def _json(
    runs: Mapping[Source, _Watched], a: Chosen, b: Chosen, look: InterimResult
) -> dict[str, Any]:
    return {
        **{
            side: {
                "run": runs[source].run,
                "model": model,
                "seq": runs[source].front.seq,
            }
            for side, (source, model) in (("a", a), ("b", b))
        },
        "standing": look.standing,
        "n": look.clusters,
        "cluster": look.cluster,
        "difference": look.difference,
        "lo": look.lo,
        "hi": look.hi,
    }
