"""What a person may set about clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from runner.clients.ladder import Ladder
from runner.clients.secret import Keyring, Secret
from runner.job import Job
from store.clock import Clock, SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long one attempt may take, in seconds.

    A reply arrives in one piece after the model has thought, so the first byte may be
    minutes away; the defaults are those of OpenAI's own client (600 s in all).
    """

    connect_s: float = 10.0
    silence_s: float = 300.0  #: to the first byte, and between any two pieces
    total_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """What `open_client` needs beside the model's name."""

    base_url: str | None = None  #: with or without `/v1`; None: OpenAI's own
    api_key: Secret | None = None  #: None: no key is sent
    structured: bool = True  #: send the request's schema as `response_format`
    ladder: Ladder | None = None  #: what the endpoint takes; None: nothing is known yet
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent beside the client's own; a secret in them is among `masked` too."""
    masked: tuple[Secret, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)
    max_reply_bytes: int = 32 * 2**20  #: a longer body is cut off and refused
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What else a provider may read its keys and addresses from; has secrets."""
    job: Job | None = None  #: whose baseline answers `baseline/...`
    runs_dir: Path = Path("runs")  #: where `recorded:RUN` looks for a run
    clock: Clock = field(default_factory=SystemClock)

    @property
    def keys(self) -> Keyring:
        """All that is sent and must not be repeated."""
        own = () if self.api_key is None else (self.api_key,)
        return Keyring(*own, *self.masked)
