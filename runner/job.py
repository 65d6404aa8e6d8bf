"""Defines a job's interface to the engine: data, tasks, prompts, parsing, scoring.

Jobs are found by entry point (group `siftlog.jobs`); the engine never imports one. All
methods except `load` are pure: the plan is derived again from data and stored replies
whenever a run is resumed or scored, so it must be the same each time. Exceptions of a
job's code are converted to values: class, line and one traceback.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path, PurePath
from types import TracebackType
from typing import (
    Any,
    Final,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

from pydantic import BaseModel

from runner.errors import JobFault, RunnerError
from runner.messages import AnyReply, Content, ParseFailure, Reply, Request
from runner.scorecard import Scorecard
from store.errors import StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """A planned task: item and stage, without its prompt."""

    stage: str
    key: str  #: the item; unique in its stage
    skip: str | None = None  #: reason, for a task that must not be sent
    context: str | None = None  #: JSON that cannot be derived again; kept small
    group: str | None = None  #: key under which a gathering stage collects it


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A planned task: job, stage, key, model and replicate are its identity."""

    number: int  #: dense in its run, from 1; not part of the identity
    stage: str
    key: str
    model: str
    replicate: int  #: counts from 1
    context: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A task with its outcome: a reply, an error, a skip, or none yet.

    For `Job.follow_up`, `parsed` is what the stage's parser made of the reply; scoring
    gets replies unparsed and reads them by the rules it is asked for.
    """

    task: Task
    reply: AnyReply | None = None
    parsed: object | ParseFailure = None
    error: str | None = None  #: class of the final failure
    skip: str | None = None  #: reason of the skip
    is_open: bool = False  #: no outcome yet: the run is unfinished
    cost_usd: float | None = None  #: of all its attempts, where scoring may know it

    @property
    def chat(self) -> Reply | None:
        """The reply of a stage that asks for chats."""
        return self.reply if isinstance(self.reply, Reply) else None


Dataset: TypeAlias = Any
"""The result of a job's `load`; only the job reads it."""

AnySettings: TypeAlias = Any
"""An instance of the job's own `Settings`."""

AnyRequest: TypeAlias = Any
"""A request of one of the kinds that the job itself makes."""

Role: TypeAlias = Literal["subject", "judge", "embed", "rerank"]
"""The role of a stage's models: the models under test are its subjects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A named step of a job."""

    name: str
    parse: Callable[[Dataset, Task, Any], object | ParseFailure]
    """Reads a reply of the kind that the stage asks for (`Reply`, `Vectors` or
    `Ranking`); never raises on model output."""
    role: Role = "subject"
    gathers: bool = False  #: answers are followed up by group instead of one by one
    follows: bool = True  #: False: no answer of this stage ever has a follow-up
    once: bool = False
    """Whether an item of the plan is asked once a model, and not once a replicate; what
    follows from it is asked in every replicate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file or folder that `load` read: part of the run's identity."""

    setting: str
    path: Path
    sha256: str | None = None
    """Hex, of what it says, where its bytes say more: of a database, which holds how it
    came about. None: of its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """Context and output limits of one model; None: unknown."""

    output_tokens: int | None = None  #: of its longest reply
    context_tokens: int | None = None  #: of its longest prompt


class Answers(Protocol):
    """A run's stored answers, read from the log in a fixed order, in flat memory."""

    @property
    def models(self) -> tuple[str, ...]:
        """Models of the subject role, in the run's order."""
        ...

    @property
    def replicates(self) -> int:
        """Number of planned replicates of each first-stage item."""
        ...

    @property
    def imported(self) -> bool:
        """Return whether the answers were made by other tools."""
        ...

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Return each first-stage answer with all its descendants."""
        ...


class Job(Protocol):
    """The interface of a job; see `jobs/paper_investigation` for a whole one.

    Optional: `admit(dataset)`, which raises `DatasetError` for data that a new run
    should not ask about, though it may be scored;
    `reaches(dataset)`, the names of the stages that its plan can reach;
    `item(dataset, spec)`, the paper or post that a first-stage spec is about, where
    several specs that do not gather are about one: a shard gets all of them or none;
    `replicates(settings)`, how often each item is asked where nobody says it;
    `prompts`, the `PromptCatalog` of what it asks, whose texts a setting `prompts`
    replaces;
    `fit(settings, limits)`, the settings of a new run, adapted to the `ModelLimits` of
    its online models; the run records them, so that its plan stays the same;
    `prepare_runs`, the subcommands of `siftlog prepare` that ask models, each of which
    is a run with the setting of its name, the file to read;
    `causes(names, before, after)`, a `Booking` or None: what the `bookable` of a model,
    in two scorings that differ by the settings *names* alone, says of `siftlog diff`;
    `implied`, a mapping from the option that names a model of a role to a setting and
    its value, which holds where that setting is not given;
    `explain_inputs(settings, items)`, a `Prepared` about items of what `prepare` goes
    by, before there is a data set to load.
    """

    name: str
    version: str  #: changes when planning or prompts change
    Settings: type[BaseModel]  #: every setting, documented, with units
    stages: tuple[Stage, ...]

    def load(self, settings: AnySettings) -> Dataset:
        """Read and validate all inputs; raise `DatasetError` naming file and row."""
        ...

    def inputs(self, settings: AnySettings) -> tuple[InputFile, ...]:
        """The files and folders that `load` reads under these settings."""
        ...

    def plan(self, dataset: Dataset) -> Iterator[TaskSpec]:
        """First-stage specs, lazily, in a stable order."""
        ...

    def request(self, dataset: Dataset, task: Task) -> Request:
        """Return the request of a task, built when it is about to be sent.

        A stage asks for one kind. A prompt whose request has a schema says in words
        too what form it wants: not every endpoint takes schemas.
        """
        ...

    def follow_up(
        self, dataset: Dataset, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """Return later-stage specs from one finished group of answers."""
        ...

    def score(self, dataset: Dataset, answers: Answers) -> Scorecard:
        """All metrics, tables and artifacts; no clock, network or unseeded chance."""
        ...

    def baseline(self, request: AnyRequest) -> Content:
        """Return an offline answer, from the request only."""
        ...


class Prepared(Protocol):
    """Output of a subcommand of `siftlog prepare JOB`."""

    @property
    def text(self) -> str:
        """For people."""
        ...

    @property
    def json(self) -> dict[str, object]:
        """For `--json`."""
        ...


@runtime_checkable
class PreparedData(Prepared, Protocol):
    """Result of a subcommand of `siftlog prepare JOB` that builds a file."""

    @property
    def lines(self) -> Sequence[str]:
        """The file's lines, without their ends."""
        ...


