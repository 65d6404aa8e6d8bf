"""Scores a run: replays the answers, calls the job, writes the results."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel

from runner.added_stages import extended, job_in, original, stages_in
from runner.fingerprint import (
    code_fingerprint,
    code_hash,
    files_of,
    hashes_by_setting,
    input_hashes,
    manifest,
)
from runner.job import Dataset, Job
from runner.job_faults import calling, parser_faults
from runner.reply_labels import scored, scoring_inputs
from runner.run.folder import owner
from runner.score.log_answers import LogAnswers, ParsedFolder
from runner.score.notable import notable_answers
from runner.score.parsed_replies import FOLDER
from runner.score.render import (
    FIGURE_FORMATS,
    FigureFormat,
    ReportSource,
    changes,
    operations_json,
    scorecard_json,
    write_reports,
)
from runner.score.result_files import write_files
from runner.scorecard import (
    Finding,
    HistoryEntry,
    Scorecard,
)
from runner.workload import as_json, resolve, validated
from store.clock import Clock
from store.database import open_reader
from store.errors import CorruptLog
from store.events import (
    Blob,
    Entry,
    Input,
    LimitObserved,
    RunFinished,
    RunResumed,
    RunStarted,
    ScoringRecorded,
)
from store.log.sqlite import SqliteLog
from store.notable import NotableItems
from store.read.course import course
from store.read.status import (
    Status,
    added_stages,
    newest_scoring,
    run_started,
    scorings,
    status,
)
from store.read.tasks import events, parts
from store.read.usage import usage_counts
from store.results import Milestone, parts_payload
from store.runs import RunFolder
from store.tables import visible_seq

LIMIT = 8 << 20
"""Maximum bytes of a stored input: gold labels, rubrics and aliases are smaller, a
corpus is not."""


def keep(inputs: Iterable[Input]) -> tuple[list[Input], tuple[Blob, ...]]:
    """Return the inputs as recorded, and the blobs with the contents of small ones.

    Inputs with a hash other than that of their bytes are not stored, nor those that
    changed since they were hashed.
    """
    noted: list[Input] = []
    blobs: dict[bytes, Blob] = {}
    for recorded_input in inputs:
        form, input_parts = _contents(Path(recorded_input.path))
        if input_parts and input_parts[0].sha256.hex() == recorded_input.sha256:
            blobs |= {blob.sha256: blob for blob in input_parts}
            noted.append(replace(recorded_input, kept=form))
        else:
            noted.append(recorded_input)
    return noted, tuple(blobs.values())


def _contents(path: Path) -> tuple[str, list[Blob]]:
    """Return the blobs of a file or folder, its own hash first; none if it is large."""
    files = files_of(path) if path.is_dir() else [path]
    if sum(file.stat().st_size for file in files) > LIMIT:
        return "", []
    blobs = [_blob(file.read_bytes()) for file in files]
    if not path.is_dir():
        return "file", blobs
    names = [file.relative_to(path).as_posix() for file in files]
    if any("\n" in name for name in names):
        return "", []  # its line in the list would be ambiguous
    hashes = (blob.sha256.hex() for blob in blobs)
    return "folder", [_blob(manifest(zip(names, hashes, strict=True))), *blobs]


def _blob(data: bytes) -> Blob:
    return Blob(sha256=hashlib.sha256(data).digest(), data=data)


def put_back(conn: sqlite3.Connection, recorded_input: Input, folder: Path) -> Path:
    """Write an input stored in the log into the empty folder *folder*.

    Returns:
        Its new path, with the original name.

    Raises:
        CorruptLog: the content does not match its event.
    """
    target = folder / (Path(recorded_input.path).name or "input")
    whole = _part(conn, recorded_input.sha256)
    if recorded_input.kept == "file":
        target.write_bytes(whole)
        return target
    target.mkdir()
    for line in whole.decode().split("\n")[:-1]:
        name, _, sha256 = line.partition("\0")
        file = target / name
        if not file.resolve().is_relative_to(target.resolve()):
            raise CorruptLog(
                f"the log keeps a file {name!r} that would lie outside of its folder; "
                "see 'siftlog verify'"
            )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_part(conn, sha256))
    return target


def _part(conn: sqlite3.Connection, sha256: str) -> bytes:
    stored_parts = parts(conn, [bytes.fromhex(sha256)])
    if not stored_parts:
        raise CorruptLog(
            f"the input part {sha256} is missing: see 'siftlog verify', then restore a "
            "copy of the run's folder"
        )
    (data,) = stored_parts.values()
    return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Result of a scoring."""

    number: int | None  #: None: not recorded
    job: str
    # asyncio prints the result of its main task, and a scorecard references all data
    scorecard: Scorecard = field(repr=False)
    content: bytes = field(repr=False)  #: of scorecard.json
    artifacts: tuple[str, ...]  #: file names in the scoring's folder
    folder: Path | None
    is_partial: bool  #: the run is unfinished
    inputs: tuple[Input, ...]  #: inputs that it read, by content
    changed_settings: tuple[str, ...]  #: settings whose files differ from the run's
    seq: int  #: the last event of the log that was read
    ended: int  #: tasks that had ended by then, or while it was read
    parser_faults: tuple[str, ...] = ()
    """Class and line of exceptions in parsers; those replies count as unparsed."""
    findings: tuple[Finding, ...] = ()
    """Findings of the reports, such as a figure that could not be drawn."""
    dataset: Dataset = field(default=None, repr=False)  #: that was scored
    is_reused: bool = False  #: an equal one was recorded before, and no answer came

    @property
    def digest(self) -> str:
        """SHA-256 of scorecard.json."""
        return hashlib.sha256(self.content).hexdigest()


