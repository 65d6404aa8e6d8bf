"""Defines the client protocol, and how a client is configured and opened.

A client sends one attempt and nothing more: it neither retries nor waits for a limit,
writes no log, and measures no time. Every failure without a usable reply is raised as
an `AttemptError` of `runner.errors`; any other exception is a bug.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from runner.clients.fallbacks import Fallbacks
from runner.clients.refusals import LOGGED_HEADERS
from runner.errors import AttemptError, UsageError
from runner.job import Job, Task
from runner.messages import AnyReply, Request
from store.clock import Clock, SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One attempt to be sent."""

    task: Task
    request: Request
    attempt: int = 1  #: its number in the task
    request_sha256: str = ""  #: hash of the request, as the log has it
    is_stale: bool = False
    """The log has another request for this attempt, which an earlier process began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A reply that came back whole."""

    body: bytes  #: as received, without its transfer's compression
    form: str  #: wire form of the body, a name of `runner.clients.wire`
    reply: AnyReply  #: what the body says; of the request's kind
    status: int = 200  #: 200 for clients without HTTP
    headers: dict[str, str] | None = None  #: only those that matter, lower case
    adopted: str | None = None
    """Of an answer that another log of the run has: "<writer>:<seq>" of it there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatistics:
    """A client's own figures since it was opened."""

    in_flight: int
    answered: int
    failed: int  #: ended in an `AttemptError`
    bytes_sent: int  #: bodies only
    bytes_received: int
    batches: int = 0  #: of those in flight, open at the provider


class CallLeft(Exception):
    """The provider keeps the call, and a later process gets its outcome."""

    def __init__(self, error: AttemptError | None = None) -> None:
        """With *error* the endpoint is out; without, the process is about to end."""
        super().__init__(*filter(None, [error]))
        self.error = error


class CallUnsent(Exception):
    """The call never left, and is to be made again as it was."""


class ModelClient(Protocol):
    """Sends attempts to one model."""

    async def call(self, call: Call) -> Received:
        """Send one attempt and return its reply.

        Raises:
            AttemptError: The attempt ended without a usable reply.
            Left: It has not ended, and will not while this process lasts.
            Unsent: It was not sent after all.
        """
        ...

    def statistics(self) -> ClientStatistics:
        """The client's figures."""
        ...

    async def close(self) -> None:
        """Release connections, files and threads; no call may be under way."""
        ...


Api: TypeAlias = Literal["chat", "responses"]
"""The form in which chats are sent on the direct way."""


class Route(enum.Enum):
    """The ways a request can take; the values are shown to people."""

    BASELINE = "baseline"  #: the job itself
    RECORDED = "recorded"  #: a file, or an earlier run
    DIRECT = "direct"  #: over HTTP to an OpenAI-compatible endpoint, without an SDK
    LITELLM = "litellm"  #: to a provider, through litellm


def route(model: str, *, has_base_url: bool) -> Route:
    """How *model* is reached, with an address of its own or without.

    >>> route("openai/gpt-4o-mini", has_base_url=False)
    <Route.DIRECT: 'direct'>
    """
    provider = model.partition("/")[0]
    if provider == "baseline":
        return Route.BASELINE
    if model.startswith("recorded:"):
        return Route.RECORDED
    if has_base_url or provider == "openai":
        return Route.DIRECT
    return Route.LITELLM


def is_offline(model: str) -> bool:
    """Whether no endpoint serves *model*: it costs nothing, and takes no time."""
    return route(model, has_base_url=False) in {Route.BASELINE, Route.RECORDED}


MASK: Final = "***"

SHORTEST_MASKED: Final = 12
"""Shorter values are the placeholders ("none", "EMPTY") that servers without keys ask
for; blotting them out would damage replies that hold the same word."""


