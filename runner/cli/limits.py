"""The command limits: shows the limits of a run, or changes them during the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments
from runner.cli.arguments import C
from runner.cli.console import DONE, print_json, print_note, print_text
from runner.cli.control import (
    ControlRequest,
    ask,
    control_options,
    control_request,
    show_dry,
)

if TYPE_CHECKING:
    import sqlite3

    from store.read.limits import ObservedLimits
    from store.runs import RunFolder


def _ceiling(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> float | str | None:
    """Parse a number or `none`; `inf`, the word of estimates, means `none` too."""
    if value in {None, "none", "inf"}:
        return value and "none"
    try:
        return float(value or "")
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is neither a number nor 'none'.", ctx, param
        ) from error


def _ceiling_option(name: str, description: str) -> Callable[[C], C]:
    return click.option(
        name, callback=_ceiling, metavar="N", help=f"{description}; none: no limit."
    )


@click.command()
@arguments.run_argument
@click.option("--model", help="Only this model.")
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    help="Maximum concurrent calls per model.",
)
@_ceiling_option("--rpm", "Maximum requests per minute")
@_ceiling_option("--tpm", "Maximum tokens per minute")
@control_options
def limits(
    *,
    model: str | None,
    concurrency: int | None,
    rpm: float | str | None,
    tpm: float | str | None,
    **shared: Any,
) -> int:
    """Show the limits of RUN, or change them while it runs.

    Only the limits given here change. They also hold for later processes of the run,
    unless siftlog resume sets its own. Lower limits reported or shown by the endpoint
    still apply. To stop all new calls, use siftlog pause RUN.
    """
    from runner.run.control import limits_change
    from store.control import preview_open_tasks
    from store.database import open_reader

    manner = control_request(**shared)
    ceilings = {"concurrency": concurrency, "rpm": rpm, "tpm": tpm}
    values = {k: v for k, v in ceilings.items() if v is not None}
    if not values:
        return _show_limits(manner, model)
    payload: dict[str, Any] = {k: None if v == "none" else v for k, v in values.items()}
    payload["model"] = model
    limits_change(payload)
    with open_reader(manner.folder.log) as reader:
        preview = preview_open_tasks(reader, model=model)
    if not manner.dry_run:
        return ask(manner, "limits", payload)
    return show_dry(manner, "limits", payload, preview)


def _show_limits(manner: ControlRequest, model: str | None) -> int:
    """Print the limits in force, as last observed."""
    from runner.cli.status import limits_json
    from store.control import check_name
    from store.database import open_reader
    from store.read.status import status

    with open_reader(manner.folder.log) as reader:
        seen = status(reader).limits
        check_name("model", model, [model_limits.model for model_limits in seen])
        rates = _rates_set(reader, manner.folder, [limits.model for limits in seen])
    for model_limits in seen:
        if model not in {None, model_limits.model}:
            continue
        set_rates = rates.get(model_limits.model)
        if manner.as_json:
            fields = {
                f"set_{name}": set_rates and set_rates[name] for name in ("rpm", "tpm")
            }
            print_json(
                "siftlog.limits/1",
                {"run": manner.folder.run_id, **limits_json(model_limits), **fields},
            )
        else:
            origin = "" if set_rates is None else _origin(model_limits, set_rates)
            print_text(f"{model_limits.model}: {model_limits}{origin}")
    if not manner.folder.is_alive():
        print_note("As last observed: the run is not alive.")
    return DONE


def _rates_set(
    reader: sqlite3.Connection, folder: RunFolder, models: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Return the rates that the user set, by model; none without the run's options."""
    from runner.roles import recorded_options
    from runner.run.control import KINDS, limits_in_force
    from store.control import ALL
    from store.read.status import run_started
    from store.read.tasks import events

    if not folder.config.exists():
        return {}
    options = recorded_options(folder.config, run_started(reader))
    changes = limits_in_force(events(reader, limit=ALL, kinds=KINDS))
    rates = {}
    for model in models:
        limits = options.limits_of(model)
        for change in changes:
            if change.concerns(model):
                limits = change.applied_to(limits)
        rates[model] = {"rpm": limits.rpm, "tpm": limits.tpm}
    return rates


def _origin(limits: ObservedLimits, set_rates: Mapping[str, float | None]) -> str:
    """Describe the rates that the user set, where others are in force."""
    from store.read.limits import UNITS

    others = [
        f"{UNITS[name]} learned from the endpoint, none set"
        if rate is None
        else f"at most {rate:,.10g} {UNITS[name]} set"
        for name, rate in set_rates.items()
        if getattr(limits, name) not in {None, rate}
    ]
    return f" ({'; '.join(others)})" if others else ""
