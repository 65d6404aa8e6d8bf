"""The variants of a page: the truth, and what a model made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobs.paper_investigation import linking
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.dataset import Dataset
from jobs.paper_investigation.explain.selection import Case
from jobs.paper_investigation.grounding import ground
from jobs.paper_investigation.marking.paper import MarkedPaper
from jobs.paper_investigation.parsing import VariantList
from jobs.quoted import quoted
from runner.messages import ParseFailure

_IN_TEXT = {True: "in the text", False: "not in the text", None: ""}


def truth_lines(case: Case, dataset: Dataset) -> Iterator[str]:
    """Each truth variant with its class, its place in the text, its questions."""
    settings = dataset.settings
    truth = naming.distinct(case.truth, settings.variant_case)
    groups = linking.links(case.questions, truth, settings)
    stands = _grounded(case.pmcid, truth, dataset)
    yield (
        f"truth      {len(truth)} variants, {len(case.truth)} as listed "
        f"({settings.variant_case} case, {settings.variant_link} links)"
    )
    width = max((len(spelling) for spelling in truth.values()), default=0)
    for name, spelling in truth.items():
        yield (
            f"  {spelling:<{width}}  {naming.variant_class(name):<11}  "
            f"{len(groups[name]):>2} questions  {_IN_TEXT[stands.get(name)]}"
        ).rstrip()
    bench = dataset.paper(case.pmcid)
    joined = [group for group in (bench.raw_variants if bench else ()) if group[1:]]
    for group in joined:
        yield f"  annotated together: {', '.join(group)}"


def list_lines(paper: MarkedPaper, dataset: Dataset) -> Iterator[str]:
    """What a model listed, how each entry matched, and what came of it."""
    record = paper.record
    yield f"{record.model}, replicate {record.replicate}"
    yield f"  extraction {_reading(paper)}"
    if record.reply is not None:
        yield from quoted(record.reply.text)
    if paper.predicted is None:
        return
    yield f"  recalled   {len(paper.recalled)} of {len(paper.truth)}"
    for name in paper.recalled:
        theirs, ours = paper.predicted[name], paper.truth[name]
        yield f"    {ours}: {_match(theirs, ours)}"
    missed = [
        spelt for name, spelt in paper.truth.items() if name not in paper.recalled
    ]
    yield f"  missed     {', '.join(missed) or 'none'}"
    besides = {n: s for n, s in paper.predicted.items() if n not in paper.truth}
    stands = _grounded(record.pmcid, besides, dataset)
    named = (
        f"{spelt} ({word})" if (word := _IN_TEXT[stands.get(name)]) else spelt
        for name, spelt in besides.items()
    )
    yield f"  besides    {', '.join(named) or 'nothing'}"
    yield (
        f"  recall {_number(paper.recall)}  precision {_number(paper.precision)}  "
        f"F1 {_number(paper.f1)}  question accuracy "
        f"{_number(paper.question_accuracy)}  paper score {_number(paper.score)}"
        f"{f'  skipped: {paper.skip}' if paper.skip else ''}"
    )


def _reading(paper: MarkedPaper) -> str:
    task = f"(task {paper.record.task})"
    if isinstance(paper.listed, VariantList):
        entries, dropped = len(paper.listed.entries), paper.listed.dropped
        return f"{entries} entries, {dropped} dropped, rule {paper.listed.rule} {task}"
    if isinstance(paper.listed, ParseFailure):
        return f"could not be read: {paper.listed.reason} {task}"
    return f"no reply: {paper.record.absent} {task}"


def _match(theirs: str, ours: str) -> str:
    """How a predicted spelling met the truth's: the first rule that suffices."""
    if theirs == ours:
        return "as spelt"
    how = "letter case" if theirs.casefold() == ours.casefold() else "folded signs"
    return f"by {how}, from {theirs!r}"


def _grounded(
    pmcid: str, names: Mapping[str, str] | Iterable[str], dataset: Dataset
) -> dict[str, bool | None]:
    if pmcid not in dataset.papers:
        return {}
    return ground(dataset.papers.text(pmcid), names)


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