@runtime_checkable
class PreparedCheck(PreparedData, Protocol):
    """A finding of `siftlog prepare JOB` that supports a minimum."""

    @property
    def share(self) -> float | None:
        """Value for `--fail-under`, from 0 to 1; None: not supported."""
        ...


@runtime_checkable
class PreparedFromFiles(Protocol):
    """Result of a subcommand of `siftlog prepare JOB` on the given files."""

    def read(
        self, files: tuple[Path, ...], progress: Callable[[str], None]
    ) -> Prepared:
        """Take the files in.

        Args:
            files: as they were named, in that order.
            progress: is told in a line how far this is, as often as that changes.
        """
        ...


@runtime_checkable
class PreparedFolder(Protocol):
    """Result of a subcommand of `siftlog prepare JOB` that builds a folder."""

    def write(self, folder: Path) -> Prepared:
        """Write everything into an empty folder; all inputs were read before."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedAnswer:
    """One task of an imported run; `spec.context` holds the data of its file."""

    spec: TaskSpec
    model: str
    replicate: int
    text: str | None = None  #: the reply; None where the spec says skip, or it failed
    finish_reason: str = "stop"
    error: str | None = None  #: the class of its failure in the other tool
    descends: bool = False  #: True: from the last answer that did not descend
    notes: tuple[str, ...] = ()  #: sentences about the files, printed at import


class Importer(Protocol):
    """Optional on a job, as `importer`: reads answers of other tools."""

    formats: Mapping[str, str]  #: name -> how it is recognised, for error messages

    def read(
        self,
        files: tuple[Path, ...],
        settings: AnySettings,
        *,
        model: str | None,
        form: str | None,
        replicates: Mapping[Path, int],
    ) -> Iterator[ImportedAnswer]:
        """Yield the answers in the files; raise `DatasetError` if one is invalid.

        They are read to the end, once, before anything is written.
        *files* are those typed without a flag; settings may name further ones. *form*
        is one of the formats, or None where none is named.
        """
        ...


PARSER_ERROR: Final = "parser_error"
"""Reason of a parse failure whose parser raised."""

LONGEST: Final = 160
"""Characters of an exception's message that are printed in a sentence."""


