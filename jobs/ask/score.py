"""Scores a run: the table of answers, and metrics if gold values are known.

The answers are read twice, item by item: once for the counts, and once while the long
files are written. Neither pass has all answers in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from jobs.ask.answers import results
from jobs.ask.inputs import AskDataset
from jobs.ask.merge import ASK
from jobs.ask.page import PAGE, page_row, page_start
from jobs.ask.settings import AskSettings
from jobs.ask.summary import MOST_ITEMS, answers_text, run_text
from jobs.kit.baselines import TrivialBaseline
from jobs.kit.charts import bootstrap_note
from jobs.kit.fields.figures import figures
from jobs.kit.fields.gold import gold_text
from jobs.kit.fields.measures import (
    MEASURES,
    CountedField,
    FieldTally,
    Judge,
    ModelOutcomes,
    MostFrequentGold,
    is_categorical,
    measurements,
)
from jobs.kit.fields.results import (
    FieldResult,
    ItemResult,
    ModelResult,
    replicate_result,
)
from jobs.kit.fields.spec import FieldSpec
from jobs.kit.fields.tables import (
    CONFUSION,
    DISAGREEMENTS,
    FIELDS,
    FORMATS,
    AnswerTable,
    Confused,
    FieldOutcomes,
    JudgedRow,
    answer_line,
    answer_table,
    disagreements,
)
from jobs.kit.grounding import GroundingLevel
from jobs.kit.measurements import with_intervals
from jobs.kit.metrics import Resamples, without_interval
from jobs.kit.report.answer_page import page_end
from jobs.kit.score import ItemFrame, ItemMetric, ModelScores, models_of, with_models
from jobs.kit.text_format import plural
from jobs.kit.truth import no_truth
from runner.evaluation import KEYS_STAY, Evaluation
from runner.job import Answers
from runner.scorecard import (
    Artifact,
    Comparable,
    Detail,
    Finding,
    ItemValues,
    Metric,
    Scorecard,
    StreamedLine,
    Table,
    Verdict,
)

LINES = "answers.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCounts:
    """Counts of a run's answers."""

    items: Sequence[str]  #: with a row, in the order of the run
    models: Mapping[str, ModelOutcomes]
    first: tuple[ItemResult, ...]  #: the first items, for the summary
    disagreeing: Counter[str]  #: fields that differ between models, by field
    is_open: bool  #: whether any task is open


def count_answers(
    dataset: AskDataset, answers: Answers, judge: Judge | None
) -> AnswerCounts:
    """Count the answers of a run in one pass."""
    fields = dataset.recipe.every_field
    models = {
        model: ModelOutcomes(
            fields={n: FieldTally(is_categorical(s)) for n, s in fields.items()}
        )
        for model in answers.models
    }
    items: list[str] = []
    first: list[ItemResult] = []
    disagreeing: Counter[str] = Counter()
    is_open = False
    for result in results(dataset, answers):
        if len(first) <= MOST_ITEMS:
            first.append(result)
        for row in result.rows:
            if row.model in models:
                models[row.model].add(row, len(items), judge)
            is_open |= row.is_open
        disagreeing.update(
            {line.field for line in disagreements(result) if line.between == "models"}
        )
        items.append(result.item)
    return AnswerCounts(
        items=items,
        models=models,
        first=tuple(first),
        disagreeing=disagreeing,
        is_open=is_open,
    )


