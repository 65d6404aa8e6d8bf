"""Reads what a scoring of a run found, from its folder: metrics, findings, answers.

The monitor imports no jobs, so only files are read, in a thread. Files may be missing
or partial, of any siftlog; texts in them come from models and papers.
"""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec

from store.errors import StoreError
from store.read.status import scorings
from store.runs import RunFolder

ANSWERS = 200
"""Maximum rows of answers that are read."""
_CELL = 300
"""Maximum characters of a cell that are kept."""
REPORT = "report.html"
_SEVERITIES = ("error", "warn", "info")
GROUNDED = ("all.grounded", "references.grounded")
"""Paths of metrics that are the share of quotes found in their text."""
GROUNDED_PARTS = "grounding.predicted."
"""Paths below it are such shares, each of one class of values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineMetric:
    """A metric of one model with its uncertainty."""

    path: str
    model: str
    value: float | None  #: None: undefined
    n: int
    lo: float | None  #: None: no interval
    hi: float | None
    name: str = ""  #: name for readers; empty: none


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The current metrics of a run."""

    metrics: tuple[HeadlineMetric, ...]  #: main metric first
    level: float | None  #: level of the intervals, such as 0.95; None: none
    seq: int  #: the last event of the log that was read; 0: of a recorded scoring
    ended: int  #: tasks that had ended by then
    is_partial: bool  #: the run is unfinished


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFinding:
    """A finding of a scoring."""

    severity: str  #: error, warn or info
    where: str
    message: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOf:
    """A share, and of how many."""

    value: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSheet:
    """The table of answers of a job that has no gold values."""

    columns: tuple[str, ...]  #: item, model, then the fields
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringResult:
    """Result of a scoring."""

    number: int
    folder: Path  #: of the scoring
    headline: Headline | None  #: None: the scoring has no headline metric
    findings: tuple[ResultFinding, ...] = ()  #: the most severe first
    has_report: bool = False
    explain: str = ""  #: the item to explain first; empty: none
    ungrounded: Mapping[str, ShareOf] = field(default_factory=dict)  #: by model
    answers: AnswerSheet | None = None  #: None: there is none, or it has gold values

    @property
    def report(self) -> Path | None:
        """The report; None: there is none."""
        return self.folder / REPORT if self.has_report else None

    @property
    def notable(self) -> tuple[ResultFinding, ...]:
        """The findings that need the reader: errors and warnings."""
        return tuple(f for f in self.findings if f.severity != _SEVERITIES[-1])


