"""Defines a job's interface to the engine: data, tasks, prompts, parsing, scoring.

A job derives from `Job` and is found by entry point (group `siftlog.jobs`); the engine
never imports one. All methods are pure except `load`: the plan is derived again from
data and stored replies whenever a run is resumed or scored, so it must be the same each
time. `runner.job_faults` turns exceptions of a job's code into values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

import msgspec
from pydantic import BaseModel

from runner.errors import UsageError
from runner.evaluation import AnyEvaluation
from runner.messages import AnyReply, Content, ParseFailure, Reply, Request, Usage
from runner.prompts import PromptCatalog
from runner.scorecard import Booking, Scorecard
from store.served_by import ServedBy


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A planned task: item and stage, without its prompt.

    `msgspec.structs.replace` makes a changed copy of it.
    """

    stage: str
    key: str  #: the item; unique in its stage
    skip: str | None = None  #: reason, for a task that must not be sent
    context: str | None = None  #: JSON that cannot be derived again; kept small
    group: str | None = None  #: key under which a gathering stage collects it


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A planned task, identified by job, stage, key, model and replicate."""

    number: int  #: dense in its run, from 1; not part of the identity
    stage: str
    key: str
    model: str
    replicate: int  #: counts from 1
    context: str | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its outcome: a reply, an error, a skip, or none yet.

    `msgspec.structs.replace` makes a changed copy of it, or of its task.

    For `Job.follow_up`, `parsed` is the parser's result; scoring gets unparsed replies
    and parses them with the requested rules.
    """

    task: Task
    reply: AnyReply | None = None
    parsed: object | ParseFailure = None
    error: str | None = None  #: class of the final failure
    skip: str | None = None  #: reason of the skip
    is_open: bool = False  #: no outcome yet: the run is unfinished
    cost_usd: float | None = None  #: cost of all its attempts, if scoring may use it

    @property
    def chat(self) -> Reply | None:
        """The reply, if it is a chat's."""
        return self.reply if isinstance(self.reply, Reply) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedPassage:
    """A quote that supports an answer, and where it is in the item's text."""

    quote: str  #: as the model wrote it
    label: str = ""  #: what it supports, such as a field and its value
    match: str = ""  #: how well the text matches it, such as `exact` or `absent`
    place: str = ""  #: such as `page 3` or `sentence 4 of 12`
    before: str = ""  #: text around the passage, shortened
    passage: str | None = None  #: the passage in the text; None: not found
    after: str = ""


Dataset: TypeAlias = Any
"""The result of a job's `load`; only the job reads it."""

AnySettings: TypeAlias = Any
"""An instance of the job's own `Settings`."""

AnyBookable: TypeAlias = Any
"""Content of `bookable` in the job's scorecards."""

AnyRequest: TypeAlias = Any
"""A request of a kind that the job sends."""

Role: TypeAlias = Literal["subject", "judge", "embed", "rerank"]
"""The role of a stage's models: the models under test are its subjects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A named step of a job."""

    name: str
    parse: Callable[[Dataset, Task, Any], object | ParseFailure]
    """Parses a reply of the stage's kind (`Reply`, `Vectors` or `Ranking`); never
    raises on model output."""
    role: Role = "subject"
    gathers: bool = False  #: answers are followed up by group instead of one by one
    follows: bool = True  #: False: no answer of this stage ever has a follow-up
    once: bool = False
    """Whether an item of the plan is sent once per model instead of once per replicate;
    its follow-ups are sent in every replicate."""
    models: tuple[str, ...] = ()
    """Models of a stage that was added to a run. Empty: those of its role."""


JOB_FILE = "job"
"""The name under which a log records the file of a job, among the inputs."""

