"""What served an answer: the model, build, provider, region and tier behind a name.

An endpoint's name for a model is an alias. The reply says which dated model answered,
which build of it, and, where a gateway stands before several providers, which of them
was charged. All of it is recorded as the reply says it, and nothing is inferred.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What one reply and its headers say of their origin; None: not said."""

    model: str | None = None  #: the dated name behind an alias
    fingerprint: str | None = None  #: of the build, OpenAI's `system_fingerprint`
    provider: str | None = None  #: behind a gateway, as OpenRouter names it
    region: str | None = None
    tier: str | None = None  #: of the service, which decides the price
    request_id: str | None = None  #: what the provider's support asks for
