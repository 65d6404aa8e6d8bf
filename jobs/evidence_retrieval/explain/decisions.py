"""From scores to what a reader sees: gate, state and K under each configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.explain.query import Query
from jobs.evidence_retrieval.explain.sentences import shown_of
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.grids import constants_of
from jobs.evidence_retrieval.predicting.selection import MASS, rule_of
from jobs.evidence_retrieval.queries import (
    SCORED,
    UNJUDGED,
    UNKNOWN,
    FoldGate,
    Predictions,
)
from jobs.evidence_retrieval.settings import Settings
from jobs.evidence_retrieval.stages.dynamic_k import held_mass, mass_k
from jobs.metrics.columns import Floats
from jobs.metrics.selective import STATES
from jobs.text import (
    NONE,
    TextColumn,
    clip,
    display_width,
    hanging_lines,
    joined_words,
    number,
    one_line,
    padded,
    plural,
    text_table,
)

NAME_WIDTH = 18
"""Of a configuration; the longest standard one fits."""

Configured: TypeAlias = Sequence[tuple[Config, Predictions]]


def gate_lines(own: Configured, query: Query) -> Iterator[str]:
    """A row a configuration: what it goes by, the thresholds, and the state."""
    place = query.place
    found = [predictions for _, predictions in own]
    yield from text_table(
        [
            _names(found),
            _numbers("top score", [each.score for each in found], place),
            _numbers("p raw", [each.prob_raw for each in found], place),
            _numbers("p cal", [each.prob for each in found], place),
            _numbers("tau neg", [each.tau_neg for each in found], place),
            _numbers("tau pos", [each.tau_pos for each in found], place),
            TextColumn(
                title="state",
                cells=[outcome(each, place) for each in found],
                has_words=True,
            ),
        ]
    )


def state_of(predictions: Predictions, place: int) -> str:
    """The state, or `NONE`."""
    states = predictions.state
    if states is None or states[place] == UNKNOWN:
        return NONE
    return STATES[states[place]]


def outcome(predictions: Predictions, place: int) -> str:
    """The state; where there is none, why the query does not count, if it does not."""
    status = predictions.status[place]
    if status in {SCORED, UNJUDGED}:
        return state_of(predictions, place)
    return status


def fitting_lines(dataset: Dataset, gates: Mapping[str, FoldGate]) -> Iterator[str]:
    """What was fitted and chosen for the fold of a query, on how many posts.

    Args:
        dataset: whose gates, if any, were used instead.
        gates: of the query's fold, by configuration.
    """
    if dataset.gates:
        yield "  the gates are those of --apply-gate"
    told: dict[str, list[str]] = {}
    for gate in gates.values():
        for text in (*_fitting(gate), *_choice(gate)):
            told.setdefault(text, []).append(one_line(gate.config))
    for text, configs in told.items():
        yield from hanging_lines("  ", f"{', '.join(configs)}: {text}")


def k_lines(
    own: Configured, query: Query, settings: Settings, gates: Mapping[str, FoldGate]
) -> Iterator[str]:
    """How many sentences each configuration shows, why so many, and which."""
    order = query.numbers
    for config, predictions in own:
        shown = shown_of(predictions, query.place) or ()
        label = f"  {padded(clip(config.name, NAME_WIDTH), NAME_WIDTH)}  "
        gamma = constants_of(config, settings, gates.get(config.name)).gamma
        why = _why(config, predictions, query, settings, gamma)
        yield from hanging_lines(label, f"K {len(shown)}: {why}")
        if shown:
            yield from hanging_lines(
                " " * display_width(label), joined_words(order[uid] for uid in shown)
            )


def _names(found: Sequence[Predictions]) -> TextColumn:
    """The configurations."""
    cells = [clip(each.config, NAME_WIDTH) for each in found]
    return TextColumn(title="configuration", cells=cells, has_words=True)


def _numbers(title: str, columns: Sequence[Floats | None], place: int) -> TextColumn:
    """One query's number under each configuration."""
    own = (None if each is None else float(each[place]) for each in columns)
    return TextColumn(title=title, cells=[number(value, 5) for value in own])


def _fitting(gate: FoldGate) -> Iterator[str]:
    if not gate.has_gate:
        return
    if "undefined" in gate.fitted:
        reason = str(gate.fitted["undefined"]).rstrip(".")
        fold = one_line(gate.fold)
        yield f"fold {fold} has no gate ({reason}); p is the model's own"
        return
    fit, tune = (plural(gate.posts[part], "post") for part in ("fit", "tune"))
    yield (
        f"the gate of fold {one_line(gate.fold)} was fitted on {fit}, its thresholds "
        f"set on {tune}"
    )


def _choice(gate: FoldGate) -> Iterator[str]:
    """The constants that the fold's tuning posts chose from a grid."""
    by = gate.fitted.get("chosen_by")
    if by is None:
        return
    if gate.on_tune[by] is None:
        yield f"fold {one_line(gate.fold)} has nothing to choose constants by"
        return
    named = ", ".join(f"{k} {v:g}" for k, v in gate.fitted["constants"].items())
    yield f"fold {one_line(gate.fold)} chose {named} by {by}"


def _why(
    config: Config,
    predictions: Predictions,
    query: Query,
    settings: Settings,
    gamma: float | None,
) -> str:
    place = query.place
    if config.dynamic_k != MASS:
        most = int(predictions.k_rule)
        if query.pool <= most:
            return f"all of them; up to {most} are shown"
        return f"the best {most} of {query.pool}"
    state = UNKNOWN if predictions.state is None else int(predictions.state[place])
    rule = rule_of(state)
    if rule is None:
        return "a query that is NEG shows none"
    held = held_mass(
        predictions.scores[predictions.final][place],
        scale=settings.k_scale,
        temperature=settings.k_temperature,
    )
    share = rule.gamma if gamma is None else gamma
    low, high = rule.bounds(len(held))
    named = "without a state, as UNCERTAIN" if state == UNKNOWN else STATES[state]
    return (
        f"{share:g} of the mass is in the first {mass_k(held, share)}; at "
        f"least {low}, at most {high} of {len(held)} ({named})"
    )
