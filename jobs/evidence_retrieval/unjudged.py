"""Scores posts without labels: ranked evidence, probabilities and counts.

Every query is listed with the sentences in the order of the model; metrics that need
gold labels are not computed. Models are compared by their decisions at tau.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from jobs.evidence_retrieval.consistency import check
from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.documents import EvidenceFolders, documents
from jobs.evidence_retrieval.measures import MEASURES
from jobs.evidence_retrieval.metrics.judged_predictions import JudgedPredictions
from jobs.evidence_retrieval.metrics.paired_differences import DECISIONS
from jobs.evidence_retrieval.metrics.results import EvidenceResults
from jobs.evidence_retrieval.metrics.retrieval import (
    COVERAGE,
    UNJUDGED_COUNTS,
    answered_queries,
)
from jobs.evidence_retrieval.per_query import PerQueryFiles
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.evidence_retrieval.settings import INPUTS
from jobs.evidence_retrieval.tables import checks_table
from jobs.kit.charts import Chart, ChartFigures, Plot
from jobs.kit.comparison.pairing import LabelAgreement, label_agreement
from jobs.kit.inputs.sampling import sample_sentences
from jobs.kit.measurements import Measurement, with_intervals
from jobs.kit.measures import measured
from jobs.kit.metrics.columns import Bools, Floats, quantiles
from jobs.kit.metrics.selective import STATES, States, assign
from jobs.kit.score import NO_LABEL, ItemFrame, ModelScores, with_models
from jobs.kit.summary import finding_lines, summary_text
from jobs.kit.tables import StreamedTable, TableOf, count, flag, number, text
from jobs.kit.text_format import fixed, plural
from jobs.kit.truth import no_truth
from runner.scorecard import (
    Axis,
    Finding,
    Histogram,
    Labels,
    Metric,
    Panel,
    Scorecard,
    StreamedDetails,
    Table,
    Verdict,
)
from store.document import Block, wide_table
from store.printable import one_line, shortened


def unjudged_card(
    dataset: EvidenceDataset, results: EvidenceResults, verdicts: Iterable[Verdict]
) -> Scorecard:
    """Return the scorecard of answers about queries without labels; pure."""
    scoring_input, settings = results.scoring_input, results.settings
    blocks = {model: measured.block for model, measured in results.models.items()}
    metrics = {model: unjudged_metrics(block) for model, block in blocks.items()}
    pairs = [*_pairs(blocks)]
    tables = (_OUTCOMES.table(_outcomes(blocks)), *_agreement(pairs))
    contradictions = check(scoring_input, settings, metrics, tables)
    findings = (
        *dataset.findings,
        *scoring_input.findings,
        no_truth("--gold FILE", "gold sentences"),
        *scoring_input.leakage,
        *contradictions,
    )
    long_files = PerQueryFiles(results)
    evidence = _evidence(dataset, blocks)
    described = (*tables, checks_table(scoring_input, contradictions))
    card = Scorecard(
        models={},
        summary=_summary(results, blocks, pairs, findings),
        worth_explaining=_first(results),
        tables=tuple(
            map(MEASURES.titled, (*described, evidence.table, *long_files.tables()))
        ),
        findings=findings,
        artifacts=(
            *documents(
                scoring_input,
                (*scoring_input.findings, *contradictions),
                EvidenceFolders(tuple(blocks)),
            ),
            *long_files.artifacts(),
        ),
        figures=ChartFigures(_CHARTS, lambda: Plot.of(results, blocks)),
        details=StreamedDetails(files=(evidence, long_files), verdicts=verdicts),
        settings=settings.model_dump(mode="json", exclude=set(INPUTS)),
        missing=scoring_input.missing,
        stale=scoring_input.stale,
        frame=lambda: results.frame,
    )
    scores = {
        model: ModelScores(metrics=metrics[model], labels=partial(_labels, block))
        for model, block in blocks.items()
    }
    return with_models(card, scores, MEASURES)


def unjudged_metrics(block: JudgedPredictions) -> tuple[Metric, ...]:
    """Return the metrics of a model that need no gold labels."""
    return MEASURES.describe(with_intervals(_counts(block)))


def _counts(block: JudgedPredictions) -> Iterator[Measurement]:
    """Yield the number of queries, and of answered ones."""
    sizes = {path: COVERAGE[path] for path in ("queries", "posts", "criteria")}
    yield from measured({**sizes, **UNJUDGED_COUNTS}, block, subset="all")


def _decisions(block: JudgedPredictions) -> ItemFrame:
    """Return all queries with the decision at tau, which needs a probability."""
    queries, p = block.queries, block.prediction.prob
    label = np.full(len(queries), NO_LABEL)
    if p is not None:
        label = np.where(np.isnan(p), NO_LABEL, p >= block.settings.tau)
    posts = [queries.posts[i] for i in queries.post.tolist()]
    return ItemFrame(
        size=len(queries),
        key=queries.key,
        cluster_of=posts.__getitem__,
        cluster="post",
        label=label,
        categories=DECISIONS,
    )


def _labels(block: JudgedPredictions) -> Labels:
    return _decisions(block).labels("decision")


class _Pair(NamedTuple):
    left: str
    right: str
    match: LabelAgreement


def _pairs(blocks: Mapping[str, JudgedPredictions]) -> Iterator[_Pair]:
    for left, right in combinations(blocks, 2):
        match = label_agreement(_labels(blocks[left]), _labels(blocks[right]))
        if match is not None:
            yield _Pair(left, right, match)


_AGREEMENT = TableOf[_Pair](
    name="agreement",
    columns=(
        text("left", lambda pair: pair.left),
        text("right", lambda pair: pair.right),
        count("n", lambda pair: pair.match.n, "queries that both decided"),
        number("agreement", lambda pair: pair.match.agreement.percent),
        number("kappa", lambda pair: pair.match.agreement.kappa),
        number("ac1", lambda pair: pair.match.agreement.ac),
    ),
    caption="How often two models decide alike at tau, and how far that is beyond "
    "chance.",
)


def _agreement(pairs: list[_Pair]) -> Iterator[Table]:
    if pairs:
        yield _AGREEMENT.table(pairs)


class _Outcome(NamedTuple):
    """Answers of a model about the posts, for one criterion."""

    model: str
    criterion: str  #: empty: all criteria
    queries: int
    answered: int
    evident: int  #: probability at least tau
    p: tuple[float | None, ...]  #: quantiles, at `QUANTILES`


QUANTILES: Final = (0.1, 0.5, 0.9)

_OUTCOMES = TableOf[_Outcome](
    name="outcomes",
    columns=(
        text("model", lambda row: row.model),
        text("criterion_id", lambda row: row.criterion or None, "blank: all"),
        count("queries", lambda row: row.queries),
        count("answered", lambda row: row.answered),
        count("evidence_at_tau", lambda row: row.evident),
        number("probability_p10", lambda row: row.p[0]),
        number("probability_p50", lambda row: row.p[1]),
        number("probability_p90", lambda row: row.p[2]),
    ),
    caption="Queries, those with evidence by the model at tau, and quantiles of its "
    "probability.",
    is_headline=True,
)


def _outcomes(blocks: Mapping[str, JudgedPredictions]) -> Iterator[_Outcome]:
    for model, block in blocks.items():
        queries = block.queries
        yield _outcome(model, "", block, np.ones(len(queries), dtype=np.bool_))
        for at, criterion in enumerate(queries.criteria):
            yield _outcome(model, criterion, block, queries.criterion == at)


def _outcome(
    model: str,
    criterion: str,
    block: JudgedPredictions,
    rows: Bools,
) -> _Outcome:
    p = _probabilities(block)[rows]
    return _Outcome(
        model=model,
        criterion=criterion,
        queries=int(rows.sum()),
        answered=int((answered_queries(block) & rows).sum()),
        evident=int((p >= block.settings.tau).sum()),
        p=quantiles(p[~np.isnan(p)].tolist(), QUANTILES),
    )


def _probabilities(block: JudgedPredictions) -> Floats:
    p = block.prediction.prob
    return np.full(len(block.queries), np.nan) if p is None else p


class _RankedSentence(NamedTuple):
    """A sentence of a query's list."""

    model: str
    post: str
    criterion: str
    rank: int
    uid: str
    score: float | None
    probability: float | None
    state: str | None
    is_selected: bool | None  #: None: no K
    sentence: str | None


