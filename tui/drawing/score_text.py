"""What the scorings of a run say of one task, as a text."""

from __future__ import annotations

from collections.abc import Iterator

from store.views import StoredVerdict
from tui.sources.task_detail import Scored, TaskDetail

_CODE = 8
"""Characters of a hash that tell one scorer's code from another's."""
_WORDS = {True: "right", False: "wrong", None: "not judged"}


def score_text(detail: TaskDetail) -> str:
    """The latest scoring's verdicts on a task, and the older ones' below."""
    if not detail.scored:
        return "The run has not been scored: siftlog score does."
    lines: list[str] = []
    for number, scored in enumerate(detail.scored):
        if number == 1:
            lines += ["Older scorings", ""]
        lines += _scoring(scored)
    left = detail.scorings - len(detail.scored)
    return "\n".join([*lines, *([f"and {left:,} older ones"] if left else [])])


def _scoring(scored: Scored) -> Iterator[str]:
    yield (
        f"Scoring {scored.number} · {scored.scorer} · code {scored.code[:_CODE]} · "
        f"the log up to event {scored.seq:,}"
    )
    if scored.verdicts is None:
        yield "  Its verdicts are gone: siftlog score makes new ones."
    elif not scored.verdicts:
        yield "  It has no verdict on this task."
    else:
        for verdict in scored.verdicts:
            yield from _verdict(verdict)
    yield ""


def _verdict(verdict: StoredVerdict) -> Iterator[str]:
    yield f"  {_WORDS[verdict.correct]}"
    yield f"    value      {verdict.value}"
    yield f"    reference  {verdict.expected}"
    yield f"    rule       {verdict.rule}"
