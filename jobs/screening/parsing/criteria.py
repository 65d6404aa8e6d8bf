"""What a reply says that a review asks for."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.replies import last_object, wellformed
from jobs.screening.corpus import Criteria, Ids
from jobs.screening.inputs.criteria import PICO
from runner.job import guarded
from runner.messages import ParseFailure, Reply

_FIELDS = frozenset({"question", "pico", "inclusion", "exclusion"})


@guarded
def parse_criteria(reply: Reply) -> Criteria | ParseFailure:
    """The criteria in a reply: the last object that has any of the fields.

    A field of another form than asked for counts as empty, and one text where a list is
    expected as a list of one. Failures: `empty`, `refusal`, `truncated`, `no_criteria`.
    """
    if reply.is_refused:
        return ParseFailure(reason="refusal")
    if not reply.text.strip():
        return ParseFailure(reason="truncated" if reply.is_truncated else "empty")
    found = last_object(reply.text, lambda value: not _FIELDS.isdisjoint(value)) or {}
    pico = found.get("pico")
    said = pico if isinstance(pico, dict) else {}
    criteria = Criteria(
        question=_text(found.get("question")),
        pico={name: text for name in PICO if (text := _text(said.get(name)))},
        inclusion=_listed(found.get("inclusion")),
        exclusion=_listed(found.get("exclusion")),
    )
    if criteria.is_empty:
        reason = "truncated" if reply.is_truncated else "no_criteria"
        return ParseFailure(reason=reason, detail="no question, pico or list of texts")
    return criteria


def _text(value: object) -> str:
    return wellformed(" ".join(value.split())) if isinstance(value, str) else ""


def _listed(value: object) -> Ids:
    return tuple(_texts(value if isinstance(value, list) else [value]))


def _texts(values: list[object]) -> Iterator[str]:
    yield from filter(None, map(_text, values))