def effective_settings(
    job: Job, folder: RunFolder, typed: Mapping[str, Sequence[str]]
) -> BaseModel:
    """Return the settings of the last resume, overridden by *typed*."""
    with open_reader(folder.log) as reader:
        return settings_in(job, reader, typed)


def loaded(folder: RunFolder) -> tuple[Job, Dataset]:
    """Return the job of a run, and its data under the settings of the run.

    Raises:
        UsageError: the job is missing.
        RunnerError: it cannot be loaded, or its data cannot.
    """
    with open_reader(folder.log) as reader:
        job = job_in(reader)
        settings = settings_in(job, reader, {})
    with calling(job, "load"):
        return job, job.load(settings)


def settings_in(
    job: Job, reader: sqlite3.Connection, typed: Mapping[str, Sequence[str]]
) -> BaseModel:
    """Return the last settings in a log, overridden by *typed*.

    A changed profile applies all its settings: recorded values do not override them.
    """
    before = json.loads(_last_settings(reader))
    if "profile" in typed:
        defaults = validated(job, {"profile": before.get("profile", "siftlog")})
        plain = defaults.model_dump(mode="json")
        before = {k: v for k, v in before.items() if plain.get(k) != v}
    return resolve(job, typed=typed, environment={}, file=before)


def _last_settings(reader: sqlite3.Connection) -> str:
    latest = run_started(reader).settings
    for recorded in events(reader, limit=1_000_000, kinds=["run_resumed"]):
        if isinstance(recorded.event, RunResumed):
            latest = recorded.event.settings
    return latest


def answers(
    reader: sqlite3.Connection,
    first: RunStarted,
    through_seq: int,
    parsed: ParsedFolder | None = None,
) -> LogAnswers:
    """Return a run's answers up to one event, without those of added stages.

    Args:
        reader: of the run's log.
        first: its first event.
        through_seq: the last visible event.
        parsed: parsed replies of earlier scorings; None: parse all of them.
    """
    return LogAnswers(
        connection=reader,
        through_seq=through_seq,
        models=tuple(first.models["subject"]),
        replicates=first.replicates,
        imported=first.imported,
        parsed=parsed,
        without=frozenset(event.stage for event, _ in added_stages(reader)),
    )


