"""What a bench or question file names and the imported files lack.

It becomes tasks that were skipped, so that it stays in the counts: a file that leaves
out the papers on which a model failed would otherwise make the model look better.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from jobs.counted import counted
from jobs.paper_investigation.dataset import BenchPaper
from jobs.paper_investigation.importing.context import StoredPaper, encode
from jobs.paper_investigation.load import load
from jobs.paper_investigation.record import Mode
from jobs.paper_investigation.settings import Settings
from runner.job import ImportedAnswer, TaskSpec

NOT_IN_FILE = "not_in_file"
"""Why a paper or question was skipped that no imported file answers."""

NO_TEXT = "no_paper_text"
"""Why a paper was skipped that has no text, in runs of the job too."""

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
        every = chain.from_iterable(load(settings).questions.values())
        keys = [f"{question.pmcid}/{question.key}" for question in every]
        yield from _skipped(answered, "question", dict.fromkeys(keys), set())
        return
    if settings.bench is None:
        return
    dataset = load(settings)
    contexts = {
        paper.pmcid: encode(_stored(paper, mode)) if in_full else None
        for paper in dataset.bench
    }
    textless = (
        {pmcid for pmcid in contexts if pmcid not in dataset.papers}
        if settings.papers is not None
        else set[str]()
    )
    yield from _skipped(answered, "extract", contexts, textless)


def _skipped(
    answered: Answered,
    stage: str,
    contexts: Mapping[str, str | None],
    textless: Container[str],
) -> Iterator[ImportedAnswer]:
    """The tasks that are absent, with the *contexts* of all tasks by key.

    Papers that are known to be *textless* could not be asked about; a run of the job
    skips them for that reason.
    """
    noun = "paper" if stage == "extract" else "question"
    for (model, replicate), own in answered.keys.items():
        lacking = [key for key in contexts if key not in own]
        told = [key for key in lacking if key not in textless]
        more = "" if len(told) <= SHOWN else ", ..."
        note = (
            f"{model}: the files lack {counted(len(told), noun)} of "
            f"{len(contexts):,} ({', '.join(told[:SHOWN])}{more}); counted as "
            f"skipped, {NOT_IN_FILE}."
        )
        for key in lacking:
            yield ImportedAnswer(
                spec=TaskSpec(
                    stage=stage,
                    key=key,
                    skip=NO_TEXT if key in textless else NOT_IN_FILE,
                    context=contexts[key],
                ),
                model=model,
                replicate=replicate,
                notes=(note,) if told else (),
            )


def _stored(paper: BenchPaper, mode: Mode) -> StoredPaper:
    return StoredPaper(mode=mode, truth=paper.variants, title=paper.title)
