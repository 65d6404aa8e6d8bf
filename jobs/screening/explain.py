"""Explains records and reviews of a run, a page each: `siftlog explain RUN ITEM...`.

The page of a record shows the paper, the description of the review in the prompts, the
reply of each stage and the outcome. The page of a review lists the papers that each
model missed or wrongly included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from jobs.kit.explain import (
    ItemAnswer,
    Reading,
    pages_text,
    reply_blocks,
    summary_fact,
)
from jobs.kit.metrics.columns import Bools
from jobs.kit.text_format import listed, plural
from jobs.screening.data import (
    UNLABELLED,
    ArticleText,
    ScreeningJudgement,
    ScreeningRecord,
    record_key,
)
from jobs.screening.decisions import (
    CALLS,
    OUTCOMES,
    UNDECIDED,
    DecisionView,
    screened_records,
)
from jobs.screening.explain_selection import (
    ExplainedScreening,
    SelectedRecord,
    description_blocks,
    select,
)
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.negatives_trace import UNTITLED
from jobs.screening.parsing import parse_criteria, parse_screen
from jobs.screening.ranking import RankedReview
from jobs.screening.replies import read_answers
from runner.job import Answer, Answers
from runner.messages import ParseFailure
from store.document import (
    LABEL_WIDTH,
    Block,
    Cell,
    Fact,
    Heading,
    Numbers,
    TableBlock,
    Words,
    number,
)


def describe(dataset: ScreeningDataset, /) -> Iterator[str]:
    """Yield the subjects papers are screened for: question or title of each review."""
    validation_set = dataset.validation_set
    if validation_set is None:
        return
    reviews = (
        (review.criteria.question if review.criteria else "")
        or review.text.title
        or review.id
        for review in validation_set.reviews
    )
    records = plural(len(validation_set.records), "record")
    yield f"{records} screened for: {listed(reviews, most=4)}"


def _answer_blocks(answers: Iterable[Answer], *, imported: bool) -> Iterator[Block]:
    """Yield the blocks of each answer: its task, the reply and the parsed values."""
    for answer in answers:
        task = answer.task
        yield f"  {task.stage:<10} replicate {task.replicate}, task {task.number:,}"
        readings = _reading(answer, imported=imported)
        yield from reply_blocks(answer, readings, is_quoted=not imported)


def _reading(answer: Answer, *, imported: bool) -> Iterator[Reading]:
    """Yield the parsed values, the rule that read them, and any problems."""
    if answer.chat is None:
        return
    is_criteria = answer.task.stage == "criteria"
    match (parse_criteria if is_criteria else parse_screen)(answer.chat):
        case ParseFailure(reason=reason):
            yield "failed", f"could not be read: {reason}"
        case ScreeningJudgement() as judgement:
            p = number(judgement.p_include, 2)
            yield "read", f"{judgement.decision}, p {p}, {judgement.reason_code}"
            yield "rule", judgement.rule
            yield "noticed", ", ".join(judgement.issues)
            if imported:
                yield "reason", judgement.reason
        case _:
            yield "read", "criteria, as shown above"


NO_ABSTRACT = "(no abstract)"


def record_page(
    run: ExplainedScreening, chosen: SelectedRecord, at: int
) -> Iterator[Block]:
    """Yield the page of one record.

    Args:
        run: the run that has it.
        chosen: the record.
        at: its index among all records.
    """
    records = run.records
    paper = records.papers[at]
    key = record_key(chosen.review, paper)
    text = run.paper(paper)
    answers = tuple(run.about_item(key))
    year = "" if text.year is None else f" ({text.year})"
    yield Heading(key, level=1)
    yield _summary(run, at)
    yield Fact("review", run.review_title(chosen.review) or UNTITLED)
    yield abstract_fact(run.review(chosen.review))
    yield Fact("paper", (text.title or UNTITLED) + year)
    yield abstract_fact(text)
    yield Fact("truth", _truth(run, key, at))
    yield from description_blocks(run, chosen.review, answers)
    for model, view in run.views.items():
        yield Heading(model)
        yield _fact("decision", _decision(view, at))
        for replicate_view in run.replicates(model):
            name = f"replicate {replicate_view.decisions.replicate}"
            yield _fact(name, _decision(replicate_view, at), width=13)
        yield _fact("rank", _rank(run, view, chosen.review, at))
        stated = run.about_item(chosen.review)
        model_answers = (a for a in (*stated, *answers) if a.task.model == model)
        yield from _answer_blocks(model_answers, imported=run.answers.imported)


KIND_WORDS = {
    "included": "included",
    "true-excluded": "excluded by the review",
    "near-miss": "near miss, unjudged",
    "random": "not included",
    "unlabelled": None,
}


def _summary(run: ExplainedScreening, at: int) -> Fact:
    """Return the label, and each model's decision."""
    kind = run.records.kinds[run.records.kind[at]]
    answers = []
    for model, view in run.views.items():
        call = int(view.call[at])
        p = float(view.decisions.p[at])
        is_judged = call != UNDECIDED and kind != "unlabelled"
        answers.append(
            ItemAnswer(
                model=model,
                text=f"{OUTCOMES[view.outcome[at]]}, p {number(p, 2)}",
                is_right=call == view.records.label[at] if is_judged else None,
            )
        )
    return summary_fact(KIND_WORDS.get(kind, "not included"), answers)


