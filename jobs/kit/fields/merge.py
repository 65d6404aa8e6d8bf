"""Merges the answers that one field has in several replies, such as about chunks.

Rules by type:

- lists: the union, in the order of the chunks; equal values are one
- booleans and one-of: the value of most chunks that report it, at a tie the one that
  has a grounded quote, or else the first
- all other types: the first value with a grounded quote, or else the first value

A field that no chunk reports is not reported; it is unparsed only if no chunk's answer
could be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from jobs.kit.fields.parsing import AnswerQuote, FieldAnswer, ParsedReply
from jobs.kit.fields.spec import FieldSpec


def merged_fields(
    replies: Sequence[ParsedReply], specs: Mapping[str, FieldSpec]
) -> dict[str, FieldAnswer]:
    """Merge the replies about the chunks of a text by the rules above."""
    if len(replies) == 1:
        return dict(replies[0].fields)
    return {
        name: _merged([reply.fields[name] for reply in replies], spec)
        for name, spec in specs.items()
    }


def _merged(answers: Sequence[FieldAnswer], spec: FieldSpec) -> FieldAnswer:
    reported = [answer for answer in answers if answer.is_answered]
    if not reported:
        readable = [answer for answer in answers if answer.failure != "required"]
        if len(readable) < len(answers) and not any(a.failure for a in readable):
            return FieldAnswer(failure="required")
        return next((a for a in readable if not a.is_unparsed), readable[0])
    if spec.is_list:
        return _union(reported)
    grounded = [answer for answer in reported if answer.is_grounded]
    if spec.type in {"boolean", "one-of"}:
        counts = Counter(answer.value for answer in reported)
        most = max(counts.values())
        reported = [answer for answer in reported if counts[answer.value] == most]
        grounded = [answer for answer in reported if answer.is_grounded]
    return (grounded or reported)[0]


def _union(answers: Sequence[FieldAnswer]) -> FieldAnswer:
    """Join lists; a quote stays with its element where there is one for each."""
    values: dict[str, object] = {}
    quotes: dict[str, AnswerQuote | None] = {}
    for answer in answers:
        is_paired = len(answer.quotes) == len(answer.value)
        for number, value in enumerate(answer.value):
            key = str(value).casefold()
            values.setdefault(key, value)
            quote = answer.quotes[number] if is_paired else None
            quotes[key] = quotes.get(key) or quote
    return FieldAnswer(
        value=tuple(values.values()),
        quotes=tuple(quote for quote in quotes.values() if quote is not None),
        chunk=answers[0].chunk,
    )
