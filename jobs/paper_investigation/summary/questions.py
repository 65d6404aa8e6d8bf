"""The summary texts of stand-alone questions: one for each pipeline of a model.

Both profiles print the form of recorded summaries. Examples are a draw by seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobs.paper_investigation.marking.judging import Judgement
from jobs.paper_investigation.questions import LETTERS
from jobs.paper_investigation.record import Item
from jobs.paper_investigation.settings import Pipeline
from jobs.paper_investigation.summary.numbers import percent
from jobs.paper_investigation.summary.variants import DOUBLE, SINGLE
from jobs.paper_investigation.tallies.agreement import question_facts
from jobs.paper_investigation.tallies.breakdown import Group, TypeOf
from jobs.paper_investigation.tallies.tally import Answered, Tally
from store.printable import printable

SENTENCE_CHARS = 120
SHOWN_CHARS = 500

_STUDY_LINE = f"  {'-' * 25} {'-' * 10} {'-' * 10} {'-' * 10} {'-' * 8}"


def questions_text(model: str, tally: Tally, pipeline: Pipeline, results: str) -> str:
    """The text of `{slug}_{pipeline}_summary.txt`.

    Args:
        model: whose answers these are.
        tally: of the model in one replicate.
        pipeline: which questions.
        results: name of the file with the scored answers.
    """
    body = _study if pipeline == "study_param" else _mcq
    lines = [
        "",
        *body(model, tally, pipeline),
        *_examples("CORRECT", tally.examples(pipeline, is_right=True)),
        *_examples("INCORRECT", tally.examples(pipeline, is_right=False)),
        f"Eval results saved to {results}",
        "",
    ]
    return "\n".join(lines)


def _mcq(model: str, tally: Tally, pipeline: Pipeline) -> Iterator[str]:
    group = tally.breakdown.pipelines[pipeline]
    title = pipeline.replace("_", " ").title()
    yield from _head(f"{title} Results  |  model={model}  |  {_share(group)}")
    yield "By question_type:"
    yield from _by_type(tally, pipeline, "question_type", 25)
    yield "By table_type:"
    yield from _by_type(tally, pipeline, "table_type", 20)
    yield from _failures("Parse failures", group)


def _study(model: str, tally: Tally, pipeline: Pipeline) -> Iterator[str]:
    group, fields = tally.breakdown.pipelines[pipeline], tally.study.all
    yield from _head(f"Study Param Results  |  model={model}  |  both: {_share(group)}")
    yield "By field:"
    yield from _table(
        "Field",
        20,
        (
            ("p_value", fields.p_value, fields.answered),
            ("significance", fields.significance, fields.answered),
            ("both", fields.both, fields.answered),
        ),
    )
    yield "By question_type:"
    yield (f"  {'Type':<25} {'P-value':>10} {'Signif.':>10} {'Both':>10} {'Total':>8}")
    yield _STUDY_LINE
    for name, own in sorted(tally.study.types.items()):
        rates = "".join(
            f" {percent(right, own.answered):>9}"
            for right in (own.p_value, own.significance, own.both)
        )
        yield f"  {name:<25}{rates} {own.answered:>8}"
    yield ""
    yield "By table_type:"
    yield from _by_type(tally, pipeline, "table_type", 20)
    yield from _failures("JSON parse failures", group)


def _head(title: str) -> Iterator[str]:
    yield DOUBLE
    yield title
    yield DOUBLE
    yield ""


def _share(group: Group) -> str:
    right, answered = group.right, group.answered
    return f"{right}/{answered} ({percent(right, answered)})"


def _by_type(
    tally: Tally, pipeline: Pipeline, kind: TypeOf, width: int
) -> Iterator[str]:
    groups = tally.breakdown.types[kind][pipeline]
    rows = ((name, own.right, own.answered) for name, own in sorted(groups.items()))
    yield from _table("Type", width, rows)


def _table(
    label: str, width: int, rows: Iterable[tuple[str, int, int]]
) -> Iterator[str]:
    yield f"  {label:<{width}} {'Correct':>8} {'Total':>8} {'Accuracy':>10}"
    yield f"  {'-' * width} {'-' * 8} {'-' * 8} {'-' * 10}"
    for name, right, answered in rows:
        share = percent(right, answered)
        yield f"  {name:<{width}} {right:>8} {answered:>8} {share:>9}"
    yield ""


def _failures(label: str, group: Group) -> Iterator[str]:
    if group.unparsed:
        share = percent(group.unparsed, group.answered)
        yield f"  {label}: {group.unparsed}/{group.answered} ({share})"
        yield ""


def _examples(word: str, examples: list[Answered]) -> Iterator[str]:
    yield SINGLE
    yield f"Example {word} answers ({len(examples)} randomly chosen)"
    yield SINGLE
    yield ""
    for place, (item, judgement) in enumerate(examples, start=1):
        question = item.question
        yield (
            f"  [{place}] type={question.question_type}  table={question.table_type}"
            f"  pmcid={question.pmcid}"
        )
        show = _mcq_example if question.is_mcq else _study_example
        yield from show(item, judgement)
        yield ""


def _mcq_example(item: Item, judgement: Judgement) -> Iterator[str]:
    question = item.question
    options = zip(LETTERS, question.options or (), strict=False)
    yield f"  Sentence: {_line(question.sentence, SENTENCE_CHARS)}"
    yield "  Options: " + "  ".join(f"{a}) {_line(text)}" for a, text in options)
    yield f"  Expected: {question.correct}  Got: {judgement.value}"


def _study_example(item: Item, judgement: Judgement) -> Iterator[str]:
    question, facts = item.question, question_facts(item.question, judgement)
    yield f"  Expected p_value:      {question.expected_p_value}"
    yield f"  Response p_value:      {_line(str(facts['response_p_value']))}"
    yield f"  Expected significance: {question.expected_significance}"
    yield f"  Response significance: {_line(str(facts['response_significance']))}"
    yield f"  Raw response: {_line(item.reply.text if item.reply else '')}"


def _line(text: str, chars: int = SHOWN_CHARS) -> str:
    return printable(" ".join(text.split()), line=chars)
