"""Scores an added stage: shares and means by model, a table of its answers, verdicts.

Its metrics have the stage's name in front of their paths, behind those of the run's
own stages. What a judge says counts for the model that it judged; what a scan says is
about the texts, so it is the same for every model. Intervals are drawn over items.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from math import fsum
from typing import Final

from jobs.kit.explain import Reading, reply_blocks
from jobs.kit.fields.parsing import FieldAnswer, ParsedReply
from jobs.kit.fields.spec import FieldSpec
from jobs.kit.grounding import GROUNDED, PaperText, ground
from jobs.kit.measurements import Measurement, pooled, share, with_intervals
from jobs.kit.measures import Measure, Measures
from jobs.kit.metrics import ANY, SHARE, Ratio, Resamples
from jobs.kit.stage_declaration import DeclaredStage, JudgedTask, slug
from jobs.kit.summary import summary_text
from jobs.kit.tables import Columns, TableOf, column, count, flag, text
from jobs.kit.text_format import with_ends
from runner.job import Answer, Answers, Dataset, Job
from runner.messages import ParseFailure
from runner.score.render import further_result
from runner.scorecard import (
    Detail,
    ItemValues,
    Metric,
    Scorecard,
    Verdict,
    verdicts_in,
)
from store.document import (
    Block,
    Heading,
    PageText,
    TableBlock,
    Words,
    as_text,
    blocks_of,
)

UNREAD: Final = "parse_failure_rate"

_PARTS: Final = re.compile(r"[/:#]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedAnswer:
    """An answer of the stage, and what it is about."""

    answer: Answer
    key: str  #: of the item
    model: str  #: that was judged; empty for a scan
    parsed: ParsedReply | ParseFailure | None  #: None: no reply
    prompt: str = ""  #: what the model saw; only where quotes are searched in it

    @property
    def item(self) -> str:
        """Return the document that the key begins with."""
        return _PARTS.split(self.key)[0]

    def is_about(self, items: Collection[str]) -> bool:
        """Return whether an item is the key, its beginning, or a part of it."""
        parts = _PARTS.split(self.key)
        return any(
            item == self.key
            or item in parts
            or (self.key.startswith(item) and self.key[len(item)] in "/:#")
            for item in items
        )

    def field(self, name: str) -> FieldAnswer:
        """Return the answer to one field; empty without a readable reply."""
        if isinstance(self.parsed, ParsedReply):
            return self.parsed.fields[name]
        return FieldAnswer(failure="no_reply")

    @property
    def unparsed(self) -> str | None:
        """Return why there is no value at all; None: there may be."""
        if isinstance(self.parsed, ParseFailure):
            return self.parsed.reason
        return self.answer.error if self.parsed is None else None


@dataclass(frozen=True, slots=True)
class StageAnswers:
    """Streams the answers of a stage that count; may be read again.

    A judge's answer about a reply that was asked again since is stale, and left out.
    """

    stage: DeclaredStage
    job: Job
    dataset: Dataset
    answers: Answers
    current: Mapping[int, str]  #: key of the judgement of each reply, by its task
    stale: int  #: answers that are left out

    @classmethod
    def of(
        cls, stage: DeclaredStage, job: Job, dataset: Dataset, answers: Answers
    ) -> StageAnswers:
        """Read which replies a judge's answers may be about."""
        current: dict[int, str] = {}
        keys: list[tuple[int, str]] = []
        for answer in _every(answers) if stage.follows_answers else ():
            if answer.task.stage == stage.stage.name:
                about = JudgedTask.of(stage.after, answer.task).task
                keys.append((about.number, answer.task.key))
            elif answer.task.stage == stage.after and answer.chat is not None:
                judged = JudgedTask(task=answer.task, reply=answer.chat.text)
                current[answer.task.number] = judged.key
        stale = sum(current.get(number) != key for number, key in keys)
        return cls(stage, job, dataset, answers, current, stale)

    def __iter__(self) -> Iterator[CountedAnswer]:
        for answer in _every(self.answers):
            has_ended = answer.chat is not None or answer.error is not None
            is_ours = answer.task.stage == self.stage.stage.name
            counted = self._counted(answer) if is_ours and has_ended else None
            if counted is not None:
                yield counted

    def _counted(self, answer: Answer) -> CountedAnswer | None:
        """Return an answer with what it is about; None: it is stale."""
        key, model = answer.task.key, ""
        if self.stage.follows_answers:
            about = JudgedTask.of(self.stage.after, answer.task).task
            if self.current.get(about.number) != key:
                return None
            key, model = about.key, about.model
        parsed = None
        if answer.chat is not None:
            parsed = self.stage.parse(self.dataset, answer.task, answer.chat)
        return CountedAnswer(answer=answer, key=key, model=model, parsed=parsed)

    def with_prompts(self) -> Iterator[CountedAnswer]:
        """Yield them with what the model saw, if quotes are searched in it."""
        has_quotes = any(spec.quote for spec in self.stage.declared.fields.values())
        for counted in self:
            if not has_quotes or counted.answer.chat is None:
                yield counted
                continue
            request = self.stage.request(self.job, self.dataset, counted.answer.task)
            yield replace(counted, prompt=request.messages[-1].text)