_EVIDENCE = TableOf[_RankedSentence](
    name="evidence",
    columns=(
        text("model", lambda row: row.model),
        text("post_id", lambda row: row.post),
        text("criterion_id", lambda row: row.criterion),
        number("probability", lambda row: row.probability, "that there is evidence"),
        text("state", lambda row: row.state),
        count("rank", lambda row: row.rank, "1: the likeliest evidence"),
        text("sent_uid", lambda row: row.uid),
        number("score", lambda row: row.score, "of the final list"),
        flag("shown", lambda row: row.is_selected, "among the first K"),
        text("sentence", lambda row: row.sentence),
    ),
    caption="Sentences of each post, the likeliest evidence first, by criterion.",
)


def _evidence(
    dataset: EvidenceDataset, blocks: Mapping[str, JudgedPredictions]
) -> StreamedTable:
    sentences = {
        sentence.uid: sentence.text
        for post in dataset.posts
        for sentence in post.sentences
    }
    return _EVIDENCE.streamed(
        lambda: (
            row
            for model, block in blocks.items()
            for row in _ranked(model, block, sentences)
        )
    )


def _ranked(
    model: str, block: JudgedPredictions, sentences: Mapping[str, str]
) -> Iterator[_RankedSentence]:
    queries, prediction = block.queries, block.prediction
    lists = prediction.lists.get(prediction.final, ())
    scores = prediction.scores.get(prediction.final)
    p, states = _probabilities(block), _states(block)
    for i, uids in enumerate(lists):
        k = UNKNOWN if prediction.k is None else int(prediction.k[i])
        state = int(states[i])
        for rank, uid in enumerate(uids, start=1):
            yield _RankedSentence(
                model=model,
                post=queries.posts[queries.post[i]],
                criterion=queries.criteria[queries.criterion[i]],
                rank=rank,
                uid=uid,
                score=None if scores is None else float(scores[i][rank - 1]),
                probability=None if np.isnan(p[i]) else float(p[i]),
                state=None if state == UNKNOWN else STATES[state],
                is_selected=None if k == UNKNOWN else rank <= k,
                sentence=sentences.get(uid),
            )


