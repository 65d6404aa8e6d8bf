"""What `estimate JOB` and `run --dry-run` do and show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from runner.cli import session
from runner.cli.figures import cost, duration, number
from runner.cli.speech import DONE, record, tell, text
from runner.estimating.estimate import BEFORE_S, Estimate, Figures, Span, verdict
from runner.estimating.preview import preview
from runner.estimating.tokens import CountTokens, text_tokens
from runner.registry import load_job
from runner.roles import remarks

SCHEMA: Final = 1
"""Version of the object; a field that changes its meaning raises it."""


def estimated(words: Sequence[str], job_name: str, given: Mapping[str, Any]) -> int:
    """Estimate a run from what was typed for it, and print that."""
    job = load_job(job_name)
    file = session.configuration(given)
    settings = session.typed_settings(job, list(words), given, file)
    work, options = session.new_run(job, settings, given, file)
    count = _counter(options.model[0]) if given.get("count_tokens") else text_tokens
    for said in remarks(work, options):
        tell(said)
    found = preview(work, options, given["runs_dir"], count=count)
    assumes = _assumed(found, counts=count is not text_tokens)
    if options.batch:
        assumes.append(
            "batches are answered within 24 h, for "
            f"{options.batch_price_factor:g} of the price of single calls"
        )
    if given["as_json"]:
        record(_as_json(job.name, found, options.budget, assumes))
    else:
        text(_as_text(job.name, found, options.budget, assumes))
    return DONE


def _counter(model: str) -> CountTokens:
    """The tokenizer that litellm has for a model."""
    from runner.clients.litellm_library import library

    litellm = library()
    # it would fetch some models' tokenizers from the network
    litellm.disable_hf_tokenizer_download = True

    def count(text: str) -> int:
        return int(litellm.token_counter(model=model, text=text))

    return count


def _assumed(found: Estimate, *, counts: bool) -> list[str]:
    others = (
        "every item was tried"
        if found.tried == found.items
        else f"the other items are like the {found.tried:,} that were tried"
    )
    counted = "as litellm does" if counts else "by letters, digits and marks"
    low, expected, high = BEFORE_S
    return [
        f"{others}, and a model finds as much to follow up as the offline baseline",
        f"tokens are counted {counted}; models need 10 % fewer to 25 % more",
        "replies are as long as in earlier runs, else as the baseline's",
        "the longest reply is what requests allow; hidden reasoning comes on top",
        f"a reply begins after {low:g}, {expected:g} or {high:g} s",
        "and goes on at 150, 60 or 20 tokens a second",
        "no call fails, no prompt cache helps, and the limits given here are met",
    ]


def _as_json(
    job: str, found: Estimate, budget: float | None, assumes: list[str]
) -> dict[str, Any]:
    return {
        "job": job,
        "items": found.items,
        "tried": found.tried,
        **_figures_json(found.total),
        "hours": _span_json(found.whole_s.times(*(1 / 3600,) * 3), 4),
        "models": {
            model: {
                **_figures_json(figures),
                "hours": _span_json(found.seconds[model].times(*(1 / 3600,) * 3), 4),
            }
            for model, figures in found.models.items()
        },
        "stages": [
            {"stage": stage, "model": model, **_figures_json(figures)}
            for (stage, model), figures in found.stages.items()
        ],
        "budget": None
        if budget is None
        else {"usd": budget, "verdict": verdict(found, budget)[0]},
        "failing": {"tasks": found.failing.tasks, "first": found.failing.first or None},
        "assumes": assumes,
        "schema": SCHEMA,
    }


def _figures_json(figures: Figures) -> dict[str, Any]:
    return {
        "calls": _span_json(figures.calls, 0),
        "tokens_in": _span_json(figures.tokens_in, 0),
        "tokens_out": _span_json(figures.tokens_out, 0),
        "cost_usd": None if figures.usd is None else _span_json(figures.usd, 6),
    }


def _span_json(span: Span, digits: int) -> dict[str, float]:
    def shown(value: float) -> float:
        return round(value, digits) if digits else round(value)

    return {
        "low": shown(span.low),
        "expected": shown(span.expected),
        "high": shown(span.high),
    }


def _as_text(
    job: str, found: Estimate, budget: float | None, assumes: list[str]
) -> str:
    tried = f"{found.items:,} items, {found.tried:,} tried offline"
    lines = [f"estimate of {job}: {tried}; expected (low to high)"]
    for model, figures in found.models.items():
        lines.append(f"  {model}")
        lines += [f"    {line}" for line in _lines(figures)]
        lines.append(f"    time        {_time(found.seconds[model])}")
    if len(found.models) > 1:
        lines.append("  in all")
        lines += [f"    {line}" for line in _lines(found.total)]
        lines.append(f"    time        {_time(found.whole_s)}")
    for (stage, model), figures in found.stages.items():
        lines.append(
            f"  stage {stage} of {model}: {_span_text(figures.calls, number)} calls"
        )
    if budget is not None:
        lines.append(verdict(found, budget)[1])
    if found.failing.tasks:
        lines.append(found.failing.sentence)
    lines += ["assumed:", *(f"  {said}" for said in assumes)]
    return "\n".join(lines)


def _lines(figures: Figures) -> list[str]:
    usd = figures.usd
    return [
        f"calls       {_span_text(figures.calls, number)}",
        f"tokens in   {_span_text(figures.tokens_in, number)}",
        f"tokens out  {_span_text(figures.tokens_out, number)}",
        f"dollars     {cost(None) if usd is None else _span_text(usd, cost)}",
    ]


def _time(span: Span) -> str:
    """How long it takes; of batches is known how long at most."""
    if span.high and not span.low:
        return f"up to {duration(span.high)}"
    return _span_text(span, duration)


def _span_text(span: Span, show: Any) -> str:  # noqa: ANN401 - a figure's own form
    if span.low == span.high:
        return str(show(span.expected))
    return f"{show(span.expected)} ({show(span.low)} to {show(span.high)})"
