"""Scores runs again from their logs, with notes on what makes them incomparable.

Nothing is written and no model is called: a comparison is of what the logs hold, as a
recorded scoring went by it, or under a run's own settings or changed ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.kit.comparison.models import Side
from jobs.kit.comparison.sides import ModelReference, RunReference, paired_models
from jobs.kit.drift import SNAPSHOT
from runner.errors import UsageError
from runner.fingerprint import hashes_by_setting
from runner.registry import job_of
from runner.score.repeat import rescorer
from runner.score.scoring import Scoring, effective_settings, score_run
from store.clock import Clock
from store.database import open_reader
from store.events import RunStarted
from store.read.status import run_started, scorings, status
from store.read.usage import MOST_NAMES
from store.runs import RunFolder, resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoredRun:
    """A run and what scoring it now gives."""

    folder: RunFolder
    started: RunStarted
    scoring: Scoring
    number: int | None = None  #: of the recorded scoring that this one repeats
    digest: str = ""  #: that was recorded then

    @property
    def name(self) -> str:
        """The run's id, with the scoring's number if there is one."""
        return str(RunReference(self.folder.run_id, self.number))


def rescored_runs(
    sources: Sequence[RunReference],
    runs_dir: Path,
    typed: Mapping[str, Sequence[str]],
    clock: Clock,
) -> dict[RunReference, RescoredRun]:
    """Every source, scored once: a recorded scoring repeated, a run as it stands.

    Args:
        sources: as they were typed.
        runs_dir: where their runs are.
        typed: settings that are changed for the runs that are scored as they stand.
        clock: is asked for nothing that shows.

    Raises:
        UsageError: the runs are of different jobs, there is no such scoring, a setting
            is wrong, or settings are changed where nothing is scored under them.
        DatasetError: an input file is missing or wrong.
    """
    folders = {source: resolve(runs_dir, source.run) for source in sources}
    if typed and all(source.number is not None for source in sources):
        raise UsageError(
            "A recorded scoring keeps its settings; name the run without @ as a side "
            f"that {', '.join(typed)} is changed of."
        )
    starts = {}
    for source, folder in folders.items():
        with open_reader(folder.log) as reader:
            starts[source] = run_started(reader)
    if len({start.job for start in starts.values()}) > 1:
        run_jobs = (
            f"{folders[source].run_id} is a run of {start.job}"
            for source, start in starts.items()
        )
        raise UsageError(f"{' and '.join(run_jobs)}; compare runs of one job.")
    return {
        source: _rescored_now(folder, starts[source], typed, clock)
        if source.number is None
        else _rescored_as_recorded(folder, source.number)
        for source, folder in folders.items()
    }


def _rescored_now(
    folder: RunFolder,
    started: RunStarted,
    typed: Mapping[str, Sequence[str]],
    clock: Clock,
) -> RescoredRun:
    job = job_of(started)
    settings = effective_settings(job, folder, typed)
    scoring = asyncio.run(score_run(job, folder, settings, clock=clock, record=False))
    return RescoredRun(folder=folder, started=started, scoring=scoring)


def _rescored_as_recorded(folder: RunFolder, number: int) -> RescoredRun:
    with rescorer(folder) as run:
        recorded = run.recorded(number)
        return RescoredRun(
            folder=folder,
            started=run.started,
            scoring=run.repeated(recorded),
            number=number,
            digest=recorded.digest,
        )


def side_pairs(
    references: Sequence[ModelReference], runs: Mapping[RunReference, RescoredRun]
) -> tuple[tuple[Side, Side], ...]:
    """The sides that the words *references* mean.

    Raises:
        UsageError: a run has no such model, or the words leave open which are meant.
    """
    models = {
        source: tuple(run.scoring.scorecard.models) for source, run in runs.items()
    }

    def side(source: RunReference, model: str) -> Side:
        run, card = runs[source], runs[source].scoring.scorecard
        return Side(
            run=run.folder.run_id,
            number=run.number,
            model=model,
            comparable=card.comparable.get(model, {}),
            names={metric.path: metric.label for metric in card.models[model]},
            labels=card.labelled.get(model),
            seq=run.scoring.seq,
        )

    return tuple((side(*a), side(*b)) for a, b in paired_models(references, models))


def reader_notes(runs: Sequence[RescoredRun]) -> Iterator[str]:
    """Yield what affects the comparison and does not show in its numbers."""
    first, *others = runs
    for run in runs:
        yield from _of_run(run)
    for other in others:
        yield from _settings(first, other)
        yield from _inputs(first, other)
        yield from _served(first, other)


def _of_run(run: RescoredRun) -> Iterator[str]:
    card = run.scoring.scorecard
    if run.scoring.is_partial:
        yield f"{run.name}: partial: the run is unfinished."
    if run.digest and run.digest != run.scoring.digest:
        yield (
            f"{run.name}: today's code makes another scorecard of it than was "
            f"recorded; both sides are scored by today's."
        )
    for setting in run.scoring.changed_settings:
        yield f"{run.name}: {setting} is not the file that the run was started with."
    if card.stale:
        yield (
            f"{run.name}: {card.stale} stored answers are stale: these "
            "settings do not use them."
        )
    if card.missing:
        yield (
            f"{run.name}: {card.missing} tasks that these settings need "
            "are missing from the run; resume it to add them."
        )
    if run.number is None:
        yield from _more_inputs(run)


def _more_inputs(run: RescoredRun) -> Iterator[str]:
    """Name the newest scoring that read inputs which the run's own settings lack."""
    known = {read.setting for read in run.scoring.inputs}
    with run.folder.open_reader() as reader:
        recorded = scorings(reader)
    for scoring in reversed(recorded):
        if more := sorted({read.setting for read in scoring.inputs} - known):
            yield (
                f"{run.name}: scoring {scoring.number} read {', '.join(more)} too; "
                f"to compare by it, name {run.name}@{scoring.number}."
            )
            return


