"""Reads a run as other programs see one: each task, its request, reply and verdicts."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Final

import msgspec

from runner.export import repeated_scoring
from runner.job import Job
from runner.plan import reply_of, served_by
from runner.registry import job_of
from runner.score.repeat import chosen
from runner.score.scoring import Scoring
from runner.scorecard import Metric, Scorecard, Verdict
from runner.sent_requests import (
    SentRequest,
    SentRequests,
    prompt_in_data,
    reply_text,
)
from runner.table_files import IN_MEMORY
from runner.telemetry import RequestParameters, request_parameters
from store.database import open_reader
from store.events import AttemptAnswered, AttemptFailed, RunStarted, ScoringRecorded
from store.read.status import Status, run_started, scorings, status
from store.read.tasks import AttemptRow, attempts
from store.runs import RunFolder
from store.scoring import families
from store.served_by import SERVED_UNKNOWN, ServedBy
from store.tables import payload, visible_seq
from store.task import TaskRow, TaskState

PROGRESS_TASKS: Final = 1_000
"""Tasks between two progress messages."""

_LENGTH_BYTES: Final = 4


class VerdictIndex:
    """Verdicts of a scoring by task, in a temporary file.

    Memory holds eight bytes for each task: where its last verdict begins. Each verdict
    is stored after the position of the task's previous one.
    """

    def __init__(self, leaving: ExitStack) -> None:
        """Start without verdicts; *leaving* deletes the file."""
        self._file = leaving.enter_context(
            SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - by *leaving*
        )
        self._last = array("q")
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(tuple[int, Verdict])

    def add(self, verdict: Verdict) -> None:
        """Store a verdict after the others of its task."""
        if missing := verdict.task + 1 - len(self._last):
            self._last.extend([-1] * max(0, missing))
        packed = self._encoder.encode((self._last[verdict.task], verdict))
        self._last[verdict.task] = self._file.tell()
        self._file.write(len(packed).to_bytes(_LENGTH_BYTES) + packed)

    def of(self, task: int) -> tuple[Verdict, ...]:
        """Return a task's verdicts in the order of the scoring; all must be stored."""
        verdicts = []
        position = self._last[task] if task < len(self._last) else -1
        while position >= 0:
            self._file.seek(position)
            size = int.from_bytes(self._file.read(_LENGTH_BYTES))
            position, verdict = self._decoder.decode(self._file.read(size))
            verdicts.append(verdict)
        return tuple(reversed(verdicts))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedTask:
    """A task that was sent or answered, with everything known about it."""

    row: TaskRow
    attempts: tuple[AttemptRow, ...]
    answered: AttemptAnswered | None  #: None: there is no reply
    text: str  #: of the reply; numbers of embeddings as JSON; empty without a reply
    reasoning: str  #: of the reply, as far as the endpoint returned it
    served: ServedBy
    sent: SentRequest | None  #: None: not stored, or left out on request
    request_sha256: str | None
    parameters: RequestParameters
    verdicts: tuple[Verdict, ...]

    @property
    def imported_scores(self) -> Mapping[str, float]:
        """Scores that another tool gave the reply, by scorer."""
        context = json.loads(self.row.context or "{}")
        scores = context.get("scores") if isinstance(context, dict) else None
        return scores if isinstance(scores, dict) else {}

    @property
    def messages(self) -> tuple[tuple[str, str], ...]:
        """Roles and texts of the request; input without roles is the user's."""
        if self.sent is None:
            return ()
        return self.sent.messages or (("user", self.sent.json),)

    @property
    def failed_attempts(self) -> Iterator[AttemptFailed]:
        """The attempts without a usable reply."""
        for attempt in self.attempts:
            if isinstance(attempt.outcome, AttemptFailed):
                yield attempt.outcome

    @property
    def error(self) -> str | None:
        """Class and message of the last failure of a failed task."""
        if self.row.state is not TaskState.FAILED:
            return None
        messages = [failed.message for failed in self.failed_attempts]
        return ": ".join(filter(None, [self.row.error, *messages[-1:]]))

    @property
    def started_us(self) -> int | None:
        """Start of the first attempt; None: none was sent by this run."""
        starts = (attempt.started_us for attempt in self.attempts)
        return next((start for start in starts if start is not None), None)

    @property
    def ended_us(self) -> int | None:
        """End of the last attempt."""
        ends = (attempt.ended_us for attempt in reversed(self.attempts))
        return next((end for end in ends if end is not None), None)


