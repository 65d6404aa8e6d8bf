"""Estimates a job before any call, or a recorded run under other limits."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any, Final

from runner import roles
from runner.added_stages import job_in
from runner.cli import run_steps
from runner.cli.console import (
    DONE,
    cost,
    duration,
    number,
    print_json,
    print_note,
    print_text,
)
from runner.cli.request import NOT_TYPED, RunRequest, TypedOptions
from runner.errors import UsageError
from runner.estimate.estimate import (
    BEFORE_S,
    Estimate,
    EstimateRange,
    UsageEstimate,
    preview,
    verdict,
)
from runner.estimate.what_if import WhatIf, run_what_if
from runner.money.tokens import CountTokens, text_tokens
from runner.options import PRICE_FIELDS, read_toml
from runner.roles import remarks
from store.database import open_reader
from store.document import Block, Fact, as_text
from store.read.status import run_started
from store.runs import resolve


def estimate_job(job_name: str, request: RunRequest, *, counts: bool = False) -> int:
    """Estimate a run from its typed options, and print the estimate.

    Args:
        job_name: name or file of the job.
        request: the typed options.
        counts: count tokens with the model's tokenizer.
    """
    job, source = run_steps.chosen_job(job_name, request.source)
    file = run_steps.configuration(source, job)
    settings = run_steps.typed_settings(job, source, file, request.options)
    work, options = run_steps.new_run(job, settings, request.options, file)
    count = _counter(options.model[0]) if counts else text_tokens
    for remark in remarks(work, options):
        print_note(remark)
    run_estimate = preview(work, options, request.runs_dir, count=count)
    assumptions = _assumed(run_estimate, counts=count is not text_tokens)
    if options.batch:
        assumptions.append(
            "batches are answered within 24 h, for "
            f"{options.batch_price_factor:g} of the price of single calls"
        )
    if request.output.as_json:
        print_json(
            "siftlog.estimate/2",
            _as_json(job.name, run_estimate, options.budget, assumptions),
        )
    else:
        print_text(_as_text(job.name, run_estimate, options.budget, assumptions))
    return DONE


def _counter(model: str) -> CountTokens:
    """Return litellm's tokenizer for a model."""
    from runner.clients.litellm_client import library

    litellm = library()
    # litellm would download some tokenizers
    litellm.disable_hf_tokenizer_download = True

    def count(text: str) -> int:
        return int(litellm.token_counter(model=model, text=text))

    return count


def _assumed(run_estimate: Estimate, *, counts: bool) -> list[str]:
    others = (
        "every item was tried"
        if run_estimate.tried == run_estimate.items
        else f"the other items are like the {run_estimate.tried:,} that were tried"
    )
    counted = "as litellm does" if counts else "by letters, digits and marks"
    low, expected, high = BEFORE_S
    return [
        f"{others}, and a model finds as much to follow up as the offline baseline",
        f"tokens are counted {counted}; models need 10 % fewer to 25 % more",
        "replies are as long as in earlier runs, else as the baseline's",
        "the longest reply is what requests allow; hidden reasoning comes on top",
        f"a reply begins after {low:g}, {expected:g} or {high:g} s",
        "and continues at 150, 60 or 20 tokens a second",
        "no call fails, no prompt cache helps, and the limits given here are met",
    ]


def _as_json(
    job: str, run_estimate: Estimate, budget: float | None, assumptions: list[str]
) -> dict[str, Any]:
    return {
        "job": job,
        "items": run_estimate.items,
        "tried": run_estimate.tried,
        **_figures_json(run_estimate.total),
        "hours": _span_json(run_estimate.whole_s.times(*(1 / 3600,) * 3), 4),
        "models": {
            model: {
                **_figures_json(usage),
                "hours": _span_json(
                    run_estimate.seconds[model].times(*(1 / 3600,) * 3), 4
                ),
            }
            for model, usage in run_estimate.models.items()
        },
        "stages": [
            {"stage": stage, "model": model, **_figures_json(usage)}
            for (stage, model), usage in run_estimate.stages.items()
        ],
        "budget": None
        if budget is None
        else {"usd": budget, "verdict": verdict(run_estimate, budget)[0]},
        "failing": {
            "tasks": run_estimate.failing.tasks,
            "first": run_estimate.failing.first or None,
        },
        "assumes": assumptions,
    }


