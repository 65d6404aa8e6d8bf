"""Shows sentences stage by stage, and how scores become gate, state and K."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.explain_query import ExplainedQuery
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predictions.outputs import Outputs
from jobs.evidence_retrieval.predictions.rankings import (
    GRAPH,
    MergedAssessment,
    PostPool,
    RankingSteps,
    constants_of,
    merged_order,
    ranking_chains,
)
from jobs.evidence_retrieval.predictions.stages import (
    MASS,
    cumulative_mass,
    mass_k,
    rule_of,
)
from jobs.evidence_retrieval.queries import (
    SCORED,
    UNJUDGED,
    UNKNOWN,
    FoldGate,
    Predictions,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.selective import STATES
from jobs.kit.text_format import plural
from store.document import (
    NONE,
    Block,
    Cell,
    Column,
    Fact,
    Numbers,
    TableBlock,
    Words,
    number,
)
from store.printable import clip, one_line

STAGE_WIDTH = 10
UID_WIDTH = 24
ORDINALS = ("1st", "2nd", "3rd")
"""Titles of the places that the steps of a configuration give."""

SentenceKey = TypeVar("SentenceKey", int, str)

SentenceColumn: TypeAlias = tuple[Column, Sequence[Cell]]
"""A column of the table of sentences, with its cells from first to last row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceStages:
    """Whatever gave the sentences of one query a score or a place."""

    columns: tuple[SentenceColumn, ...] = ()
    notes: tuple[str, ...] = ()  #: what a reader must know of them


def before_any_run(dataset: EvidenceDataset, query: ExplainedQuery) -> SentenceStages:
    """The lexical scores, which need no model."""
    if query.post is None:
        return SentenceStages()
    pool = PostPool(dataset, query.post, None)
    return SentenceStages(columns=(_lexical(pool, query),))


def of_model(
    dataset: EvidenceDataset,
    query: ExplainedQuery,
    outputs: Outputs,
    config: Config,
    predictions: Predictions,
) -> SentenceStages:
    """What stored answers say of the sentences, then the steps of *config*."""
    if query.post is None:
        return SentenceStages()
    model = predictions.model
    pool = PostPool(dataset, query.post, outputs.cosines.get(query.post_id))
    steps = RankingSteps(pool, outputs, outputs.subjects[model], dataset.settings.seed)
    column = pool.keys.index(query.key)
    # whether a stage said anything does not hang on the constants of a fold
    answered = [
        bool(steps.at(chain).answered[column]) for chain in ranking_chains(config)
    ]
    return SentenceStages(
        columns=(
            _lexical(pool, query),
            *_answered(pool, steps, outputs, model, column),
            *_steps(predictions, query),
        ),
        notes=(*_stated(steps.assessed[column]), *_notes(answered, config)),
    )


def of_import(
    predictions: Predictions, index: int, uids: Sequence[str]
) -> SentenceStages:
    """The place of each sentence in each list that was made elsewhere."""
    columns = []
    for name, lists in predictions.lists.items():
        ranks = _ranks(lists[index])
        cells = [str(ranks.get(uid, NONE)) for uid in uids]
        columns.append((Numbers(clip(name, STAGE_WIDTH)), cells))
    return SentenceStages(columns=tuple(columns))


def pool_of(
    query: ExplainedQuery, lists: Iterable[Sequence[str]] = ()
) -> tuple[str, ...]:
    """The uids of a pool in document order; where it is unknown, of all lists.

    Gold that no list has stands at the end.
    """
    sentences = () if query.post is None else query.post.sentences
    pool_uids = (*(s.uid for s in sentences), *(uid for uids in lists for uid in uids))
    return tuple(dict.fromkeys((*pool_uids, *(query.gold or ()))))


