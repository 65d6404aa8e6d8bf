"""Reads what served an answer: model, build, provider, region and tier.

An endpoint's name for a model is an alias. The reply says which dated model answered,
which build of it, and, where a gateway stands before several providers, which of them
was charged. All of it is recorded as the reply says it, and nothing is inferred.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

LONGEST_NAME: Final = 120
"""Of a name that is kept: it is shown in lists, and it is somebody else's text."""

REGIONS: Final = ("x-ms-region",)
"""Headers that name the region, in lower case."""

REQUEST_IDS: Final = ("x-litellm-call-id", "x-request-id", "request-id", "cf-ray")
"""Headers that name the request, the best known to the endpoint first: LiteLLM's proxy
passes the provider's `request-id` on next to its own id, which its logs are kept by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedBy:
    """What one reply and its headers say of their origin; None: not said."""

    model: str | None = None  #: the dated name behind an alias
    fingerprint: str | None = None  #: of the build, OpenAI's `system_fingerprint`
    provider: str | None = None  #: behind a gateway, as OpenRouter names it
    region: str | None = None
    tier: str | None = None  #: of the service, which decides the price
    request_id: str | None = None  #: what the provider's support asks for


SERVED_UNKNOWN: Final = ServedBy()
"""Nothing is said."""

COUNTED: Final = ("model", "fingerprint", "provider", "region", "tier")
"""Fields of which a run should have one value a model."""

PREFIX: Final = "served "
"""Begins the words under which the projections count them."""


def served_keys(model: str, served: ServedBy | None) -> Iterator[tuple[str, str]]:
    """Under what the projections count an answer of *model*."""
    if served is not None:
        for field in COUNTED:
            name = getattr(served, field)
            if name is not None:
                yield f"{PREFIX}{field}", f"{model}\n{name}"


def charge_differs(expected_usd: float, charged_usd: float) -> bool:
    """Whether a reply charged something else than it should have cost.

    Prices are given to some digits and charges are rounded: up to a hundredth, or a
    millionth of a dollar, is the same.
    """
    return abs(expected_usd - charged_usd) > max(
        1e-6, 0.01 * max(expected_usd, charged_usd)
    )


def served_in(body: Mapping[str, Any]) -> ServedBy | None:
    """What the fields of a reply's body say; None where they say nothing.

    Args:
        body: the top-level fields of a reply in any form, or some of them. What litellm
            made of a reply has the reply itself under `received`.
    """
    original = body.get("received")
    inner = original if isinstance(original, dict) else {}
    usage = body.get("usage")
    counted = usage if isinstance(usage, dict) else {}
    served = ServedBy(
        model=_word(inner.get("model")) or _word(body.get("model")),
        fingerprint=_word(body.get("system_fingerprint")),
        provider=_word(inner.get("provider")) or _word(body.get("provider")),
        tier=_word(body.get("service_tier")) or _word(counted.get("service_tier")),
        request_id=_word(inner.get("id")) or _word(body.get("id")),
    )
    return None if served == SERVED_UNKNOWN else served


def with_headers(
    served: ServedBy | None, headers: Mapping[str, str]
) -> ServedBy | None:
    """*served* with the region and the request's name that the headers tell.

    The name of the request in a header goes before the name of the reply in the body:
    it is what a provider's support asks for.
    """
    region = next((headers[name] for name in REGIONS if name in headers), None)
    request = next((headers[name] for name in REQUEST_IDS if name in headers), None)
    if region is None and request is None:
        return served
    base = served or SERVED_UNKNOWN
    return replace(
        base,
        region=_word(region) or base.region,
        request_id=_word(request) or base.request_id,
    )


def _word(name: object) -> str | None:
    """A name, cut short; None for what is no name."""
    if not isinstance(name, str):
        return None
    return name.strip()[:LONGEST_NAME] or None
