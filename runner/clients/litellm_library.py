"""The litellm package as siftlog uses it: to translate, and for nothing else.

litellm knows how some hundred providers want a request written and how they write a
reply. Its retries, caches, callbacks, price download and `.env` reader are off, and
its sockets are ours: whatever HTTP client it builds hands its requests to the attempt
under way (`design/litellm.md` says why). It is imported when the first model needs it,
which takes two to three seconds.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeAlias

import httpx

from runner.errors import UsageError

Send: TypeAlias = Callable[[httpx.Request], Awaitable[httpx.Response]]

_send: Final[ContextVar[Send]] = ContextVar("_send")
"""Sends what litellm asks for in the current context."""

SWITCHES: Final = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # prices as packaged, no download
    "LITELLM_MODE": "PRODUCTION",  # no .env of its own
}
"""Read by litellm from the environment as it is imported."""

QUIET: Final = {
    "num_retries": 0,  # litellm's own
    "max_retries": 0,  # those of the SDKs beneath it
    "caching": False,
    "drop_params": True,  # a parameter the model does not know is left out
}
"""Keywords of every completion."""


class _OurSockets(httpx.AsyncBaseTransport):
    """The transport of every HTTP client that litellm builds; holds nothing."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await _send.get()(request)


@cache
def library() -> Any:  # noqa: ANN401 - a module is typed by what it holds
    """litellm, silenced and with our sockets; the first call imports it."""
    os.environ.update(SWITCHES)
    litellm: Any = import_module("litellm")
    litellm.suppress_debug_info = True  # it prints hints
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    handler = import_module("litellm.llms.custom_httpx.http_handler")
    handler.AsyncHTTPHandler.create_async_transport = staticmethod(_our_sockets)
    # a few were built while importing
    litellm.in_memory_llm_clients_cache.flush_cache()
    return litellm


@contextmanager
def sending(send: Send) -> Iterator[None]:
    """Let litellm's requests go through *send* in here."""
    # its own mark for calls that are not to be logged: without it, each leaves tasks
    # behind that nobody awaits, and costs a fifth more
    unlogged = import_module("litellm._internal_context").is_internal_call
    sender, mark = _send.set(send), unlogged.set(True)
    try:
        yield
    finally:
        unlogged.reset(mark)
        _send.reset(sender)


def _our_sockets(*_: object, **__: object) -> httpx.AsyncBaseTransport:
    return _OurSockets()


def check(model: str, *, has_key: bool, environment: Mapping[str, str]) -> None:
    """See to it that litellm knows *model*'s provider and finds its key.

    litellm looks for keys, addresses and regions in the process environment only, so
    what *environment* has more (from `.env`) is added there.

    Raises:
        UsageError: It does not; the message says what to do.
    """
    provider, _, name = model.partition("/")
    if not name or provider not in library().provider_list:
        raise UsageError(
            f"No provider is known for the model {model!r}: give --base-url for an "
            "OpenAI-compatible endpoint, or choose PROVIDER/NAME with a provider that "
            "litellm knows (openai, anthropic, gemini, ...), baseline/lexical or "
            "recorded:FILE."
        )
    for variable, value in environment.items():
        os.environ.setdefault(variable, value)
    found = library().validate_environment(model, api_key="given" if has_key else None)
    missing = [name for name in found["missing_keys"] if name not in os.environ]
    # an address alone has a default: that of a server on this machine
    if found["keys_in_environment"] or all(name.endswith("_BASE") for name in missing):
        return
    are_alternatives = all(name.endswith("_API_KEY") for name in missing)
    names = (" or " if are_alternatives else " and ").join(missing)
    raise UsageError(
        f"{model} needs {names} in the environment or in .env; the key may also stand "
        "in a variable that --api-key-env names."
    )