def _every(answers: Answers) -> Iterator[Answer]:
    return chain.from_iterable(answers.families())


@dataclass(slots=True)
class JudgedModel:
    """The stage's judgements of one model, by metric."""

    replies: int = 0
    unread: int = 0
    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """By metric and item."""

    def add(self, path: str, item: str, value: float) -> None:
        """Count one value of a metric."""
        self.values.setdefault(path, {}).setdefault(item, []).append(value)

    def terms(self, path: str, items: Sequence[str]) -> tuple[list[float], list[float]]:
        """Return sum and number of a metric's values, by item; in any order exact."""
        of_items = self.values.get(path, {})
        values = [of_items.get(item, []) for item in items]
        return [*map(fsum, values)], [float(len(of_item)) for of_item in values]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldMetric:
    """A metric of one field."""

    path: str
    field: str
    option: object = None  #: the value that is counted; None: see `of`
    is_mean: bool = False
    words: str
    meaning: str

    def of(self, answer: FieldAnswer) -> float | None:
        """Return what an answer adds; None: it does not count."""
        if answer.is_unparsed:
            return None
        if self.is_mean:
            return float(answer.value) if answer.is_answered else None
        if self.option is None:
            return float(answer.is_answered)
        return float(answer.value == self.option)


def field_metrics(stage: str, fields: Mapping[str, FieldSpec]) -> list[FieldMetric]:
    """Return the metrics of a stage's fields."""
    metrics = []
    for name, spec in fields.items():
        path = f"{stage}.{name}"
        options: tuple[object, ...] = ()
        if spec.type == "one-of":
            options = spec.options
        elif spec.type == "boolean":
            options = (True, False)
        metrics += [
            FieldMetric(
                path=f"{path}.{slug(option)}",
                field=name,
                option=option,
                words=f"{stage}: {name} is {_word(option)}",
                meaning=f"Share of {{subset}} for which {name} is {_word(option)}",
            )
            for option in options
        ]
        if spec.type in {"integer", "number"}:
            metrics.append(
                FieldMetric(
                    path=f"{path}.mean",
                    field=name,
                    is_mean=True,
                    words=f"{stage}: mean {name}",
                    meaning=f"Mean of {name} over the {{subset}} that have a value",
                )
            )
        metrics.append(
            FieldMetric(
                path=f"{path}.answered",
                field=name,
                words=f"{stage}: {name} answered",
                meaning=f"Share of {{subset}} for which {name} has a value",
            )
        )
    return metrics


def _word(option: object) -> str:
    return str(option).lower() if isinstance(option, bool) else str(option)