class ResultReader:
    """Reads the newest result of one run in a thread, once per scoring."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._number: int | None = None
        self._result: ScoringResult | None = None
        self._thread: Thread | None = None

    def poll(self, number: int | None) -> ScoringResult | None:
        """Return the result of a scoring if it was read; else start to read it.

        Args:
            number: the newest scoring; None: there is none.
        """
        if number != self._number:
            self._number, self._result = number, None
            if number is not None:
                self._thread = Thread(target=self._read, args=(number,), daemon=True)
                self._thread.start()
        return self._result

    def join(self) -> None:
        """Wait for a read that was started."""
        if self._thread is not None:
            self._thread.join()

    def _read(self, number: int) -> None:
        result = read_result(self._folder.scores, number)
        if result is not None and result.headline is None:
            # an older siftlog ranked the metrics of a scoring only in the log
            with suppress(StoreError, sqlite3.Error), self._folder.open_reader() as log:
                recorded = [s for s in scorings(log) if s.number == number]
                paths = [scoring.headline for scoring in recorded if scoring.headline]
                result = read_result(self._folder.scores, number, paths)
        if number == self._number:
            self._result = result


def read_result(
    scores: Path, number: int, headlines: Sequence[str] = ()
) -> ScoringResult | None:
    """Read the folder of a scoring; None: its files are missing or damaged.

    Args:
        scores: the run's folder of scorings.
        number: the scoring.
        headlines: paths of the headline metrics, if its files do not name them.
    """
    folder = scores / str(number)
    try:
        card = msgspec.json.decode((folder / "scorecard.json").read_bytes())
        course = _decoded(folder / "operations.json")
        models = {
            model: entry["metrics"] for model, entry in card.get("models", {}).items()
        }
        return ScoringResult(
            number=number,
            folder=folder,
            headline=_headline(
                _ranked(folder, course) or headlines, models, course, card
            ),
            findings=tuple(sorted(_findings(card), key=_severity)),
            has_report=(folder / REPORT).is_file(),
            explain=_explain(folder / "result.json"),
            ungrounded=dict(_ungrounded(models)),
            answers=_answers(folder / "answers.csv"),
        )
    except (OSError, msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return None


def _explain(path: Path) -> str:
    """Return the item that the scoring explains first; older ones name none."""
    try:
        return str(_decoded(path).get("explain", ""))
    except (OSError, msgspec.DecodeError, AttributeError):
        return ""


def _decoded(path: Path) -> Mapping[str, Any]:
    content: Mapping[str, Any] = msgspec.json.decode(path.read_bytes())
    return content


def _ranked(folder: Path, course: Mapping[str, Any]) -> Sequence[str]:
    """Return the paths of the headline metrics; empty: no file names them.

    They are in `result.json`; an older siftlog wrote them into `operations.json`.
    """
    with suppress(OSError, msgspec.DecodeError, AttributeError):
        if paths := _decoded(folder / "result.json").get("headlines"):
            return [str(path) for path in paths]
    return course.get("headlines") or ()


def _headline(
    paths: Sequence[str],
    models: Mapping[str, Mapping[str, Any]],
    course: Mapping[str, Any],
    card: Mapping[str, Any],
) -> Headline | None:
    tasks = course.get("tasks", {})
    metrics = tuple(
        HeadlineMetric(
            path=path,
            name=metrics[path].get("name", ""),
            model=model,
            value=metrics[path]["value"],
            n=metrics[path]["n"],
            lo=metrics[path]["lo"],
            hi=metrics[path]["hi"],
        )
        for path in paths
        for model, metrics in models.items()
        if path in metrics
    )
    if not metrics:
        return None
    return Headline(
        metrics=metrics,
        level=card.get("settings", {}).get("level"),
        seq=0,
        ended=tasks.get("completed", 0) + tasks.get("failed", 0),
        is_partial=bool(course.get("partial")),
    )


def _findings(card: Mapping[str, Any]) -> Iterator[ResultFinding]:
    for entry in card.get("findings", ()):
        yield ResultFinding(
            severity=str(entry["severity"]),
            where=str(entry["where"]),
            message=str(entry["message"]),
            n=int(entry.get("n", 1)),
        )


def _severity(finding: ResultFinding) -> int:
    is_known = finding.severity in _SEVERITIES
    return _SEVERITIES.index(finding.severity) if is_known else 0


def _ungrounded(
    models: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, ShareOf]]:
    """Yield the share of quotes or values that their text does not have, by model."""
    for model, metrics in models.items():
        paths = [path for path in GROUNDED if path in metrics] or [
            path for path in metrics if path.startswith(GROUNDED_PARTS)
        ]
        shares = [
            (float(metrics[path]["value"]), int(metrics[path]["n"]))
            for path in paths
            if metrics[path]["value"] is not None
        ]
        n = sum(n for _, n in shares)
        if n:
            grounded = sum(share * n for share, n in shares) / n
            yield model, ShareOf(value=max(0.0, 1.0 - grounded), n=n)


def _answers(path: Path) -> AnswerSheet | None:
    """Read the table of answers, if there are no gold values to measure them by."""
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines = csv.reader(line.replace("\0", "") for line in file)
        try:
            head = next(lines, [])
            fields = [name for name in head if f"{name}_unparsed" in head]
            if not fields or any(f"{name}_gold" in head for name in fields):
                return None
            columns = [name for name in ("id", "model", *fields) if name in head]
            places = [head.index(name) for name in columns]
            rows = [_row(line, places) for line in islice(lines, ANSWERS)]
        except csv.Error:
            return None
    return AnswerSheet(columns=tuple(columns), rows=tuple(rows))


def _row(line: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(line[at][:_CELL] if at < len(line) else "" for at in places)
