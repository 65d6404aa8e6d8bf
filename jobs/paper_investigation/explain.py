"""Explains the score of a paper: truth, lists, questions, verdicts.

`PMC1 rs1 mcq_drug:7 PMC2` selects rs1 and a question of PMC1, and all of PMC2. A task's
key, such as `PMC1/mcq_drug:7`, selects that question. A paper with no words after it is
selected as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jobs.kit.explain import ItemAnswer, pages_text, summary_fact
from jobs.kit.text_format import fixed, listed, plural
from jobs.paper_investigation import plan
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.bench import sentences_of
from jobs.paper_investigation.data import InvestigationDataset, PaperQuestion
from jobs.paper_investigation.grading import GradedPaper, grade, read_extraction_reply
from jobs.paper_investigation.judging import (
    AnswerJudgement,
    RuleChoice,
    ScoringVariant,
    expected,
    judge,
)
from jobs.paper_investigation.parsing import VariantList
from jobs.paper_investigation.prompts import paper_of, question_text
from jobs.paper_investigation.records import QuestionItem, record_of
from jobs.paper_investigation.settings import InvestigationSettings, Rules
from jobs.paper_investigation.variants import ground
from runner.errors import UsageError
from runner.job import Answer, Answers
from runner.messages import ParseFailure
from store.document import Block, Fact, Quote, answer_words


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedPaper:
    """A paper with its data and its graded answers."""

    pmcid: str
    title: str | None
    truth: tuple[str, ...]  #: as spelled
    questions: tuple[PaperQuestion, ...]
    papers: tuple[GradedPaper, ...]  #: one per model and replicate; () before any run


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperSelection:
    """A paper, with the selected variants and questions."""

    pmcid: str
    words: tuple[str, ...]  #: empty: everything


def selections(
    items: Iterable[str], dataset: InvestigationDataset, run: Iterable[str]
) -> tuple[PaperSelection, ...]:
    """Split *items* into papers and words; *run* has papers that only the run has."""
    known_ids = {*(paper.pmcid for paper in dataset.bench), *dataset.questions, *run}
    selected: list[tuple[str, list[str]]] = []
    for item in items:
        pmcid, slash, key = item.partition("/")
        if pmcid in known_ids:
            selected.append((pmcid, [key] if slash and key else []))
        elif selected:
            selected[-1][1].append(item)
        else:
            raise UsageError(
                f"There is no paper {item!r} here: name a paper of the bench first, "
                "then its variants or questions."
            )
    return tuple(
        PaperSelection(pmcid=pmcid, words=tuple(words)) for pmcid, words in selected
    )


def chosen_questions(
    selection: PaperSelection, case: ExplainedPaper, dataset: InvestigationDataset
) -> tuple[PaperQuestion, ...]:
    """Return the questions of *case* that the selection's words name."""
    if not selection.words:
        return case.questions
    keys: set[str] = set()
    for word in selection.words:
        matched_keys = {q.key for q in case.questions if _is_named(word, q, dataset)}
        if not matched_keys and not _is_variant(word, case, dataset):
            raise UsageError(
                f"{case.pmcid} has no variant and no question {word!r}: leave it out "
                "to see all of them."
            )
        keys |= matched_keys
    return tuple(question for question in case.questions if question.key in keys)


def _is_named(
    word: str, question: PaperQuestion, dataset: InvestigationDataset
) -> bool:
    if word.removeprefix("b/") == question.key or word == question.question_id:
        return True
    name = naming.normalize(word, dataset.settings.variant_case)
    return name in plan.question_variants(question, dataset.settings)


def _is_variant(word: str, case: ExplainedPaper, dataset: InvestigationDataset) -> bool:
    name = naming.normalize(word, dataset.settings.variant_case)
    truth = naming.distinct(case.truth, dataset.settings.variant_case)
    return name in truth or any(
        name in (paper.predicted or ()) for paper in case.papers
    )


_IN_TEXT = {True: "in the text", False: "not in the text", None: ""}


