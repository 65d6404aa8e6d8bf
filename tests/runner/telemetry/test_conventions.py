from __future__ import annotations

import pytest
from opentelemetry.semconv._incubating.attributes import (
    gen_ai_attributes,
    openai_attributes,
)
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, http_attributes
from opentelemetry.semconv.schemas import Schemas

from runner.telemetry import (
    DURATION,
    DURATION_BOUNDS,
    OPERATIONS,
    PROVIDERS,
    SCHEMA_URL,
    TOKEN_BOUNDS,
    TOKEN_USAGE,
    Attribute,
)

KNOWN = {
    value
    for module in (
        gen_ai_attributes,
        openai_attributes,
        error_attributes,
        http_attributes,
    )
    for name, value in vars(module).items()
    if name.isupper()
} | {"service.name", "service.version", "service.instance.id"}


@pytest.mark.parametrize("name", Attribute)
def test_every_name_is_of_the_conventions_or_says_that_it_is_ours(
    name: Attribute,
) -> None:
    assert name in KNOWN or name.startswith("siftlog.")


def test_the_instruments_and_the_schema_are_those_of_the_conventions() -> None:
    assert TOKEN_USAGE == gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE
    assert DURATION == gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION
    assert SCHEMA_URL in {schema.value for schema in Schemas}
    assert TOKEN_BOUNDS[:4] == (1, 4, 16, 64)
    assert TOKEN_BOUNDS[-1] == 67_108_864
    assert DURATION_BOUNDS[:4] == (0.01, 0.02, 0.04, 0.08)
    assert DURATION_BOUNDS[-1] == 81.92


def test_providers_and_operations_have_the_values_that_must_be_used() -> None:
    values = gen_ai_attributes.GenAiProviderNameValues
    assert {*PROVIDERS.values()} == {value.value for value in values} - {"gcp.gen_ai"}
    known = {value.value for value in gen_ai_attributes.GenAiOperationNameValues}
    assert {*OPERATIONS.values()} - known == {"rerank"}
