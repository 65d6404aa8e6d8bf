"""What a bench or question file names and the imported files lack.

It becomes tasks that were skipped, so that it stays in the counts: a file that leaves
out the papers on which a model failed would otherwise make the model look better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from jobs.counted import counted
from jobs.paper_investigation.dataset import BenchPaper
from jobs.paper_investigation.importing.context import StoredPaper, encode
from jobs.paper_investigation.load import load
from jobs.paper_investigation.record import Mode
from jobs.paper_investigation.settings import Settings
from runner.job import ImportedAnswer
from runner.task import TaskSpec

NOT_IN_FILE = "not_in_file"
"""Why a paper or question was skipped that no imported file answers."""

SHOWN = 3
"""Papers that the note at import names."""


@dataclass(slots=True, kw_only=True)
class Answered:
    """What files answer: papers, and questions that were asked alone."""

    keys: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    """By model and replicate."""

    def add(self, answer: ImportedAnswer) -> None:
        """Take in an answer."""
        if not answer.descends:
            own = self.keys.setdefault((answer.model, answer.replicate), set())
            own.add(answer.spec.key)


def absent(
    answered: Answered, settings: Settings, mode: Mode, *, in_full: bool
) -> Iterator[ImportedAnswer]:
    """A skipped task for each paper or question that a model's files lack.

    Args:
        answered: by the files.
        settings: of the run; they name the bench and the questions.
        mode: of the files.
        in_full: whether tasks carry their truth, as those of files do that hold it;
            otherwise they are the tasks that a run of the job would plan.

    Raises:
        DatasetError: the bench is off.
    """
    if settings.mode == "questions" and not in_full:
        dataset = load(settings)
        every = chain.from_iterable(dataset.questions.values())
        keys = [f"{question.pmcid}/{question.key}" for question in every]
        yield from _skipped(answered, "question", keys, lambda _: None)
        return
    if settings.bench is None:
        return
    papers = {paper.pmcid: paper for paper in load(settings).bench}

    def context(pmcid: str) -> str | None:
        return encode(_stored(papers[pmcid], mode)) if in_full else None

    yield from _skipped(answered, "extract", papers, context)


def _skipped(
    answered: Answered,
    stage: str,
    keys: Iterable[str],
    context: Callable[[str], str | None],
) -> Iterator[ImportedAnswer]:
    every = list(keys)
    noun = "paper" if stage == "extract" else "question"
    for (model, replicate), own in answered.keys.items():
        lacking = [key for key in every if key not in own]
        more = "" if len(lacking) <= SHOWN else ", ..."
        note = (
            f"{model}: the files lack {counted(len(lacking), noun)} of {len(every):,} "
            f"({', '.join(lacking[:SHOWN])}{more}); counted as skipped, {NOT_IN_FILE}."
        )
        for key in lacking:
            yield ImportedAnswer(
                spec=TaskSpec(
                    stage=stage, key=key, skip=NOT_IN_FILE, context=context(key)
                ),
                model=model,
                replicate=replicate,
                notes=(note,),
            )


def _stored(paper: BenchPaper, mode: Mode) -> StoredPaper:
    return StoredPaper(mode=mode, truth=paper.variants, title=paper.title)
