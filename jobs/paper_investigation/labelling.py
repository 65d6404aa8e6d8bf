"""Declares the labels of paper investigation: the answer to each question.

An item is a question with its paper. A multiple-choice question is answered by a
letter, one about study parameters by a p-value, which is typed, and a significance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from jobs.paper_investigation.bench import question_fields
from jobs.paper_investigation.data import (
    LETTERS,
    NOT_FOUND,
    UNLABELLED,
    InvestigationDataset,
    PaperQuestion,
)
from jobs.paper_investigation.judging import AnswerJudgement, RuleChoice, judge
from jobs.paper_investigation.prompts import paper_of, question_lines
from jobs.paper_investigation.records import records
from jobs.paper_investigation.settings import PIPELINES
from runner.job import Answers
from runner.labelling import (
    LabelChoice,
    LabelField,
    LabelItem,
    Labelling,
    ModelLabel,
)

LETTER: Final = "letter"
P_VALUE: Final = "p_value"
SIGNIFICANCE: Final = "significance"

_UNDECIDED: Final = LabelChoice(value="undecided", key="u", is_gold=False)
_FIELDS: Final = (
    LabelField(
        name=LETTER,
        question="Which option is right?",
        choices=(*(LabelChoice(value=key, key=key) for key in LETTERS), _UNDECIDED),
    ),
    LabelField(
        name=P_VALUE,
        question="Which p-value does the paper state for the association?",
        choices=(LabelChoice(value=NOT_FOUND, key="n"), _UNDECIDED),
        is_open=True,
    ),
    LabelField(
        name=SIGNIFICANCE,
        question="Is the association significant, by the paper?",
        choices=(
            LabelChoice(value="yes", key="y"),
            LabelChoice(value="no", key="n"),
            LabelChoice(value="not stated", key="t"),
            LabelChoice(value=NOT_FOUND, key="f"),
            _UNDECIDED,
        ),
    ),
)


class QuestionLabelling(Labelling):
    """Declares the answer to each question about a paper."""

    gold_setting = "questions"
    gold_suffix = ".jsonl"

    def of_run(
        self, dataset: InvestigationDataset, answers: Answers
    ) -> QuestionLabelling | None:
        """Return this, or None if the run has no questions."""
        del answers
        if dataset.settings.mode == "extract" or not dataset.questions:
            return None
        return self

    def fields(self, dataset: InvestigationDataset) -> tuple[LabelField, ...]:
        """Return the letter, p-value and significance fields."""
        del dataset
        return _FIELDS

    def applies(
        self, dataset: InvestigationDataset, key: str, field: LabelField
    ) -> bool:
        """Return whether the field applies to the item's kind of question."""
        return _question(dataset, key).is_mcq == (field.name == LETTER)

    def items(self, dataset: InvestigationDataset) -> Iterator[str]:
        """Yield the questions of papers that are sent, in the order of the files."""
        is_alone = dataset.settings.mode == "questions"
        for pmcid, questions in dataset.questions.items():
            if (is_alone or dataset.paper(pmcid)) and not dataset.skip_reason(pmcid):
                yield from (f"{pmcid}/{question.key}" for question in questions)

    def item(self, dataset: InvestigationDataset, key: str) -> LabelItem:
        """Return a question with the text of its paper."""
        question = _question(dataset, key)
        pmcid = question.pmcid
        text = "\n".join(question_lines(question))
        if pmcid in dataset.papers:
            text += f"\n\n{dataset.papers.text(pmcid)}"
        return LabelItem(key=key, title=dataset.papers.title(pmcid) or "", text=text)

    def items_of_task(self, dataset: InvestigationDataset, key: str) -> tuple[str, ...]:
        """Return the questions of an extraction's paper, or the first of a batch."""
        if "/" in key:
            return (key.replace("/b/", "/", 1),)
        return tuple(f"{key}/{name}" for name in dataset.questions_of(key))

    def replies(
        self, dataset: InvestigationDataset, answers: Answers
    ) -> Iterator[ModelLabel]:
        """Yield the parsed answer of each reply to a question."""
        rules = RuleChoice.of(dataset.settings)
        for record in records(dataset, answers):
            for item in record.items:
                judgement = judge(item, rules)
                if judgement is None or judgement.failed:
                    continue
                for field, value in _answers(judgement):
                    yield ModelLabel(
                        item=item.key,
                        field=field,
                        model=record.model,
                        replicate=record.replicate,
                        value=value,
                        task=item.task,
                    )

    def gold_files(
        self,
        dataset: InvestigationDataset,
        gold: Mapping[str, Mapping[str, str]],
    ) -> Mapping[str, str]:
        """Return the question files, with the labels as keys.

        Questions without a label stay, as the plan of a run and its batches depend on
        all of them; they are not judged.
        """
        files: dict[str, list[str]] = {}
        is_labelled = False
        for questions in dataset.questions.values():
            for question in questions:
                keyed = _keyed(question, gold.get(f"{question.pmcid}/{question.key}"))
                is_labelled |= keyed.is_labelled
                row = json.dumps(question_fields(keyed), ensure_ascii=False)
                files.setdefault(question.pipeline, []).append(row)
        if not is_labelled:
            return {}
        return {
            pipeline: "".join(f"{row}\n" for row in files[pipeline])
            for pipeline in PIPELINES
            if pipeline in files
        }


def _question(dataset: InvestigationDataset, key: str) -> PaperQuestion:
    question = dataset.question(paper_of(key), key.partition("/")[2])
    if question is None:
        raise KeyError(key)
    return question


def _answers(judgement: AnswerJudgement) -> Iterator[tuple[str, str]]:
    """Yield the fields of a parsed answer, with their values."""
    for field in (LETTER, P_VALUE, SIGNIFICANCE):
        value: str | None = getattr(judgement, field)
        if value is not None:
            yield field, value


def _keyed(question: PaperQuestion, gold: Mapping[str, str] | None) -> PaperQuestion:
    """Return a question with its labels as the key; none, if one is missing."""
    values = gold or {}
    if question.is_mcq:
        return replace(question, correct=values.get(LETTER, UNLABELLED))
    if P_VALUE not in values or SIGNIFICANCE not in values:
        values = dict.fromkeys((P_VALUE, SIGNIFICANCE), UNLABELLED)
    return replace(
        question,
        expected_p_value=values[P_VALUE],
        expected_significance=values[SIGNIFICANCE],
    )


labelling = QuestionLabelling()
