"""Reads what served an answer: model, build, provider, region and tier.

An endpoint's name for a model is an alias. The reply says which dated model answered,
which build of it, and, behind a gateway, which provider was charged. All of it is
recorded as reported, and nothing is inferred.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

LONGEST_NAME: Final = 120
"""Maximum length of a stored name: it is untrusted and shown in lists."""

REGIONS: Final = ("x-ms-region",)
"""Headers that name the region, in lower case."""

REQUEST_IDS: Final = ("x-litellm-call-id", "x-request-id", "request-id", "cf-ray")
"""Headers with the request's id, the endpoint's own first: LiteLLM's proxy forwards the
provider's `request-id` next to its own id, which its logs use."""


class ServedBy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Origin of one reply, from its body and headers; None: not reported."""

    model: str | None = None  #: the dated name behind an alias
    fingerprint: str | None = None  #: of the build, OpenAI's `system_fingerprint`
    provider: str | None = None  #: behind a gateway, as OpenRouter names it
    region: str | None = None
    tier: str | None = None  #: of the service, which decides the price
    request_id: str | None = None  #: the id that the provider's support needs


SERVED_UNKNOWN: Final = ServedBy()
"""No field is known."""

COUNTED: Final = ("model", "fingerprint", "provider", "region", "tier")
"""Fields of which a run should have one value a model."""

PREFIX: Final = "served "
"""Prefix of the keys under which projections count them."""


def served_keys(model: str, served: ServedBy | None) -> Iterator[tuple[str, str]]:
    """Return the keys under which projections count an answer of *model*."""
    if served is not None:
        for field in COUNTED:
            name = getattr(served, field)
            if name is not None:
                yield f"{PREFIX}{field}", f"{model}\n{name}"


def charge_differs(expected_usd: float, charged_usd: float) -> bool:
    """Return whether the charged cost differs from the expected cost.

    Prices and charges are rounded: differences up to a hundredth, or a millionth of a
    dollar, are ignored.
    """
    return abs(expected_usd - charged_usd) > max(
        1e-6, 0.01 * max(expected_usd, charged_usd)
    )


def served_in(body: Mapping[str, Any]) -> ServedBy | None:
    """Read the origin from a reply's body; None for missing fields.

    Args:
        body: the top-level fields of a reply in any form, or some of them. A reply
            converted by litellm has the original under `received`.
    """
    original = body.get("received")
    inner = original if isinstance(original, dict) else {}
    usage = body.get("usage")
    counted = usage if isinstance(usage, dict) else {}
    model = _word(inner.get("model")) or _word(body.get("model"))
    fingerprint = _word(body.get("system_fingerprint"))
    provider = _word(inner.get("provider")) or _word(body.get("provider"))
    tier = _word(body.get("service_tier")) or _word(counted.get("service_tier"))
    request_id = _word(inner.get("id")) or _word(body.get("id"))
    if not (model or fingerprint or provider or tier or request_id):
        return None
    return ServedBy(
        model=model,
        fingerprint=fingerprint,
        provider=provider,
        tier=tier,
        request_id=request_id,
    )


def with_headers(
    served: ServedBy | None, headers: Mapping[str, str]
) -> ServedBy | None:
    """Return *served* with the region and the request id from the headers.

    A request id in a header takes precedence over the reply's id in the body, because a
    provider's support needs it.
    """
    if not headers:
        return served
    region = next((headers[name] for name in REGIONS if name in headers), None)
    request = next((headers[name] for name in REQUEST_IDS if name in headers), None)
    if region is None and request is None:
        return served
    base = served or SERVED_UNKNOWN
    return msgspec.structs.replace(
        base,
        region=_word(region) or base.region,
        request_id=_word(request) or base.request_id,
    )


def _word(name: object) -> str | None:
    """Return a truncated name; None for any other value."""
    if not isinstance(name, str):
        return None
    return name.strip()[:LONGEST_NAME] or None
