"""What `estimate --from RUN` does and shows."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, Final

from runner import roles
from runner.cli import session
from runner.cli.figures import cost, duration
from runner.cli.speech import DONE, record, text
from runner.errors import UsageError
from runner.options import PRICE_FIELDS, read_toml
from runner.registry import load_job
from runner.whatif.rehearsal import Rehearsal, rehearse
from store.database import open_reader
from store.read.status import run_started
from store.runs import resolve

SCHEMA: Final = 1
"""Version of the object; a field that changes its meaning raises it."""

FOR_ALL: Final = ("base_url", "concurrency", "rpm", "tpm")
"""What is typed here counts for every model, whatever the run's file says of one."""


def rehearsed(run_name: str, given: Mapping[str, Any]) -> int:
    """Play a run again under the options that were typed, and print how it goes.

    They count over the run's own; a limit of inf lifts it.
    """
    found, budget = _rehearsal(run_name, given), given["budget"]
    if given["as_json"]:
        record(_as_json(found, budget))
    else:
        text(_as_text(found, budget))
    return DONE


def _rehearsal(run_name: str, given: Mapping[str, Any]) -> Rehearsal:
    folder = resolve(given["runs_dir"], run_name)
    with open_reader(folder.log) as reader:
        first = run_started(reader)
        if given["replicates"] not in {None, first.replicates}:
            raise UsageError("A what-if asks as often as its run: leave --replicates.")
        file = read_toml(folder.config) if folder.config.exists() else {}
        file.pop("budget", None)  # what was allowed then is no question now
        recorded = roles.fixed(first.models)
        tried = {name: given.get(name) or value for name, value in recorded.items()}
        then = session.engine_options({}, file, **recorded)
        now = session.engine_options(
            _finite(given), _under(file, given, recorded, tried), **tried
        )
        return rehearse(reader, load_job(first.job), then=then, now=now)


def _finite(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if value == inf else value for name, value in given.items()}


def _under(
    file: Mapping[str, Any],
    given: Mapping[str, Any],
    recorded: Mapping[str, Any],
    tried: Mapping[str, Any],
) -> dict[str, Any]:
    """The run's configuration as far as it is not tried otherwise."""
    typed = {name for name in FOR_ALL if given.get(name) is not None}
    if given.get("price") is not None:
        typed.update(("price", *PRICE_FIELDS))
    kept = {k: v for k, v in file.items() if k not in typed}
    # what the run's models cost says nothing of a model that is tried in their place
    price = dict(zip(PRICE_FIELDS, kept.pop("price", ()), strict=False))
    own = {
        model: {k: v for k, v in values.items() if k not in typed}
        for model, values in file.get("models", {}).items()
    }
    for model in _named(recorded):
        values = own.get(model, {})
        own[model] = values if PRICE_FIELDS[0] in values else price | values
    asked = _named(tried)
    return {**kept, "models": {m: values for m, values in own.items() if m in asked}}


def _named(models: Mapping[str, Any]) -> set[str]:
    """Every model that is named in any role."""
    return {*models["model"], *(of for of in models.values() if isinstance(of, str))}


def _verdict(rehearsal: Rehearsal, budget_usd: float) -> str:
    """Whether a budget would have held, in the words of an estimate's `verdict`."""
    usd = rehearsal.cost_usd
    if usd is None:
        return "unknown"
    return "holds" if usd <= budget_usd else "does not hold"


def _as_json(rehearsal: Rehearsal, budget: float | None) -> dict[str, Any]:
    outcome = rehearsal.outcome
    return {
        "from": rehearsal.run_id,
        "seconds": round(outcome.seconds, 3),
        "hours": round(outcome.seconds / 3600, 4),
        "cost_usd": rehearsal.cost_usd,
        "models": {
            model: {
                "calls": sums.calls,
                "answered": sums.answered,
                "refused": sums.refused,
                "failed_tasks": sums.failed,
                "tokens_in": sums.tokens_in,
                "tokens_out": sums.tokens_out,
                "tokens_cached": sums.tokens_cached,
                "cost_usd": rehearsal.costs_usd[model],
            }
            for model, sums in outcome.models.items()
        },
        "most_in_flight": outcome.most_in_flight,
        "tasks": rehearsal.census.tasks,
        "budget": None
        if budget is None
        else {"usd": budget, "verdict": _verdict(rehearsal, budget)},
        "stopped": outcome.stopped,
        "assumes": list(rehearsal.assumes),
        "schema": SCHEMA,
    }


def _as_text(rehearsal: Rehearsal, budget: float | None) -> str:
    outcome = rehearsal.outcome
    lines = [
        f"what if    {rehearsal.run_id}: {rehearsal.census.tasks:,} tasks played again",
        (
            f"takes      {duration(outcome.seconds)}, at most "
            f"{outcome.most_in_flight:,} calls at a time"
        ),
        f"costs      {cost(rehearsal.cost_usd)}",
    ]
    for model, sums in outcome.models.items():
        lines.append(
            f"  {model}: {sums.calls:,} calls, {sums.refused:,} of them refused, "
            f"{sums.failed:,} tasks failed; {sums.tokens_in:,} tokens in, "
            f"{sums.tokens_out:,} out, {cost(rehearsal.costs_usd[model])}"
        )
    if budget is not None:
        lines.append(f"budget     {cost(budget)}: {_verdict(rehearsal, budget)}")
    if outcome.stopped is not None:
        lines.append(f"stops      {outcome.stopped}")
    lines += ["assumed:", *(f"  {said}" for said in rehearsal.assumes)]
    return "\n".join(lines)
