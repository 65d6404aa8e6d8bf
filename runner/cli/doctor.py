"""The command doctor: checks this machine, or probes an endpoint."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from runner.cli import arguments
from runner.cli.console import DONE, ERROR, print_json, print_note, print_text
from runner.errors import UsageError
from store.document import as_text, plural, wide_table

if TYPE_CHECKING:
    from runner.clients.client import ClientOptions
    from runner.endpoint_report import ProbeReport
    from runner.money.prices import Price
    from runner.options import RunOptions


LOW_DISK_BYTES = 2 << 30
"""Free space below which a large run is likely to fill the disk."""

PROBE_TIMEOUT_S = 60.0
"""Maximum time for one call of a probe."""


class DoctorCheck(NamedTuple):
    """Result of one check."""

    name: str
    state: str  #: "ok", "note" or "blocks"
    said: str


@click.command()
@click.option("--base-url", multiple=True, help="Endpoint to test; repeatable.")
@click.option(
    "--endpoint",
    metavar="URL",
    help="Probe this endpoint with at most 8 calls, which may cost money; "
    "needs --model.",
)
@click.option("--model", help="Model to probe at --endpoint.")
@arguments.option("--api-key-env", help="Environment variable that holds the API key.")
@arguments.option(
    "--api",
    type=click.Choice(["auto", "chat", "responses"]),
    default="auto",
    show_default=True,
    help="API that the probe uses for chats.",
)
@arguments.option(
    "--price",
    metavar="IN,OUT[,CACHED]",
    help="USD per million tokens; 0,0 if calls are free.",
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--write",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the results as a file for run --config.",
)
@arguments.runs_dir
@arguments.as_json
def doctor(
    base_url: tuple[str, ...],
    endpoint: str | None,
    model: str | None,
    api_key_env: str | None,
    api: str,
    price: str | None,
    yes: bool,
    path: Path | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Check Python, SQLite, disk, keys and endpoints; exit 1 if one blocks a run.

    With --endpoint and --model, probes which parameters that endpoint accepts and how
    it counts tokens, and prints a model block for a configuration file.
    """
    if (endpoint is None) != (model is None):
        raise UsageError("Give --endpoint and --model together.")
    if endpoint is not None and model is not None:
        from runner.options import options_from

        values = {"api_key_env": api_key_env, "price": price}
        options = options_from(
            {
                "model": model,
                "base_url": endpoint,
                "api": api,
                "timeout_s": PROBE_TIMEOUT_S,
                **{name: value for name, value in values.items() if value is not None},
            }
        )
        return _probe(options, path, yes=yes, as_json=as_json)
    if path is not None:
        raise UsageError("Give --endpoint and --model with --write.")
    checks = [*_machine(), *_disk(runs_dir), *_keys()]
    checks.extend(_endpoint(url, api_key_env) for url in base_url)
    for check in checks:
        if as_json:
            print_json("siftlog.check/1", check._asdict())
        else:
            print_text(f"{check.state:7} {check.name:12} {check.said}")
    return ERROR if any(check.state == "blocks" for check in checks) else DONE


def _machine() -> Iterator[DoctorCheck]:
    python = ".".join(map(str, sys.version_info[:3]))
    yield DoctorCheck("python", "ok", python)
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < (3, 37):
        yield DoctorCheck("sqlite", "blocks", f"{version}; siftlog needs 3.37 or newer")
    else:
        yield DoctorCheck("sqlite", "ok", version)


def _disk(runs_dir: Path) -> Iterator[DoctorCheck]:
    from store.database import wal_problem

    folder = runs_dir.resolve()
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK):
        yield DoctorCheck(
            "folder", "blocks", f"{folder} is not writable; choose --runs-dir"
        )
        return
    problem = wal_problem(folder)
    if problem is not None:
        yield DoctorCheck("folder", "blocks", problem)
    else:
        yield DoctorCheck("folder", "ok", f"{folder} keeps SQLite logs")
    free = shutil.disk_usage(folder).free
    state = "ok" if free >= LOW_DISK_BYTES else "note"
    yield DoctorCheck("disk", state, f"{free / 2**30:.1f} GiB free")