def scored(
    stage: DeclaredStage, card: Scorecard, job: Job, dataset: Dataset, answers: Answers
) -> Scorecard:
    """Return the scorecard with the scores of a stage."""
    name, fields = stage.stage.name, stage.declared.fields
    counted = StageAnswers.of(stage, job, dataset, answers)
    metrics = field_metrics(name, fields)
    tallies: dict[str, JudgedModel] = {}
    for one in counted:
        tally = tallies.setdefault(one.model, JudgedModel())
        tally.replies += 1
        tally.unread += not isinstance(one.parsed, ParsedReply)
        for metric in metrics:
            value = metric.of(one.field(metric.field))
            if value is not None:
                tally.add(metric.path, one.item, value)
    of_model = {
        model: tallies.get(model if stage.follows_answers else "", JudgedModel())
        for model in card.models
    }
    listed = {
        model: _listed(stage, metrics, tally) for model, tally in of_model.items()
    }
    table = answer_table(stage)
    return replace(
        card,
        models={m: (*of_run, *listed[m]) for m, of_run in card.models.items()},
        summary=_summary(stage, card.summary, listed),
        result=_summary(stage, further_result(card), listed),
        tables=(*card.tables, table.table()),
        stale=card.stale + counted.stale,
        details=_Details(card, counted, table),
        comparable={
            model: {
                **card.comparable.get(model, {}),
                **{m.path: partial(_values, stage, m, tally) for m in metrics},
            }
            for model, tally in of_model.items()
        }
        if stage.follows_answers
        else card.comparable,
    )


def _definition(stage: DeclaredStage, metric: FieldMetric) -> str:
    kind = "mean" if metric.is_mean else "share"
    return f"{kind}@1({metric.words}; {_origin(stage)})"


def _origin(stage: DeclaredStage) -> str:
    return f"{stage.model}; declaration {stage.sha256[:12]}"


def _values(
    stage: DeclaredStage, metric: FieldMetric, tally: JudgedModel
) -> ItemValues:
    """Return a metric of one model item by item."""
    items = sorted(tally.values.get(metric.path, {}))
    above, below = tally.terms(metric.path, items)
    return ItemValues(
        kind="ratio",
        items=items,
        clusters=items,
        cluster="item",
        first=above,
        second=below,
        definition=_definition(stage, metric),
        family=stage.stage.name,
    )


def _listed(
    stage: DeclaredStage, metrics: list[FieldMetric], tally: JudgedModel
) -> tuple[Metric, ...]:
    """Return the metrics of one model with their intervals."""
    subset = f"{stage.after} {'replies' if stage.follows_answers else 'texts'}"
    items = sorted({item for values in tally.values.values() for item in values})
    measurements, words = [], {}
    for metric in metrics:
        above, below = tally.terms(metric.path, items)
        rate = Ratio(above, below, ANY if metric.is_mean else SHARE)
        measurements.append(
            Measurement(
                path=metric.path,
                definition=_definition(stage, metric),
                measured=pooled(rate),
                subset=subset,
            )
        )
        words[metric.path] = Measure(metric.words, metric.meaning.format(subset=subset))
    unread = f"{stage.stage.name}.{UNREAD}"
    measurements.append(
        Measurement(
            path=unread,
            definition=f"parse failure rate@1({_origin(stage)})",
            measured=share(tally.unread, tally.replies),
            subset=subset,
        )
    )
    words[unread] = Measure(
        f"{stage.stage.name}: parse failure rate",
        "Share of its answers from which no value could be read",
        "lower",
    )
    draws = Resamples(items, cluster="item")
    return tuple(Measures(measures=words).describe(with_intervals(measurements, draws)))


def _summary(
    stage: DeclaredStage, before: str, listed: Mapping[str, tuple[Metric, ...]]
) -> str:
    """Return the summary with a table of the stage's shares and means."""
    rows = [
        (
            model,
            metric.path.removeprefix(f"{stage.stage.name}."),
            with_ends(metric, ".3f"),
            f"{metric.n:,}",
        )
        for model, metrics in listed.items()
        for metric in metrics
        if not metric.path.endswith((".answered", UNREAD))
    ]
    columns = [Words("model", 30), Words("value"), Words("share or mean"), Words("n")]
    blocks: list[Block] = [*blocks_of(before), _heading(stage)]
    return summary_text([*blocks, TableBlock(columns, rows)])


def _heading(stage: DeclaredStage) -> Heading:
    subset = "replies" if stage.follows_answers else "texts"
    return Heading(f"{stage.stage.name}  {stage.model} on {subset} of {stage.after}")