REQUIRED = ("name", "version", "Settings", "stages")
"""Attributes that every job's class sets, besides the abstract methods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """A file or folder that `load` read: part of the run's identity."""

    setting: str
    path: Path
    sha256: str | None = None
    """Hex hash of its content, if its bytes contain more, as a database contains its
    history. None: hash of its bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLimits:
    """Context and output limits of one model; None: unknown."""

    output_tokens: int | None = None  #: tokens of its longest reply
    context_tokens: int | None = None  #: tokens of its longest prompt


class Answers(Protocol):
    """A run's stored answers, read in a fixed order and in constant memory."""

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
        """Return whether the answers are imported."""
        ...

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Yield each first-stage answer with all its descendants."""
        ...


Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyParser(Generic[Parsed]):
    """A parser of chat replies whose results a scoring may keep for the next one.

    The result may depend on the reply, the stage, and on *reads*, and on nothing else.
    """

    name: str  #: of the file of results; letters, digits and "_"
    result: type[Parsed]  #: a type that msgspec encodes and decodes without loss
    parse: Callable[[str, Reply], Parsed]  #: gets the stage's name; never raises
    reads: str = ""  #: content, or hash, of the part of the data set that it reads


@runtime_checkable
class ParsingAnswers(Protocol):
    """Answers that may know the parsed replies already."""

    def parsed_families(self, parser: ReplyParser[Any]) -> Iterator[tuple[Answer, ...]]:
        """Yield families as `parsed_families` does."""
        ...


def parsed_families(
    answers: Answers, parser: ReplyParser[Any]
) -> Iterator[tuple[Answer, ...]]:
    """Yield the families with parsed chat replies; None where there is no such reply.

    Results of an earlier scoring are used where they are known. Then no reply is read,
    and `Answer.reply` is None.
    """
    if isinstance(answers, ParsingAnswers):
        yield from answers.parsed_families(parser)
        return
    for family in answers.families():
        yield tuple([parsed_by(parser, answer) for answer in family])


def parsed_by(parser: ReplyParser[Any], answer: Answer) -> Answer:
    """Return the answer with its chat reply parsed; itself without such a reply."""
    reply = answer.chat
    if reply is None:
        return answer
    parsed = parser.parse(answer.task.stage, reply)
    return msgspec.structs.replace(answer, parsed=parsed)


class Prepared(Protocol):
    """Output of a subcommand of `siftlog prepare JOB`."""

    @property
    def text(self) -> str:
        """Return the text for people."""
        ...

    @property
    def json(self) -> dict[str, object]:
        """Return the object for `--json`."""
        ...


@runtime_checkable
class PreparedData(Prepared, Protocol):
    """Result of a subcommand of `siftlog prepare JOB` that builds a file."""

    @property
    def lines(self) -> Sequence[str]:
        """Return the file's lines, without line ends."""
        ...


@runtime_checkable
class PreparedCheck(PreparedData, Protocol):
    """A finding of `siftlog prepare JOB` that supports a minimum."""

    @property
    def share(self) -> float | None:
        """Return the value for `--fail-under`, from 0 to 1; None: not supported."""
        ...


@runtime_checkable
class PreparedFromFiles(Protocol):
    """Result of a subcommand of `siftlog prepare JOB` on the given files."""

    def read(
        self, files: tuple[Path, ...], progress: Callable[[str], None]
    ) -> Prepared:
        """Read the files.

        Args:
            files: the files in the order given.
            progress: receives one-line progress messages.
        """
        ...


@runtime_checkable
class PreparedFolder(Protocol):
    """Result of a subcommand of `siftlog prepare JOB` that builds a folder."""

    def write(self, folder: Path) -> Prepared:
        """Write everything into an empty folder; all inputs have been read."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedAnswer:
    """One task of an imported run; `spec.context` holds the data of its file."""

    spec: TaskSpec
    model: str
    replicate: int
    text: str | None = None  #: the reply; None if the task was skipped or failed
    finish_reason: str = "stop"
    error: str | None = None  #: class of its failure in the other tool
    usage: Usage | None = None
    served: ServedBy | None = None  #: dated model and id of the reply, if recorded
    created_s: int | None = None  #: time of the reply, seconds since 1970
    latency_ms: float | None = None
    cost_usd: float | None = None  #: as the other tool reports it
    form: str = ""  #: wire form of `body`
    body: bytes | None = None
    """The endpoint's reply, byte for byte, if the file has it; it has text, usage and
    the others."""
    descends: bool = False  #: True: a descendant of the last answer that is none
    notes: tuple[str, ...] = ()  #: sentences about the files, printed at import


class Importer(Protocol):
    """Imports answers of other tools: the part `importer` of a job."""

    formats: Mapping[str, str]  #: description by name, for error messages

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

        They are read once, to the end, before anything is written. *files* are those
        given without a flag; settings may name more. *form* is one of the formats, or
        None.
        """
        ...


