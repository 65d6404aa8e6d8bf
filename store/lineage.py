"""Events about continuing a finished run: as a fork, or with another stage.

The records of a fork are part of events, so its own hash chain covers them: which run
it continues, up to which link of that run's chain, and the hash of each adopted body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkOrigin:
    """The run that a fork continues from, and what may be adopted from it."""

    run: str  #: id of the parent run, whose folder is beside the fork's
    seq: int  #: the parent's last event when the fork began
    link: str  #: hex of the parent's chain at that event
    models: list[str]  #: models whose endpoint is that of the parent
    anew: tuple[str, ...] = ()  #: stages that are asked anew
    logs: tuple[ParentLog, ...] = ()
    """Of a split parent, its logs then: `seq` is the number of their events, and `link`
    the digest that `siftlog merge` prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentLog:
    """One of the logs of a split parent when the fork began."""

    log: str  #: hex id of its first writer
    seq: int  #: its last event
    link: str  #: hex of its chain at that event


class ForkedBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Names the answer of the parent run that a fork adopted."""

    seq: int  #: of the `attempt_answered` in the parent's log
    sha256: str  #: hex; of the body, which is not stored a second time
    cost_usd: float = 0.0  #: what the task's attempts had cost when they were sent
    log: str = ""  #: which log of a split parent has the event: a `ParentLog.log`


class StageAdded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stage was added to a run that had ended; the payload is its declaration.

    The run's tasks of this stage are planned from the declaration in the log, never
    from the file again.
    """

    VERSION: ClassVar[int] = 1

    stage: str
    model: str  #: the model of its tasks
    form: str  #: of the declaration: the suffix of its file, such as "toml"
    file: str  #: its path when it was added
    sha256: str  #: hex, of the declaration
    code_sha256: str  #: hash of the source files that carry a declaration out
    siftlog_version: str
    budget_usd: float | None = None  #: cap of the stage alone; None: that of the run
