"""Defines the metrics of typed fields: counts without gold values, accuracy with them.

Without gold values no metric says whether an answer is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from jobs.kit.baselines import TrivialBaseline
from jobs.kit.fields.gold import GoldValues, rule_of, rule_words, score_value
from jobs.kit.fields.parsing import FieldAnswer
from jobs.kit.fields.results import FieldResult, ModelResult, answer_key
from jobs.kit.fields.spec import FieldSpec
from jobs.kit.measurements import MeasuredValue, Measurement, count, share
from jobs.kit.measures import (
    BASELINE_FORMS,
    MeasurePart,
    Measures,
    RateMeasure,
    ValueMeasure,
    measured,
)
from jobs.kit.metrics import Ratio, ResampledStatistic
from jobs.kit.metrics.cluster_statistics import Counts, Support
from jobs.kit.metrics.columns import Floats, Ints
from jobs.kit.value_scores import ValueScore
from runner.evaluation import STAYS
from runner.scorecard import Labels


@dataclass(slots=True)
class FieldTally:
    """Answers of one model to one field, over all items."""

    is_categorical: bool = False  #: whether it keeps labels
    labels: list[tuple[int, str | None]] = field(default_factory=list)
    """The number of each item with an outcome, and its answer; None: not read."""
    states: Counter[str] = field(default_factory=Counter, metadata=STAYS)
    quoted: int = 0  #: values with a quote
    grounded: int = 0  #: of them, those whose quotes are all in the text
    checks: Counter[str] = field(default_factory=Counter, metadata=STAYS)
    agreements: list[float] = field(default_factory=list)
    confusion: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Gold value and answer, of fields with few values."""
    judged: list[tuple[int, ValueScore]] = field(default_factory=list)
    """The number of each item with a gold value, and its score."""

    def add(self, result: FieldResult) -> None:
        """Count one result."""
        self.states[result.state] += 1
        if result.state == "answered" and result.answer.quotes:
            self.quoted += 1
            self.grounded += bool(result.answer.is_grounded)
        if result.check:
            self.checks[result.check] += 1
        if result.agreement is not None:
            self.agreements.append(result.agreement)

    @property
    def outcomes(self) -> int:
        """Return the number of items that have an outcome."""
        return sum(n for s, n in self.states.items() if s not in {"not asked", "open"})

    @property
    def answered(self) -> int:
        """Return the number of items with a value."""
        return self.states["answered"]

    @property
    def unread(self) -> int:
        """Return the number of items whose answer could not be read."""
        return self.states["unparsed"] + self.states["failed"]

    def merged(self, other: FieldTally) -> FieldTally:
        """Return the counts of two fields together."""
        return FieldTally(
            states=self.states + other.states,
            quoted=self.quoted + other.quoted,
            grounded=self.grounded + other.grounded,
            checks=self.checks + other.checks,
            agreements=self.agreements + other.agreements,
        )


