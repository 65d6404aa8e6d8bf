"""The p-value and the significance that a study-parameter reply states."""

from __future__ import annotations

import json

from jobs.json_scan import Object, last_object, wellformed
from jobs.paper_investigation.parsing.values import StudyAnswer, unread
from runner.messages import ParseFailure, Reply

_YES_NO = {True: "yes", False: "no"}


def read_study(reply: Reply) -> StudyAnswer | ParseFailure:
    """The last JSON object that has both fields; a null is read as an empty text."""
    found = last_object(reply.text, _has_both)
    if found is None:
        return unread(reply, "no_object")
    significance = found["significance"]
    if isinstance(significance, bool):
        significance = _YES_NO[significance]
    return StudyAnswer(
        p_value=_text(found["p_value"]).strip(),
        significance=_text(significance).strip().lower(),
        rule="object",
    )


def _has_both(value: Object) -> bool:
    return "p_value" in value and "significance" in value


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):  # a list of several p-values, say: shown as it is
        value = json.dumps(value, ensure_ascii=False)
    return wellformed(value)