async def score_run(
    job: Job,
    folder: RunFolder,
    settings: BaseModel,
    *,
    clock: Clock,
    record: bool,
    reuse: bool = False,
    report: bool = True,
    figures: Sequence[FigureFormat] = (),
) -> Scoring:
    """Score a run in its current state; write and record the scoring if *record*.

    While another process writes the run, its finished part is scored and nothing is
    recorded.

    Args:
        job: the job of the run.
        folder: the run's folder.
        settings: the settings of the scoring.
        clock: dates the scoring.
        record: write files and an event.
        reuse: record nothing if the newest scoring is equal, on an equal basis.
        report: include reports, which take seconds to draw.
        figures: formats of the files of figures; empty: `FIGURE_FORMATS`.

    Raises:
        DatasetError: an input file is missing or invalid.
        LogBusy: another process resumed the run meanwhile; nothing was recorded.
    """
    job = original(job)
    inputs = input_hashes(scoring_inputs(job, settings))
    may_record = record and not folder.is_alive()
    with open_reader(folder.log) as reader:
        through_seq = visible_seq(reader)
        parsed = ParsedFolder(folder.path / FOLDER, writes=may_record)
        result = replayed(
            job, reader, settings, inputs, through_seq=through_seq, parsed=parsed
        )
        if not may_record:
            return result
        if reuse and (number := _equal_scoring(reader, job, settings, result)):
            target = folder.scores / str(number)
            if target.is_dir():
                return replace(
                    result,
                    number=number,
                    artifacts=names(target),
                    folder=target,
                    is_reused=True,
                )
        state = status(reader)
        operations = operations_json(state, usage_counts(reader), result.scorecard)
        folder.scores.mkdir(exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder.scores) as drafts:
            draft = Path(drafts) / "draft"
            items = NotableItems() if report else None
            write_files(draft, result.scorecard, result.content, operations, items)
            if items is not None:
                report_source = reported(
                    job,
                    reader,
                    settings,
                    result,
                    items,
                    titles=folder.titles,
                    figures=figures,
                )
                result = replace(result, findings=write_reports(draft, report_source))
            async with await SqliteLog.open(
                folder.log, clock=clock, owner=owner()
            ) as log:
                # numbered by the log's writer: no two scorings get the same number
                number = len(scorings(reader)) + 1
                target = folder.scores / str(number)
                shutil.rmtree(target, ignore_errors=True)
                draft.replace(target)
                card, history_entry = result.scorecard, result.scorecard.history_entry
                noted, blobs = keep(inputs)
                recorded = ScoringRecorded(
                    number=number,
                    job_version=job.version,
                    code_sha256=code_hash(job),
                    settings=as_json(settings),
                    inputs=noted,
                    seq=through_seq,
                    digest=result.digest,
                    milestone=_milestone(history_entry, result, state)
                    if history_entry
                    else None,
                    definitions=definitions(card),
                    headline=card.headline,
                    reached=reached(card),
                    code=code_fingerprint(job),
                )
                payload = parts_payload(history_entry.parts) if history_entry else None
                whole = Blob(sha256=bytes.fromhex(result.digest), data=result.content)
                await log.append(
                    Entry(event=recorded, payload=payload, blobs=(whole, *blobs))
                )
    return replace(result, number=number, artifacts=names(target), folder=target)


_INERT = ScoringRecorded | RunResumed | RunFinished | LimitObserved
"""Events of a process that finds nothing to do."""

_MOST_INERT = 1_000
"""Events after a scoring; more are of a run that goes on."""


def _equal_scoring(
    reader: sqlite3.Connection, job: Job, settings: BaseModel, scoring: Scoring
) -> int | None:
    """Return the number of the newest scoring if it has the same basis and result.

    The basis is the settings, the contents of inputs, the code, and the answers: since
    then, no process has done anything.
    """
    newest = newest_scoring(reader)
    if newest is None or not isinstance(newest.event, ScoringRecorded):
        return None
    known = newest.event
    before, now = (
        [(used.setting, used.sha256) for used in inputs]
        for inputs in (known.inputs, scoring.inputs)
    )
    is_same = (
        known.digest == scoring.digest
        and known.settings == as_json(settings)
        and before == now
        and known.code_sha256 == code_hash(job)
        and known.code == code_fingerprint(job)
    )
    later = events(reader, after=known.seq, limit=_MOST_INERT)
    is_inert = len(later) < _MOST_INERT and all(
        isinstance(row.event, _INERT) for row in later
    )
    return known.number if is_same and is_inert else None