def _review_summary(run: ExplainedScreening, rows: Sequence[int]) -> Fact:
    """Return how many records are included by label, and by each model."""
    label = run.records.label[rows] == 1
    answers = [
        ItemAnswer(
            model=model,
            text=f"includes {int((view.call[rows] == 1).sum()):,}, "
            f"misses {int((label & (view.call[rows] == 0)).sum()):,}",
        )
        for model, view in run.views.items()
    ]
    kinds = [run.records.kinds[at] for at in run.records.kind[rows].tolist()]
    is_known = set(kinds) != {"unlabelled"}
    truth = f"{int(label.sum()):,} of {len(rows):,} records included"
    return summary_fact(truth if is_known else None, answers)


def _fact(label: str, text: str, width: int = LABEL_WIDTH) -> Fact:
    return Fact(label, text, indent=2, width=width, is_wide=True)


def abstract_fact(text: ArticleText) -> Fact:
    """Return the abstract of a review or paper, for comparison."""
    return Fact("abstract", text.abstract.strip() or NO_ABSTRACT)


def _truth(run: ExplainedScreening, key: str, at: int) -> str:
    """Return the review's decision on the paper, if known."""
    record = run.dataset.find(key)
    kind = run.records.kinds[run.records.kind[at]]
    if kind == "included":
        text = "included"
    elif kind == "near-miss":
        text = f"near miss, unjudged{_relations(record)}"
    elif kind == "true-excluded":
        text = f"excluded by the review{_reason_text(record)}"
    elif kind == "unlabelled":
        text = "not known: the record has no label"
    elif kind == "random":
        text = "random: neither the review nor a related one includes it"
    else:
        text = "not included; the import says no more"
    if record is not None and record.similarity is not None:
        text += f"; topic similarity {record.similarity:.3f}"
    return text


def _relations(record: ScreeningRecord | None) -> str:
    if record is None:
        return ""
    return (
        f": included by {plural(record.n_links, 'related review')}, which share up to "
        f"{plural(record.n_shared, 'paper')} with this one"
    )


def _reason_text(record: ScreeningRecord | None) -> str:
    if record is None:
        return ""
    near = ", also a near miss" if record.also_near_miss else ""
    code = f", {record.reason_code}" if record.reason_code else ""
    reason = f': "{record.reason}"' if record.reason else ""
    return f"{code}{near}{reason}"


def _decision(view: DecisionView, at: int) -> str:
    """Return the decision, the stage that made it, and whether it is correct."""
    decisions, call = view.decisions, int(view.call[at])
    outcome = OUTCOMES[view.outcome[at]]
    if view.outcome[at] != decisions.outcome[at]:
        outcome += f" by the threshold, read as {OUTCOMES[decisions.outcome[at]]}"
    p = None if np.isnan(decisions.p[at]) else float(decisions.p[at])
    stage = (
        f", {decisions.stages[decisions.stage[at]]}" if decisions.stage[at] >= 0 else ""
    )
    code = decisions.reason_code[at] if decisions.reason_code else ""
    code_text = f", {code}" if code else ""
    if call == UNDECIDED:
        return f"{outcome}, p {number(p, 2)}{stage}{code_text}: undecided"
    counts = "" if outcome.startswith(CALLS[call]) else f", counted as {CALLS[call]}"
    if view.records.label[at] == UNLABELLED:
        return f"{outcome}, p {number(p, 2)}{stage}{code_text}{counts}"
    worth = "right" if call == view.records.label[at] else "wrong"
    return f"{outcome}, p {number(p, 2)}{stage}{code_text}{counts}: {worth}"


def _rank(run: ExplainedScreening, view: DecisionView, review: str, at: int) -> str:
    """Return the rank of a record when a person reads in the model's order."""
    ranked = run.ranked(view, review)
    rank = int(np.flatnonzero(ranked.rows == at)[0]) + 1
    hits = int(ranked.label[:rank].sum())
    stand_in = f", by {view.score[at]:g}: it has no p" if view.imputed[at] else ""
    place = f"{rank:,} of {len(ranked.rows):,}{stand_in}"
    if not view.records.is_labelled[ranked.rows].any():
        return place
    return (
        f"{place}; {hits:,} of "
        f"{int(ranked.label.sum()):,} included papers found by there"
    )


MOST_LISTED = 20
"""Maximum number of records in a table; the files of a scoring list all."""

COLUMNS = (
    Words("paper"),
    Numbers("p", decimals=2),
    Numbers("rank"),
    Words("kind"),
    Words("stage"),
    Words("reason"),
    Words("title"),
)