COUNTS: Mapping[str, ValueMeasure[FieldTally]] = {
    "asked": ValueMeasure(
        "Asked",
        "Number of answers that have an outcome: an item and a field of one model",
        of=lambda tally: count(tally.outcomes),
    ),
    "answered": ValueMeasure(
        "Answered",
        "Share of answers with a value",
        of=lambda tally: share(tally.answered, tally.outcomes),
        definition="answered@1(values / answers with an outcome)",
    ),
    "not_reported": ValueMeasure(
        "Not reported",
        "Share of answers which say that the text does not report the field",
        of=lambda tally: share(tally.states["not reported"], tally.outcomes),
        definition="not reported@1(null answers / answers with an outcome)",
    ),
    "unparsed": ValueMeasure(
        "Unparsed",
        "Share of answers that could not be read as the field's type",
        "lower",
        of=lambda tally: share(tally.unread, tally.outcomes),
        definition="unparsed@1(unread or failed / answers with an outcome)",
    ),
    "grounded": ValueMeasure(
        "Grounded",
        "Share of values with quotes whose quotes are all in the text",
        "higher",
        of=lambda tally: share(tally.grounded, tally.quoted),
        definition="grounded@1(values whose quotes are exact, normalised or elided / "
        "values with quotes)",
    ),
    "supported": ValueMeasure(
        "Supported",
        "Share of checked values that the check found supported by their quote",
        "higher",
        of=lambda tally: (
            share(tally.checks["supported"], tally.checks.total())
            if tally.checks
            else {}
        ),
        definition="supported@1(supported / checked values)",
    ),
    "agreement": ValueMeasure(
        "Agreement of replicates",
        "Mean share of an item's replicates that have its merged value",
        "higher",
        of=lambda tally: (
            MeasuredValue(
                value=sum(tally.agreements) / len(tally.agreements),
                n=len(tally.agreements),
            )
            if tally.agreements
            else {}
        ),
        definition="agreement@1(mean of replicates with the merged value / readable "
        "replicates)",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedField:
    """The scores of one model's answers to one field, with a number per item."""

    right: Ints
    judged: Ints
    hits: Ints
    predicted: Ints
    expected: Ints

    @classmethod
    def of(cls, judged: Sequence[tuple[int, ValueScore]], items: int) -> JudgedField:
        """Return the scores in columns of *items* numbers."""
        table = np.zeros((5, items), dtype=np.int64)
        for at, score in judged:
            row = (score.is_right, 1, score.hits, score.predicted, score.expected)
            table[:, at] = row
        return cls(**dict(zip(cls.__slots__, table, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedField:
    """The numbers that the metrics of one field of one model follow from."""

    counts: FieldTally  #: without labels, gold values and scores
    judged: JudgedField | None
    rule: str = field(metadata=STAYS)  #: that compares values, in words
    has_elements: bool  #: its values are lists or objects


def _rate(above: Ints, below: Ints) -> Ratio:
    return Ratio(above.astype(np.float64), below.astype(np.float64))


ACCURACY: Mapping[str, RateMeasure[JudgedField]] = {
    "accuracy": RateMeasure(
        "Accuracy",
        "Share of items with a gold value whose answer is right; of lists, those with "
        "the same elements",
        "higher",
        of=lambda judged: _rate(judged.right, judged.judged),
        definition="accuracy@1(right / items with a gold value; {over}; unread answers "
        "are wrong)",
    ),
}

ELEMENTS: Mapping[str, RateMeasure[JudgedField]] = {
    "precision": RateMeasure(
        "Precision",
        "Share of the answers' elements that are gold elements",
        "higher",
        of=lambda judged: _rate(judged.hits, judged.predicted),
        definition="precision@1(matched / elements of the answers; {over})",
    ),
    "recall": RateMeasure(
        "Recall",
        "Share of the gold elements that are in the answers",
        "higher",
        of=lambda judged: _rate(judged.hits, judged.expected),
        definition="recall@1(matched / gold elements; {over})",
    ),
    "f1": RateMeasure(
        "F1",
        "Harmonic mean of precision and recall of elements",
        "higher",
        of=lambda judged: _rate(2 * judged.hits, judged.predicted + judged.expected),
        definition="F1@1(2 matched / elements of answers and gold; {over})",
    ),
}

MACRO: RateMeasure[JudgedField] = RateMeasure(
    "Accuracy",
    "Mean of the fields' accuracies",
    "higher",
    of=lambda judged: _rate(judged.right, judged.judged),
    definition="macro accuracy@1(mean over {over} of right / items with a gold value)",
)

BASELINE_KEY = "most_frequent"

MEASURES = Measures(
    measures={**COUNTS, **ACCURACY, **ELEMENTS},
    scopes={
        "all.": MeasurePart(name="all fields"),
        "micro.": MeasurePart(
            name="all values", meaning="over the values of all fields"
        ),
        "macro.": MeasurePart(name="mean of fields", meaning="mean over the fields"),
        "field.{field}.": MeasurePart(name="{field}", meaning="of the field {field}"),
    },
    forms=BASELINE_FORMS,
    headlines=("micro.accuracy", "macro.accuracy", "all.answered", "all.grounded"),
    operational=tuple(f"all.{name}" for name in COUNTS)
    + tuple(f"field.{{field}}.{name}" for name in COUNTS),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutcomes:
    """Everything that is counted of one model."""

    fields: Mapping[str, FieldTally]
    units: Counter[str] = field(default_factory=Counter)

    def add(self, row: ModelResult, number: int, judge: Judge | None) -> None:
        """Count one row; *number* is that of its item in the run."""
        self.units["item"] += 1
        for name, result in row.fields.items():
            tally = self.fields[name]
            tally.add(result)
            self.units["value"] += result.state == "answered"
            if tally.is_categorical and result.state not in {"not asked", "open"}:
                label = None if result.failure else _label(result.answer.value)
                tally.labels.append((number, label))
            score = None if judge is None else judge.score(row.item, name, result)
            if score is not None:
                tally.judged.append((number, score))
                if judge is not None and tally.is_categorical:
                    gold = judge.gold.rows[row.item][name]
                    answer = "unread" if result.failure else _label(result.answer.value)
                    tally.confusion[_label(gold), answer] += 1

    def labels(self, fields: Mapping[str, FieldSpec], items: Sequence[str]) -> Labels:
        """Return the answers to fields with few values, as labels of items."""
        rows = [
            (f"{items[at]} {name}", label)
            for name, tally in self.fields.items()
            for at, label in tally.labels
        ]
        categories = dict.fromkeys(
            category
            for name, tally in self.fields.items()
            if tally.is_categorical
            for category in _categories(fields[name])
        )
        return Labels(
            what="answer",
            categories=tuple(categories),
            items=[key for key, _ in rows],
            assigned=[label for _, label in rows],
        )

    def counted(
        self, fields: Mapping[str, FieldSpec], items: int
    ) -> dict[str, CountedField]:
        """Return what the metrics of each field follow from."""
        return {
            name: CountedField(
                counts=FieldTally().merged(tally),
                judged=JudgedField.of(tally.judged, items) if tally.judged else None,
                rule=rule_words(fields[name]),
                has_elements=fields[name].is_list or fields[name].element == "object",
            )
            for name, tally in self.fields.items()
        }


def measurements(fields: Mapping[str, CountedField]) -> Iterator[Measurement]:
    """Yield all measurements of a model, those over all fields first."""
    judged = {name: of.judged for name, of in fields.items() if of.judged is not None}
    yield from _over_fields(judged)
    whole = FieldTally()
    for of_field in fields.values():
        whole = whole.merged(of_field.counts)
    yield from measured(COUNTS, whole, path="all.")
    for name, of_field in fields.items():
        path, over = f"field.{name}.", f"field {name}{of_field.rule}"
        if name in judged:
            yield from measured(ACCURACY, judged[name], path=path, over=over)
            if of_field.has_elements:
                yield from measured(ELEMENTS, judged[name], path=path, over=over)
        yield from measured(COUNTS, of_field.counts, path=path)


def _over_fields(judged: Mapping[str, JudgedField]) -> Iterator[Measurement]:
    """Yield the accuracy over all values, and the mean over fields."""
    if not judged:
        return
    rates = [_rate(f.right, f.judged) for f in judged.values()]
    right = np.sum([field_scores.right for field_scores in judged.values()], axis=0)
    known = np.sum([field_scores.judged for field_scores in judged.values()], axis=0)
    accuracy = ACCURACY["accuracy"]
    yield accuracy.measurement(
        "accuracy",
        MeasuredValue(
            value=float(right.sum() / known.sum()),
            n=int(known.sum()),
            statistic=Ratio(right, known),
        ),
        path="micro.",
        over="all values",
    )
    values = [rate.value for rate in rates if rate.value is not None]
    yield MACRO.measurement(
        "accuracy",
        MeasuredValue(
            value=sum(values) / len(values),
            n=int(known.sum()),
            n_defined=len(values),
            statistic=ResampledStatistic(_Macro(rates), Support.of(known)),
        ),
        path="macro.",
        over=f"{len(values)} fields",
    )


@dataclass(frozen=True, slots=True)
class _Macro:
    """The mean over fields under each draw of the items."""

    rates: Sequence[Ratio]

    def __call__(self, block: Counts) -> Floats:
        draws = block.astype(np.float64)
        values = []
        for rate in self.rates:
            # whole numbers, so that the order of additions cannot matter
            below = draws @ np.asarray(rate.denominators)
            above = draws @ np.asarray(rate.numerators)
            values.append(
                np.divide(
                    above, below, out=np.full_like(above, np.nan), where=below > 0
                )
            )
        mean: Floats = np.mean(values, axis=0)
        return mean


def is_categorical(spec: FieldSpec) -> bool:
    """Return whether a field has few values, which are labels."""
    return spec.type in {"boolean", "one-of"}


def _categories(spec: FieldSpec) -> tuple[str, ...]:
    values = spec.options if spec.type == "one-of" else ("true", "false")
    return (*values, NOT_REPORTED)


NOT_REPORTED = "not reported"
"""Label of an answer, or gold value, that says so."""


def _label(value: object) -> str:
    if value is None:
        return NOT_REPORTED
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class MostFrequentGold:
    """How often a field has its most frequent gold value."""

    right: int  #: items for which that value is right
    n: int  #: items with a gold value

    def baseline(self, name: str) -> TrivialBaseline:
        """Return the accuracy of always giving it to the field *name*."""
        return TrivialBaseline(
            of=f"field.{name}.accuracy",
            key=BASELINE_KEY,
            name="most frequent gold value",
            value=self.right / self.n,
            n=self.n,
            formula="items of the most frequent gold value / items with a gold value",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Compares results with their gold values."""

    gold: GoldValues
    fields: Mapping[str, FieldSpec]

    def score(self, item: str, name: str, result: FieldResult) -> ValueScore | None:
        """Return the score of a result; None: it is not judged.

        An answer that could not be read is wrong, and so is no answer to a follow-up
        that the gold value expects.
        """
        row = self.gold.rows.get(item, {})
        if name not in row or result.state == "open":
            return None
        spec = self.fields[name]
        score = score_value(result.answer.value, row[name], spec, rule_of(spec))
        is_wrong = result.failure and score.is_right
        return ValueScore(0, 1, score.expected) if is_wrong else score

    def frequent(self) -> dict[str, MostFrequentGold]:
        """Return how often each field has its most frequent gold value."""
        counts = {name: self._frequent(name) for name in self.gold.fields}
        return {name: count for name, count in counts.items() if count is not None}

    def _frequent(self, name: str) -> MostFrequentGold | None:
        spec, rule = self.fields[name], rule_of(self.fields[name])
        golds = [row[name] for row in self.gold.rows.values() if name in row]
        if not golds:
            return None
        common: Counter[str] = Counter()
        values = {}
        for gold in golds:
            key = answer_key(FieldAnswer(value=gold))
            common[key] += 1
            values[key] = gold
        most = values[common.most_common(1)[0][0]]
        right = sum(score_value(most, gold, spec, rule).is_right for gold in golds)
        return MostFrequentGold(right=right, n=len(golds))
