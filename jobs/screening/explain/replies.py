"""What each stage was answered about a record, as it was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jobs.screening.judgement import Judgement
from jobs.screening.parsing.criteria import parse_criteria
from jobs.screening.parsing.screen import parse_screen
from jobs.text import hanging_lines, number, one_line, quoted_lines
from runner.job import Answer
from runner.messages import ParseFailure


def reply_lines(answers: Iterable[Answer], *, imported: bool) -> Iterator[str]:
    """Each answer: its task, the reply itself, and what was read from it.

    Args:
        answers: in the order of the log.
        imported: they were made elsewhere, so that there are no words to quote.
    """
    for answer in answers:
        task = answer.task
        yield f"  {task.stage:<10} replicate {task.replicate}, task {task.number:,}"
        if answer.chat is not None and not imported:
            yield from quoted_lines(answer.chat.text)
            if answer.chat.finish_reason != "stop":
                yield f"    ended    {one_line(answer.chat.finish_reason)}"
        for label, line in _reading(answer, imported=imported):
            yield from hanging_lines(f"    {label:<8} ", line)


def _reading(answer: Answer, *, imported: bool) -> Iterator[tuple[str, str]]:
    """What was read, by which rule, and what was off; or why there is nothing."""
    if answer.skip is not None:
        yield "skipped", one_line(answer.skip)
    elif answer.error is not None:
        yield "error", one_line(answer.error)
    elif answer.chat is None:
        yield "open", "not answered yet"
    else:
        is_criteria = answer.task.stage == "criteria"
        match (parse_criteria if is_criteria else parse_screen)(answer.chat):
            case ParseFailure(reason=reason):
                yield "failed", f"could not be read: {reason}"
            case Judgement() as said:
                p = number(said.p_include, 2)
                yield "read", f"{said.decision}, p {p}, {said.reason_code}"
                yield "rule", said.rule
                if said.noticed:
                    yield "noticed", ", ".join(said.noticed)
                if said.reason and imported:
                    yield "reason", one_line(said.reason)
            case _:
                yield "read", "criteria, as told above"
