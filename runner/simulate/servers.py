"""The dialects of servers that people run themselves, one row each."""

from __future__ import annotations

from typing import Final

from runner.simulate import refusing as r
from runner.simulate.dialect import (
    EMBEDDINGS,
    MESSAGES,
    OPENAI_BATCHES,
    RERANK,
    RESPONSES,
    TEXT,
    Dialect,
    Kind,
    Reasoning,
    Words,
)
from runner.simulate.forms import (
    flat_error,
    inside,
    numbered_error,
    openai_error,
    proxied_limits,
    proxy_error,
    tgi_error,
    three,
    whole_seconds,
)
from runner.simulate.openai_family import CHAT_ONLY, DEAR_TIERS, words

VLLM: Final = Dialect(
    name="vllm",
    summary="An older vLLM: no JSON schema, errors with all fields at the top",
    source="vLLM's issue threads",
    paths=CHAT_ONLY | {EMBEDDINGS, RERANK},
    words=words(
        {
            Kind.PATH: Words(status=404, message="Not Found"),
            Kind.MODEL: Words(
                status=404,
                message="The model `{model}` does not exist.",
                type="NotFoundError",
                code=404,
            ),
            Kind.NO_MODEL: Words(
                status=400,
                message="[{{'type': 'missing', 'loc': ('body', 'model'), 'msg': "
                "'Field required'}}]",
                type="BadRequestError",
                code=400,
            ),
            Kind.NO_MESSAGES: Words(
                status=400,
                message="list index out of range",
                type="BadRequestError",
                code=400,
            ),
            Kind.BODY: Words(
                status=400, message="{detail}", type="BadRequestError", code=400
            ),
            Kind.SERVER: Words(
                status=500,
                message="Internal Server Error",
                type="InternalServerError",
                code=500,
            ),
        }
    ),
    error=flat_error,
    usage=lambda tokens, cost: {**three(tokens, cost), "prompt_tokens_details": None},
    rules=(
        r.no_schema(
            400,
            "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
            "'msg': \"Input should be 'text' or 'json_object'\", 'input': "
            "'json_schema'}]",
            type="BadRequestError",
            code=400,
        ),
        r.no_system_role(
            Words(
                status=400,
                message="System role not supported",
                type="BadRequestError",
                code=400,
            )
        ),
    ),
    needs_key=False,
    statuses=(500,),
)

OLLAMA: Final = Dialect(
    name="ollama",
    summary="Ollama: three numbers, <think> inside the content, no key and no limits",
    source="Ollama's documentation and issue threads",
    paths=CHAT_ONLY | {EMBEDDINGS},
    words=words(
        {
            Kind.PATH: Words(status=404, message="404 page not found"),
            Kind.MODEL: Words(
                status=404,
                message="model '{model}' not found",
                type="not_found_error",
            ),
            Kind.NO_MODEL: Words(status=400, message="model is required"),
            Kind.RATE: Words(
                status=503,
                message="server busy, please try again.  maximum pending requests "
                "exceeded",
                type="api_error",
            ),
            Kind.SERVER: Words(
                status=500,
                message="llama runner process has terminated",
                type="api_error",
            ),
        }
    ),
    error=openai_error,
    usage=three,
    needs_key=False,
    caps=("max_tokens",),
    reasoning=Reasoning(most=300, shown="think"),
    fingerprints=("fp_ollama",),
    statuses=(500,),
)

LLAMACPP: Final = Dialect(
    name="llamacpp",
    summary="llama.cpp: 500 where JSON was cut or the template has no system role",
    source="llama.cpp's issue threads",
    paths=CHAT_ONLY | {EMBEDDINGS, RERANK},
    words=words(
        {
            Kind.PATH: Words(
                status=404, message="File Not Found", type="not_found_error"
            ),
            Kind.NO_MESSAGES: Words(
                status=500,
                message="Expected 'messages' to be an array with elements",
                type="server_error",
            ),
            Kind.RATE: Words(
                status=503, message="Loading model", type="unavailable_error"
            ),
            Kind.SERVER: Words(
                status=500, message="Compute error.", type="server_error"
            ),
        }
    ),
    error=numbered_error,
    usage=three,
    rules=(
        r.no_system_role(
            Words(
                status=500,
                message="System role not supported at row 1, column 74",
                type="server_error",
            )
        ),
    ),
    needs_key=False,
    fingerprints=("b6869-8cf6b42d4",),
    more=lambda served: {
        "timings": {
            "cache_n": 0,
            "prompt_n": served.tokens.prompt,
            "prompt_ms": 12.5,
            "predicted_n": served.tokens.out,
            "predicted_ms": 40.0,
        }
    },
    statuses=(500, 503),
    cut_schema=Words(
        status=500,
        message="Failed to parse input at pos 0: the output ends inside its JSON",
        type="server_error",
    ),
)

