"""Shows sentences stage by stage, and derives gate, state and K from scores."""

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
"""Column titles of the ranks that each step of a configuration gives."""

SentenceKey = TypeVar("SentenceKey", int, str)

SentenceColumn: TypeAlias = tuple[Column, Sequence[Cell]]
"""A column of the table of sentences, with its cells from first to last row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceStages:
    """Scores and ranks of one query's sentences, by stage."""

    columns: tuple[SentenceColumn, ...] = ()
    notes: tuple[str, ...] = ()  #: notes for the reader


def before_any_run(dataset: EvidenceDataset, query: ExplainedQuery) -> SentenceStages:
    """Return the lexical scores, which need no model."""
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
    """Return the scores in stored answers, then the steps of *config*."""
    if query.post is None:
        return SentenceStages()
    model = predictions.model
    pool = PostPool(dataset, query.post, outputs.cosines.get(query.post_id))
    steps = RankingSteps(pool, outputs, outputs.subjects[model], dataset.settings.seed)
    column = pool.keys.index(query.key)
    # whether a stage has a reply does not depend on the constants of a fold
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
    """Return the rank of each sentence in each imported list."""
    columns = []
    for name, lists in predictions.lists.items():
        ranks = _ranks(lists[index])
        cells = [str(ranks.get(uid, NONE)) for uid in uids]
        columns.append((Numbers(clip(name, STAGE_WIDTH)), cells))
    return SentenceStages(columns=tuple(columns))


def pool_of(
    query: ExplainedQuery, lists: Iterable[Sequence[str]] = ()
) -> tuple[str, ...]:
    """Return the uids of a pool in document order, or of all lists if it is unknown.

    Gold sentences that are in no list come last.
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
    """Yield the table of sentences, each with its text below.

    Args:
        query: the query with the pool.
        uids: the rows.
        stages: the columns between the gold label and the selection.
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
    """Return the number of sentences a reader sees; None if unknown."""
    selected_uids = selected_of(predictions, index)
    if selected_uids is not None:
        return len(selected_uids)
    k = UNKNOWN if predictions.k is None else int(predictions.k[index])
    return None if k == UNKNOWN else k


def selected_of(predictions: Predictions, index: int) -> tuple[str, ...] | None:
    """Return the first K sentences of the last list; None if unknown."""
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
    """Yield a column for each stage with a readable answer."""
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
    """Yield the ranks of each step, and the scores of the graph."""
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
    """Return the rank of each sentence in an order, from 1."""
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
    # a graph only spreads its input scores
    for title, is_answered, name in zip(ORDINALS, answered, stage_names, strict=False):
        if not is_answered and name != config.graph:
            yield (
                f"{title}: nothing of {name} could be used, so another order is shown"
            )


GATE_WIDTH = 18
"""Columns of a configuration's name; the longest standard one fits."""

Configured: TypeAlias = Sequence[tuple[Config, Predictions]]


def gate_table(configured: Configured, query: ExplainedQuery) -> TableBlock:
    """Return a row of score, thresholds and state for each configuration."""
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
    """Return the state, or `NONE`."""
    states = predictions.state
    if states is None or states[index] == UNKNOWN:
        return NONE
    return STATES[states[index]]


def outcome(predictions: Predictions, index: int) -> str:
    """Return the state, or the reason why the query does not count."""
    status = predictions.status[index]
    if status in {SCORED, UNJUDGED}:
        return state_of(predictions, index)
    return status


def fitting_facts(
    dataset: EvidenceDataset, gates: Mapping[str, FoldGate]
) -> Iterator[Block]:
    """Yield the fit and choice for the fold of a query, with the number of posts.

    Args:
        dataset: inputs; their gates, if any, were used instead.
        gates: gates of the query's fold, by configuration.
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
    """Yield the number of sentences of each configuration, the reason, and the uids."""
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
    """Yield the constants that were chosen from a grid on the fold's tuning posts."""
    by = gate.fitted.get("chosen_by")
    if by is None:
        return
    if gate.on_tune[by] is None:
        yield (f"fold {one_line(gate.fold)} has no data to choose constants from")
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