def score(dataset: AskDataset, answers: Answers) -> Scorecard:
    """Return the tables and metrics of a run."""
    settings, recipe = dataset.settings, dataset.recipe
    fields = recipe.every_field
    gold = dataset.gold
    judge = Judge(gold=gold, fields=fields) if gold else None
    tally = count_answers(dataset, answers, judge)
    frame = AnswerFrame(
        settings=settings,
        items=tuple(tally.items),
        models={
            model: AnsweredFields(fields=counts.counted(fields, len(tally.items)))
            for model, counts in tally.models.items()
        },
        frequent=judge.frequent() if judge else {},
    )
    metrics = frame.metrics()
    note = bootstrap_note(
        settings.level, "item", f"{len(tally.items):,} items", settings.boot_b
    )
    is_labelled = any(map(is_categorical, fields.values()))
    table = answer_table(
        fields,
        checked={name for check in recipe.check for name in recipe.checked(check)},
        replicates=answers.replicates,
        has_reasoning=recipe.explain,
        judge=judge,
    )
    counts = [
        FieldOutcomes(model=model, field=name, tally=of_field)
        for model, of_model in tally.models.items()
        for name, of_field in of_model.fields.items()
    ]
    truth = () if judge else (no_truth("--gold FILE", "gold values"),)
    findings = (*dataset.findings, *truth, *_findings(counts))
    card = Scorecard(
        models={},
        summary=run_text(
            dataset,
            tally.first,
            counts,
            metrics,
            judge=judge,
            disagreeing=tally.disagreeing,
            findings=findings,
        ),
        result=answers_text(dataset, tally.first, counts, judge=judge),
        headline=_headline(dataset, judge),
        worth_explaining=_worst(tally),
        tables=(
            FIELDS.table(counts),
            _long(table),
            DISAGREEMENTS.table(),
            *([CONFUSION.table(_confused(tally))] if judge and is_labelled else []),
        ),
        findings=findings,
        artifacts=(Artifact(name=LINES), Artifact(name=PAGE)),
        figures=figures(counts, metrics, note),
        details=_Details(dataset, answers, judge, table),
        settings=settings.model_dump(mode="json", exclude={*INPUTS}),
        not_available=tuple(_not_available(dataset, judge)),
        frame=lambda: frame,
    )
    models = {
        model: ModelScores(
            metrics=metrics[model],
            comparable=_comparable(of_model, tally.items, metrics[model]),
            labels=partial(of_model.labels, fields, tally.items)
            if is_labelled
            else None,
            units=of_model.units,
            baselines=frame.baselines,
        )
        for model, of_model in tally.models.items()
    }
    return with_models(card, models, MEASURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredFields:
    """What the metrics of one model are computed from."""

    fields: Mapping[str, CountedField] = field(metadata=KEYS_STAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFrame:
    """What all metrics of a run are computed from."""

    settings: AskSettings
    items: tuple[str, ...]  #: in the order of the run
    models: Mapping[str, AnsweredFields] = field(metadata=KEYS_STAY)
    frequent: Mapping[str, MostFrequentGold] = field(metadata=KEYS_STAY)
    """By field with gold values."""

    @property
    def baselines(self) -> Sequence[TrivialBaseline]:
        """The trivial baselines of every model."""
        return [of_field.baseline(name) for name, of_field in self.frequent.items()]

    def metrics(self) -> Mapping[str, Sequence[Metric]]:
        """Compute the metrics of each model, with intervals."""
        settings = self.settings
        draws = Resamples(
            self.items,
            settings.boot_b,
            settings.boot_seed,
            level=settings.level,
            cluster="item",
        )
        return {
            model: MEASURES.describe(with_intervals(measurements(of.fields), draws))
            for model, of in self.models.items()
        }


def metrics_of(frame: AnswerFrame) -> Mapping[str, Sequence[Metric]]:
    """Return all metrics of a run, baselines included."""
    scores = {
        model: ModelScores(metrics=metrics, baselines=frame.baselines)
        for model, metrics in frame.metrics().items()
    }
    return models_of(scores, MEASURES)


EVALUATION = Evaluation(AnswerFrame, metrics_of)

INPUTS = ("papers", "gold", "recipe", "recipe_text", "prompts")
"""Settings that are inputs: the log has their hashes."""


def _long(table: AnswerTable) -> Table:
    return replace(table.table(), further_formats=FORMATS)


def _headline(dataset: AskDataset, judge: Judge | None) -> str:
    if judge and judge.gold.fields:
        return "micro.accuracy"
    has_quotes = any(spec.quote for spec in dataset.recipe.every_field.values())
    return "all.grounded" if has_quotes else "all.answered"


def _worst(tally: AnswerCounts) -> str:
    """Return the item with the most wrong answers of the first model, or the first."""
    for of_model in tally.models.values():
        wrong = Counter(
            at
            for of_field in of_model.fields.values()
            for at, value_score in of_field.judged
            if not value_score.is_right
        )
        if wrong:
            return tally.items[wrong.most_common(1)[0][0]]
    return tally.items[0] if tally.items else ""


def _findings(counts: Sequence[FieldOutcomes]) -> Iterator[Finding]:
    """Yield a finding for each model with quotes that are not in the texts."""
    absent: Counter[str] = Counter()
    for row in counts:
        absent[row.model] += row.tally.quoted - row.tally.grounded
    for model, n in absent.items():
        if n:
            yield Finding(
                code="ungrounded",
                severity="warn",
                where=model,
                message=f"{plural(n, 'value')} with a quote that is not in the text "
                "word for word (columns _grounded of answers.csv)",
                n=n,
            )


def _confused(tally: AnswerCounts) -> Iterator[Confused]:
    for model, of_model in tally.models.items():
        for name, of_field in of_model.fields.items():
            for (gold, answer), n in sorted(of_field.confusion.items()):
                yield Confused(model=model, field=name, gold=gold, answer=answer, n=n)


def _not_available(dataset: AskDataset, judge: Judge | None) -> Iterator[str]:
    if not set(FORMATS) & {"parquet"}:
        yield "answers.parquet: it needs pyarrow (pip install 'siftlog[parquet]')"
    for name in dataset.recipe.every_field if judge else ():
        if judge and name not in judge.gold.fields:
            yield f"accuracy of {name}: it has no gold values"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """The judged values of one model: a row per item and field."""

    keys: Sequence[str]
    items: Sequence[str]
    right: Sequence[float]

    @classmethod
    def of(
        cls, of_model: ModelOutcomes, items: Sequence[str], names: Sequence[str]
    ) -> _Judged:
        rows = [
            (f"{items[at]} {name}", items[at], float(value_score.is_right))
            for name in names
            for at, value_score in of_model.fields[name].judged
        ]
        return cls(
            keys=[row[0] for row in rows],
            items=[row[1] for row in rows],
            right=[row[2] for row in rows],
        )

    def frame(self) -> ItemFrame:
        return ItemFrame.of(self.keys, self.items, cluster="item")


def _comparable(
    of_model: ModelOutcomes, items: Sequence[str], metrics: Sequence[Metric]
) -> Comparable:
    """Return the values of the accuracies, which `compare` pairs by item."""
    judged = [name for name, tally in of_model.fields.items() if tally.judged]
    definitions = {m.path: without_interval(m.definition) for m in metrics}
    values: dict[str, Callable[[], ItemValues]] = {}
    paths = {"micro.accuracy": judged} if judged else {}
    paths |= {f"field.{name}.accuracy": [name] for name in judged}
    for path, names in paths.items():
        metric: ItemMetric[_Judged] = ItemMetric(
            path,
            _Judged.frame,
            lambda source: source.right,
            definition=definitions[path],
        )
        values[path] = partial(_values, metric, of_model, items, names)
    return values


def _values(
    metric: ItemMetric[_Judged],
    of_model: ModelOutcomes,
    items: Sequence[str],
    names: Sequence[str],
) -> ItemValues:
    return metric.values(_Judged.of(of_model, items, names), metric.definition)


@dataclass(frozen=True, slots=True)
class _Details:
    """Streams rows, lines and verdicts in one pass over the answers."""

    dataset: AskDataset
    answers: Answers
    judge: Judge | None
    table: AnswerTable

    def __iter__(self) -> Iterator[Detail]:
        all_fields = self.dataset.recipe.every_field
        models = self.answers.models
        yield _line(page_start(self.dataset, models, self.judge))
        for result in results(self.dataset, self.answers):
            rows = [JudgedRow.of(row, self.judge) for row in result.rows]
            differing = list(disagreements(result))
            yield from self.table.details(rows)
            yield from DISAGREEMENTS.details(differing)
            fields = {line.field for line in differing}
            for row in rows:
                yield StreamedLine(artifact=LINES, text=answer_line(row))
                yield _line(page_row(self.dataset, row, fields))
                yield from _verdicts(all_fields, row.row, self.judge)
        yield _line(page_end())


def _line(text: str) -> StreamedLine:
    return StreamedLine(artifact=PAGE, text=text)


def _verdicts(
    fields: Mapping[str, FieldSpec], row: ModelResult, judge: Judge | None
) -> Iterator[Verdict]:
    """Yield a verdict per field and replicate, on the first task of the item."""
    for replicate in row.replicates:
        for name, spec in fields.items():
            result = replicate_result(name, spec, replicate)
            if result.state in {"not asked", "open"}:
                continue
            judged = None if judge is None else judge.score(row.item, name, result)
            gold = judge.gold.rows[row.item][name] if judge and judged else None
            yield Verdict(
                task=replicate.tasks[0],
                model=row.model,
                stage=ASK,
                key=row.item,
                value=f"{name}: {result.text or result.state}",
                expected="" if judged is None else f"{name}: {gold_text(gold)}",
                correct=None if judged is None else judged.is_right,
                rule=result.failure or result.state,
                part=name,
                label=result.text or result.state,
                is_grounded=_is_grounded(result),
                is_unparsed=result.state == "unparsed",
            )


def _is_grounded(result: FieldResult) -> bool | None:
    """Return whether all quotes are in the text; None without a quote."""
    levels = {quote.level for quote in result.answer.quotes}
    return GroundingLevel.ABSENT not in levels if levels else None
