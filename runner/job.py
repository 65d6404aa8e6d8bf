"""Defines a job's interface to the engine: data, tasks, prompts, parsing, scoring.

A job derives from `Job` and is found by entry point (group `siftlog.jobs`); the engine
never imports one. All of it is pure except `load`: the plan is derived again from data
and stored replies whenever a run is resumed or scored, so it must be the same each
time. `runner.job_faults` turns exceptions of a job's code into values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    Literal,
    Protocol,
    TypeAlias,
    runtime_checkable,
)

from pydantic import BaseModel

from runner.errors import UsageError
from runner.messages import AnyReply, Content, ParseFailure, Reply, Request
from runner.prompts import PromptCatalog
from runner.scorecard import Booking, Scorecard


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

AnyBookable: TypeAlias = Any
"""What the job's scorecards hold as `bookable`."""

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
    """What a subcommand of `siftlog prepare JOB` makes that builds a folder."""

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
    """Reads work that was made elsewhere: the part `importer` of a job."""

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


PreparedParts: TypeAlias = Prepared | PreparedFromFiles | PreparedFolder
"""What a subcommand of `siftlog prepare JOB` may make."""


class Job(ABC):
    """Base class of a job: what is asked, how replies are read, how they are scored.

    A job names itself, its settings and its stages, and implements `load`, `plan`,
    `request`, `baseline` and `score`. Every other part has a default. A part is a
    method, or a function of a module; it is called with positional arguments::

        class Participants(Job):
            name = "participants"
            version = "1"
            Settings = Options
            stages = (Stage(name="count", parse=read_count, follows=False),)

            load = staticmethod(read_trials)
            ...

    See `docs/write-your-own-job.md` for a whole job.
    """

    name: str
    version: str  #: changes when planning or prompts change
    Settings: type[BaseModel]  #: every setting, documented, with units
    stages: tuple[Stage, ...]

    everyday: tuple[str, ...] = ()
    """The settings that a person usually sets, which `siftlog jobs JOB` lists; the
    others are listed with `--all`. Empty: all of them are everyday."""

    profiles: Mapping[str, Mapping[str, Any]] = {}
    """Named bundles of settings, such as the conventions of a published program, which
    a setting `profile` chooses. `siftlog jobs JOB --all` lists their values."""

    prompts: PromptCatalog | None = None
    """The texts that the job asks with, which a setting `prompts` may replace."""

    prepare_runs: tuple[str, ...] = ()
    """The subcommands of `siftlog prepare JOB` that ask models. Each is a run with the
    setting of its name: the file to read."""

    implied: Mapping[str, tuple[str, str]] = {}
    """From the option that names a model of a role to a setting and its value, which
    holds where that setting is not given."""

    prepare: Mapping[str, Callable[[AnySettings], PreparedParts]] = {}
    """Subcommands of `siftlog prepare JOB`, each a function of the settings. The
    subcommand "" needs no word after the job's name."""

    importer: Importer | None = None
    """Reads work that was made elsewhere. None: the job has no import."""

    explain_inputs: Callable[[AnySettings, tuple[str, ...]], Prepared] | None = None
    """Explains items of what `prepare` reads, before there is a data set to load: a
    function of settings and items. None: `siftlog explain JOB` loads the data."""

    # Required

    @abstractmethod
    def load(self, settings: AnySettings, /) -> Dataset:
        """Read and validate all inputs; raise `DatasetError` naming file and row."""

    @abstractmethod
    def plan(self, dataset: Dataset, /) -> Iterator[TaskSpec]:
        """First-stage specs, lazily, in a stable order."""

    @abstractmethod
    def request(self, dataset: Dataset, task: Task, /) -> Request:
        """The request of a task, built when it is about to be sent.

        A stage asks for one kind. A prompt whose request has a schema says in words
        too what form it wants: not every endpoint takes schemas.
        """

    @abstractmethod
    def baseline(self, request: AnyRequest, /) -> Content:
        """The honest offline answer, from the request alone.

        A chat is answered with the reply's text, an `EmbedRequest` with `Vectors` and
        a `RerankRequest` with a `Ranking`.
        """

    @abstractmethod
    def score(self, dataset: Dataset, answers: Answers, /) -> Scorecard:
        """All metrics, tables and artifacts; no clock, network or unseeded chance."""

    # Inputs and settings

    def inputs(self, settings: AnySettings, /) -> tuple[InputFile, ...]:
        """The files and folders that `load` reads: by default every path set."""
        return tuple(
            InputFile(setting=name, path=path)
            for name, value in settings
            for path in (value if isinstance(value, tuple) else (value,))
            if isinstance(path, Path)
        )

    def with_sample(self, settings: AnySettings, /) -> AnySettings:
        """Settings with the shipped sample, where *settings* name no input.

        Returns *settings* itself where nothing is filled in, as it is by default.
        """
        return settings

    def require(self, settings: AnySettings, /) -> None:
        """Raise `UsageError` for settings that a run cannot start from."""
        del settings

    def fit(
        self, settings: AnySettings, limits: Mapping[str, ModelLimits], /
    ) -> AnySettings:
        """The settings of a new run, adapted to the limits of its online models.

        The run records them, so that its plan stays the same.
        """
        del limits
        return settings

    def replicates(self, settings: AnySettings, /) -> int | None:
        """How often each item is asked where no option sets it; None: once."""
        del settings
        return None

    def admit(self, dataset: Dataset, /) -> None:
        """Raise `DatasetError` for data that no new run should ask about.

        Such data may be scored.
        """
        del dataset

    # Planning

    def follow_up(
        self, dataset: Dataset, group: tuple[Answer, ...], /
    ) -> Iterator[TaskSpec]:
        """Later-stage specs from one finished group of answers; by default none.

        For a stage that gathers, the group holds every answer under its key, failed
        ones included; otherwise it is one answer with a reply, readable or not.
        """
        del dataset, group
        return iter(())

    def reaches(self, dataset: Dataset, /) -> Collection[str]:
        """Names of the stages that the plan can reach; by default all of them."""
        del dataset
        return [stage.name for stage in self.stages]

    def item(self, dataset: Dataset, spec: TaskSpec, /) -> str:
        """The paper or post that a first-stage spec is about.

        A shard gets all specs of an item or none. By default specs that are gathered
        together are about one item, and any other spec is an item by itself.
        """
        del dataset
        return spec.key if spec.group is None else spec.group

    # Other commands

    def explain(
        self, dataset: Dataset, answers: Answers | None, items: tuple[str, ...], /
    ) -> str:
        """Everything about some items.

        Args:
            dataset: what `load` returned.
            answers: those of a run; None: there is no run yet.
            items: as they were typed.

        Raises:
            UsageError: an item names nothing, or the job has no explain.
        """
        del dataset, answers, items
        raise UsageError(f"{self.name} has no explain.")

    def causes(
        self, names: frozenset[str], before: AnyBookable, after: AnyBookable, /
    ) -> Booking | None:
        """What explains the difference of two scorings, for `siftlog diff`.

        Args:
            names: the settings by which the scorings differ.
            before: the `Scorecard.bookable` of a model in the first scoring.
            after: that of the same model in the second scoring.
        """
        del names, before, after
        return None
