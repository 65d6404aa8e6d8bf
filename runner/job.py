"""The interface between the engine and a job: data, prompts, parsing, scoring.

A job is found by entry point (group `siftlog.jobs`); the engine never imports one.
Everything here is pure except `load`: the plan is derived again from data and stored
replies whenever a run is resumed or scored, so it must come out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel

from runner.reply import Content, ParseFailure
from runner.request import Request
from runner.scorecard import Scorecard
from runner.task import Answer, Task, TaskSpec

Dataset: TypeAlias = Any
"""What a job's `load` returns; only the job looks inside."""

AnySettings: TypeAlias = Any
"""An instance of the job's own `Settings`."""

AnyRequest: TypeAlias = Any
"""A request of one of the kinds that the job itself makes."""

Role: TypeAlias = Literal["subject", "judge", "embed", "rerank"]
"""What a stage's models are for: the models under test are its subjects."""


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
    """What one model can read and write in a call; None: unknown."""

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
        """How many replicates of each first-stage item were planned."""
        ...

    @property
    def imported(self) -> bool:
        """Whether the answers were made elsewhere."""
        ...

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Each first-stage answer with all that descend from it.

        Families come by the number of their first-stage task; inside, the first-stage
        answer stands first and its descendants follow by number.
        """
        ...


class Job(Protocol):
    """What a job offers; see `jobs/paper_investigation` for a whole one.

    Optional: `reaches(dataset)`, the names of the stages that its plan can reach;
    `item(dataset, spec)`, the paper or post that a first-stage spec is about, where
    several specs that do not gather are about one: a shard gets all of them or none;
    `replicates(settings)`, how often each item is asked where nobody says it;
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
        """The request of a task, built when it is about to be sent.

        A stage asks for one kind. A prompt whose request has a schema says in words
        too what form it wants: not every endpoint takes schemas.
        """
        ...

    def follow_up(
        self, dataset: Dataset, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """Later-stage specs from one finished group of answers.

        For a stage that gathers, the group holds every answer under its key, failed
        ones included; otherwise it is one answer with a reply, readable or not.
        """
        ...

    def score(self, dataset: Dataset, answers: Answers) -> Scorecard:
        """All metrics, tables and artifacts; no clock, network or unseeded chance."""
        ...

    def baseline(self, request: AnyRequest) -> Content:
        """The honest offline answer, from the request alone.

        A chat is answered with the reply's text, an `EmbedRequest` with `Vectors` and
        a `RerankRequest` with a `Ranking`.
        """
        ...


class Prepared(Protocol):
    """What a subcommand of `siftlog prepare JOB` prints."""

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
    """What a subcommand of `siftlog prepare JOB` makes that builds a file."""

    @property
    def lines(self) -> Sequence[str]:
        """The file's lines, without their ends."""
        ...


@runtime_checkable
class PreparedCheck(PreparedData, Protocol):
    """What a subcommand of `siftlog prepare JOB` finds that can be asked for a least.

    It is written as a file only where `--out` names one.
    """

    @property
    def share(self) -> float | None:
        """What `--fail-under` asks of, from 0 to 1; None: of nothing at all."""
        ...


@runtime_checkable
class PreparedFromFiles(Protocol):
    """What a subcommand of `siftlog prepare JOB` makes of the files named after it."""

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
    """What a subcommand of `siftlog prepare JOB` makes that builds a folder.

    A job whose `prepare` has the subcommand "" needs no word after its name.
    """

    def write(self, folder: Path) -> Prepared:
        """Write everything into an empty folder; all inputs were read before."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedAnswer:
    """One task of a run made elsewhere; `spec.context` carries what its file said."""

    spec: TaskSpec
    model: str
    replicate: int
    text: str | None = None  #: the reply; None where the spec says skip, or it failed
    finish_reason: str = "stop"
    error: str | None = None  #: it failed elsewhere, with this class
    descends: bool = False  #: True: from the last answer that did not descend
    notes: tuple[str, ...] = ()  #: sentences about the files, printed at import


class Importer(Protocol):
    """Optional on a job, as `importer`: reads work that was made elsewhere."""

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
        """The answers in the files; raise `DatasetError` where one is off.

        They are read to the end, once, before anything is written.
        *files* are those typed without a flag; settings may name further ones. *form*
        is one of the formats, or None where none is named.
        """
        ...
