"""The command simulate: runs the endpoint as a separate process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from runner.cli.help import LongCommand, OptionLayout

_SHARE = click.FloatRange(0, 1)

_LAYOUT = OptionLayout(
    everyday=(
        *("port", "job", "models", "dialect", "seed", "latency_ms", "jitter_ms"),
        *("rate_429", "rate_5xx", "rate_malformed", "rate_drop", "rate_hang"),
        *("rps", "tpm", "ledger"),
    ),
    sections={
        "Endpoint": ("port", "dialect", "models", "ignored", "limit_headers"),
        "Answers": (
            *("job", "seed", "max_output", "reasoning", "bytes_per_token"),
            *("cache_least", "rate_refuse"),
        ),
        "Speed": ("latency_ms", "jitter_ms", "rps", "rps_after", "tpm"),
        "Faults": (
            *("rate_429", "rate_5xx", "rate_malformed", "rate_drop", "rate_hang"),
        ),
        "Batches": (
            *("batch_seconds", "batch_queue", "batch_error_rate"),
            *("batch_expire_rate", "batch_lag_seconds", "batch_lost_create_rate"),
        ),
        "Money": ("ledger", "bill_price", "bill_tier", "quota"),
    },
)


@click.command(cls=LongCommand, layout=_LAYOUT)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port on loopback; 0: any free port.",
)
@click.option("--seed", type=int, default=0, help="Seed of faults and answers.")
@click.option("--latency-ms", type=float, default=0.0, help="Latency of each reply.")
@click.option(
    "--jitter-ms",
    type=float,
    default=0.0,
    help="Maximum random addition to the latency.",
)
@click.option(
    "--rate-429", type=_SHARE, default=0.0, help="Share of requests answered with 429."
)
@click.option(
    "--rate-5xx",
    type=_SHARE,
    default=0.0,
    help="Share of requests answered with a server error.",
)
@click.option(
    "--rate-malformed",
    type=_SHARE,
    default=0.0,
    help="Share of replies with a malformed body.",
)
@click.option("--rate-drop", type=_SHARE, default=0.0, help="Share of replies cut off.")
@click.option(
    "--rate-hang", type=_SHARE, default=0.0, help="Share of requests never answered."
)
@click.option("--rps", type=float, help="Maximum requests per second.")
@click.option(
    "--rps-after",
    type=(float, float),
    metavar="SECONDS RPS",
    help="Change --rps after this time from the first request.",
)
@click.option("--tpm", type=float, help="Maximum tokens per minute.")
@click.option("--limit-headers", is_flag=True, help="Send x-ratelimit-* headers.")
@click.option(
    "--ledger",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a JSON line per request and billed item to this new file.",
)
@click.option(
    "--job", help="Answer with this job's offline baseline; some replies are garbled."
)
@click.option(
    "--batch-seconds", type=float, default=0.0, help="Maximum duration of a batch."
)
@click.option("--batch-queue", type=int, help="Maximum number of queued batch items.")
@click.option(
    "--batch-error-rate",
    type=_SHARE,
    default=0.0,
    help="Share of batch items that fail.",
)
@click.option(
    "--batch-expire-rate",
    type=_SHARE,
    default=0.0,
    help="Share of batch items that expire.",
)
@click.option(
    "--batch-lag-seconds",
    type=float,
    default=0.0,
    help="Delay before a new batch is listed and can be retrieved.",
)
@click.option(
    "--batch-lost-create-rate",
    type=_SHARE,
    default=0.0,
    help="Share of created batches whose reply is lost.",
)
@click.option("--dialect", default="plain", help="API dialect.")
@click.option(
    "--bill-price",
    metavar="IN,OUT[,CACHED[,WRITE[,WRITE_1H]]]",
    help="USD per million tokens, for costs in the ledger.",
)
@click.option(
    "--bill-tier",
    type=(str, str),
    metavar="TIER FACTOR",
    multiple=True,
    help="Price factor of a service tier.  [default: batch, flex 0.5; priority 2]",
)
@click.option(
    "--quota", metavar="USD", help="Refuse requests as out of credit after this amount."
)
@click.option(
    "--model", "models", multiple=True, help="Model name to serve.  [default: any]"
)
@click.option(
    "--ignore",
    "ignored",
    metavar="FIELD",
    multiple=True,
    help="Accept this request field and ignore it.",
)
@click.option(
    "--bytes-per-token",
    type=float,
    help="Bytes per token.  [default: chosen by the seed]",
)
@click.option(
    "--reasoning", type=click.IntRange(0), help="Maximum reasoning tokens per answer."
)
@click.option("--max-output", type=int, help="Maximum output tokens.")
@click.option("--cache-least", type=int, help="Minimum prompt tokens for caching.")
@click.option(
    "--rate-refuse",
    type=_SHARE,
    default=0.0,
    help="Share of prompts that are always refused.",
)
def simulate(
    bill_tier: tuple[tuple[str, str], ...], quota: str | None, **options: Any
) -> None:
    """Serve a simulated model endpoint on loopback, with reproducible faults.

    Also serves batches in OpenAI's and Anthropic's format; they are kept in memory and
    advance with the server's clock.

    Prints its base URL in one line as soon as it listens, and serves until it is
    interrupted or terminated.
    """
    # Other commands must not pay for importing the web server.
    import asyncio  # noqa: PLC0415

    from runner.simulate.billing import TIER_FACTORS, dollars  # noqa: PLC0415
    from runner.simulate.options import SimulateOptions  # noqa: PLC0415
    from runner.simulate.server import serve  # noqa: PLC0415

    factors = {tier: dollars("--bill-tier", factor) for tier, factor in bill_tier}
    settings = SimulateOptions(
        bill_tiers={**TIER_FACTORS, **factors},
        quota_usd=None if quota is None else dollars("--quota", quota),
        **options,
    )
    asyncio.run(serve(settings, announce=click.echo))
