"""Repeats the recorded scorings of a run, and compares verdicts and scorecards."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from heapq import merge
from itertools import groupby, zip_longest
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from runner.errors import DatasetError, RunnerError
from runner.regress.report import (
    CheckedStep,
    Codes,
    StepTally,
    Tallies,
    empty_tallies,
)
from runner.regress.stored_values import ComparedFolder
from runner.score.parsed_replies import FOLDER
from runner.score.repeat import Rescorer, ScoringBasis
from runner.score.scoring import Scoring
from runner.scorecard import Verdict, verdicts_in
from store.events import AttemptAnswered, ScoringRecorded
from store.tables import recorded, tasks_numbered, visible_seq
from store.verdicts import (
    StoredVerdict,
    all_verdicts,
    equal_verdicts,
    write_verdicts,
)

DIGITS = 12
"""Of a digest, where no value of the scorecard can be named."""

MOST_BETWEEN = 1_000
"""Events between two scorings; more are not scorings alone."""


class _Recorded(NamedTuple):
    """A scoring in the log."""

    seq: int
    event: ScoringRecorded

    @property
    def where(self) -> str:
        return f"scoring {self.event.number}"

    @property
    def digest(self) -> str:
        return self.event.digest[:DIGITS]

    @property
    def codes(self) -> Codes:
        return Codes(self.event.code, self.event.code_sha256)


def check_scorings(run: Rescorer, steps: Tallies, now: Codes) -> None:
    """Repeat the scorings of a run; of several on an equal basis, the newest.

    Several may show that the same reply is read differently, which counts once.

    Args:
        run: the open run.
        steps: what differs is added to them.
        now: the code of today.
    """
    current: list[tuple[_Recorded, ScoringBasis]] = []
    for row in recorded(run.reader, 0, visible_seq(run.reader), ["scoring_recorded"]):
        if not isinstance(row.event, ScoringRecorded):
            continue  # of a later siftlog
        scoring = _Recorded(row.seq, row.event)
        try:
            basis = ScoringBasis.of(run.job, row.event)
        except RunnerError as error:
            tallies = empty_tallies()
            _fail(tallies, scoring, error)
            _merge(steps, tallies, scoring, now)
            continue
        current = [known for known in current if not _is_repeated(run, known[1], basis)]
        current.append((scoring, basis))
    changed: set[int] = set()  # tasks whose reply is read differently
    # `parsed/` is of the newest one
    parsed: ComparedFolder | None = ComparedFolder(run.folder.path / FOLDER)
    for scoring, basis in reversed(current):
        _merge(steps, _repeat(run, scoring, basis, parsed, changed), scoring, now)
        parsed = None


def _is_repeated(run: Rescorer, before: ScoringBasis, basis: ScoringBasis) -> bool:
    """Return whether a later scoring is of the same settings, inputs and answers."""
    if not before.is_like(basis):
        return False
    events = basis.seq - before.seq
    between = recorded(run.reader, before.seq, min(events, MOST_BETWEEN), None)
    return len(between) == events and all(
        isinstance(row.event, ScoringRecorded) for row in between
    )


def _merge(steps: Tallies, tallies: Tallies, scoring: _Recorded, now: Codes) -> None:
    for step, tally in tallies.items():
        tally.explain(scoring.codes, now, step)
        steps[step].merge(tally)


def _fail(tallies: Tallies, scoring: _Recorded, error: RunnerError) -> None:
    card = tallies[CheckedStep.SCORECARD]
    card.compared += 1
    card.add(scoring.seq, scoring.where, scoring.digest, str(error))


def _repeat(
    run: Rescorer,
    scoring: _Recorded,
    basis: ScoringBasis,
    parsed: ComparedFolder | None,
    changed: set[int],
) -> Tallies:
    """Repeat one scoring; what today's code refuses is a difference.

    Tasks whose reply is read differently are added to *changed*, and counted if they
    were not there before.
    """
    tallies = empty_tallies()
    try:
        run.placed(basis)
    except DatasetError as error:
        unchecked = f"{scoring.where}: input missing: {error}"
        tallies[CheckedStep.SCORECARD].unchecked = unchecked
        return tallies
    try:
        now = run.scored(basis, parsed)
        if parsed is not None:
            changed |= _compare_values(run, tallies, parsed)
        _compare_verdicts(run, tallies, scoring, basis, now, changed=changed)
    except RunnerError as error:
        _fail(tallies, scoring, error)
        return tallies
    card = tallies[CheckedStep.SCORECARD]
    card.compared = 1
    if now.digest != scoring.event.digest:
        stored = run.stored(scoring.event)
        old, new = _first_change(
            None if stored is None else json.loads(stored), json.loads(now.content)
        )
        card.add(
            scoring.seq,
            scoring.where,
            old or scoring.digest,
            new or now.digest[:DIGITS],
        )
    return tallies


def _first_change(stored: object, content: object) -> tuple[str, str]:
    """Return the first value in plain data that changed, with its path."""
    old = dict(_leaves(stored)) if stored is not None else {}
    new = dict(_leaves(content))
    for path in {**old, **new} if old else ():
        if old.get(path) != new.get(path):
            was, now = (side.get(path, "absent") for side in (old, new))
            return f"{path} {was}".lstrip(), str(now)
    return "", ""


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, object]]:  # noqa: ANN401 - JSON
    match value:
        case dict():
            for name, inner in value.items():
                yield from _leaves(inner, f"{path}.{name}" if path else name)
        case list():
            for at, inner in enumerate(value):
                yield from _leaves(inner, f"{path}[{at}]")
        case _:
            yield path, value


def _compare_values(
    run: Rescorer, tallies: Tallies, parsed: ComparedFolder
) -> set[int]:
    """Compare parsed values with those in `parsed/`; return the tasks that differ."""
    tally = tallies[CheckedStep.PARSE]
    tally.compared += sum(parsed.pages)
    tasks: set[int] = set()
    for change in parsed.changes:
        (answered,) = recorded(run.reader, change.seq - 1, 1, ["attempt_answered"])
        if isinstance(answered.event, AttemptAnswered):
            (row,) = tasks_numbered(run.reader, [answered.event.task])
            tasks.add(row.task)
            old, new = _first_change(change.stored, change.now)
            tally.add(change.seq, row.key, old, new)
    return tasks


def _compare_verdicts(
    run: Rescorer,
    tallies: Tallies,
    scoring: _Recorded,
    basis: ScoringBasis,
    now: Scoring,
    *,
    changed: set[int],
) -> None:
    """Compare the verdicts with those in the scoring's folder, if they are there.

    Tasks whose values were found to have *changed* are no further parse; others are
    added to them.
    """
    path = run.folder.scores / str(scoring.event.number) / "verdicts.db"
    scores = tallies[CheckedStep.SCORES]
    try:
        equal = equal_verdicts(path, _verdicts(now)) if path.exists() else 0
    except sqlite3.Error:
        return  # siftlog report writes the file again
    if equal is not None:
        scores.compared += equal
        return
    with TemporaryDirectory(prefix="siftlog-") as room:
        replayed_file = Path(room, "verdicts.db")
        # the details of a scoring are read once
        write_verdicts(replayed_file, _verdicts(run.scored(basis)))
        for task, old, new in _changed(path, replayed_file, scores):
            is_read_alike = (
                old is not None
                and new is not None
                and (old.value, old.rule) == (new.value, new.rule)
            )
            if not is_read_alike:
                if task in changed:
                    continue
                changed.add(task)
                tallies[CheckedStep.PARSE].compared += 1
            step = CheckedStep.SCORES if is_read_alike else CheckedStep.PARSE
            (row,) = tasks_numbered(run.reader, [task])
            tallies[step].add(row.updated_seq, row.key, _words(old), _words(new))


def _verdicts(scoring: Scoring) -> Iterator[Verdict]:
    return verdicts_in(scoring.scorecard.details)


def _changed(
    before: Path, after: Path, scores: StepTally
) -> Iterator[tuple[int, StoredVerdict | None, StoredVerdict | None]]:
    """Yield the verdicts that differ, by task; those on both sides are no change."""
    sides = merge(_sided(before, 0), _sided(after, 1), key=itemgetter(0, 1))
    for task, group in groupby(sides, itemgetter(0)):
        verdicts: tuple[list[StoredVerdict], list[StoredVerdict]] = ([], [])
        for _, side, verdict in group:
            verdicts[side].append(verdict)
        scores.compared += len(verdicts[0])
        if verdicts[0] == verdicts[1]:
            continue
        common = Counter(verdicts[0]) & Counter(verdicts[1])
        for old, new in zip_longest(*(_without(side, common) for side in verdicts)):
            yield task, old, new


def _sided(path: Path, side: int) -> Iterator[tuple[int, int, StoredVerdict]]:
    """Yield verdicts by task, without what files of older siftlogs do not have."""
    for verdict in all_verdicts(path):
        yield verdict.task, side, replace(verdict, is_grounded=None)


def _without(
    verdicts: list[StoredVerdict], common: Counter[StoredVerdict]
) -> Iterator[StoredVerdict]:
    left = Counter(common)
    for verdict in verdicts:
        if left[verdict]:
            left[verdict] -= 1
        else:
            yield verdict


def _words(verdict: StoredVerdict | None) -> str:
    """Return a verdict in words: what was read, what was expected, the outcome."""
    if verdict is None:
        return "no verdict"
    outcome = {True: "right", False: "wrong", None: "not judged"}[verdict.correct]
    expected = f", expected {verdict.expected}" if verdict.expected else ""
    rule = f" by {verdict.rule}" if verdict.rule else ""
    return f"{verdict.value or '(nothing)'}{rule}{expected}: {outcome}"