def _settings(a: RescoredRun, b: RescoredRun) -> Iterator[str]:
    settings_a, settings_b = (dict(run.scoring.scorecard.settings) for run in (a, b))
    changed = [
        f"{name} ({settings_a.get(name)} in {a.name}, {settings_b.get(name)} in "
        f"{b.name})"
        for name in sorted({*settings_a, *settings_b})
        if settings_a.get(name) != settings_b.get(name)
    ]
    if changed:
        yield f"the settings differ: {', '.join(changed)}."


def _inputs(a: RescoredRun, b: RescoredRun) -> Iterator[str]:
    """Files whose content was not the same on both sides."""
    hashes_a = hashes_by_setting(a.scoring.inputs)
    for setting, hashes in hashes_by_setting(b.scoring.inputs).items():
        if hashes_a.get(setting, hashes) != hashes:
            yield (
                f"{setting} was not the same file for {a.name} and "
                f"{b.name}; where the truth differs, so do the scores."
            )


def _served(a: RescoredRun, b: RescoredRun) -> Iterator[str]:
    """Models of the same name behind which another model or build answered."""
    names_a, names_b = (_names_served(run) for run in (a, b))
    for key in sorted(names_a.keys() & names_b.keys()):
        if names_a[key] != names_b[key]:
            model, field = key
            yield (
                f"the served {field} of {model} differs: "
                f"{_listed(names_a[key])} in {a.name}, {_listed(names_b[key])} in "
                f"{b.name}."
            )


def _names_served(run: RescoredRun) -> Mapping[tuple[str, str], frozenset[str]]:
    with run.folder.open_reader() as reader:
        return {
            (count.model, count.field): frozenset(count.answers)
            for count in status(reader).served
            if count.field in SNAPSHOT
        }


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)[:MOST_NAMES])