def fault_of(error: Exception, home: str = "") -> str:
    """Return the exception's class and line, such as `KeyError at myjob/parsing.py:12`.

    The line is the deepest one inside the package of the module *home*, because the
    job's author can mend that one; without such a line, the deepest of all. The path
    is built from the module's name, so it holds no folder of this machine.
    """
    package = home.partition(".")[0]
    deepest = inside = ""
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        file = PurePath(trace.tb_frame.f_code.co_filename).name
        folders = module.split(".")[: None if file == "__init__.py" else -1]
        deepest = f"{'/'.join([*folders, file])}:{trace.tb_lineno}"
        if module.partition(".")[0] == package:
            inside = deepest
        trace = trace.tb_next
    name = type(error).__name__
    location = inside or deepest
    return f"{name} at {location}" if location else name


def sentence_of(error: Exception, home: str = "") -> str:
    """Do the same, with the start of the exception's message."""
    message = " ".join(str(error).split())[:LONGEST]
    return f"{fault_of(error, home)}: {message}" if message else fault_of(error, home)


@dataclass(slots=True)
class JobFaults:
    """Records exceptions of one job's code; prints the first of them whole."""

    notify: Callable[[str], None]
    has_printed: bool = field(default=False, init=False)

    def take(self, error: Exception, method: str, home: str) -> str:
        """Return the exception's class and line."""
        fault = fault_of(error, home)
        if not self.has_printed:
            self.has_printed = True
            whole = "".join(traceback.format_exception(error)).rstrip()
            for line in whole.split("\n"):
                self.notify(line)
            self.notify(
                f"The job's {method} raised {fault}. The run continues; "
                "this is the first such exception, later ones are only "
                "counted."
            )
        return fault


P = ParamSpec("P")
T = TypeVar("T")

_RAISES: Final[ContextVar[bool]] = ContextVar("raises", default=False)
"""Whether exceptions of guarded parsers go on to `read_reply`, which can show them."""


_SEEN: Final[ContextVar[dict[str, None] | None]] = ContextVar("seen", default=None)
"""Takes class and line of what guarded parsers raised, where anybody collects it."""


@contextmanager
def parser_faults() -> Iterator[dict[str, None]]:
    """Collects class and line of what guarded parsers raise meanwhile."""
    seen: dict[str, None] = {}
    token = _SEEN.set(seen)
    try:
        yield seen
    finally:
        _SEEN.reset(token)


def guarded(parse: Callable[P, T]) -> Callable[P, T | ParseFailure]:
    """Decorates a parser of replies: a `ParseFailure` where it raises.

    A job's `score`, `explain` and figures read replies again, by rules and in ways of
    their own. A parser that raises there must not end the scoring: its reply counts as
    unparsed, as it does in a run. Inside `read_reply` the exception passes, so that the
    first one of a process is shown whole.
    """

    @wraps(parse)
    def read(*args: P.args, **kwargs: P.kwargs) -> T | ParseFailure:
        try:
            return parse(*args, **kwargs)
        except Exception as error:
            if _RAISES.get():
                raise
            failure = _failure(error, parse)
            seen = _SEEN.get()
            if seen is not None:
                seen[failure.detail or ""] = None
            return failure

    return read


def _failure(error: Exception, parse: Callable[..., Any]) -> ParseFailure:
    home = getattr(parse, "__module__", "") or ""
    return ParseFailure(reason=PARSER_ERROR, detail=fault_of(error, home))


def read_reply(
    stage: Stage,
    dataset: Dataset,
    task: Task,
    reply: Any,  # noqa: ANN401 - of the stage's kind
    faults: JobFaults | None = None,
) -> object | ParseFailure:
    """Return the stage parser's result for a reply; a `ParseFailure` if it raises."""
    token = _RAISES.set(True)
    try:
        return stage.parse(dataset, task, reply)
    except Exception as error:  # noqa: BLE001 - the parser is not ours
        failure = _failure(error, stage.parse)
        if faults is not None:
            home = getattr(stage.parse, "__module__", "") or ""
            faults.take(error, f"parser of stage {stage.name}", home)
        return failure
    finally:
        _RAISES.reset(token)


def job_fault(
    error: Exception, job: Job, method: str, faults: JobFaults | None = None
) -> JobFault:
    """The exception of the job's method *method*, as the error of one task."""
    home = type(job).__module__
    if faults is None:
        return JobFault(fault_of(error, home))
    return JobFault(faults.take(error, method, home))


@contextmanager
def calling(job: Job, method: str) -> Iterator[None]:
    """Convert an exception of the job's method to the error of a command."""
    try:
        yield
    except (RunnerError, StoreError):
        raise
    except Exception as error:
        sentence = sentence_of(error, type(job).__module__)
        raise RunnerError(
            f"The {method} of job {job.name} raised {sentence}; mend the job."
        ) from error
