"""What a probe of an endpoint found out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from runner.clients.route import Api
from runner.probing.dialects import DialectGuess
from runner.probing.usage_seen import ReasoningPlace

State = Literal["accepted", "refused", "ignored", "not sent", "unknown"]
SchemaSupport = Literal[
    "strict", "schema", "json_object", "ignored", "refused", "unknown"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedParameter:
    """One parameter, and what the endpoint does with it."""

    name: str
    state: State
    words: str = ""  #: the endpoint's own, or what was seen


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """What a probe found out; None: unknown."""

    endpoint: str
    model: str
    api: Api
    calls: int
    problem: str | None = None  #: why no answer came; None: one did
    dialect: DialectGuess = field(default_factory=lambda: DialectGuess(name="unknown"))
    parameters: tuple[ProbedParameter, ...] = ()
    schema: SchemaSupport = "unknown"
    schema_words: str = ""  #: what was seen of it
    usage_fields: tuple[str, ...] = ()  #: as paths; empty: no usage came
    reasoning: ReasoningPlace = "none counted"
    rpm: float | None = None  #: requests a minute, as headers give them
    tpm: float | None = None
    limit_headers: tuple[tuple[str, str], ...] = ()
    latencies_ms: tuple[int, ...] = ()  #: of the answered calls
    served: tuple[tuple[str, str], ...] = ()
    """What the replies say of their origin: field and value, each pair once."""
    tokens_in: int = 0  #: as the endpoint counted them
    tokens_out: int = 0
    uncounted: int = 0  #: answered calls without usage

    @property
    def refused(self) -> frozenset[str]:
        """Names of refused parameters."""
        return frozenset(p.name for p in self.parameters if p.state == "refused")