TGI: Final = Dialect(
    name="tgi",
    summary="Text Generation Inference: temperature above 0, schemas refused as text",
    source="its issue threads",
    paths=CHAT_ONLY | {EMBEDDINGS},
    words=words(
        {
            Kind.PATH: Words(status=404, message="Not Found"),
            Kind.NO_MESSAGES: Words(
                status=422,
                message="Input validation error: `messages` cannot be empty",
                type="validation",
            ),
            Kind.RATE: Words(
                status=429, message="Model is overloaded", type="overloaded"
            ),
            Kind.SERVER: Words(
                status=424,
                message="Request failed during generation: Server error",
                type="generation",
            ),
            Kind.BODY: Words(status=422, message="{detail}", type="validation"),
        }
    ),
    error=tgi_error,
    usage=three,
    rules=(
        r.no_schema(
            422,
            "Failed to deserialize the JSON body into the target type: "
            "response_format: unknown variant `json_schema`, expected `json_object` "
            "or `regex`",
            media=TEXT,
        ),
        r.temperature_range(
            0,
            100,
            "Input validation error: `temperature` must be strictly positive",
            status=422,
            type="validation",
        ),
        r.no_system_role(
            Words(
                status=422,
                message="Template error: invalid operation: System role not supported",
                type="template_error",
            )
        ),
    ),
    needs_key=False,
    caps=("max_tokens",),
    ends={"stop": "eos_token"},
    fingerprints=("3.3.4-sha-9f38d93",),
    ids=lambda served: {"x-compute-type": "cpu", "x-request-id": served.request_id},
    statuses=(424, 500),
)

LITELLM: Final = Dialect(
    name="litellm-proxy",
    summary="LiteLLM's proxy: 400 budget_exceeded, its own errors, cost headers",
    source="the proxy's sources in the litellm package",
    paths=CHAT_ONLY | OPENAI_BATCHES | {EMBEDDINGS, RERANK, RESPONSES, MESSAGES},
    words=words(
        {
            Kind.KEY: Words(
                status=401,
                message="Authentication Error, No api key passed in.",
                type="auth_error",
            ),
            Kind.MODEL: Words(
                status=400,
                message="/chat/completions: Invalid model name passed in model={model}."
                " Call `/v1/models` to view available models for your key.",
                type="invalid_request_error",
            ),
            Kind.RATE: Words(
                status=429,
                message="litellm.RateLimitError: RateLimitError: OpenAIException - "
                "Rate limit reached. Please try again in {wait}.",
                type="throttling_error",
            ),
            Kind.QUOTA: Words(
                status=400,
                message="Budget has been exceeded! Current cost: {detail}, Max budget: "
                "{detail}",
                type="budget_exceeded",
            ),
            Kind.SERVER: Words(
                status=500,
                message="litellm.InternalServerError: InternalServerError: "
                "OpenAIException - Connection error.",
                type=None,
            ),
        }
    ),
    error=proxy_error,
    usage=inside,
    dated="-2024-07-18",
    fingerprints=("fp_44709d6fcb",),
    tells_tier=True,
    tiers=DEAR_TIERS,
    ids=lambda served: {
        "x-litellm-call-id": served.request_id,
        "x-litellm-model-id": "0c3b3f5f",
        "x-litellm-response-cost": f"{served.cost:f}",
    },
    limits=proxied_limits,
    waits=whole_seconds,
    statuses=(500, 503),
    cache_least=1024,
    cache_step=128,
)
