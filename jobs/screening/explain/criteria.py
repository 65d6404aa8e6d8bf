"""What the models were told of a review, and where that came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobs.screening.asking.told import Source, Told, told
from jobs.screening.explain.run import Run
from jobs.text import one_line, quoted_lines
from runner.job import Answer, Task

SOURCES: Mapping[Source, str] = {
    "llm": "criteria that a model stated",
    "file": "the file of criteria",
    "sections": "sections of the review's abstract",
    "title": "the review's title alone",
}


def told_lines(run: Run, review: str, answers: Iterable[Answer]) -> Iterator[str]:
    """What stood in the prompts of *answers*, once where it was the same in all.

    Args:
        run: whose settings and texts count.
        review: its id.
        answers: those of its records that are shown; an import has no prompts.
    """
    if run.answers.imported:
        yield "told       not known: the decisions were made elsewhere"
        return
    by_text: dict[Told, list[str]] = {}
    for answer in answers:
        own = told(
            run.dataset.settings, run.dataset.review(review), answer.task.context
        )
        by_text.setdefault(own, []).append(_whom(answer.task))
    for own, whom in by_text.items():
        heard = f" ({', '.join(dict.fromkeys(whom))})" if len(by_text) > 1 else ""
        yield f"told       from {SOURCES[own.source]}{heard}"
        for label, text in own.lines:
            yield from quoted_lines(f"{label}: {one_line(text)}")


def _whom(task: Task) -> str:
    """Which model, and which time."""
    return f"{one_line(task.model)}, replicate {task.replicate}"