def _figures_json(usage: UsageEstimate) -> dict[str, Any]:
    return {
        "calls": _span_json(usage.calls, 0),
        "tokens_in": _span_json(usage.tokens_in, 0),
        "tokens_out": _span_json(usage.tokens_out, 0),
        "cost_usd": None if usage.usd is None else _span_json(usage.usd, 6),
    }


def _span_json(span: EstimateRange, digits: int) -> dict[str, float]:
    def rounded(value: float) -> float:
        return round(value, digits) if digits else round(value)

    return {
        "low": rounded(span.low),
        "expected": rounded(span.expected),
        "high": rounded(span.high),
    }


def _as_text(
    job: str, run_estimate: Estimate, budget: float | None, assumptions: list[str]
) -> str:
    basis = f"{run_estimate.items:,} items, {run_estimate.tried:,} tried offline"
    lines: list[Block] = [f"estimate of {job}: {basis}; expected (low to high)"]
    for model, usage in run_estimate.models.items():
        lines.append(f"  {model}")
        lines += _facts(usage)
        lines.append(_fact("time", _time(run_estimate.seconds[model])))
    if len(run_estimate.models) > 1:
        lines.append("  in all")
        lines += _facts(run_estimate.total)
        lines.append(_fact("time", _time(run_estimate.whole_s)))
    for (stage, model), usage in run_estimate.stages.items():
        lines.append(
            f"  stage {stage} of {model}: {_span_text(usage.calls, number)} calls"
        )
    if budget is not None:
        lines.append(verdict(run_estimate, budget)[1])
    if run_estimate.failing.tasks:
        lines.append(run_estimate.failing.sentence)
    lines += ["assumed:", *(f"  {assumption}" for assumption in assumptions)]
    return as_text(lines)


def _fact(label: str, text: str) -> Fact:
    return Fact(label, text, indent=4, width=12, is_wide=True)


def _facts(usage: UsageEstimate) -> list[Fact]:
    usd = usage.usd
    return [
        _fact("calls", _span_text(usage.calls, number)),
        _fact("tokens in", _span_text(usage.tokens_in, number)),
        _fact("tokens out", _span_text(usage.tokens_out, number)),
        _fact("cost", cost(None) if usd is None else _span_text(usd, cost)),
    ]


def _time(span: EstimateRange) -> str:
    """Format the duration; batches have only an upper bound."""
    if span.high and not span.low:
        return f"up to {duration(span.high)}"
    return _span_text(span, duration)


def _span_text(span: EstimateRange, show: Any) -> str:  # noqa: ANN401 - a figure's own form
    if span.low == span.high:
        return str(show(span.expected))
    return f"{show(span.expected)} ({show(span.low)} to {show(span.high)})"


FOR_ALL: Final = ("base_url", "concurrency", "rpm", "tpm")
"""Options that apply to every model, even if the run's file sets them per model."""


def estimate_from_run(run_name: str, request: RunRequest) -> int:
    """Replay a run under the typed options, and print the result.

    Typed options override those of the run; a limit of inf removes it.
    """
    budget: float | None = request.options.values.get("budget")
    rehearsal = _what_if(run_name, request.runs_dir, request.options)
    if request.output.as_json:
        print_json("siftlog.what-if/2", _what_if_json(rehearsal, budget))
    else:
        print_text(_what_if_text(rehearsal, budget))
    return DONE