def truth_blocks(
    case: ExplainedPaper, dataset: InvestigationDataset
) -> Iterator[Block]:
    """Yield each truth variant with its class, position in the text and questions."""
    settings = dataset.settings
    truth = naming.distinct(case.truth, settings.variant_case)
    groups = plan.links(case.questions, truth, settings)
    grounded = _grounded(case.pmcid, truth, dataset)
    yield (
        f"truth      {len(truth)} variants, {len(case.truth)} as listed "
        f"({settings.variant_case} case, {settings.variant_link} links)"
    )
    width = max((len(spelling) for spelling in truth.values()), default=0)
    for name, spelling in truth.items():
        yield (
            f"  {spelling:<{width}}  {naming.variant_class(name):<11}  "
            f"{len(groups[name]):>2} questions  {_IN_TEXT[grounded.get(name)]}"
        ).rstrip()
    bench = dataset.paper(case.pmcid)
    joined = [group for group in (bench.raw_variants if bench else ()) if group[1:]]
    for group in joined:
        yield f"  annotated together: {', '.join(group)}"


def list_blocks(paper: GradedPaper, dataset: InvestigationDataset) -> Iterator[Block]:
    """Yield the entries that a model listed, their matches, and the result."""
    record = paper.record
    yield f"{record.model}, replicate {record.replicate}"
    yield f"  extraction {_reading(paper)}"
    if record.reply is not None:
        yield Quote(record.reply.text)
    if paper.predicted is None:
        return
    if not (dataset.has_truth or paper.truth):
        yield "  variants"
        grounded = _grounded(record.pmcid, paper.predicted, dataset)
        for name, spelling in paper.predicted.items():
            place = _IN_TEXT[grounded.get(name)]
            yield f"    {spelling}  {naming.variant_class(name)}  {place}".rstrip()
        return
    yield f"  recalled   {len(paper.recalled)} of {len(paper.truth)}"
    for name in paper.recalled:
        predicted_spelling, true_spelling = paper.predicted[name], paper.truth[name]
        yield f"    {true_spelling}: {_match(predicted_spelling, true_spelling)}"
    missed = [
        spelt for name, spelt in paper.truth.items() if name not in paper.recalled
    ]
    yield f"  missed     {', '.join(missed) or 'none'}"
    unexpected = {n: s for n, s in paper.predicted.items() if n not in paper.truth}
    grounded = _grounded(record.pmcid, unexpected, dataset)
    spellings = (
        f"{spelt} ({word})" if (word := _IN_TEXT[grounded.get(name)]) else spelt
        for name, spelt in unexpected.items()
    )
    yield f"  besides    {', '.join(spellings) or 'nothing'}"
    yield (
        f"  recall {fixed(paper.recall)}  precision {fixed(paper.precision)}  "
        f"F1 {fixed(paper.f1)}  question accuracy "
        f"{fixed(paper.question_accuracy)}  paper score {fixed(paper.score)}"
        f"{f'  skipped: {paper.skip}' if paper.skip else ''}"
    )


def _reading(paper: GradedPaper) -> str:
    task = f"(task {paper.record.task})"
    if isinstance(paper.parsed_list, VariantList):
        entries, dropped = len(paper.parsed_list.entries), paper.parsed_list.dropped
        return (
            f"{entries} entries, {dropped} dropped, rule "
            f"{paper.parsed_list.rule} {task}"
        )
    if isinstance(paper.parsed_list, ParseFailure):
        return f"could not be read: {paper.parsed_list.reason} {task}"
    return f"no reply: {paper.record.absent} {task}"


def _match(predicted_spelling: str, true_spelling: str) -> str:
    """Describe the match of two spellings: the first rule that suffices."""
    if predicted_spelling == true_spelling:
        return "as spelt"
    rule = (
        "letter case"
        if predicted_spelling.casefold() == true_spelling.casefold()
        else "folded signs"
    )
    return f"by {rule}, from {predicted_spelling!r}"


def _grounded(
    pmcid: str, names: Mapping[str, str] | Iterable[str], dataset: InvestigationDataset
) -> dict[str, bool | None]:
    if pmcid not in dataset.papers:
        return {}
    return ground(dataset.papers.text(pmcid), names)


BOTH: tuple[Rules, ...] = ("robust", "clinpgx-qa")


