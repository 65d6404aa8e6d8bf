"""What a prompt shows: reviews and papers as blocks between marks.

The wording around them is in `prompts.toml`. What comes from files stands between
marks, the paper's derived from the task.
"""

from __future__ import annotations

from jobs.chat import data_block
from jobs.screening.asking.told import Lines
from jobs.screening.corpus import Text
from jobs.screening.settings import StageName
from runner.messages import TextPart


def review_part(lines: Lines, review: str = "") -> TextPart:
    """What a review asks for; a provider's cache may end after it.

    Args:
        lines: what is told.
        review: its id; empty: hidden.
    """
    shown = (("Id", review), *lines) if review else lines
    return TextPart(text=data_block("review", _listed(shown)), cache=True)


def paper_part(
    stage: StageName, text: Text, body: str, *, seed: str, id_: str
) -> TextPart:
    """One paper, as far as its stage shows it.

    Args:
        stage: what is read.
        text: title, and year if it may be shown.
        body: the full text, for its stage.
        seed: the task's key, from which the marks come.
        id_: the paper's; empty: hidden.
    """
    lines = [("Id", id_)] if id_ else []
    lines.append(("Title", text.title or "(no title)"))
    if text.year is not None:
        lines.append(("Year", str(text.year)))
    if stage == "abstract":
        lines.append(("Abstract", text.abstract or "(no abstract)"))
    shown = _listed(lines)
    if stage == "fulltext":
        # the last field, so that its own line breaks harm nothing
        shown = f"{shown}\nFull text: {body.strip()}"
    return TextPart(text=data_block("paper", shown, seed=seed))


def _listed(lines: Lines | list[tuple[str, str]]) -> str:
    """A field a line: a line break in a file must not add a criterion."""
    return "\n".join(" ".join(f"{label}: {text}".split()) for label, text in lines)