COMMON_PARAMETERS: Final = ("max_tokens", "temperature")


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Number further ones of equal names.

    >>> distinct(["claim", "claim", "year"])
    ('claim', 'claim 2', 'year')
    """
    taken: dict[str, None] = {}
    for name in names:
        free, number = name, 1
        while free in taken:
            number += 1
            free = f"{name} {number}"
        taken[free] = None
    return tuple(taken)


class CommonParameters:
    """Parameters that all requests of a model have in common."""

    def __init__(self) -> None:
        """Start without a request."""
        self._values: dict[str, float] | None = None

    def add(self, parameters: RequestParameters) -> None:
        """Drop the values that this request has otherwise."""
        values = {
            name: value
            for name in COMMON_PARAMETERS
            if (value := getattr(parameters, name)) is not None
        }
        known = values if self._values is None else self._values
        self._values = {k: v for k, v in known.items() if values.get(k) == v}

    @property
    def values(self) -> Mapping[str, float]:
        """The parameters by name; empty without a request."""
        return self._values or {}


@dataclass(frozen=True, kw_only=True)
class ExportSource:
    """An open run, as of one event of its log; also of a live run."""

    folder: RunFolder
    reader: sqlite3.Connection
    through_seq: int
    first: RunStarted
    status: Status
    scoring: ScoringRecorded | None  #: None: the run has none
    out: Path  #: where the export will be
    with_prompts: bool
    environ: Mapping[str, str]  #: has keys, which no export may contain
    progress: Callable[[str], None]
    leaving: ExitStack  #: closes what is read

    @cached_property
    def _scoring(self) -> Scoring | None:
        """The scoring, from a replay.

        Raises:
            DatasetError: an input of the scoring is missing or was changed.
            RunnerError: the scoring cannot be repeated.
        """
        if self.scoring is None:
            return None
        return self.leaving.enter_context(repeated_scoring(self.folder, self.scoring))

    @property
    def card(self) -> Scorecard | None:
        """The scorecard, from a replay; None without a scoring. Raises likewise."""
        return None if self._scoring is None else self._scoring.scorecard

    @cached_property
    def _job(self) -> Job:
        """The job, found once: that reads the entry points of all packages."""
        return job_of(self.first)

    def _request(self, row: TaskRow) -> SentRequest | None:
        """Return the prompt of an imported reply, if the job's data hold it."""
        if not self.first.imported or self._scoring is None:
            return None
        return prompt_in_data(self._job, self._scoring.dataset, row)

    @cached_property
    def _staged(self) -> frozenset[str]:
        """Models with tasks in several stages."""
        uses = Counter(queue.model for queue in self.status.queues)
        return frozenset(model for model, stages in uses.items() if stages > 1)

    def sample_id(self, row: TaskRow) -> str:
        """Return a task's key, after its stage if its model has several."""
        return f"{row.stage}/{row.key}" if row.model in self._staged else row.key

    @property
    def ended_us(self) -> int:
        """Time when the run last ended or began work."""
        return max(self.status.created_us, self.status.signs.phase_us)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that have tasks, in the order of the run."""
        used = {queue.model for queue in self.status.queues}
        subjects = [name for names in self.first.models.values() for name in names]
        ordered = [model for model in dict.fromkeys(subjects) if model in used]
        return (*ordered, *sorted(used.difference(ordered)))

    def metrics(self, model: str) -> tuple[Metric, ...]:
        """Return a model's metrics, headlines first; none without a scoring."""
        metrics = () if self.card is None else self.card.models.get(model, ())
        return tuple(sorted(metrics, key=lambda metric: not metric.is_headline))

    @cached_property
    def _verdicts(self) -> VerdictIndex:
        verdicts = VerdictIndex(self.leaving)
        for detail in () if self.card is None else self.card.details:
            if isinstance(detail, Verdict):
                verdicts.add(detail)
        return verdicts

    def tasks(self) -> Iterator[ExportedTask]:
        """Yield the tasks that were sent or answered, in the order of the plan.

        Skipped and queued tasks are left out. Reads the details of the scorecard, which
        can be read once.
        """
        requests = SentRequests(self.reader)
        verdicts = self._verdicts
        for number, (row, stored) in enumerate(
            families(self.reader, self.through_seq), 1
        ):
            if number % PROGRESS_TASKS == 0:
                self.progress(f"{number:,} of {self.status.tasks.planned:,} tasks")
            if row.state not in {TaskState.COMPLETED, TaskState.FAILED}:
                continue
            attempt_rows = tuple(attempts(self.reader, row.task))
            starts = [a.started_seq for a in attempt_rows if a.started_seq is not None]
            skeleton = payload(self.reader, starts[-1]) if starts else None
            sent = requests.of_task(row.task)
            reply = None if stored is None else reply_of(stored)
            yield ExportedTask(
                row=row,
                attempts=attempt_rows,
                answered=None if stored is None else stored.answered,
                text="" if reply is None else reply_text(reply),
                reasoning=getattr(reply, "reasoning", ""),
                served=(stored and served_by(stored)) or SERVED_UNKNOWN,
                sent=(sent[1] if sent else self._request(row))
                if self.with_prompts
                else None,
                request_sha256=sent[0] if sent else None,
                parameters=request_parameters(
                    skeleton, stored.answered.form if stored else ""
                ),
                verdicts=verdicts.of(row.task),
            )

    def settings(self) -> Mapping[str, object]:
        """Return every setting of the job, defaults included."""
        return msgspec.json.decode(self.first.settings, type=dict[str, object])


@contextmanager
def open_source(
    folder: RunFolder,
    scoring: int | None,
    out: Path,
    *,
    prompts: bool,
    environ: Mapping[str, str],
    progress: Callable[[str], None],
) -> Iterator[ExportSource]:
    """Open a run to export it.

    Args:
        folder: the run's folder.
        scoring: number of a scoring; None: the newest, if there is one.
        out: the folder that the export will be.
        prompts: whether forms may contain the texts of requests.
        environ: variables with keys, which a bundle must not contain.
        progress: receives progress messages.

    Raises:
        UsageError: there is no such scoring.
    """
    with ExitStack() as leaving:
        reader = leaving.enter_context(open_reader(folder.log))
        recorded_scorings = scorings(reader)
        recorded = None
        if scoring is not None or recorded_scorings:
            recorded = chosen(
                folder.run_id, recorded_scorings, scoring, is_alive=folder.is_alive()
            )
        through_seq = visible_seq(reader)
        yield ExportSource(
            folder=folder,
            reader=reader,
            through_seq=through_seq,
            first=run_started(reader),
            status=status(reader),
            scoring=recorded,
            out=out,
            with_prompts=prompts,
            environ=environ,
            progress=progress,
            leaving=leaving,
        )
