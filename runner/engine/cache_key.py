"""When an answer of another run is the answer to this request; pure.

It is when everything that may change the answer is the same. What only may change it
counts as changing it: a key that is too fine costs a call, one that is too coarse gives
a wrong answer (`design/cache.md` names what is in it and what is not).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from runner.clients.options import ClientOptions
from runner.clients.route import Api, Route, route

VERSION: Final = 1
"""Of the key's making; raising it makes all entries strangers."""

ADDRESS: Final = re.compile(
    r"_(API_BASE|BASE_URL|API_VERSION|REGION|REGION_NAME|LOCATION|PROJECT)$"
)
"""Names of the variables that say where, and as which version, litellm's providers are
asked. Whose they are only litellm knows, so all that are set count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where the answers of one model come from."""

    model: str
    endpoint: str  #: as shown to people: an address, or a provider's name
    structured: bool  #: whether a request's schema is sent to the endpoint
    api: Api = "chat"  #: form in which chats are sent
    addresses: tuple[tuple[str, str], ...] = ()  #: variables and their values, sorted


def origin_of(model: str, options: ClientOptions) -> Origin | None:
    """Where *model*'s answers come from; None: from no endpoint, so never cached."""
    match route(model, has_base_url=options.base_url is not None):
        case Route.BASELINE | Route.RECORDED:
            return None
        case Route.DIRECT:
            # with its HTTP library, so only where it is needed
            from runner.clients.openai_compatible import (  # noqa: PLC0415 - see above
                OPENAI_URL,
                endpoint_url,
            )

            return Origin(
                model=model,
                endpoint=endpoint_url(options.base_url or OPENAI_URL),
                structured=options.structured,
                api=options.api,
            )
        case Route.LITELLM:
            return Origin(
                model=model,
                endpoint=model.partition("/")[0],
                structured=options.structured,
                addresses=_addresses(options.environment),
            )


def _addresses(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value)
        for name, value in sorted(environment.items())
        if ADDRESS.search(name)
    )


def cache_key(origin: Origin, *, request_sha256: str, replicate: int) -> bytes:
    """The key of an answer.

    Args:
        origin: where the answer comes from.
        request_sha256: of the request's skeleton, which holds its kind, the model,
            every parameter, and its texts and schema by hash.
        replicate: asking again is meant to get another answer.
    """
    made_of = (
        VERSION,
        origin.model,
        origin.endpoint,
        origin.structured,
        origin.addresses,
        request_sha256,
        replicate,
        # last, and only where it is another one: the keys of chats stay what they were
        *(() if origin.api == "chat" else (origin.api,)),
    )
    return hashlib.sha256(msgspec.json.encode(made_of)).digest()
