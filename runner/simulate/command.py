"""`siftlog simulate`: the endpoint as a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

_SHARE = click.FloatRange(0, 1)


@click.command()
@click.option("--port", type=int, default=0, help="Port on loopback; 0: any free one.")
@click.option("--seed", type=int, default=0, help="Of the faults and the answers.")
@click.option("--latency-ms", type=float, default=0.0, help="Time before each reply.")
@click.option("--jitter-ms", type=float, default=0.0, help="Added to it, at most.")
@click.option("--rate-429", type=_SHARE, default=0.0, help="Share told to slow down.")
@click.option("--rate-5xx", type=_SHARE, default=0.0, help="Share of server errors.")
@click.option(
    "--rate-malformed", type=_SHARE, default=0.0, help="Share with a spoiled body."
)
@click.option("--rate-drop", type=_SHARE, default=0.0, help="Share cut off.")
@click.option("--rate-hang", type=_SHARE, default=0.0, help="Share never answered.")
@click.option("--rps", type=float, help="Requests a second that are served.")
@click.option(
    "--rps-after",
    type=(float, float),
    metavar="SECONDS RPS",
    help="Another --rps, so long after the first request.",
)
@click.option("--tpm", type=float, help="Tokens a minute that are served.")
@click.option("--limit-headers", is_flag=True, help="Tell the limits in x-ratelimit-*.")
@click.option(
    "--ledger",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a JSON line for each request and billed item to this new file.",
)
@click.option("--job", help="Answer with this job's offline baseline, partly spoiled.")
@click.option(
    "--batch-seconds", type=float, default=0.0, help="Until a batch ends, at most."
)
@click.option(
    "--batch-queue", type=int, help="Items of batches that may wait at a time."
)
@click.option(
    "--batch-error-rate", type=_SHARE, default=0.0, help="Share of items that fail."
)
@click.option(
    "--batch-expire-rate", type=_SHARE, default=0.0, help="Share of items never done."
)
@click.option(
    "--batch-lag-seconds",
    type=float,
    default=0.0,
    help="Until a new batch is listed, and known by its id.",
)
@click.option(
    "--batch-lost-create-rate",
    type=_SHARE,
    default=0.0,
    help="Share of new batches of which no reply tells.",
)
@click.option("--dialect", default="plain", help="Whose form of API to speak.")
@click.option(
    "--bill-price",
    metavar="IN,OUT[,CACHED[,WRITE[,WRITE_1H]]]",
    help="Dollars a million tokens, for the costs in the ledger.",
)
@click.option(
    "--bill-tier",
    type=(str, str),
    metavar="TIER FACTOR",
    multiple=True,
    help="Price of a service tier as a factor.  [default: batch, flex 0.5; priority 2]",
)
@click.option("--quota", metavar="USD", help="Refuse as out of credit after this bill.")
@click.option("--model", "models", multiple=True, help="A name to serve; none: any.")
@click.option(
    "--ignore",
    "ignored",
    metavar="FIELD",
    multiple=True,
    help="Accept this field of a chat without effect.",
)
@click.option("--bytes-per-token", type=float, help="Instead of a figure by seed.")
@click.option(
    "--reasoning", type=click.IntRange(0), help="Most reasoning tokens of an answer."
)
@click.option("--max-output", type=int, help="Most tokens a model generates.")
@click.option("--cache-least", type=int, help="Tokens of the shortest cached prompt.")
@click.option(
    "--rate-refuse", type=_SHARE, default=0.0, help="Share of prompts always refused."
)
def simulate(
    bill_tier: tuple[tuple[str, str], ...], quota: str | None, **options: Any
) -> None:
    """Serve a model's endpoint on loopback in one dialect, with faults by seed.

    Batches too, in OpenAI's form and in Anthropic's: they are kept in memory, and get
    on by the clock of the server.

    Prints its base URL in one line as soon as it listens, and serves until it is
    interrupted or terminated.
    """
    # A process that never simulates must not pay for the web server.
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
