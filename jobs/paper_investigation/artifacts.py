"""Writes the job's result files: their names, and their lines.

A line has everything that a later import, or another program, needs to judge the
answers again: question, reply, parsed and expected values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from jobs.paper_investigation.data import LETTERS, PaperQuestion
from jobs.paper_investigation.grading import GradedPaper
from jobs.paper_investigation.judging import AnswerJudgement, expected
from jobs.paper_investigation.parsing import split_batch
from jobs.paper_investigation.records import Mode, QuestionItem
from jobs.paper_investigation.run_tally import question_facts
from jobs.paper_investigation.settings import PIPELINES
from runner.messages import Reply
from runner.scorecard import StreamedLine

EVAL_RESULTS = "eval_results.jsonl"

SKIP_REASONS = frozenset({"no_paper_text", "paper_too_long", "not_in_file"})
"""Reasons why a planned question is not sent; any other reason is an error."""

FILES: Mapping[Mode, tuple[str, ...]] = {
    "investigate": (
        "paper_investigation_responses.jsonl",
        f"paper_investigation_{EVAL_RESULTS}",
    ),
    "extract": (f"variant_{EVAL_RESULTS}",),
    "questions": tuple(f"{name}_{EVAL_RESULTS}" for name in PIPELINES),
}
"""Files of a model and replicate with a line per paper or question."""


def file_name(slug: str, replicate: int, rest: str) -> str:
    """Return the name of a model's file; replicates after the first have a suffix."""
    stem, dot, suffix = rest.rpartition(".")
    mark = f"_r{replicate}" if replicate > 1 else ""
    return f"{slug}_{stem}{mark}{dot}{suffix}"


def lines(
    paper: GradedPaper, slug: str, *, is_recorded: bool
) -> Iterator[StreamedLine]:
    """Yield the lines that a paper, or a single question, adds to its model's files.

    Args:
        paper: paper of one model and replicate.
        slug: slug of the model.
        is_recorded: whether scored records keep the fields of the old profile.
    """
    record = paper.record

    def line(rest: str, fields: Mapping[str, Any]) -> StreamedLine:
        text = msgspec.json.encode(fields).decode()
        name = file_name(slug, record.replicate, rest)
        return StreamedLine(artifact=name, text=f"{text}\n")

    if record.mode == "questions":
        for graded_answer in paper.answers:
            item, judgement = graded_answer.item, graded_answer.judgement
            fields = (
                answer_fields(item, judgement, record.model)
                if judgement is not None
                else unanswered_fields(item, record.model)
            )
            yield line(f"{item.question.pipeline}_{EVAL_RESULTS}", fields)
    elif record.mode == "extract":
        (rest,) = FILES["extract"]
        yield line(rest, extraction_fields(paper))
    else:
        responses, results = FILES["investigate"]
        fields = investigation_fields(paper)
        yield line(responses, fields)
        if paper.skip is None:
            yield line(results, fields if is_recorded else fields | _rates(paper))


def investigation_fields(paper: GradedPaper) -> dict[str, Any]:
    """Return an investigation record.

    Predicted variants are spelled as in the reply, recalled ones as in the truth: they
    are normalised only for comparison. The record has the extraction's reply and every
    question sent, so that it can be imported and scored again.
    """
    record, variants_by_question = paper.record, paper.variants_by_question
    linked = {
        graded_answer.item.question.key
        for group in paper.links.values()
        for graded_answer in group
        if graded_answer.judgement is not None
    }
    # questions that count for no recalled variant: with a reply, or the error
    others = [
        {
            **_answer_fields(
                item, item.question.variant, is_known=not record.fixed_links
            ),
            "expected_answer": expected(item.question),
            "error": item.absent,
        }
        for item in record.items
        if item.task is not None and item.question.key not in linked
    ]
    return {
        "pmcid": record.pmcid,
        "pmid": record.pmid,
        "article_title": record.title,
        "model": record.model,
        "ground_truth_variants": record.truth,
        "predicted_variants": _spelled(paper.predicted),
        "recalled_variants": _recalled(paper),
        "variant_recall": paper.recall,
        "variant_results": {
            paper.truth[variant]: _variant_result(paper, variant, variants_by_question)
            for variant in sorted(paper.links)
        },
        "paper_score": paper.score,
        "skip_reason": paper.skip,
        "replicate": record.replicate,
        **_reply_fields("raw_response", record.reply),
        **({"other_questions": others} if others else {}),
    }