def review_page(run: ExplainedScreening, review: str) -> Iterator[Block]:
    """Yield the page of one review."""
    records = run.records
    review_index = records.reviews.index(review)
    rows = np.flatnonzero(records.review == review_index).tolist()
    kinds = [records.kinds[at] for at in records.kind[rows].tolist()]
    kinds_text = ", ".join(
        f"{kinds.count(kind):,} {kind}" for kind in records.kinds if kind in kinds
    )
    yield Heading(review, level=1)
    yield _review_summary(run, rows)
    yield Fact("review", run.review_title(review) or UNTITLED)
    yield Fact("records", f"{len(rows):,}: {kinds_text}")
    yield from description_blocks(run, review, _of_records(run, review, rows))
    for model, view in run.views.items():
        yield Heading(model)
        yield from _of_model(run, view, run.ranked(view, review))
    yield ""
    if "near-miss" in kinds:
        yield "Near misses are unjudged: a model that includes one may be right."
    first = record_key(review, records.papers[rows[0]])
    hint = f"Name a record for its whole course, such as {first}."
    yield Fact("", hint, width=0, is_cut=True)


def _of_records(
    run: ExplainedScreening, review: str, rows: Sequence[int]
) -> Iterator[Answer]:
    """Yield the answers about the records of a review."""
    keys = {record_key(review, run.records.papers[at]) for at in rows}
    for family in run.answers.families():
        yield from (answer for answer in family if answer.task.key in keys)


def _of_model(
    run: ExplainedScreening, view: DecisionView, ranked: RankedReview
) -> Iterator[Block]:
    outcomes = [OUTCOMES[outcome] for outcome in view.outcome[ranked.rows].tolist()]
    counts = [f"{outcomes.count(name):,} {name}" for name in OUTCOMES]
    counts_text = ", ".join(count for count in counts if not count.startswith("0 "))
    yield Fact("decisions", counts_text, indent=2)
    calls, known = view.call[ranked.rows], view.records.is_labelled[ranked.rows]
    if not known.all():
        first = _positions(~known)
        yield _fact("no label", f"{plural(len(first), 'record')}, in reading order")
        yield from _table(run, view, ranked, first)
    if not known.any():
        return
    positives = plural(int(ranked.label.sum()), "included paper")
    # the lowest rank was excluded with the most certainty
    missed = _positions(ranked.label & (calls == 0))[::-1]
    yield _fact("missed", f"{len(missed):,} of {positives}{_order(missed)}")
    yield from _table(run, view, ranked, missed)
    negative = ~ranked.label & known
    negatives = plural(int(negative.sum()), "negative")
    wrong = _positions(negative & (calls == 1))
    yield _fact("included", f"wrongly {len(wrong):,} of {negatives}{_order(wrong)}")
    yield from _table(run, view, ranked, wrong)


def _positions(chosen: Bools) -> list[int]:
    """Return the indices in a ranked review that are chosen."""
    positions: list[int] = np.flatnonzero(chosen).tolist()
    return positions


def _order(positions: Sequence[int]) -> str:
    return ", the surest first" if len(positions) > 1 else ""


def _table(
    run: ExplainedScreening,
    view: DecisionView,
    ranked: RankedReview,
    positions: Sequence[int],
) -> Iterator[Block]:
    if not positions:
        return
    records, decisions = view.records, view.decisions
    is_staged = len(decisions.stages) > 1
    rows: list[tuple[Cell, ...]] = []
    for position in positions[:MOST_LISTED]:
        at = int(ranked.rows[position])
        paper, kind = records.papers[at], records.kinds[records.kind[at]]
        rows.append(
            (
                paper,
                float(decisions.p[at]),
                position + 1,
                None if records.label[at] == 1 else kind,
                decisions.stages[decisions.stage[at]] if is_staged else None,
                (decisions.reason_code[at] or None) if decisions.reason_code else None,
                run.paper(paper).title or None,
            )
        )
    # empty columns leave their space to the others
    yield TableBlock(COLUMNS, rows, indent=4, total=len(positions)).filled()


def explain(dataset: ScreeningDataset, answers: Answers, items: tuple[str, ...]) -> str:
    """Explain records, or reviews with their errors.

    Args:
        dataset: the inputs.
        answers: answers of a run.
        items: records as `review:paper`, or ids of reviews or papers.

    Raises:
        UsageError: an item is not in the run.
    """
    screened = screened_records(dataset, read_answers(answers))
    chosen = select(items, screened)
    run = ExplainedScreening.about(
        dataset, answers, screened, {selected.review for selected in chosen}
    )
    return pages_text(_page(run, selected) for selected in chosen)


def _page(run: ExplainedScreening, selected: SelectedRecord) -> Iterator[Block]:
    if selected.record is None:
        return review_page(run, selected.review)
    return record_page(run, selected, selected.record)