def explained(
    stage: DeclaredStage,
    job: Job,
    dataset: Dataset,
    answers: Answers,
    items: Collection[str],
) -> PageText:
    """Return a block for each answer of a stage that is about the items."""
    blocks: list[Block] = []
    for one in StageAnswers.of(stage, job, dataset, answers).with_prompts():
        if one.is_about(items):
            reply = f", reply of {one.model}" if one.model else ""
            blocks.append(Heading(f"{one.key}{reply}", level=1))
            width = 2 + max(map(len, ("unparsed", *stage.declared.fields)))
            blocks += reply_blocks(one.answer, _readings(stage, one), width=width)
    return as_text([_heading(stage), *blocks, ""] if blocks else [])


def _readings(stage: DeclaredStage, one: CountedAnswer) -> Iterator[Reading]:
    if one.unparsed is not None:
        yield "unparsed", one.unparsed
        return
    for name in stage.declared.fields:
        grounded = _grounded_cell(name)(one)
        quote = _QUOTED.get(grounded, "")
        yield name, f"{value_text(one.field(name)) or '-'}{quote}"


_QUOTED: Final[Mapping[bool | None, str]] = {
    True: " (quote found)",
    False: " (quote not found)",
}


def value_text(answer: FieldAnswer) -> str | None:
    """Return a value as a cell or a verdict shows it."""
    value = answer.value
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def answer_table(stage: DeclaredStage) -> TableOf[CountedAnswer]:
    """Declare the table of a stage's answers."""
    columns: list[Columns[CountedAnswer]] = [
        text("key", lambda row: row.key),
        text("model", lambda row: row.model, "that was judged"),
        count("replicate", lambda row: row.answer.task.replicate),
        text("judge", lambda row: row.answer.task.model),
    ]
    for name, spec in stage.declared.fields.items():
        columns.append(column(name, _value_cell(name)))
        if spec.quote:
            columns += [
                text(f"{name}_quote", _quote_cell(name)),
                flag(f"{name}_grounded", _grounded_cell(name)),
            ]
    columns.append(text("unparsed", lambda row: row.unparsed, "why there is no value"))
    return TableOf(
        name=f"stage_{stage.stage.name}",  # the run has other tables
        columns=tuple(columns),
        caption=f"Answers of the stage {stage.stage.name}.",
    )


def _value_cell(name: str) -> Callable[[CountedAnswer], str | None]:
    return lambda row: value_text(row.field(name))


def _quote_cell(name: str) -> Callable[[CountedAnswer], str | None]:
    return lambda row: " ... ".join(q.text for q in row.field(name).quotes) or None


def _grounded_cell(name: str) -> Callable[[CountedAnswer], bool | None]:
    def cell(row: CountedAnswer) -> bool | None:
        quotes = row.field(name).quotes
        if not quotes:
            return None
        paper = PaperText(row.prompt)
        return all(ground(paper, quote.text).level in GROUNDED for quote in quotes)

    return cell


@dataclass(frozen=True, slots=True)
class _Details:
    """The details of a scorecard, then those of the stage."""

    card: Scorecard
    counted: StageAnswers
    table: TableOf[CountedAnswer]

    @property
    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdicts of the run's own stages, then those of the stage."""
        yield from verdicts_in(self.card.details)
        for one in self.counted:
            if one.parsed is not None:
                yield _verdict(self.counted.stage, one)

    def __iter__(self) -> Iterator[Detail]:
        yield from self.card.details
        for one in self.counted.with_prompts():
            if one.parsed is not None:
                yield _verdict(self.counted.stage, one)
            yield from self.table.details([one])


def _verdict(stage: DeclaredStage, one: CountedAnswer) -> Verdict:
    task = one.answer.task
    values = (
        f"{name}: {value_text(one.field(name)) or '-'}"
        for name in stage.declared.fields
    )
    return Verdict(
        task=task.number,
        model=task.model,
        stage=task.stage,
        key=task.key,
        value="" if one.unparsed else "; ".join(values),
        expected="",
        correct=None,
        rule=one.unparsed or "read",
        is_unparsed=isinstance(one.parsed, ParseFailure),
    )
