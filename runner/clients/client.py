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
from store.lineage import ForkedBody


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An attempt to send."""

    task: Task
    request: Request
    attempt: int = 1  #: number within the task
    request_sha256: str = ""  #: hash of the request in the log
    is_stale: bool = False
    """The log has a different request for this attempt, started by an earlier
    process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A complete reply."""

    body: bytes  #: as received, without its transfer's compression
    form: str  #: wire form of the body, defined in `runner.clients.wire`
    reply: AnyReply  #: the decoded body; its type matches the request
    status: int = 200  #: 200 for clients without HTTP
    headers: dict[str, str] | None = None  #: only relevant ones, in lower case
    adopted: str | None = None
    """"<writer>:<seq>" of the event, if another log of the run has the answer."""
    forked: ForkedBody | None = None  #: the answer of the parent run, for a fork


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatistics:
    """Figures of a client since it was opened."""

    in_flight: int
    answered: int
    failed: int  #: ended in an `AttemptError`
    bytes_sent: int  #: bodies only
    bytes_received: int
    batches: int = 0  #: open at the provider, with calls in flight


class CallLeft(Exception):
    """The provider keeps the call; a later process fetches its outcome."""

    def __init__(self, error: AttemptError | None = None) -> None:
        """Leave because of an endpoint *error*, or at the end of the process."""
        super().__init__(*filter(None, [error]))
        self.error = error


class CallUnsent(Exception):
    """The call was not sent and can be sent again unchanged."""


class ModelClient(Protocol):
    """Sends attempts to one model."""

    async def call(self, call: Call) -> Received:
        """Send one attempt and return its reply.

        Raises:
            AttemptError: The attempt ended without a usable reply.
            CallLeft: The provider keeps the call beyond the end of this process.
            CallUnsent: The call was not sent.
        """
        ...

    def statistics(self) -> ClientStatistics:
        """Return the client's figures."""
        ...

    async def close(self) -> None:
        """Release connections, files and threads; no call may be in flight."""
        ...


Api: TypeAlias = Literal["chat", "responses"]
"""Wire form of chats sent directly."""


class Route(enum.Enum):
    """Routes of a request; the values are shown to users."""

    BASELINE = "baseline"  #: the job itself
    RECORDED = "recorded"  #: a file, or an earlier run
    DIRECT = "direct"  #: over HTTP to an OpenAI-compatible endpoint, without an SDK
    LITELLM = "litellm"  #: a provider, through litellm


def route(model: str, *, has_base_url: bool) -> Route:
    """Return the route to *model*, with or without a base URL.

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
    """Return whether *model* needs no endpoint: it is free and answers at once."""
    return route(model, has_base_url=False) in {Route.BASELINE, Route.RECORDED}


MASK: Final = "***"

SHORTEST_MASKED: Final = 12
"""Shorter values are placeholders ("none", "EMPTY") for servers without keys; masking
them would damage replies that contain the same word."""


class Secret:
    """An API key.

    `repr`, `str` and tracebacks show `***`; only `reveal` returns the value, and only
    the code that writes the request's header may call it. Does not compare or store
    keys.
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
        """Return the key itself."""
        return self._value

    def mask(self, text: str) -> str:
        """Replace every occurrence of the key in *text*, JSON escapes included."""
        if self._value not in text and "\\" not in text:
            return text
        return self._in_text.sub(MASK, text)

    def mask_bytes(self, data: bytes) -> bytes:
        """Replace every occurrence of the key in *data*, JSON escapes included."""
        return self._in_bytes.sub(MASK.encode(), data) if self._may_hold(data) else data

    def is_in(self, data: bytes) -> bool:
        """Return whether *data* contains the key; always False for placeholders."""
        return self._may_hold(data) and self._in_bytes.search(data) is not None

    def _may_hold(self, data: bytes) -> bool:
        """Test quickly for the key; the whole pattern takes a hundred times as long."""
        return self._value.encode() in data or bool(self._escape.search(data))

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    __str__ = __repr__


def _spellings(character: str) -> str:
    r"""Return a pattern for all spellings of *character* in JSON and nested JSON.

    Any letter may be `\u002f`; a slash, quote or backslash may follow a backslash. JSON
    within a string of JSON doubles the backslashes, so any number of them fits.
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
    """Keys that are masked together in everything received."""

    def __init__(self, *keys: Secret) -> None:
        # longer keys first: a key that contains another would be masked in part only
        self._keys = sorted(keys, key=lambda key: len(key.reveal()), reverse=True)

    def with_also(self, *keys: Secret) -> Keyring:
        """Return a keyring with *keys* added."""
        return Keyring(*self._keys, *keys)

    def mask(self, text: str) -> str:
        """Replace every occurrence of a key in *text*."""
        for key in self._keys:
            text = key.mask(text)
        return text

    def mask_bytes(self, data: bytes) -> bytes:
        """Replace every occurrence of a key in *data*."""
        for key in self._keys:
            data = key.mask_bytes(data)
        return data


HTTP: Final = "SIFTLOG_HTTP"
"""Variable that names the library for HTTP, `aiohttp` (the default) or `httpx`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time limits for one attempt, in seconds.

    A reply arrives at once after the model has finished, so the first byte may take
    minutes; the defaults are those of OpenAI's client (600 s in total).
    """

    connect_s: float = 10.0
    silence_s: float = 300.0  #: to the first byte, and between any two pieces
    total_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Options of `open_client` beside the model's name."""

    base_url: str | None = None  #: with or without `/v1`; None: OpenAI
    api_key: Secret | None = None  #: None: no key is sent
    structured: bool = True  #: send the request's schema as `response_format`
    api: Api = "chat"  #: wire form of chats for OpenAI-compatible endpoints
    ladder: Fallbacks | None = None  #: accepted parameters; None: unknown so far
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Additional headers; secrets in them are also in `masked`."""
    masked: tuple[Secret, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)
    logged_headers: re.Pattern[str] = LOGGED_HEADERS  #: of replies, by their names
    max_reply_bytes: int = 32 * 2**20  #: a longer body is cut off and refused
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables from which a provider may read keys and addresses; contains secrets."""
    job: Job | None = None  #: whose baseline answers `baseline/...`
    runs_dir: Path = Path("runs")  #: where `recorded:RUN` looks for a run
    clock: Clock = field(default_factory=SystemClock)

    @property
    def keys(self) -> Keyring:
        """Everything that is sent and must be masked in replies."""
        api_keys = () if self.api_key is None else (self.api_key,)
        return Keyring(*api_keys, *self.masked)


@dataclass(slots=True)
class ClientTally:
    """Counters behind `ModelClient.statistics`."""

    in_flight: int = 0
    answered: int = 0
    failed: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Count an attempt as answered or failed; a cancelled one as neither."""
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
        """Return the figures as a value."""
        return ClientStatistics(
            in_flight=self.in_flight,
            answered=self.answered,
            failed=self.failed,
            bytes_sent=self.bytes_sent,
            bytes_received=self.bytes_received,
        )