def _what_if(run_name: str, runs_dir: Path, options: TypedOptions) -> WhatIf:
    folder, typed = resolve(runs_dir, run_name), options.values
    with open_reader(folder.log) as reader:
        first = run_started(reader)
        if typed.get("replicates") not in {None, first.replicates}:
            raise UsageError(
                "--from uses the replicates of its run: omit --replicates."
            )
        file = read_toml(folder.config) if folder.config.exists() else {}
        file.pop("budget", None)  # the budget of the recorded run does not apply
        recorded = roles.fixed(first.models)
        tried = {name: typed.get(name) or value for name, value in recorded.items()}
        then = run_steps.engine_options(NOT_TYPED, file, **recorded)
        now = run_steps.engine_options(
            _finite(options), _under(file, options, recorded, tried), **tried
        )
        return run_what_if(reader, job_in(reader), then=then, now=now)


def _finite(options: TypedOptions) -> TypedOptions:
    return TypedOptions(
        values={name: value for name, value in options.values.items() if value != inf}
    )


def _under(
    file: Mapping[str, Any],
    options: TypedOptions,
    recorded: Mapping[str, Any],
    tried: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the run's configuration without the options that are replaced."""
    typed = {name for name in FOR_ALL if options.names(name)}
    if options.names("price"):
        typed.update(("price", *PRICE_FIELDS))
    inherited = {k: v for k, v in file.items() if k not in typed}
    # prices of the run's models do not apply to a model that replaces them
    price = dict(zip(PRICE_FIELDS, inherited.pop("price", ()), strict=False))
    model_options = {
        model: {k: v for k, v in values.items() if k not in typed}
        for model, values in file.get("models", {}).items()
    }
    of_stages = set(file.get("stage_models", ()))
    for model in _named_models(recorded) | of_stages:
        values = model_options.get(model, {})
        model_options[model] = values if PRICE_FIELDS[0] in values else price | values
    tried_models = _named_models(tried) | of_stages
    return {
        **inherited,
        "models": {
            m: values for m, values in model_options.items() if m in tried_models
        },
    }


def _named_models(models: Mapping[str, Any]) -> set[str]:
    """Return the models named in any role."""
    return {*models["model"], *(of for of in models.values() if isinstance(of, str))}


def _verdict(rehearsal: WhatIf, budget_usd: float) -> str:
    """Return the `verdict` on a budget, in the words of an estimate."""
    usd = rehearsal.cost_usd
    if usd is None:
        return "unknown"
    return "holds" if usd <= budget_usd else "does not hold"


def _what_if_json(rehearsal: WhatIf, budget: float | None) -> dict[str, Any]:
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
    }


def _what_if_text(rehearsal: WhatIf, budget: float | None) -> str:
    outcome = rehearsal.outcome
    tasks = f"{rehearsal.census.tasks:,} tasks played again"
    most = f"at most {outcome.most_in_flight:,} calls at a time"
    lines: list[Block] = [
        Fact("what if", f"{rehearsal.run_id}: {tasks}", is_wide=True),
        Fact("time", f"{duration(outcome.seconds)}, {most}", is_wide=True),
        Fact("cost", cost(rehearsal.cost_usd), is_wide=True),
    ]
    for model, sums in outcome.models.items():
        lines.append(
            f"  {model}: {sums.calls:,} calls, {sums.refused:,} of them refused, "
            f"{sums.failed:,} tasks failed; {sums.tokens_in:,} tokens in, "
            f"{sums.tokens_out:,} out, {cost(rehearsal.costs_usd[model])}"
        )
    if budget is not None:
        text = f"{cost(budget)}: {_verdict(rehearsal, budget)}"
        lines.append(Fact("budget", text, is_wide=True))
    if outcome.stopped is not None:
        lines.append(Fact("stops", outcome.stopped, is_wide=True))
    lines += ["assumed:", *(f"  {assumption}" for assumption in rehearsal.assumes)]
    return as_text(lines)