def sentence_blocks(
    query: ExplainedQuery,
    uids: Sequence[str],
    stages: SentenceStages,
    selected_uids: Sequence[str] | None,
) -> Iterator[Block]:
    """Shows the table of sentences, each with its text below.

    Args:
        query: whose pool.
        uids: the rows.
        stages: the columns between gold and what is shown.
        selected_uids: uids that the headline shows, best first; None before a run.
    """
    if not uids:
        yield "  none are named" if query.pool == UNKNOWN or query.pool else "  none"
        return
    gold = frozenset(query.gold or ())
    columns: list[SentenceColumn] = [
        (Numbers("gold"), ["gold" if uid in gold else "" for uid in uids]),
        *stages.columns,
    ]
    if selected_uids is not None:
        seen = frozenset(selected_uids)
        cells = ["yes" if uid in seen else "" for uid in uids]
        columns.append((Numbers("shown"), cells))
    details: list[str] = []
    if query.post is None:
        columns.append((Words("uid"), uids))
    else:
        numbers = query.numbers
        order = [str(numbers[uid]) if uid in numbers else NONE for uid in uids]
        columns.insert(0, (Numbers("n"), order))
        texts = {sentence.uid: sentence.text for sentence in query.post.sentences}
        details = [
            f"      {clip(uid, UID_WIDTH)} | {texts.get(uid, '(not in the data)')}"
            for uid in uids
        ]
    rows = list(zip(*(cells for _, cells in columns), strict=True))
    yield TableBlock([column for column, _ in columns], rows, details=details)
    for note in stages.notes:
        yield Fact("", note, indent=2, width=0)


def k_of(predictions: Predictions, index: int) -> int | None:
    """How many sentences a reader sees; None where nobody says."""
    selected_uids = selected_of(predictions, index)
    if selected_uids is not None:
        return len(selected_uids)
    k = UNKNOWN if predictions.k is None else int(predictions.k[index])
    return None if k == UNKNOWN else k


def selected_of(predictions: Predictions, index: int) -> tuple[str, ...] | None:
    """What a reader sees: the first K of the last list; None where none is known."""
    k = UNKNOWN if predictions.k is None else int(predictions.k[index])
    if k == UNKNOWN or not predictions.final:
        return None
    return tuple(predictions.lists[predictions.final][index][:k])


def _lexical(pool: PostPool, query: ExplainedQuery) -> SentenceColumn:
    scores = pool.lexical[:, pool.keys.index(query.key)].tolist()
    return Numbers("bm25", decimals=3), scores


def _answered(
    pool: PostPool, steps: RankingSteps, outputs: Outputs, model: str, column: int
) -> Iterator[SentenceColumn]:
    """Yields a column for each stage whose answer could be read."""
    key = pool.keys[column]
    assessed = steps.assessed[column]
    if assessed is not None:
        percent = [100 * share for share in assessed.relevance.tolist()]
        yield Numbers("assess", decimals=0), percent
    orders = outputs.subjects[model].orders.get(key)
    if orders:
        merged = merged_order([orders[replicate] for replicate in sorted(orders)])
        yield Numbers("llm"), _rank_cells(merged)
    if pool.cosines is not None:
        yield Numbers("cosine", decimals=3), pool.cosines.query[:, column].tolist()
    if key in outputs.endpoint:
        yield Numbers("endpoint", decimals=3), outputs.endpoint[key]


def _steps(predictions: Predictions, query: ExplainedQuery) -> Iterator[SentenceColumn]:
    """Yields where each step put the sentences, before it the graph's own scores."""
    uids = query.numbers
    for title, (name, lists) in zip(ORDINALS, predictions.lists.items(), strict=False):
        ranked_uids = lists[query.index]
        if name == GRAPH:
            along = predictions.scores[name][query.index].tolist()
            scores = dict(zip(ranked_uids, along, strict=True))
            yield Numbers("graph"), [scores[uid] for uid in uids]
        ranks = _ranks(ranked_uids)
        yield Numbers(title), [str(ranks[uid]) for uid in uids]


def _rank_cells(order: Sequence[int]) -> list[str]:
    """The place of each sentence in an order, from 1."""
    ranks = _ranks(order)
    return [str(ranks[n]) for n in range(len(order))]


def _ranks(order: Sequence[SentenceKey]) -> dict[SentenceKey, int]:
    return {sentence: rank for rank, sentence in enumerate(order, start=1)}


def _stated(assessed: MergedAssessment | None) -> Iterator[str]:
    if assessed is not None:
        replies = plural(assessed.replicates, "reply", "replies")
        yield f"assess: probability {number(assessed.probability)}, from {replies}"


def _notes(answered: Sequence[bool], config: Config) -> Iterator[str]:
    stages = ("+".join(config.first_stage), config.rerank, config.graph)
    stage_names = [name for name in stages if name != "none"]
    labels = [f"{o} {name}" for o, name in zip(ORDINALS, stage_names, strict=False)]
    yield f"places under {one_line(config.name)}: {', '.join(labels)}"
    # a graph spreads what it is given, and says nothing of its own
    for title, is_answered, name in zip(ORDINALS, answered, stage_names, strict=False):
        if not is_answered and name != config.graph:
            yield f"{title}: nothing of {name} could be used, so another order stands"