def extraction_fields(paper: GradedPaper) -> dict[str, Any]:
    """Return the scored extraction of one paper, spelled as in reply and truth."""
    record = paper.record
    truth, predicted = paper.truth, paper.predicted or {}
    return {
        "pmcid": record.pmcid,
        "pmid": record.pmid,
        "article_title": record.title,
        "ground_truth": record.truth,
        "predicted": _spelled(paper.predicted),
        **_reply_fields("raw_response", record.reply),
        "had_paper_context": record.had_paper,
        "model": record.model,
        "true_positives": _recalled(paper),
        "false_negatives": sorted(truth[v] for v in truth if v not in paper.recalled),
        "recall": paper.recall,
        "parse_failure": not paper.is_parsed,
        "false_positives": sorted(predicted[v] for v in predicted if v not in truth),
        "precision": paper.precision,
        "f1": paper.f1,
        "skip_reason": paper.skip,
        "replicate": record.replicate,
    }


def answer_fields(
    item: QuestionItem, judgement: AnswerJudgement, model: str
) -> dict[str, Any]:
    """Return the scored answer to one question."""
    return {
        **question_fields(item.question),
        **_reply_fields("response", _question_reply(item)),
        "had_paper_context": item.had_paper,
        "model": model,
        **question_facts(item.question, judgement),
        "rule": judgement.rule,
    }


def unanswered_fields(item: QuestionItem, model: str) -> dict[str, Any]:
    """Return a question without a reply, and its skip reason or error."""
    name = "skip_reason" if item.absent in SKIP_REASONS else "error"
    return {
        **question_fields(item.question),
        "response": None,
        "had_paper_context": item.had_paper,
        "model": model,
        name: item.absent,
    }


def question_fields(question: PaperQuestion) -> dict[str, Any]:
    """Return a question under the field names of its file, without blank fields."""
    fields: dict[str, Any] = {
        "question_id": question.question_id,
        "annotation_id": question.annotation_id,
        "pmcid": question.pmcid,
        "pmid": question.pmid,
        "variant": question.variant,
        "original_sentence": question.original_sentence,
    }
    if question.is_mcq:
        options = zip(LETTERS, question.options or (), strict=False)
        fields["blanked_sentence"] = question.sentence
        fields |= {f"option_{letter}": text for letter, text in options}
        fields["correct_answer"] = question.correct
    else:
        fields |= {
            "gene": question.gene,
            "drug": question.drug,
            "phenotype_category": question.phenotype_category,
            "phenotype": question.phenotype,
            "sentence": question.sentence,
            "expected_answer_p_value": question.expected_p_value,
            "expected_answer_significance": question.expected_significance,
        }
    fields |= {
        "question_type": question.question_type,
        "table_type": question.table_type,
    }
    return {name: value for name, value in fields.items() if value}


def _variant_result(
    paper: GradedPaper, variant: str, variants_by_question: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    responses = []
    for graded_answer in paper.links[variant]:
        item, judgement = graded_answer.item, graded_answer.judgement
        if judgement is None:
            continue
        response = {
            **_answer_fields(item, is_known=not paper.record.fixed_links),
            "parsed": judgement.value,
            "rule": judgement.rule,
            "correct": judgement.right,
            "expected_answer": expected(item.question),
        }
        if len(variants_by_question[item.question.key]) > 1:
            response["shared"] = True
        responses.append(response)
    return {
        "questions_asked": len(responses),
        "questions_correct": sum(response["correct"] for response in responses),
        "question_accuracy": paper.accuracies.get(variant),
        "responses": responses,
    }


def _answer_fields(
    item: QuestionItem, variant: str | None = None, *, is_known: bool
) -> dict[str, Any]:
    """Return a question and its reply; older records lack the question."""
    question = item.question
    return {
        "source_pipeline": question.pipeline,
        "question_id": question.question_id,
        "annotation_id": question.annotation_id,
        "question": question_fields(question) if is_known else None,
        **({} if variant is None else {"variant": variant}),
        **_reply_fields("model_response", _question_reply(item)),
    }


def _question_reply(item: QuestionItem) -> Reply | None:
    """Return the reply to one question: of a batch, the part about it."""
    if item.reply is None or item.batch is None:
        return item.reply
    parts = split_batch(item.reply, len(item.batch.keys))
    part = parts[item.batch.keys.index(item.question.key)]
    return replace(item.reply, text="") if part is None else part


def _reply_fields(name: str, reply: Reply | None) -> dict[str, str | None]:
    """Return a reply's text, and its finish reason, unless it was complete."""
    if reply is None:
        return {name: None}
    if reply.finish_reason == "stop":
        return {name: reply.text}
    return {name: reply.text, "finish_reason": reply.finish_reason}


def _rates(paper: GradedPaper) -> dict[str, float | None]:
    return {
        "question_accuracy": paper.question_accuracy,
        "precision": paper.precision,
        "f1": paper.f1,
    }


def _spelled(variants: Mapping[str, str] | None) -> list[str] | None:
    """Return variants as spelled, sorted by their normalised forms."""
    return None if variants is None else [variants[name] for name in sorted(variants)]


def _recalled(paper: GradedPaper) -> list[str]:
    return [paper.truth[variant] for variant in sorted(paper.recalled)]