def _keys() -> Iterator[DoctorCheck]:
    environment = arguments.environment()
    names = sorted(name for name in environment if name.endswith("_API_KEY"))
    sentence = ", ".join(names) + " set" if names else "no *_API_KEY is set"
    yield DoctorCheck("keys", "ok" if names else "note", sentence)


def _endpoint(url: str, api_key_env: str | None) -> DoctorCheck:
    import httpx

    from runner.clients.http_client import OPENAI_URL, endpoint_url
    from runner.clients.transport import proxy_for

    address = endpoint_url(url)
    variable = api_key_env or ("OPENAI_API_KEY" if address == OPENAI_URL else None)
    key = arguments.environment().get(variable) if variable is not None else None
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        with httpx.Client(
            timeout=10.0, proxy=proxy_for(httpx.URL(address)), trust_env=False
        ) as client:
            status = client.get(f"{address}/models", headers=headers).status_code
    except (httpx.HTTPError, UnicodeEncodeError) as error:
        sentence = f"{url} cannot be reached ({type(error).__name__}); is it running?"
        return DoctorCheck("endpoint", "blocks", sentence)
    state, sentence = _meaning(status, variable if key else None)
    return DoctorCheck("endpoint", state, f"{url} {sentence}")


def _meaning(status: int, variable: str | None) -> tuple[str, str]:
    """Explain the status of `GET /models`, sent with or without a key."""
    if status in {401, 403} and variable is None:
        return "blocks", (
            f"wants a key (status {status}); put it into a variable and name that "
            "with --api-key-env"
        )
    if status in {401, 403}:
        return "blocks", (
            f"refuses the key in {variable} (status {status}); check "
            "the key and its permissions"
        )
    if status >= 500:  # noqa: PLR2004 - RFC 9110, section 15.6
        return "blocks", f"answers with status {status}; is it ready?"
    if status == 200:  # noqa: PLR2004
        return "ok", "answers with a list of models"
    return "note", (
        f"answers with status {status} and has no list of models; "
        "siftlog doctor --endpoint tries a model"
    )


# -- a probe -----------------------------------------------------------------------


def _probe(options: RunOptions, path: Path | None, *, yes: bool, as_json: bool) -> int:
    from runner.money.prices import price_of
    from runner.probe import Probe

    (model,) = options.model
    if path is not None and path.exists():
        raise UsageError(f"{path} exists already; name another file with --write.")
    probe = Probe(model, _client_options(options), is_form_free=options.api == "auto")
    price = price_of(model, options)
    _confirm(model, price, yes=yes)
    report = asyncio.run(probe.run())
    block = _block(report, options)
    if path is not None and report.problem is None:
        _write(path, block)
    if as_json:
        print_json("siftlog.probe/1", _json(report, price) | {"config": block})
    else:
        print_text(as_text([wide_table(("", ""), _lines(report, price))]))
        if report.problem is None:
            print_text(f"\n{block}" if path is None else f"\nWritten to {path}.")
    return DONE if report.problem is None else ERROR


def _client_options(options: RunOptions) -> ClientOptions:
    from runner.clients.client import ClientOptions, Timeouts
    from runner.money.prices import api_of
    from runner.run.endpoints import key_of

    (model,) = options.model
    environment = arguments.environment()
    return ClientOptions(
        base_url=options.base_url,
        api=api_of(model, options),
        api_key=key_of(model, options, environment),
        timeouts=Timeouts(total_s=options.timeout_s),
        environment=environment,
        logged_headers=re.compile(".*"),
    )


def _confirm(model: str, price: Price | None, *, yes: bool) -> None:
    """Show the maximum cost of a probe and ask for confirmation.

    Raises:
        UsageError: it may cost something, and there is no terminal to ask on.
    """
    from runner.money.prices import worst_pico
    from runner.probe import MOST_PROBES, most_tokens
    from store.task import PICO_PER_USD

    tokens_in, tokens_out = most_tokens()
    size = (
        f"At most {MOST_PROBES} calls to {model}, with at most {tokens_in:,} tokens in "
        f"and {tokens_out:,} out in all"
    )
    if price is None:
        print_note(f"{size}; their price is unknown (say it with --price IN,OUT).")
    elif price.is_free:
        print_note(f"{size}; they cost nothing.")
        return
    else:
        usd = worst_pico(price, tokens_in, tokens_out) / PICO_PER_USD
        print_note(
            f"{size}: at most ${usd:.4f}, if the endpoint keeps to its limit of output."
        )
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            "There is no terminal to confirm this; add --yes, or "
            "--price 0,0 if it is free."
        )
    click.confirm("Send them?", abort=True, err=True)


