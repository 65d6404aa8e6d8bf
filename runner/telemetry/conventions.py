"""What OpenTelemetry calls things: the one table of its names, and of ours beside them.

The GenAI conventions are in development and change their names. These are of the last
release that has them; since then they have moved to a repository of their own, which
has released nothing yet (design/export.md).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

VERSION: Final = "1.41.1"
"""Of the OpenTelemetry semantic conventions."""

SCHEMA_URL: Final = f"https://opentelemetry.io/schemas/{VERSION}"
"""Sent along, so that a collector can translate older names into newer ones."""


class Name(enum.StrEnum):
    """Attributes; what begins with `siftlog` has no name in the conventions."""

    SERVICE = "service.name"
    INSTANCE = "service.instance.id"
    SERVICE_VERSION = "service.version"
    ERROR = "error.type"
    HTTP_STATUS = "http.response.status_code"
    OPERATION = "gen_ai.operation.name"
    PROVIDER = "gen_ai.provider.name"
    REQUEST_MODEL = "gen_ai.request.model"
    MAX_TOKENS = "gen_ai.request.max_tokens"
    TEMPERATURE = "gen_ai.request.temperature"
    DIMENSIONS = "gen_ai.embeddings.dimension.count"
    OUTPUT_TYPE = "gen_ai.output.type"
    FINISH_REASONS = "gen_ai.response.finish_reasons"
    RESPONSE_MODEL = "gen_ai.response.model"
    RESPONSE_ID = "gen_ai.response.id"
    RESPONSE_TIER = "openai.response.service_tier"
    FINGERPRINT = "openai.response.system_fingerprint"
    TOKENS_IN = "gen_ai.usage.input_tokens"
    TOKENS_OUT = "gen_ai.usage.output_tokens"
    TOKENS_CACHED = "gen_ai.usage.cache_read.input_tokens"
    TOKENS_CACHE_WRITE = "gen_ai.usage.cache_creation.input_tokens"
    TOKENS_REASONING = "gen_ai.usage.reasoning.output_tokens"
    TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - a kind of token, no secret
    RUN = "siftlog.run.id"
    JOB = "siftlog.job"
    JOB_VERSION = "siftlog.job.version"
    IMPORTED = "siftlog.run.imported"
    COMPLETED = "siftlog.run.tasks.completed"
    FAILED = "siftlog.run.tasks.failed"
    SKIPPED = "siftlog.run.tasks.skipped"
    STAGE = "siftlog.task.stage"
    KEY = "siftlog.task.key"
    MODEL = "siftlog.task.model"
    REPLICATE = "siftlog.task.replicate"
    TASK = "siftlog.task.number"
    STATE = "siftlog.task.state"
    REASON = "siftlog.task.reason"
    ATTEMPT = "siftlog.attempt.number"
    CACHED = "siftlog.attempt.cached"
    REASKED = "siftlog.attempt.reasked"
    SERVED_BY = "siftlog.attempt.served.provider"
    REGION = "siftlog.attempt.served.region"
    CHARGED = "siftlog.attempt.charged_usd"
    COST = "siftlog.cost_usd"


TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105 - likewise
TOKEN_UNIT: Final = "{token}"  # noqa: S105 - likewise
TOKEN_BOUNDS: Final = tuple(4.0**power for power in range(14))
"""Boundaries of the histogram of tokens, as the conventions have them: 1 to 4^13."""

DURATION: Final = "gen_ai.client.operation.duration"
DURATION_UNIT: Final = "s"
DURATION_BOUNDS: Final = tuple(0.01 * 2**power for power in range(14))
"""Those of the histogram of seconds, as the conventions have them: 0.01 to 81.92."""

OPERATIONS: Final[Mapping[str, str]] = {
    "chat": "chat",
    "embed": "embeddings",
    "rerank": "rerank",  # the conventions have no name for it, and allow others
}
"""From the kind of a request to the name of the operation."""

PROVIDERS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "groq": "groq",
    "mistral": "mistral_ai",
    "openai": "openai",
    "perplexity": "perplexity",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""From the beginning of a model's name, which is litellm's, to the provider's name."""

OFFLINE: Final = "siftlog"
"""The provider of answers that no endpoint gave: of baselines and recordings."""

COMPATIBLE: Final = "openai"
"""The provider of any other endpoint: the conventions name the API that is spoken."""
