"""Scores a run: one pass to count, one to write, and summaries in between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from jobs.kit.measurements import with_intervals
from jobs.kit.score import ModelScores, models_of, with_models
from jobs.kit.text_format import slugs
from jobs.paper_investigation.artifacts import EVAL_RESULTS, FILES, file_name, lines
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.figures import figures
from jobs.paper_investigation.grading import GradedPaper, grade, read_extraction_reply
from jobs.paper_investigation.inputs import INPUTS
from jobs.paper_investigation.judging import ScoringVariant, expected
from jobs.paper_investigation.measures import MEASURES
from jobs.paper_investigation.model_summary import (
    investigation_text,
    questions_text,
    variants_text,
)
from jobs.paper_investigation.paper_scores import HEADLINES, SCORE
from jobs.paper_investigation.parsing import VariantList
from jobs.paper_investigation.question_counts import ReplyCounts
from jobs.paper_investigation.records import Mode, records
from jobs.paper_investigation.run_tally import InvestigationFrame, RunTally, tally_run
from jobs.paper_investigation.settings import PIPELINES, InvestigationSettings
from jobs.paper_investigation.summary import agreement_lines, run_text
from jobs.paper_investigation.tables import (
    RowSources,
    agreement_tables,
    long_tables,
    models_table,
    pairs_table,
    rows,
)
from runner.evaluation import Evaluation
from runner.job import Answers
from runner.messages import ParseFailure
from runner.scorecard import Artifact, Cell, Detail, Finding, Metric, Scorecard, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringDetails:
    """Verdicts, table rows and file lines of a scoring, as a stream."""

    dataset: InvestigationDataset
    answers: Answers
    mode: Mode
    sources: RowSources

    def __iter__(self) -> Iterator[Detail]:
        names = slugs(self.answers.models)
        is_recorded = self.dataset.settings.profile == "clinpgx-qa"
        for record in records(self.dataset, self.answers):
            paper = grade(
                read_extraction_reply(record, self.sources.lens.rules),
                self.sources.lens,
            )
            yield from verdicts(paper)
            yield from rows(paper, self.mode, self.sources)
            yield from lines(paper, names[record.model], is_recorded=is_recorded)


def verdicts(paper: GradedPaper) -> Iterator[Verdict]:
    """Yield the parsed value of each reply about a paper, and its verdict."""
    record, parsed_list = paper.record, paper.parsed_list
    if record.task is not None and parsed_list is not None:
        rule = (
            parsed_list.rule
            if isinstance(parsed_list, VariantList)
            else parsed_list.reason
        )
        yield Verdict(
            task=record.task,
            model=record.model,
            stage="extract",
            key=record.pmcid,
            value=", ".join((paper.predicted or {}).values()),
            expected=", ".join(paper.truth.values()),
            correct=None,
            rule=rule,
            is_unparsed=isinstance(parsed_list, ParseFailure),
        )
    for graded_answer in (*paper.answers, *paper.missed_variant_answers):
        item, judgement = graded_answer.item, graded_answer.judgement
        if judgement is not None and item.task is not None:
            yield Verdict(
                task=item.task,
                model=record.model,
                stage=item.stage,
                key=item.key,
                value=judgement.value,
                expected=expected(item.question),
                correct=judgement.right,
                rule=judgement.rule,
                label=None if judgement.failed else judgement.value,
                is_unparsed=judgement.failed,
            )


Severity: TypeAlias = Literal["warn", "info"]

SHARE_OF_NOTE = 0.02
"""Share of truncated or empty replies above which a finding is a warning."""


def findings(survey: RunTally, *, imported: bool, has_bench: bool) -> Iterator[Finding]:
    """Yield truncated and empty replies, gaps in the plan, facts that differ.

    Args:
        survey: counts of the run.
        imported: whether the answers were imported.
        has_bench: whether the truth comes from a bench, whose problems were reported
            when it was read.
    """
    for model, tally in survey.by_model.items():
        merged = 0 if has_bench else tally.papers.total(lambda paper: paper.merged)
        yield from _model_findings(model, tally.replies, merged, imported=imported)
    yield from _agreement(survey)


def _model_findings(
    model: str, replies: ReplyCounts, merged: int, *, imported: bool
) -> Iterator[Finding]:
    def severity(n: int) -> Severity:
        return "warn" if n > SHARE_OF_NOTE * replies.received else "info"

    rows: tuple[tuple[str, Severity, int, str], ...] = (
        (
            "empty_replies",
            severity(replies.empty),
            replies.empty,
            (
                f"of {replies.received} replies are empty, as when reasoning uses up "
                "the output limit; raise max_tokens_reasoning and name the model in "
                "reasoning_models."
            ),
        ),
        (
            "cut_replies",
            severity(replies.cut),
            replies.cut,
            (
                f"of {replies.received} replies were cut at the output limit; raise "
                "max_tokens_extract or max_tokens_question."
            ),
        ),
        (
            "refused_replies",
            severity(replies.refused),
            replies.refused,
            (
                f"of {replies.received} replies were refused or filtered by the "
                "provider; they count as wrong."
            ),
        ),
        (
            "questions_not_asked",
            "warn",
            replies.unasked,
            (
                "questions that these settings need are missing from the run and are "
                "not counted; resume it to send them."
            ),
        ),
        (
            "unused" if imported else "stale",
            "info",
            replies.stale,
            "stored answers are not used under these settings.",
        ),
        (
            "merged_variants",
            "info",
            merged,
            (
                "spellings in the truth are one variant with an earlier one and count "
                "once."
            ),
        ),
    )
    for code, level, n, message in rows:
        if n:
            yield Finding(
                code=code, severity=level, where=model, message=f"{n} {message}", n=n
            )


def _agreement(survey: RunTally) -> Iterator[Finding]:
    chosen = survey.agreements[0]
    wrong = sum(tally.compared - tally.agreeing for tally in chosen.facts.values())
    if wrong:
        compared = sum(tally.compared for tally in chosen.facts.values())
        first = chosen.differences[0]
        yield Finding(
            code="differs_from_file",
            severity="info",
            where="import",
            message=f"{wrong} of {compared} facts stated by the imported files come "
            f"out otherwise under profile {chosen.profile}; see differences.csv.",
            n=wrong,
            example=f"{first.model} {first.where}: {first.fact}",
        )
    if survey.contradictions:
        yield Finding(
            code="recall_contradicts_lists",
            severity="warn",
            where="import",
            message=f"{len(survey.contradictions)} records state a recall that their "
            "own lists give under no profile.",
            n=len(survey.contradictions),
            example=survey.contradictions[0],
        )


def score(dataset: InvestigationDataset, answers: Answers) -> Scorecard:
    """Score a run's answers: all metrics, tables and artifacts; pure."""
    settings = dataset.settings
    counted = tally_run(dataset, answers)
    if not (dataset.has_truth or answers.imported):
        return _without_truth(dataset, answers, counted)
    grounding = counted.grounding()
    frame = counted.frame(grounding)
    models = frame.metrics()
    by_path = {model: {m.path: m for m in metrics} for model, metrics in models.items()}
    pairs = counted.pairs()
    all_findings = (
        *dataset.findings,
        *findings(counted, imported=answers.imported, has_bench=bool(dataset.bench)),
    )
    tables = [
        models_table(models, counted.mode),
        pairs_table(pairs, counted.mode),
        *long_tables(counted.mode),
    ]
    if any(agreement.facts for agreement in counted.agreements):
        tables += agreement_tables(counted.agreements)
    sources = RowSources(
        lens=counted.lenses.chosen,
        other_rules=counted.lenses.others[counted.lenses.rules].rules,
        grounding=grounding,
    )
    model_counts = counted.by_model.values()
    card = Scorecard(
        models={},
        summary=run_text(
            counted,
            settings,
            by_path,
            grounding=grounding,
            pairs=pairs,
            findings=all_findings,
            imported=answers.imported,
        ),
        result="\n".join(agreement_lines(counted)),
        headline=HEADLINES[counted.mode],
        worth_explaining=_worst_paper(counted),
        tables=tuple(map(MEASURES.titled, tables)),
        findings=all_findings,
        figures=tuple(figures(counted, by_path, pairs)),
        artifacts=tuple(_artifacts(counted, settings, by_path)),
        details=ScoringDetails(
            dataset=dataset, answers=answers, mode=counted.mode, sources=sources
        ),
        settings=_printed(settings),
        missing=sum(tally.replies.unasked for tally in model_counts),
        stale=sum(tally.replies.stale for tally in model_counts),
        frame=lambda: frame,
    )
    scores = {
        model: ModelScores(
            metrics=models[model],
            comparable=answered.compared(counted.mode),
            baselines=counted.by_model[model].trivial.baselines(),
        )
        for model, answered in counted.answers.items()
    }
    return with_models(card, scores, MEASURES)