def replayed(
    job: Job,
    reader: sqlite3.Connection,
    settings: BaseModel,
    inputs: list[Input],
    *,
    through_seq: int,
    parsed: ParsedFolder | None = None,
    load: Callable[[BaseModel], Dataset] | None = None,
) -> Scoring:
    """Score a run's answers up to one event; write nothing but parsed replies.

    Args:
        job: the job of the run.
        reader: of the run's log.
        settings: the settings of the scoring.
        inputs: its inputs, hashed.
        through_seq: the last event that is read.
        parsed: parsed replies of earlier scorings; None: parse all of them.
        load: returns the data; None: the job loads them.

    Raises:
        DatasetError: an input file is missing or invalid.
    """
    first = run_started(reader)
    state = status(reader)
    with calling(job, "score"), parser_faults() as faults:
        stored = answers(reader, first, through_seq, parsed)
        dataset = (load or job.load)(settings)
        card = scored(job, dataset, stored, settings)
        for added in stages_in(reader, through_seq):
            concerned = stored.about(job, added)
            card = added.scored(card, job, dataset, concerned)
            job = extended(job, added)
    return Scoring(
        number=None,
        job=job.name,
        scorecard=card,
        content=scorecard_json(job, card),
        artifacts=(),
        folder=None,
        is_partial=state.tasks.open > 0 or not state.planning_exhausted,
        inputs=tuple(inputs),
        changed_settings=_changed(first.inputs, inputs),
        seq=through_seq,
        ended=state.tasks.completed + state.tasks.failed,
        parser_faults=tuple(faults),
        dataset=dataset,
    )


def definitions(card: Scorecard) -> str:
    """Hash the definitions of a scorecard's metrics, by model."""
    lines = (
        f"{model}\0{metric.path}\0{metric.definition}\n"
        for model, metrics in card.models.items()
        for metric in metrics
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def reached(card: Scorecard) -> dict[str, float | None]:
    """Return the value of the headline metric, by model; empty without a headline."""
    return {
        model: metric.value
        for model, metrics in card.models.items()
        for metric in metrics
        if metric.path == card.headline
    }


def _milestone(
    history_entry: HistoryEntry, scoring: Scoring, state: Status
) -> Milestone:
    """Return the milestone with the costs of the run."""
    cost = {} if state.cost_usd is None else state.model_cost_usd
    return replace(
        history_entry.milestone,
        partial=history_entry.milestone.partial or scoring.is_partial,
        cost_usd={
            model: cost[model]
            for model in history_entry.milestone.standings
            if model in cost
        },
    )


def names(folder: Path) -> tuple[str, ...]:
    """Return the files of a scoring, including those in subfolders."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return tuple(sorted(path.relative_to(folder).as_posix() for path in files))


def reported(
    job: Job,
    reader: sqlite3.Connection,
    settings: BaseModel,
    scoring: Scoring,
    items: NotableItems,
    *,
    titles: Path,
    figures: Sequence[FigureFormat],
) -> ReportSource:
    """Return the input of reports on a scoring.

    Args:
        job: the job of the run.
        reader: of the log as the scoring read it.
        settings: the settings of the scoring.
        scoring: the scoring.
        items: which have watched its verdicts.
        titles: the database of the run's titles; it may be absent.
        figures: formats of the files of figures; empty: `FIGURE_FORMATS`.
    """
    first = run_started(reader)
    purpose = " ".join((type(job).__doc__ or "").strip().split("\n\n")[0].split())
    with calling(job, "describe"):
        description = (purpose, *job.describe(scoring.dataset))
    return ReportSource(
        job=job.name,
        job_version=job.version,
        run_id=first.run_id,
        scorecard=scoring.scorecard,
        digest=scoring.digest,
        inputs=scoring.inputs,
        changes=changes(job, settings, tuple(scoring.scorecard.settings)),
        is_imported=first.imported,
        changed_settings=scoring.changed_settings,
        figure_formats=tuple(figures) or FIGURE_FORMATS,
        settings=settings,
        description=tuple(filter(None, description)),
        course=course(reader, scoring.seq),
        notable=notable_answers(items.ranking(), reader, titles, job, scoring.dataset),
        has_explain=type(job).explain is not Job.explain,
    )


def _changed(before: list[Input], now: list[Input]) -> tuple[str, ...]:
    known = hashes_by_setting(before)
    return tuple(
        setting
        for setting, hashes in hashes_by_setting(now).items()
        if known.get(setting, hashes) != hashes
    )