PreparedParts: TypeAlias = Prepared | PreparedFromFiles | PreparedFolder
"""Possible results of a subcommand of `siftlog prepare JOB`."""


class Job(ABC):
    """Base class of a job: defines requests, parsing and scoring.

    A job declares its name, its settings and its stages, and implements `load`, `plan`,
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
    """Settings that users commonly set, listed by `siftlog jobs JOB`; `--all` lists the
    others too. Empty: all settings."""

    profiles: Mapping[str, Mapping[str, Any]] = {}
    """Named groups of settings, such as the conventions of a published program,
    selected by the setting `profile`. `siftlog jobs JOB --all` lists their values."""

    file: Path | None = None
    """The file that the job was loaded from by its path. None: an installed job."""

    prompts: PromptCatalog | None = None
    """The job's prompts, which a setting `prompts` may replace."""

    review_step: Literal["", "selection", "data collection"] = ""
    """The step of a systematic review that the job automates, by the name that PRISMA
    2020 has for it. Empty: none in particular. `siftlog methods` names it."""

    prepare_runs: tuple[str, ...] = ()
    """Subcommands of `siftlog prepare JOB` that call models. Each is a run; the setting
    of the same name is its input file."""

    implied: Mapping[str, tuple[str, str]] = {}
    """Settings implied by the options that name models: (setting, value) by option,
    used unless the setting is given."""

    prepare: Mapping[str, Callable[[AnySettings], PreparedParts]] = {}
    """Subcommands of `siftlog prepare JOB`, each a function of the settings. The
    subcommand "" is the default."""

    importer: Importer | None = None
    """Imports answers of other tools. None: not supported."""

    evaluation: AnyEvaluation | None = None
    """How its metrics follow from `Scorecard.frame`, so that whoever has a redacted
    bundle can compute them. None: of these metrics, only means and ratios are."""

    holds_foreign: bool = False
    """Whether its data are files of other tools: an import of such a file then loses no
    prompts and right answers, and scores of the other tool are part of
    `Task.context`."""

    labelling: Any = None
    """What people label: a `runner.labelling.Labelling`. None: whether each reply
    is correct."""

    explain_inputs: Callable[[AnySettings, tuple[str, ...]], Prepared] | None = None
    """Explains items of `prepare`'s input, before there is a data set: a function of
    settings and items. None: `siftlog explain JOB` loads the data."""

    # Required

    @abstractmethod
    def load(self, settings: AnySettings, /) -> Dataset:
        """Read and validate all inputs; raise `DatasetError` naming file and row."""

    def load_with_progress(
        self, settings: AnySettings, progress: Callable[[str], None], /
    ) -> Dataset:
        """Load for a run or an import; override it too where `load` takes seconds."""
        del progress  # receives one-line messages
        return self.load(settings)

    @abstractmethod
    def plan(self, dataset: Dataset, /) -> Iterator[TaskSpec]:
        """Yield the first-stage specs, lazily, in a stable order."""

    @abstractmethod
    def request(self, dataset: Dataset, task: Task, /) -> Request:
        """Build the request of a task, when it is about to be sent.

        A stage sends one kind of request. If a request has a schema, its prompt must
        also describe the format: not every endpoint supports schemas.
        """

    @abstractmethod
    def baseline(self, request: AnyRequest, /) -> Content:
        """Answer a request offline, from the request alone.

        Returns the reply's text for a chat, `Vectors` for an `EmbedRequest` and a
        `Ranking` for a `RerankRequest`.
        """

    @abstractmethod
    def score(self, dataset: Dataset, answers: Answers, /) -> Scorecard:
        """Compute metrics, tables and artifacts; no clock, network or randomness."""

    # Inputs and settings

    def inputs(self, settings: AnySettings, /) -> tuple[InputFile, ...]:
        """Return the files and folders that `load` reads; by default all set paths."""
        return tuple(
            InputFile(setting=name, path=path)
            for name, value in settings
            for path in (value if isinstance(value, tuple) else (value,))
            if isinstance(path, Path)
        )

    def with_sample(self, settings: AnySettings, /) -> AnySettings:
        """Return settings with the shipped sample if they name no input.

        Returns *settings* itself if nothing changes, which is the default.
        """
        return settings

    def require(self, settings: AnySettings, /) -> None:
        """Raise `UsageError` for settings that a run cannot start from."""
        del settings

    def fit(
        self, settings: AnySettings, limits: Mapping[str, ModelLimits], /
    ) -> AnySettings:
        """Return the settings of a new run, adapted to the limits of its online models.

        The run records them, so that its plan stays the same.
        """
        del limits
        return settings

    def replicates(self, settings: AnySettings, /) -> int | None:
        """Return the default number of replicates; None: one."""
        del settings
        return None

    def admit(self, dataset: Dataset, /) -> None:
        """Raise `DatasetError` for data that no new run should use.

        Such data can still be scored.
        """
        del dataset

    # Planning

    def follow_up(
        self, dataset: Dataset, group: tuple[Answer, ...], /
    ) -> Iterator[TaskSpec]:
        """Yield later-stage specs for one finished group of answers; default: none.

        For a gathering stage, the group is every answer under its key, failed ones
        included; otherwise it is one answer with a reply, parsed or not.
        """
        del dataset, group
        return iter(())

    def follows(self, dataset: Dataset, stage: Stage, /) -> bool:
        """Return whether answers of *stage* may have follow-ups under these settings.

        If not, `follow_up` is not called, and an answer is recorded together with the
        end of its task. By default it is `stage.follows`.
        """
        del dataset
        return stage.follows

    def follow_up_alone(
        self, dataset: Dataset, answer: Answer, /
    ) -> Iterator[TaskSpec]:
        """Yield later-stage specs for a reply without a group, in a gathering stage.

        Only stages that were added to a run have any (`runner.added_stages`).
        """
        del dataset, answer
        return iter(())

    def follows_alone(self, dataset: Dataset, stage: Stage, /) -> bool:
        """Return whether `follow_up_alone` may yield any in a gathering stage."""
        del dataset, stage
        return False

    def reaches(self, dataset: Dataset, /) -> Collection[str]:
        """Return the stages that the plan can reach; by default all of them."""
        del dataset
        return [stage.name for stage in self.stages]

    def item(self, dataset: Dataset, spec: TaskSpec, /) -> str:
        """Return the paper or post of a first-stage spec.

        A shard gets all specs of an item or none. By default, specs gathered together
        are one item, and any other spec is a separate item.
        """
        del dataset
        return spec.key if spec.group is None else spec.group

    # Other commands

    def describe(self, dataset: Dataset, /) -> Iterable[str]:
        """Return what the models are asked, in words for a reader of the report.

        A few sentences, such as the question and the criteria; default: none. A report
        shows them below the first paragraph of the docstring of the job's class.
        """
        del dataset
        return ()

    def titles(self, dataset: Dataset, /) -> Iterator[tuple[str, str]]:
        """Yield items and their titles, which lists of tasks show; default: none.

        An item is the key of its tasks, or the part of their keys before a "/", ":" or
        "#". Called once, when a run is created; must not read large files.
        """
        del dataset
        return iter(())

    def explain(
        self, dataset: Dataset, answers: Answers | None, items: tuple[str, ...], /
    ) -> str:
        """Explain some items.

        Args:
            dataset: the result of `load`.
            answers: the answers of a run; None: there is no run yet.
            items: the items as typed.

        Raises:
            UsageError: an item is unknown, or the job does not support this.
        """
        del dataset, answers, items
        raise UsageError(f"{self.name} has no explain.")

    def quotes(self, dataset: Dataset, answer: Answer, /) -> Iterator[QuotedPassage]:
        """Yield the quotes of a parsed answer in their context; default: none.

        `siftlog show` prints them. `answer.parsed` is the parser's result.
        """
        del dataset, answer
        return iter(())

    def causes(
        self, names: frozenset[str], before: AnyBookable, after: AnyBookable, /
    ) -> Booking | None:
        """Return the causes of the difference of two scorings, for `siftlog diff`.

        Args:
            names: the settings that differ between the scorings.
            before: `Scorecard.bookable` of a model in the first scoring.
            after: that of the same model in the second scoring.
        """
        del names, before, after
        return None