def _states(block: JudgedPredictions) -> States:
    """Return the state of each query, from a gate or from the file."""
    prediction = block.prediction
    states: States = np.full(len(block.queries), UNKNOWN, dtype=np.int8)
    if prediction.state is not None:
        states[:] = prediction.state
    p, low, high = _probabilities(block), prediction.tau_neg, prediction.tau_pos
    if low is not None and high is not None:
        rows = ~np.isnan(p) & ~np.isnan(low) & ~np.isnan(high)
        edge = block.settings.gate_edge
        states[rows] = assign(p[rows], low[rows], high[rows], edge=edge)
    return states


def _first(results: EvidenceResults) -> str:
    """Return the query to explain first: the one with the highest probability."""
    for model_results in results.models.values():
        block = model_results.block
        p = _probabilities(block)
        if not np.isnan(p).all():
            return block.queries.key(int(np.nanargmax(p)))
    queries = results.scoring_input.queries
    return queries.key(0) if len(queries) else ""


def _summary(
    results: EvidenceResults,
    blocks: Mapping[str, JudgedPredictions],
    pairs: Iterable[_Pair],
    findings: tuple[Finding, ...],
) -> str:
    queries = results.scoring_input.queries
    tau = results.settings.tau
    blocks_: list[Block] = [
        *sample_sentences(findings),
        "  ".join(
            (
                "evidence-retrieval",
                plural(len(queries), "query", "queries"),
                plural(len(queries.posts), "post"),
                plural(len(queries.criteria), "criterion", "criteria"),
            )
        ),
    ]
    titles = ("model", "criterion", "n", "answered", f"p >= {tau:g}", "p10", "p50")
    rows = [
        (
            _name(row.model) if not row.criterion else "",
            row.criterion or "all",
            *(f"{size:,}" for size in (row.queries, row.answered, row.evident)),
            *(fixed(share, "z.2f") for share in row.p),
        )
        for row in _outcomes(blocks)
    ]
    blocks_.append(wide_table((*titles, "p90"), rows))
    blocks_ += map(_agreed, pairs)
    blocks_ += ["ranked sentences: evidence.csv", *finding_lines(findings)]
    return summary_text(blocks_)


def _agreed(pair: _Pair) -> str:
    agreement = pair.match.agreement
    queries = plural(pair.match.n, "query", "queries")
    return (
        f"{_name(pair.left)} and {_name(pair.right)}  {queries} decided by both  "
        f"agreement {fixed(agreement.percent, 'z.2f')}  "
        f"kappa {fixed(agreement.kappa, 'z.2f')}"
    )


NAME_CELLS: Final = 30
"""Columns of a model's name, which may be the path of a file."""


def _name(model: str) -> str:
    return shortened(one_line(model), NAME_CELLS)


_EDGES: Final = tuple(round(0.1 * at, 1) for at in range(11))


def _distribution(plot: Plot[EvidenceResults, JudgedPredictions]) -> Iterator[Panel]:
    """Yield a histogram of probabilities for each model."""
    for model in plot.select(_counted):
        yield Panel(
            title=model.name,
            x=Axis(label="probability of evidence", lo=0, hi=1),
            y=Axis(label="queries", lo=0),
            marks=(Histogram(edges=_EDGES, counts=model.data, series=model.series),),
        )


def _counted(block: JudgedPredictions) -> tuple[float, ...]:
    p = _probabilities(block)
    if np.isnan(p).all():
        return ()
    return tuple(map(float, np.histogram(p[~np.isnan(p)], _EDGES)[0].tolist()))


_CHARTS = (
    Chart(
        name="probabilities",
        title="Probabilities of evidence",
        caption="Queries by the model's probability, in ten bins.",
        panels=_distribution,
    ),
)
