"""A unit of work as jobs describe it (`TaskSpec`) and as the plan holds it (`Task`)."""

from __future__ import annotations

from dataclasses import dataclass

from runner.reply import AnyReply, ParseFailure, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """What a job plans: which item of which stage, and nothing of its prompt.

    The engine crosses first-stage specs with the models of the stage's role and, but
    for a stage that is asked once, the replicates; a follow-up inherits both from the
    group it follows. The request is
    built by `Job.request` when the task is sent, so a million specs stay small.
    """

    stage: str
    key: str  #: the item; unique in its stage
    skip: str | None = None  #: reason, for a task that must not be asked
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
