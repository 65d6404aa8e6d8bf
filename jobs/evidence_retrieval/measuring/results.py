"""Everything that was measured of a sheet, before it becomes tables and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jobs.evidence_retrieval.measures import MEASURES
from jobs.evidence_retrieval.measuring.ablation import Step, steps
from jobs.evidence_retrieval.measuring.block import Block, block_of
from jobs.evidence_retrieval.measuring.comparing import (
    Gap,
    between_lists,
    between_models,
    finished,
    ranking_names,
)
from jobs.evidence_retrieval.measuring.criteria import ByCriterion, by_criterion, macro
from jobs.evidence_retrieval.measuring.drawing import Draws, metric
from jobs.evidence_retrieval.measuring.folds import (
    ByFold,
    by_fold,
    fold_metrics,
    with_folds,
)
from jobs.evidence_retrieval.measuring.measure import Measure, count
from jobs.evidence_retrieval.measuring.posts import by_post
from jobs.evidence_retrieval.measuring.reading import over_all_queries, ranking, spreads
from jobs.evidence_retrieval.measuring.sections import measures, not_available
from jobs.evidence_retrieval.measuring.sweep import sweep
from jobs.evidence_retrieval.measuring.targets import held_against
from jobs.evidence_retrieval.measuring.unscored import unscored
from jobs.evidence_retrieval.queries import SCORED, Sheet
from jobs.evidence_retrieval.settings import Settings
from jobs.metrics.columns import ratio
from runner.scorecard import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResults:
    """What one model's headline configuration comes to."""

    block: Block
    whole: tuple[Metric, ...]  #: over all its queries, by post and by list too
    folds: ByFold
    criteria: ByCriterion
    macro: tuple[Metric, ...]
    sweep: tuple[tuple[float, Metric], ...]  #: under each gamma, rising
    not_available: tuple[str, ...]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All of them, each under a path of its own."""
        return (
            *self.whole,
            *fold_metrics(self.folds),
            *(each for own in self.criteria.values() for each in own),
            *self.macro,
        )

    def by_path(self) -> Mapping[str, Metric]:
        """The metrics of the whole."""
        return {each.path: each for each in self.whole}


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A sheet, measured."""

    sheet: Sheet
    settings: Settings
    models: Mapping[str, ModelResults]
    steps: tuple[Step, ...]  #: configurations, by model; none where there is one
    gaps: tuple[Gap, ...]
    draws: Draws  #: for what is drawn only if somebody looks at it

    def metrics(self, model: str) -> tuple[Metric, ...]:
        """A model's metrics; those of other configurations under `config.NAME.`."""
        return MEASURES.describe(
            (
                *self.models[model].metrics,
                *(
                    replace(
                        step.metric, path=f"config.{step.config}.{step.metric.path}"
                    )
                    for step in self.steps
                    if step.model == model
                    and step.config != self.sheet.headline
                    and step.is_measured
                ),
            )
        )


def measured(sheet: Sheet, settings: Settings) -> Results:
    """Measure every model's headline, its other configurations, and differences."""
    draws = Draws(sheet.queries, settings)
    blocks = {
        (p.model, p.config): block_of(sheet.queries, p, settings, sheet.gates)
        for p in sheet.predictions
    }
    headline = {
        model: blocks[model, sheet.headline]
        for model in sheet.models
        if (model, sheet.headline) in blocks
    }
    gaps = [gap for block in headline.values() for gap in between_lists(block)]
    gaps += between_models(headline)
    return Results(
        sheet=sheet,
        settings=settings,
        models={m: _of_model(block, draws) for m, block in headline.items()},
        steps=tuple(
            step
            for model in sheet.models
            for step in _ablation(
                [b for (m, _), b in blocks.items() if m == model], draws
            )
        ),
        gaps=finished(gaps, draws),
        draws=draws,
    )


def _ablation(blocks: Sequence[Block], draws: Draws) -> tuple[Step, ...]:
    return steps(blocks, draws) if len(blocks) > 1 else ()


def _of_model(block: Block, draws: Draws) -> ModelResults:
    settings = block.settings
    folds = by_fold(block)
    paths = ("auroc", "auprc", *ranking_names(settings), "evidence_recall@K")
    whole = draws.metrics([*coverage(block), *measures(block)], by_query=paths)
    whole = with_folds(whole, folds, settings.ddof)
    whole += draws.metrics(list(_details(block)))
    if len(block.lists) > 1:
        whole += _by_list(block, whole, draws)
    criteria = by_criterion(block, draws)
    return ModelResults(
        block=block,
        whole=tuple(held_against(whole, settings)),
        folds=folds,
        criteria={name: held_against(own, settings) for name, own in criteria.items()},
        macro=tuple(macro(criteria)),
        sweep=tuple(sweep(block, draws)),
        not_available=not_available(block),
    )


def coverage(block: Block) -> Iterator[Measure]:
    """How many queries there are, and why some are in no metric."""
    queries = block.queries
    total = len(queries)
    yield count("queries", total, "posts x criteria", subset="all")
    yield count("posts", len(queries.posts), "distinct posts", subset="all")
    yield count("criteria", len(queries.criteria), "criteria", subset="all")
    for name, number in block.statuses.items():
        yield count(f"status.{name}", number, "queries", subset="all")
    judged = int(block.judged.sum())
    yield Measure(
        path="coverage",
        value=ratio(block.statuses[SCORED], judged),
        n=judged,
        subset="judged",
        definition="coverage@1(judged queries with an answer, by judged queries)",
    )


def _details(block: Block) -> Iterator[Measure]:
    yield from unscored(block)
    yield from by_post(block)
    if block.final is not None:
        yield from spreads(block.final)
    if block.settings.all_queries:
        judged = int(block.judged.sum())
        for name, own in block.lists.items():
            for each in over_all_queries(own, judged):
                yield replace(each, path=f"all_queries.{name}.{each.path}")


def _by_list(block: Block, whole: Iterable[Metric], draws: Draws) -> Iterator[Metric]:
    """The ranking of each list under its name; that of the final one is known."""
    known = {each.path: each for each in whole}
    for name, own in block.lists.items():
        if own is block.final:
            found = [known[each.path] for each in ranking(own)]
            found += [known[each.path] for each in spreads(own)]
        else:
            found = draws.metrics(list(ranking(own)))
            found += [metric(each) for each in spreads(own)]
        for each in found:
            yield replace(each, path=f"{name}.{each.path}")
