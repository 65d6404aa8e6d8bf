"""The page: each paper's truth, what each model listed, then question by question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobs.paper_investigation.dataset import Dataset
from jobs.paper_investigation.explain.answers import question_lines
from jobs.paper_investigation.explain.lists import list_lines, truth_lines
from jobs.paper_investigation.explain.selection import (
    Case,
    Selection,
    chosen,
    selections,
)
from jobs.paper_investigation.marking.families import record_of
from jobs.paper_investigation.marking.lenses import Lens
from jobs.paper_investigation.marking.paper import MarkedPaper, mark, read
from jobs.paper_investigation.request import paper_of
from runner.job import Answer, Answers


def explain(
    dataset: Dataset,
    answers: Answers | None,
    items: tuple[str, ...],
) -> str:
    """Explain papers, or some of their variants and questions.

    Args:
        dataset: the inputs.
        answers: those of a run; None before any.
        items: a paper's id, then variants or questions of it; any number of times.

    Raises:
        UsageError: an item names nothing in the data or the run.
    """
    families = () if answers is None else answers.families()
    marked = _marked(dataset, families, items)
    pages = (
        "\n".join(_lines(selection, _case(dataset, selection, marked), dataset))
        for selection in selections(items, dataset, marked)
    )
    return "\n\n".join(pages) + "\n"


def _marked(
    dataset: Dataset, families: Iterable[tuple[Answer, ...]], items: tuple[str, ...]
) -> dict[str, tuple[MarkedPaper, ...]]:
    """The run's view of the named papers; the other families are passed over."""
    wanted = {paper_of(item) for item in items}
    lens = Lens.of(dataset.settings)
    found: dict[str, tuple[MarkedPaper, ...]] = {}
    for family in families:
        pmcid = paper_of(family[0].task.key)
        if pmcid in wanted:
            paper = mark(read(record_of(dataset, family), lens.rules), lens)
            found[pmcid] = (*found.get(pmcid, ()), paper)
    return found


def _case(
    dataset: Dataset,
    selection: Selection,
    marked: dict[str, tuple[MarkedPaper, ...]],
) -> Case:
    pmcid = selection.pmcid
    papers = marked.get(pmcid, ())
    bench = dataset.paper(pmcid)
    records = [paper.record for paper in papers]
    stored = {
        item.question.key: item.question for record in records for item in record.items
    }
    listed = bench.variants if bench else next((r.truth for r in records), ())
    titles = (bench.title if bench else None, dataset.papers.title(pmcid))
    return Case(
        pmcid=pmcid,
        title=next(filter(None, (*titles, *(r.title for r in records))), None),
        truth=listed,
        questions=dataset.questions.get(pmcid) or tuple(stored.values()),
        papers=papers,
    )


def _lines(selection: Selection, case: Case, dataset: Dataset) -> Iterator[str]:
    questions = chosen(selection, case, dataset)
    yield f"{case.pmcid}  {case.title or '(no title)'}"
    yield from truth_lines(case, dataset)
    for paper in case.papers:
        if paper.record.mode != "questions":
            yield ""
            yield from list_lines(paper, dataset)
    if not questions:
        yield ""
        yield "no question names what was asked for"
    for question in questions:
        yield ""
        yield from question_lines(question, case, dataset)
