"""Scores a run: one pass to count, one to write, and the texts in between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from jobs.baselines import beside
from jobs.paper_investigation.artifacts import (
    EVAL_RESULTS,
    FILES,
    file_name,
)
from jobs.paper_investigation.dataset import Dataset
from jobs.paper_investigation.load import INPUTS
from jobs.paper_investigation.measures import MEASURES
from jobs.paper_investigation.scoring.details import Details
from jobs.paper_investigation.scoring.findings import findings
from jobs.paper_investigation.scoring.overview import (
    agreement_tables,
    models_table,
    pairs_table,
)
from jobs.paper_investigation.scoring.pictures import figures
from jobs.paper_investigation.scoring.tables import SHEETS, Sources
from jobs.paper_investigation.settings import PIPELINES, Settings
from jobs.paper_investigation.summary.investigation import investigation_text
from jobs.paper_investigation.summary.questions import questions_text
from jobs.paper_investigation.summary.terminal import Results, run_text
from jobs.paper_investigation.summary.variants import variants_text
from jobs.paper_investigation.tallies.headline import HEADLINES, SCORE
from jobs.paper_investigation.tallies.measure import plain
from jobs.paper_investigation.tallies.survey import Survey, survey
from jobs.slugs import slugs
from runner.job import Answers
from runner.scorecard import Artifact, Cell, Metric, Scorecard


def score(dataset: Dataset, answers: Answers) -> Scorecard:
    """All metrics, tables and artifacts of a run's answers; pure."""
    settings = dataset.settings
    counted = survey(dataset, answers)
    grounding = counted.grounding()
    models = {model: counted.metrics(model, grounding) for model in counted.models}
    by_path = {model: {m.path: m for m in own} for model, own in models.items()}
    pairs = counted.pairs()
    noticed = (
        *dataset.findings,
        *findings(counted, imported=answers.imported, has_bench=bool(dataset.bench)),
    )
    tables = [
        models_table(models, counted.mode),
        pairs_table(pairs, counted.mode),
        *(sheet.table for sheet in SHEETS if counted.mode in sheet.modes),
    ]
    if any(agreement.facts for agreement in counted.agreements):
        tables += agreement_tables(counted.agreements)
    sources = Sources(
        lens=counted.lenses.chosen,
        other_rules=counted.lenses.others[counted.lenses.rules].rules,
        grounding=grounding,
    )
    tallies = counted.tallies.values()
    card = Scorecard(
        models=models,
        summary=run_text(
            Results(
                survey=counted,
                settings=settings,
                imported=answers.imported,
                models=by_path,
                grounding=grounding,
                pairs=pairs,
                findings=noticed,
            )
        ),
        headline=HEADLINES[counted.mode],
        worth_explaining=_worst_paper(counted),
        tables=tuple(map(MEASURES.titled, tables)),
        findings=noticed,
        figures=tuple(figures(counted, by_path, pairs)),
        artifacts=tuple(_artifacts(counted, settings, by_path)),
        details=Details(
            dataset=dataset, answers=answers, mode=counted.mode, sources=sources
        ),
        settings=_printed(settings),
        missing=sum(tally.replies.unasked for tally in tallies),
        stale=sum(tally.replies.stale for tally in tallies),
        comparable={model: counted.comparable(model) for model in counted.models},
    )
    return beside(
        card,
        {model: [*own.trivial.baselines()] for model, own in counted.tallies.items()},
        MEASURES,
    )


def _worst_paper(counted: Survey) -> str:
    """The paper that the first model with scores did worst on."""
    for tally in counted.tallies.values():
        papers = tally.papers
        if papers.scored and counted.mode == "investigate":
            return min(papers.scored, key=lambda p: papers.value(p, SCORE.value) or 0)
    return ""


def _artifacts(
    counted: Survey, settings: Settings, metrics: Mapping[str, Mapping[str, Metric]]
) -> Iterator[Artifact]:
    """The job's files: those with a line a paper empty, the summaries in full."""
    names = slugs(counted.models)
    for (model, replicate), tally in counted.by_replicate.items():
        named = partial(file_name, names[model], replicate)
        own = metrics[model]
        if len(counted.replicates) > 1:
            own = {each.path: plain(each) for each in tally.measures()}
        if counted.mode == "questions":
            groups = tally.breakdown.pipelines
            for pipeline in (name for name in PIPELINES if groups[name].asked):
                results = named(f"{pipeline}_{EVAL_RESULTS}")
                text = questions_text(model, tally, pipeline, results)
                yield Artifact(name=results)
                yield Artifact(name=named(f"{pipeline}_summary.txt"), text=text)
            continue
        files = tuple(map(named, FILES[counted.mode]))
        yield from (Artifact(name=name) for name in files)
        write, rest = _TEXTS[counted.mode]
        text = write(model, tally, own, settings, files[-1])
        yield Artifact(name=named(rest), text=text)


_TEXTS = {
    "investigate": (investigation_text, "paper_investigation_summary.txt"),
    "extract": (variants_text, "variant_summary.txt"),
}


def _printed(settings: Settings) -> dict[str, Cell | list[str]]:
    """The settings that bear on the scores, without the places of the inputs."""
    return settings.model_dump(mode="json", exclude=set(INPUTS))