def _write(path: Path, block: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(block)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error


def _block(report: ProbeReport, options: RunOptions) -> str:
    """Return a configuration block with the parameters that the probe found."""
    import tomli_w

    block: dict[str, Any] = {"base_url": report.endpoint}
    if options.api_key_env is not None:
        block["api_key_env"] = options.api_key_env
    if report.api != "chat" or options.api != "auto":
        block["api"] = report.api
    if "temperature" in report.refused:
        block["temperature"] = "none"
    limits = {"rpm": report.rpm, "tpm": report.tpm}
    block |= {name: limit for name, limit in limits.items() if limit is not None}
    if options.price is not None:
        names = ("usd_per_mtok_in", "usd_per_mtok_out", "usd_per_mtok_cached")
        block |= dict(zip(names, options.price, strict=False))
    notes = [
        f"# Written by siftlog doctor after {report.calls} calls; use it with",
        "# siftlog run JOB --config FILE",
        *(f"# {p.name}: {p.state}" for p in report.parameters if p.state != "accepted"),
        f"# schema of the reply: {report.schema}",
        f"# reasoning tokens: {report.reasoning}",
    ]
    content = {"model": [report.model], "models": {report.model: block}}
    return "\n".join(notes) + "\n\n" + tomli_w.dumps(content)


def _lines(report: ProbeReport, price: Price | None) -> Iterator[tuple[str, str]]:
    """Yield the report for people, as rows of a name and a sentence."""
    form = "Responses form" if report.api == "responses" else "chat completions"
    yield "endpoint", f"{report.endpoint}, model {report.model}, {form}"
    yield "calls", _spent(report, price)
    if report.problem is not None:
        yield "problem", report.problem
    seen = "; ".join(report.dialect.evidence) or "no sign of any that is known"
    others = report.dialect.others
    also = f" (signs of {', '.join(others)} too)" if others else ""
    yield "dialect", f"{report.dialect.name}: {seen}{also}"
    for parameter in report.parameters:
        words = f": {parameter.words}" if parameter.words else ""
        yield parameter.name, f"{parameter.state}{words}"
    if report.problem is not None:
        return
    yield "schema", f"{report.schema}: {report.schema_words}"
    yield "usage", ", ".join(report.usage_fields) or "none; costs stay unknown"
    yield "reasoning", report.reasoning
    limits = ", ".join(f"{name} {value}" for name, value in report.limit_headers)
    yield "limits", limits or "no headers give any"
    ordered = sorted(report.latencies_ms)
    yield (
        "latency",
        (f"{ordered[0]} to {ordered[-1]} ms, median {ordered[len(ordered) // 2]} ms"),
    )
    served = ", ".join(f"{name} {value}" for name, value in report.served)
    yield "served by", served or "the replies do not say"


def _spent(report: ProbeReport, price: Price | None) -> str:
    usd = _usd(report, price)
    cost = "cost unknown" if usd is None else f"${usd:.6f}"
    calls = plural(report.calls, "call")
    counted = f"{report.tokens_in:,} tokens in, {report.tokens_out:,} out, {cost}"
    without = f"; {report.uncounted} without usage" if report.uncounted else ""
    return f"{calls}, {counted}{without}"


def _usd(report: ProbeReport, price: Price | None) -> float | None:
    """Return the cost of the counted tokens; None: a price or usage is unknown."""
    from runner.messages import Usage
    from runner.money.prices import cost_pico
    from store.task import PICO_PER_USD

    if price is None or report.uncounted:
        return None
    usage = Usage(tokens_in=report.tokens_in, tokens_out=report.tokens_out)
    return cost_pico(price, usage) / PICO_PER_USD


def _json(report: ProbeReport, price: Price | None) -> dict[str, Any]:
    fields = asdict(report)
    # `schema` is the form of the whole object
    fields["reply_schema"] = fields.pop("schema")
    return {
        **fields,
        "limit_headers": dict(report.limit_headers),
        "served": [list(pair) for pair in report.served],
        "cost_usd": _usd(report, price),
    }