class Secret:
    """A key for an endpoint.

    `repr`, `str` and tracebacks show `***`; only `reveal` gives the value, and only
    the line that writes the request's header may call it. Not a place for comparing
    or storing keys.
    """

    __slots__ = ("_escape", "_in_bytes", "_in_text", "_value")

    def __init__(self, value: str) -> None:
        if not value.isascii() or not value.isprintable() or " " in value or not value:
            raise UsageError(
                "The key in the environment is empty or holds blanks, line breaks or "
                "letters outside ASCII; set the variable again."
            )
        self._value = value
        is_masked = len(value) >= SHORTEST_MASKED
        pattern = "".join(map(_spellings, value)) if is_masked else "(?!)"
        self._in_text = re.compile(pattern)
        self._in_bytes = re.compile(pattern.encode())
        codes = "|".join(sorted({f"{ord(c):02x}" for c in value}))
        marks = "".join(re.escape(mark) for mark in '/"\\' if mark in value)
        self._escape = re.compile(
            (
                rf"\\(?:(?:u00|x)(?i:{codes})" + (f"|[{marks}])" if marks else ")")
            ).encode()
        )

    def reveal(self) -> str:
        """The key itself."""
        return self._value

    def mask(self, text: str) -> str:
        """*text* with every occurrence of the key replaced, JSON's escapes included."""
        if self._value not in text and "\\" not in text:
            return text
        return self._in_text.sub(MASK, text)

    def mask_bytes(self, data: bytes) -> bytes:
        """*data* with every occurrence of the key replaced, JSON's escapes included."""
        return self._in_bytes.sub(MASK.encode(), data) if self._may_hold(data) else data

    def is_in(self, data: bytes) -> bool:
        """Whether *data* holds the key; of a placeholder's length, none does."""
        return self._may_hold(data) and self._in_bytes.search(data) is not None

    def _may_hold(self, data: bytes) -> bool:
        """A quick test: the whole pattern takes a hundred times as long."""
        return self._value.encode() in data or bool(self._escape.search(data))

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    __str__ = __repr__


def _spellings(character: str) -> str:
    r"""A pattern of the ways in which *character* appears in JSON, and in its strings.

    Any letter may be `\u002f`; a slash, quote or backslash may stand after a backslash.
    JSON within a string of JSON doubles the backslashes, so any number of them fits.
    """
    code = f"{ord(character):02x}"
    escaped = rf"\\+(?:u00|x)(?i:{code})"
    plain = re.escape(character)
    if character in '/"':
        plain = rf"\\*{plain}"
    elif character == "\\":
        plain = r"\\+"
    return f"(?:{escaped}|{plain})"


class Keyring:
    """Keys that are masked together in whatever comes back."""

    def __init__(self, *keys: Secret) -> None:
        # a key that holds another one must go first, or a piece of it would stay
        self._keys = sorted(keys, key=lambda key: len(key.reveal()), reverse=True)

    def with_also(self, *keys: Secret) -> Keyring:
        """These keys and *keys*."""
        return Keyring(*self._keys, *keys)

    def mask(self, text: str) -> str:
        """*text* with every occurrence of a key replaced."""
        for key in self._keys:
            text = key.mask(text)
        return text

    def mask_bytes(self, data: bytes) -> bytes:
        """*data* with every occurrence of a key replaced."""
        for key in self._keys:
            data = key.mask_bytes(data)
        return data


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
    api: Api = "chat"  #: form in which chats are sent to an OpenAI-form endpoint
    ladder: Fallbacks | None = (
        None  #: what the endpoint takes; None: nothing is known yet
    )
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent beside the client's own; a secret in them is among `masked` too."""
    masked: tuple[Secret, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)
    logged_headers: re.Pattern[str] = LOGGED_HEADERS  #: of replies, by their names
    max_reply_bytes: int = 32 * 2**20  #: a longer body is cut off and refused
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What else a provider may read its keys and addresses from; has secrets."""
    job: Job | None = None  #: whose baseline answers `baseline/...`
    runs_dir: Path = Path("runs")  #: where `recorded:RUN` looks for a run
    clock: Clock = field(default_factory=SystemClock)

    @property
    def keys(self) -> Keyring:
        """All that is sent and must not be repeated."""
        api_keys = () if self.api_key is None else (self.api_key,)
        return Keyring(*api_keys, *self.masked)


@dataclass(slots=True)
class ClientTally:
    """The figures behind `ModelClient.statistics`."""

    in_flight: int = 0
    answered: int = 0
    failed: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Count one attempt, however it ends; a cancelled one is neither."""
        self.in_flight += 1
        try:
            yield
            self.answered += 1
        except AttemptError:
            self.failed += 1
            raise
        finally:
            self.in_flight -= 1

    def statistics(self) -> ClientStatistics:
        """The figures as a value."""
        return ClientStatistics(
            in_flight=self.in_flight,
            answered=self.answered,
            failed=self.failed,
            bytes_sent=self.bytes_sent,
            bytes_received=self.bytes_received,
        )
