"""The command models: lists known models, or those of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_text
from runner.cli.request import NOT_TYPED

if TYPE_CHECKING:
    from runner.money.prices import Price


NAME_WIDTH = 36
"""Width of the name column in a line of 80 columns."""

HEADING = (
    f"{'dollars a million tokens':{NAME_WIDTH}} {'in':>7} {'cached':>7} {'out':>7} "
    f"{'context':>9} client"
)


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option("--filter", "words", default="", help="Words that the name must contain.")
@arguments.runs_dir
@arguments.as_json
def models(run_name: str | None, words: str, runs_dir: Path, as_json: bool) -> int:
    """List the models of the price table, or those of RUN.

    Prices come from the litellm package; a model that is not in the table can be used
    as well. For a RUN, also shows current limits, calls and costs.
    """
    rows = _of_table() if run_name is None else _of_run(runs_dir, run_name)
    selected_rows = [
        row
        for row in rows
        if all(word in row["model"].lower() for word in words.lower().split())
    ]
    if as_json:
        form = "siftlog.model/1" if run_name is None else "siftlog.run-model/1"
        for row in selected_rows:
            print_json(form, row)
        return DONE
    if not selected_rows:
        from runner.model_names import nearest_models

        near = nearest_models(words, limit=3)
        hint = (
            f"did you mean {' or '.join(near)}?"
            if near
            else "siftlog models without --filter lists all."
        )
        print_note(f"No model has such a name; {hint}")
        return DONE
    print_text(HEADING)
    for row in selected_rows:
        _show(row)
    return DONE


def _of_table() -> Iterator[dict[str, Any]]:
    from runner.money.prices import listed_models

    for listed_model in listed_models():
        row = _row(
            listed_model.model,
            listed_model.price,
            listed_model.context_tokens,
            has_base_url=False,
        )
        yield {**row, "kind": listed_model.kind}


def _of_run(runs_dir: Path, run_name: str) -> Iterator[dict[str, Any]]:
    from runner.cli.run_steps import engine_options
    from runner.errors import UsageError
    from runner.money.prices import context_tokens, price_of
    from runner.options import read_toml
    from store.database import open_reader
    from store.errors import NoSuchRun
    from store.read.status import run_started, status
    from store.read.tasks import model_calls
    from store.runs import resolve

    try:
        folder = resolve(runs_dir, run_name)
    except NoSuchRun as error:
        raise UsageError(
            f"{error}; models by name: siftlog models --filter {run_name}"
        ) from error
    with open_reader(folder.log) as reader:
        first, state = run_started(reader), status(reader)
        calls = model_calls(reader)
    options = engine_options(
        NOT_TYPED, read_toml(folder.config) if folder.config.exists() else {}
    )
    limits = {seen.model: seen for seen in state.limits}
    for model in dict.fromkeys(m for role in first.models.values() for m in role):
        price, context = price_of(model, options), context_tokens(model)
        has_base_url = options.of(model).base_url is not None
        seen = limits.get(model)
        is_whole = state.cost_usd is not None
        yield {
            **_row(model, price, context, has_base_url=has_base_url),
            "concurrency": seen.concurrency if seen else None,
            "rpm": seen.rpm if seen else None,
            "tpm": seen.tpm if seen else None,
            "calls": calls.get(model, 0),
            # a sum without the answers of unknown price would be misleading
            "cost_usd": state.model_cost_usd.get(model, 0.0) if is_whole else None,
        }


def _row(
    model: str, price: Price | None, context: int | None, *, has_base_url: bool
) -> dict[str, Any]:
    from runner.clients.client import route

    return {
        "model": model,
        "client": route(model, has_base_url=has_base_url).value,
        "usd_per_mtok_in": _per_mtok(price.input_usd if price else None),
        "usd_per_mtok_cached": _per_mtok(price.cached_input_usd if price else None),
        "usd_per_mtok_out": _per_mtok(price.output_usd if price else None),
        "context_tokens": context,
    }


def _per_mtok(usd: float | None) -> float | None:
    """Return the price per million tokens, without rounding noise."""
    return None if usd is None else float(f"{usd * 1e6:.9g}")


def _show(row: dict[str, Any]) -> None:
    """Print a model in a line of 80 columns; a long name has a separate line."""
    name = row["model"]
    if len(name) > NAME_WIDTH:
        print_text(name)
        name = ""
    prices = " ".join(
        f"{_figure(row[f'usd_per_mtok_{kind}']):>7}" for kind in ("in", "cached", "out")
    )
    context = "?" if row["context_tokens"] is None else f"{row['context_tokens']:,}"
    print_text(f"{name:{NAME_WIDTH}} {prices} {context:>9} {row['client']}")
    if "calls" in row:
        print_text(f"  {'; '.join(_run_figures(row))}")


def _run_figures(row: dict[str, Any]) -> Iterator[str]:
    """Yield calls and cost in a run, then the limits in force."""
    from runner.cli.status_page import limits_text
    from store.read.usage import dollars

    yield f"{row['calls']:,} calls, cost {dollars(row['cost_usd'])}"
    if row["concurrency"] is not None:
        yield limits_text(row)


def _figure(dollars: float | None) -> str:
    return "?" if dollars is None else f"{dollars:.4g}"