GATE_WIDTH = 18
"""Of a configuration; the longest standard one fits."""

Configured: TypeAlias = Sequence[tuple[Config, Predictions]]


def gate_table(configured: Configured, query: ExplainedQuery) -> TableBlock:
    """Shows the score, the thresholds and the state, a row for each configuration."""
    index = query.index
    columns = ("top score", "p raw", "p cal", "tau neg", "tau pos")
    rows: list[tuple[Cell, ...]] = []
    for _, predictions in configured:
        values = (
            predictions.score,
            predictions.prob_raw,
            predictions.prob,
            predictions.tau_neg,
            predictions.tau_pos,
        )
        cells = (None if value is None else float(value[index]) for value in values)
        rows.append((predictions.config, *cells, outcome(predictions, index)))
    return TableBlock(
        [
            Words("configuration", GATE_WIDTH),
            *(Numbers(column, decimals=5) for column in columns),
            Words("state"),
        ],
        rows,
    )


def state_of(predictions: Predictions, index: int) -> str:
    """The state, or `NONE`."""
    states = predictions.state
    if states is None or states[index] == UNKNOWN:
        return NONE
    return STATES[states[index]]


def outcome(predictions: Predictions, index: int) -> str:
    """The state; where there is none, why the query does not count, if it does not."""
    status = predictions.status[index]
    if status in {SCORED, UNJUDGED}:
        return state_of(predictions, index)
    return status


def fitting_facts(
    dataset: EvidenceDataset, gates: Mapping[str, FoldGate]
) -> Iterator[Block]:
    """What was fitted and chosen for the fold of a query, on how many posts.

    Args:
        dataset: whose gates, if any, were used instead.
        gates: of the query's fold, by configuration.
    """
    if dataset.gates:
        yield "  the gates are those of --apply-gate"
    configs_by_text: dict[str, list[str]] = {}
    for gate in gates.values():
        for text in (*_fitting(gate), *_choice(gate)):
            configs_by_text.setdefault(text, []).append(one_line(gate.config))
    for text, configs in configs_by_text.items():
        yield Fact("", f"{', '.join(configs)}: {text}", indent=2, width=0)


def k_facts(
    configured: Configured,
    query: ExplainedQuery,
    settings: EvidenceSettings,
    gates: Mapping[str, FoldGate],
) -> Iterator[Block]:
    """How many sentences each configuration shows, why so many, and which."""
    order = query.numbers
    for config, predictions in configured:
        selected_uids = selected_of(predictions, query.index) or ()
        gamma = constants_of(config, settings, gates.get(config.name)).gamma
        reason = _k_reason(config, predictions, query, settings, gamma)
        name = clip(config.name, GATE_WIDTH)
        numbers = " ".join(str(order[uid]) for uid in selected_uids)
        for label, text in ((name, f"K {len(selected_uids)}: {reason}"), ("", numbers)):
            yield Fact(label, text, indent=2, width=GATE_WIDTH + 2)


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
    constants = ", ".join(f"{k} {v:g}" for k, v in gate.fitted["constants"].items())
    yield f"fold {one_line(gate.fold)} chose {constants} by {by}"


def _k_reason(
    config: Config,
    predictions: Predictions,
    query: ExplainedQuery,
    settings: EvidenceSettings,
    gamma: float | None,
) -> str:
    index = query.index
    if config.dynamic_k != MASS:
        most = int(predictions.k_rule)
        if query.pool <= most:
            return f"all of them; up to {most} are shown"
        return f"the best {most} of {query.pool}"
    state = UNKNOWN if predictions.state is None else int(predictions.state[index])
    rule = rule_of(state)
    if rule is None:
        return "a query that is NEG shows none"
    mass = cumulative_mass(
        predictions.scores[predictions.final][index],
        scale=settings.k_scale,
        temperature=settings.k_temperature,
    )
    share = rule.gamma if gamma is None else gamma
    low, high = rule.bounds(len(mass))
    state_name = "without a state, as UNCERTAIN" if state == UNKNOWN else STATES[state]
    return (
        f"{share:g} of the mass is in the first {mass_k(mass, share)}; at "
        f"least {low}, at most {high} of {len(mass)} ({state_name})"
    )