def metrics_of(frame: InvestigationFrame) -> Mapping[str, Sequence[Metric]]:
    """Return all metrics by model, from arrays only."""
    scores = {
        model: ModelScores(
            metrics=metrics, baselines=frame.counts[model].trivial.baselines()
        )
        for model, metrics in frame.metrics().items()
    }
    return models_of(scores, MEASURES)


EVALUATION = Evaluation(InvestigationFrame, metrics_of)


def _without_truth(
    dataset: InvestigationDataset, answers: Answers, counted: RunTally
) -> Scorecard:
    """Return the scorecard of an extraction from papers without curated variants."""
    from jobs.paper_investigation.score_without_truth import (  # noqa: PLC0415 - for runs without a truth alone
        score_without_truth,
    )

    return score_without_truth(
        dataset,
        answers,
        counted,
        verdicts=ExtractionVerdicts(dataset, answers, counted.lenses.chosen),
        findings=(
            *dataset.findings,
            *findings(counted, imported=answers.imported, has_bench=True),
        ),
    )


@dataclass(frozen=True, slots=True)
class ExtractionVerdicts:
    """Streams the parsed value of each reply; can be iterated again."""

    dataset: InvestigationDataset
    answers: Answers
    lens: ScoringVariant

    def __iter__(self) -> Iterator[Verdict]:
        for record in records(self.dataset, self.answers):
            reading = read_extraction_reply(record, self.lens.rules)
            yield from verdicts(grade(reading, self.lens))


