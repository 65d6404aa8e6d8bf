"""Merges the replicates of answers to typed fields: a result per item and model.

Rules, by type:

- numbers: the median of the values (of an even number the lower middle one, which a
  replicate gave with its quote), if at least half of the replicates report one
- lists: the elements that more than half of the replicates have
- all other types: the most frequent answer, "not reported" among them; at a tie the
  first one with a grounded quote, or else the first

Replicates without a readable answer are left out. The quotes are those of the first
replicate with the merged value, one with grounded quotes if there is any.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median_low
from typing import Any, Final, Literal, TypeAlias

from jobs.kit.fields.parsing import NOT_REPORTED, AnswerQuote, FieldAnswer, FieldCheck
from jobs.kit.fields.spec import FieldSpec

State: TypeAlias = Literal[
    "answered", "not reported", "unparsed", "failed", "not asked", "open"
]
"""`unparsed`: the reply's value does not fit the type; `failed`: no reply, or one that
could not be read; `not asked`: a follow-up whose condition does not hold."""

VERDICTS: Final = ("not_supported", "unclear", "supported")
"""Verdicts of checks; of several on one value the first in this order counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedReplies:
    """All that one model answered about one item in one replicate, merged.

    Every declared field is in exactly one of `fields` (its request was answered),
    `failed` (a reply or call failed) and neither (a follow-up whose condition did not
    hold, or an unfinished task).
    """

    item: str
    model: str
    replicate: int
    fields: Mapping[str, FieldAnswer]
    failed: Mapping[str, str] = field(default_factory=dict)
    """Reasons why fields have no answer: reason of an unreadable reply, class
    of a call's error, or reason of a skip (`no_text`)."""
    checks: Mapping[str, tuple[FieldCheck, ...]] = field(default_factory=dict)
    """Verdicts on values, by field, in the order of the checks."""
    reasoning: str = ""  #: of the first request
    chunks: int = 1  #: number of requests about the text
    is_open: bool = False  #: whether a task has no outcome yet
    cost_usd: float | None = None  #: of all its tasks, as far as known
    tasks: tuple[int, ...] = ()  #: numbers of its tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldResult:
    """The answer of one model to one field of one item."""

    state: State
    answer: FieldAnswer = NOT_REPORTED
    failure: str = ""  #: why there is no value: unparsed, failed
    check: str = ""  #: verdict of the checks; "": not checked
    agreement: float | None = None
    """Share of the readable replicates with this value; None: fewer than two."""

    @property
    def text(self) -> str | None:
        """Return the value as a table shows it; None: there is none."""
        return None if self.state != "answered" else value_text(self.answer.value)

    def text_with(self, unit: str | None) -> str | None:
        """Return the value with its unit."""
        return self.text if self.text is None or not unit else f"{self.text} {unit}"

    @property
    def quote(self) -> str | None:
        """Return the quotes as one text; None: there is none."""
        return " [...] ".join(quote.text for quote in self.answer.quotes) or None

    @property
    def place(self) -> AnswerQuote | None:
        """Return the first quote that is in the text."""
        return next((q for q in self.answer.quotes if q.is_located), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResult:
    """The answers of one model about one item: a row of the table of answers."""

    item: str
    model: str
    fields: Mapping[str, FieldResult]  #: every declared field
    replicates: tuple[MergedReplies, ...]

    @property
    def is_open(self) -> bool:
        """Return whether a task has no outcome yet."""
        return any(replicate.is_open for replicate in self.replicates)

    @property
    def cost_usd(self) -> float | None:
        """Return the cost of all replicates, as far as known."""
        costs = [r.cost_usd for r in self.replicates if r.cost_usd is not None]
        return math.fsum(costs) if costs else None

    @property
    def error(self) -> str | None:
        """Return why requests failed, each reason once."""
        reasons = dict.fromkeys(x for r in self.replicates for x in r.failed.values())
        return ", ".join(reasons) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """The answers of all models about one item."""

    item: str
    rows: tuple[ModelResult, ...]  #: by model, in the run's order


def item_results(
    answers: Iterable[MergedReplies], fields: Mapping[str, FieldSpec]
) -> Iterator[ItemResult]:
    """Yield the results of a run, item by item, in constant memory.

    Args:
        answers: the models of an item follow one another, and their replicates.
        fields: all fields by name.
    """
    for key, of_item in groupby(answers, key=lambda answer: answer.item):
        rows = tuple(
            _row(key, model, tuple(of_model), fields)
            for model, of_model in groupby(of_item, key=lambda answer: answer.model)
        )
        yield ItemResult(item=key, rows=rows)


def _row(
    key: str,
    model: str,
    replicates: tuple[MergedReplies, ...],
    fields: Mapping[str, FieldSpec],
) -> ModelResult:
    return ModelResult(
        item=key,
        model=model,
        fields={name: _merged(name, spec, replicates) for name, spec in fields.items()},
        replicates=replicates,
    )


def _merged(
    name: str, spec: FieldSpec, replicates: Sequence[MergedReplies]
) -> FieldResult:
    read_answers = [r.fields[name] for r in replicates if name in r.fields]
    readable = [answer for answer in read_answers if not answer.is_unparsed]
    if not readable:
        return _unread(name, read_answers, replicates)
    answer = merged_answer(readable, spec)
    same = sum(answer_key(a) == answer_key(answer) for a in readable)
    return FieldResult(
        state="answered" if answer.is_answered else "not reported",
        answer=answer,
        check=_verdict(name, answer, replicates),
        agreement=same / len(readable) if len(readable) > 1 else None,
    )


def replicate_result(
    name: str, spec: FieldSpec, replicate: MergedReplies
) -> FieldResult:
    """Return the result of one replicate by itself."""
    return _merged(name, spec, [replicate])


def _unread(
    name: str,
    read_answers: Sequence[FieldAnswer],
    replicates: Sequence[MergedReplies],
) -> FieldResult:
    if read_answers:
        first = read_answers[0]
        return FieldResult(state="unparsed", answer=first, failure=first.failure)
    for replicate in replicates:
        if name in replicate.failed:
            return FieldResult(state="failed", failure=replicate.failed[name])
    is_open = any(replicate.is_open for replicate in replicates)
    return FieldResult(state="open" if is_open else "not asked")


def _verdict(
    name: str, answer: FieldAnswer, replicates: Sequence[MergedReplies]
) -> str:
    """Return the verdict on a value, from the replicates that have it."""
    words = {
        check.verdict
        for replicate in replicates
        if name in replicate.fields
        and answer_key(replicate.fields[name]) == answer_key(answer)
        for check in replicate.checks.get(name, ())
    }
    return next((verdict for verdict in VERDICTS if verdict in words), "")


def merged_answer(answers: Sequence[FieldAnswer], spec: FieldSpec) -> FieldAnswer:
    """Merge the readable answers of replicates by the rules above."""
    if len(answers) == 1:
        return answers[0]
    if spec.is_list:
        return _common_elements(answers)
    reported = [answer for answer in answers if answer.is_answered]
    if spec.element in {"integer", "number"} and reported:
        if 2 * len(reported) < len(answers):
            return next(answer for answer in answers if not answer.is_answered)
        middle = median_low(answer.value for answer in reported)
        chosen = [answer for answer in reported if answer.value == middle]
    else:
        votes = Counter(map(answer_key, answers))
        most = max(votes.values())
        chosen = [answer for answer in answers if votes[answer_key(answer)] == most]
    return next((answer for answer in chosen if answer.is_grounded), chosen[0])


def _common_elements(answers: Sequence[FieldAnswer]) -> FieldAnswer:
    votes: Counter[str] = Counter()
    elements: dict[str, tuple[Any, AnswerQuote | None]] = {}
    for answer in answers:
        values = answer.value or ()
        is_paired = len(answer.quotes) == len(values)
        for at, value in enumerate(values):
            key = value_key(value)
            votes[key] += 1
            quote = answer.quotes[at] if is_paired else None
            if key not in elements or elements[key][1] is None:
                elements[key] = elements.get(key, (value, None))[0], quote
    common = [elements[key] for key, n in votes.items() if 2 * n > len(answers)]
    return FieldAnswer(
        value=tuple(value for value, _ in common) or None,
        quotes=tuple(quote for _, quote in common if quote is not None),
    )


def value_key(value: object) -> str:
    """Return a text that equal values have in common; the case of texts is ignored."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True).casefold()


def answer_key(answer: FieldAnswer) -> str:
    """Return the same for an answer; the order of a list is ignored."""
    if isinstance(answer.value, tuple):
        return json.dumps(sorted(map(value_key, answer.value)))
    return value_key(answer.value)


def value_text(value: object) -> str:
    """Return a value as the cell of a table.

    >>> value_text(("RCT", "cohort")), value_text(True), value_text({"arm": "a"})
    ('RCT; cohort', 'true', '{"arm": "a"}')
    """
    if isinstance(value, tuple):
        is_plain = not any(isinstance(v, dict) or ";" in str(v) for v in value)
        return "; ".join(map(value_text, value)) if is_plain else _json(value)
    if isinstance(value, str):
        return value
    return _json(
        int(value) if isinstance(value, float) and value.is_integer() else value
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