def question_blocks(
    question: PaperQuestion, case: ExplainedPaper, dataset: InvestigationDataset
) -> Iterator[Block]:
    """Yield the question in the prompt, then each model's reply and its verdict."""
    settings = dataset.settings
    kind = question.question_type or "of no stated type"
    yield f"{question.key}  {kind}  variant: {question.variant}"
    for sentence in sentences_of(dataset, question):
        yield f"  source     {sentence}"
    yield "  prompt"
    if question.options or question.sentence or question.drug:
        yield Quote(question_text(dataset, question))
    else:
        yield "      (the imported file does not hold it)"
    yield f"  expected   {answer_words(expected(question))}"
    for paper in case.papers:
        for item in paper.record.items:
            if item.question.key == question.key:
                yield from _answer_blocks(item, paper, settings)


def _answer_blocks(
    item: QuestionItem, paper: GradedPaper, settings: InvestigationSettings
) -> Iterator[Block]:
    record = paper.record
    yield f"  {record.model}, replicate {record.replicate}"
    if item.task is None:
        yield "    not sent: no variant that it names was recalled"
        return
    task = f"task {item.task}"
    if item.batch:
        task += f", one of {len(item.batch.keys)} questions"
    if item.reply is None:
        yield f"    no reply: {item.absent} ({task})"
        return
    yield f"    reply ({task}, ended: {item.reply.finish_reason})"
    yield Quote(item.reply.text)
    uses = paper.variants_by_question.get(item.question.key, [])
    if record.mode == "investigate":
        counts = ", ".join(paper.truth[name] for name in uses) or "no recalled variant"
        yield f"    counts for {counts}"
    for rules in BOTH:
        choice = RuleChoice(
            lists=rules, letters=rules, p_values=rules, tolerance=settings.p_tolerance
        )
        judgement = judge(item, choice)
        if judgement is not None:
            yield f"    {rules:<10} {_verdict(judgement)}"


def _verdict(judgement: AnswerJudgement) -> str:
    worth = "right" if judgement.right else "wrong"
    if judgement.failed:
        return f"{worth}: could not be read, {judgement.rule}"
    detail = ""
    if judgement.p_value is not None and not judgement.right:
        off = [
            name
            for name, fits in (
                ("p-value", judgement.p_value_right),
                ("significance", judgement.significance_right),
            )
            if not fits
        ]
        detail = f" ({' and '.join(off)} off)"
    read = answer_words(judgement.value)
    return f"{worth}{detail}: read {read} by rule {judgement.rule}"


def explain(
    dataset: InvestigationDataset,
    answers: Answers | None,
    items: tuple[str, ...],
) -> str:
    """Explain papers, or some of their variants and questions.

    Args:
        dataset: the inputs.
        answers: answers of a run; None before any run.
        items: ids of papers, each followed by any of its variants or questions.

    Raises:
        UsageError: an item is not in the data or the run.
    """
    families = () if answers is None else answers.families()
    marked = _marked(dataset, families, items)
    return pages_text(
        _page(selection, _case(dataset, selection, marked), dataset)
        for selection in selections(items, dataset, marked)
    )


def _marked(
    dataset: InvestigationDataset,
    families: Iterable[tuple[Answer, ...]],
    items: tuple[str, ...],
) -> dict[str, tuple[GradedPaper, ...]]:
    """Return the graded answers about the named papers; other families are skipped."""
    pmcids = {paper_of(item) for item in items}
    lens = ScoringVariant.of(dataset.settings)
    graded: dict[str, tuple[GradedPaper, ...]] = {}
    for family in families:
        pmcid = paper_of(family[0].task.key)
        if pmcid in pmcids:
            paper = grade(
                read_extraction_reply(record_of(dataset, family), lens.rules), lens
            )
            graded[pmcid] = (*graded.get(pmcid, ()), paper)
    return graded