def _worst_paper(counted: RunTally) -> str:
    """Return the paper with the lowest score of the first model that has any."""
    for tally in counted.by_model.values():
        papers = tally.papers
        if papers.scored and counted.mode == "investigate":
            return min(papers.scored, key=lambda p: papers.value(p, SCORE.value) or 0)
    return ""


def _artifacts(
    counted: RunTally,
    settings: InvestigationSettings,
    metrics: Mapping[str, Mapping[str, Metric]],
) -> Iterator[Artifact]:
    """Yield the job's files: empty ones for streams, and complete summaries."""
    names = slugs(counted.models)
    for (model, replicate), tally in counted.by_replicate.items():
        name_of = partial(file_name, names[model], replicate)
        model_metrics = metrics[model]
        if len(counted.replicates) > 1:
            model_metrics = {
                metric.path: metric for metric in with_intervals(tally.measures())
            }
        if counted.mode == "questions":
            groups = tally.breakdown.pipelines
            for pipeline in (name for name in PIPELINES if groups[name].total):
                results = name_of(f"{pipeline}_{EVAL_RESULTS}")
                text = questions_text(model, tally, pipeline, results)
                yield Artifact(name=results)
                yield Artifact(name=name_of(f"{pipeline}_summary.txt"), text=text)
            continue
        files = tuple(map(name_of, FILES[counted.mode]))
        yield from (Artifact(name=name) for name in files)
        write, rest = _TEXTS[counted.mode]
        text = write(model, tally, model_metrics, settings, files[-1])
        yield Artifact(name=name_of(rest), text=text)


_TEXTS = {
    "investigate": (investigation_text, "paper_investigation_summary.txt"),
    "extract": (variants_text, "variant_summary.txt"),
}


def _printed(settings: InvestigationSettings) -> dict[str, Cell | list[str]]:
    """Return the settings that affect the scores, without input paths."""
    return settings.model_dump(mode="json", exclude=set(INPUTS))
