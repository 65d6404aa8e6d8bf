"""Limits that are set while a run goes on, and hold for its later processes too.

They stand nowhere but in the log, as applied commands: a process that takes the run up
reads them there and goes by them, unless it was started with limits of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from runner.errors import RunnerError
from runner.limits.limiter import MOST_CALLS, Limits
from store.events import CommandAccepted, CommandApplied, RecordedEvent
from store.read.status import UNITS, model_limits_in_words

KINDS = ("command_accepted", "command_applied")
"""Events that standing changes are read from."""


class Refused(RunnerError):
    """A request that is not carried out; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsChange:
    """Limits that a person sets while a run goes on; those not named stay."""

    model: str | None  #: None: every model
    values: Mapping[str, float | None]  #: by field of `Limits`; None: no such limit

    def concerns(self, model: str) -> bool:
        """Whether it is about a model."""
        return self.model in {None, model}

    def applied_to(self, limits: Limits) -> Limits:
        """The limits as they are then."""
        calls = self.values.get("concurrency")
        return replace(
            limits,
            concurrency=limits.concurrency if calls is None else int(calls),
            rpm=self.values.get("rpm", limits.rpm),
            tpm=self.values.get("tpm", limits.tpm),
        )

    def without(self, names: Iterable[str]) -> LimitsChange:
        """The change of the other fields only."""
        left = {k: v for k, v in self.values.items() if k not in set(names)}
        return LimitsChange(model=self.model, values=left)

    def __str__(self) -> str:
        """What is set, in a few words."""
        return model_limits_in_words(self.model, self.values)


MOST = 10**12
"""More of anything is a slip. A request that was accepted is carried out by every later
process until it is applied, so what no float or database holds must not get so far."""


def is_amount(value: object) -> TypeGuard[float]:
    """Whether it is a number above 0, and no more than anybody means."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= MOST


def limits_change(payload: Mapping[str, object]) -> LimitsChange:
    """The change that a request asks for.

    Raises:
        Refused: it names no limit, or one that cannot be.
    """
    values: dict[str, float | None] = {}
    for name in UNITS:
        if name not in payload:
            continue
        value = payload[name]
        if value is None and name != "concurrency":
            values[name] = None
            continue
        if not is_amount(value):
            raise Refused(
                f"{name} must be above 0 and at most {MOST:,}; pause the run to start "
                "nothing"
            )
        if name == "concurrency" and (value != int(value) or value > MOST_CALLS):
            raise Refused(
                f"concurrency must be a whole number of at most {MOST_CALLS:,}"
            )
        values[name] = value
    if not values:
        raise Refused("no limit was named")
    model = payload.get("model")
    return LimitsChange(model=None if model is None else str(model), values=values)


def standing(recorded: Sequence[RecordedEvent]) -> list[LimitsChange]:
    """The changes of limits among events of `KINDS`, in order: those applied."""
    applied = {r.event.command for r in recorded if isinstance(r.event, CommandApplied)}
    accepted = {
        r.event.command: r.event.payload
        for r in recorded
        if isinstance(r.event, CommandAccepted)
        and r.event.kind == "limits"
        and r.event.command in applied
    }
    return [limits_change(json.loads(payload)) for payload in accepted.values()]