def _case(
    dataset: InvestigationDataset,
    selection: PaperSelection,
    marked: dict[str, tuple[GradedPaper, ...]],
) -> ExplainedPaper:
    pmcid = selection.pmcid
    papers = marked.get(pmcid, ())
    bench = dataset.paper(pmcid)
    records = [paper.record for paper in papers]
    stored = {
        item.question.key: item.question for record in records for item in record.items
    }
    truth = bench.variants if bench else next((r.truth for r in records), ())
    titles = (bench.title if bench else None, dataset.papers.title(pmcid))
    return ExplainedPaper(
        pmcid=pmcid,
        title=next(filter(None, (*titles, *(r.title for r in records))), None),
        truth=truth,
        questions=dataset.questions.get(pmcid) or tuple(stored.values()),
        papers=papers,
    )


def _paper_summary(case: ExplainedPaper, dataset: InvestigationDataset) -> Fact:
    """Return the size of the truth, and each model's recall and answers."""
    variants = len(naming.distinct(case.truth, dataset.settings.variant_case))
    has_truth = dataset.has_truth or bool(case.truth)
    answers = [
        ItemAnswer(
            model=_name(paper, case), text=_paper_answer(paper, has_truth=has_truth)
        )
        for paper in case.papers
    ]
    n = len(case.questions)
    truth = f"{plural(variants, 'variant')}, {plural(n, 'question')}"
    return summary_fact(truth if has_truth else None, answers)


def _paper_answer(paper: GradedPaper, *, has_truth: bool) -> str:
    if not has_truth:
        return plural(len(paper.predicted or ()), "variant")
    if paper.skip:
        return f"skipped, {paper.skip}"
    accuracy = f"question accuracy {fixed(paper.question_accuracy)}"
    if paper.record.mode == "questions":
        return accuracy
    if paper.predicted is None:
        return "no variants"
    return f"recalled {len(paper.recalled)} of {len(paper.truth)}, {accuracy}"


def _question_summary(
    question: PaperQuestion, case: ExplainedPaper, dataset: InvestigationDataset
) -> Fact:
    """Return the expected answer, and each model's under the run's rules."""
    answers = []
    for paper in case.papers:
        for item in paper.record.items:
            if item.question.key == question.key:
                judgement = judge(item, RuleChoice.of(dataset.settings))
                answers.append(
                    ItemAnswer(
                        model=_name(paper, case),
                        text=answer_words(judgement.value if judgement else "")
                        or "no answer",
                        is_right=None if judgement is None else judgement.right,
                    )
                )
    return summary_fact(answer_words(expected(question)) or None, answers)


def _name(paper: GradedPaper, case: ExplainedPaper) -> str:
    """Return a model's name, with the replicate if there are several."""
    record = paper.record
    has_others = any(other.record.replicate > 1 for other in case.papers)
    return f"{record.model} ({record.replicate})" if has_others else record.model


def _page(
    selection: PaperSelection, case: ExplainedPaper, dataset: InvestigationDataset
) -> Iterator[Block]:
    questions = chosen_questions(selection, case, dataset)
    yield f"{case.pmcid}  {case.title or '(no title)'}"
    if len(questions) == 1 and selection.words:
        yield _question_summary(questions[0], case, dataset)
    else:
        yield _paper_summary(case, dataset)
    if dataset.has_truth or case.truth:
        yield from truth_blocks(case, dataset)
    elif case.pmcid in dataset.papers:
        yield f"text       {len(dataset.papers.text(case.pmcid)):,} characters"
    for paper in case.papers:
        if paper.record.mode != "questions":
            yield ""
            yield from list_blocks(paper, dataset)
    if not questions and (dataset.has_truth or case.truth):
        yield ""
        yield "no question matches the item"
    for question in questions:
        yield ""
        yield from question_blocks(question, case, dataset)


def describe(dataset: InvestigationDataset, /) -> Iterator[str]:
    """Yield the subjects of the papers: variants, and kinds of questions."""
    n = len(dataset.bench) or len(dataset.questions)
    if n and dataset.settings.mode != "questions":
        yield f"Which genetic variants does each of {plural(n, 'paper')} study?"
    pipelines = Counter(
        question.pipeline for of in dataset.questions.values() for question in of
    )
    if pipelines and dataset.settings.mode != "extract":
        kinds = (f"{name} ({n:,})" for name, n in pipelines.items())
        yield f"Questions about the variants, by kind: {listed(kinds)}"
