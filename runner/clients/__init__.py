"""Model clients behind one protocol; `open_client` chooses by the model's name."""

from runner.clients.client import (
    Call,
    ClientOptions,
    ClientStatistics,
    ModelClient,
    Received,
    Route,
    Secret,
    Timeouts,
    route,
)
from runner.errors import UsageError

__all__ = [
    "Call",
    "ClientOptions",
    "ClientStatistics",
    "ModelClient",
    "Received",
    "Secret",
    "Timeouts",
    "open_client",
]


def open_client(model: str, options: ClientOptions) -> ModelClient:
    """Open the client for *model*; the caller closes it, inside the event loop.

    `baseline/...` calls the job, `recorded:...` reads a file or an earlier run; other
    models use `options.base_url` if set, `openai/...` OpenAI, and the rest their
    provider through litellm. The modules are imported here, so that a run pays only for
    the client it uses.

    Raises:
        UsageError: No client serves that name, or its options do not fit.
    """
    match route(model, has_base_url=options.base_url is not None):
        case Route.BASELINE:
            from runner.clients.offline import (  # noqa: PLC0415 - see above
                BaselineClient,
            )

            if options.job is None:
                raise UsageError(
                    f"The model {model!r} answers only inside a job's run."
                )
            return BaselineClient(options.job)
        case Route.RECORDED:
            from runner.clients.offline import (  # noqa: PLC0415 - see above
                open_recorded,
            )

            return open_recorded(model.removeprefix("recorded:"), options)
        case Route.DIRECT:
            from runner.clients.http_client import (  # noqa: PLC0415 - see above
                OpenAICompatibleClient,
            )

            return OpenAICompatibleClient(model.removeprefix("openai/"), options)
        case Route.LITELLM:
            from runner.clients.litellm_client import (  # noqa: PLC0415 - see above
                LiteLLMClient,
            )

            return LiteLLMClient(model, options)
