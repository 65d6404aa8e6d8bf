"""Runs scored again from their logs, and what a reader of a comparison should know.

Nothing is written and no model is called: a comparison is of what the logs hold, under
each run's own settings or changed ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.comparison.matching import Side
from jobs.comparison.sides import Named, chosen
from runner.errors import UsageError
from runner.records.scoring import Scoring, effective_settings, score
from runner.registry import load_job
from store.clock import Clock
from store.events import RunStarted
from store.runs import RunFolder
from store.views import open_reader, run_started


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A run and what scoring it now gives."""

    folder: RunFolder
    started: RunStarted
    scoring: Scoring

    @property
    def run(self) -> str:
        """The run's id."""
        return self.folder.run_id


def replayed(
    folders: Sequence[RunFolder], typed: Mapping[str, Sequence[str]], clock: Clock
) -> tuple[Replayed, ...]:
    """Every run of *folders*, scored as it stands; one that is named twice, once.

    Raises:
        UsageError: the runs are of different jobs, or a setting is wrong.
        DatasetError: an input file is missing or wrong.
    """
    starts = []
    for folder in folders:
        with open_reader(folder.log) as reader:
            starts.append(run_started(reader))
    if len({start.job for start in starts}) > 1:
        told = (
            f"{folder.run_id} is a run of {start.job}"
            for folder, start in zip(folders, starts, strict=True)
        )
        raise UsageError(f"{' and '.join(told)}; compare runs of one job.")
    job = load_job(starts[0].job)
    scored: dict[Path, Scoring] = {}
    for folder in folders:
        if folder.path not in scored:
            settings = effective_settings(job, folder, typed)
            scored[folder.path] = asyncio.run(
                score(job, folder, settings, clock=clock, record=False)
            )
    return tuple(
        Replayed(folder=folder, started=start, scoring=scored[folder.path])
        for folder, start in zip(folders, starts, strict=True)
    )


def pairs(
    named: Sequence[Named], runs: Sequence[Replayed]
) -> tuple[tuple[Side, Side], ...]:
    """The sides that the words *named* mean, each word's run standing in its place.

    Raises:
        UsageError: a run has no such model, or the words leave open which are meant.
    """
    by_word = {word.run: run for word, run in zip(named, runs, strict=True)}
    models = {
        word: tuple(run.scoring.scorecard.models) for word, run in by_word.items()
    }

    def side(word: str, model: str) -> Side:
        run = by_word[word]
        made = run.scoring.scorecard.comparable.get(model, {})
        return Side(run=run.run, model=model, comparable=made, seq=run.scoring.seq)

    return tuple((side(*a), side(*b)) for a, b in chosen(named, models))


def notes(runs: Sequence[Replayed]) -> Iterator[str]:
    """What bears on the comparison and does not show in its numbers."""
    for each in {run.folder.path: run for run in runs}.values():
        yield from _of_run(each)
    a, b = runs[0], runs[-1]
    yield from _settings(a, b)
    mine = {given.setting: given.sha256 for given in a.started.inputs}
    for given in b.started.inputs:
        if mine.get(given.setting, given.sha256) != given.sha256:
            yield (
                f"{given.setting} was not the same file when {a.run} and {b.run} were "
                "started; where the truth differs, so do the scores."
            )


def _of_run(each: Replayed) -> Iterator[str]:
    card = each.scoring.scorecard
    if each.scoring.is_partial:
        yield f"{each.run}: partial: the run is unfinished."
    for setting in each.scoring.changed_inputs:
        yield (f"{each.run}: {setting} is not the file that the run was started with.")
    if card.stale:
        yield (
            f"{each.run}: {card.stale} stored answers are stale: these settings do not "
            "ask for them, and they are not used."
        )
    if card.missing:
        yield (
            f"{each.run}: {card.missing} tasks that these settings ask for are not in "
            "the run; resume it to ask them."
        )


def _settings(a: Replayed, b: Replayed) -> Iterator[str]:
    mine, theirs = (dict(each.scoring.scorecard.settings) for each in (a, b))
    changed = [
        f"{name} ({mine.get(name)} in {a.run}, {theirs.get(name)} in {b.run})"
        for name in sorted({*mine, *theirs})
        if mine.get(name) != theirs.get(name)
    ]
    if changed:
        yield f"the settings differ: {', '.join(changed)}."
