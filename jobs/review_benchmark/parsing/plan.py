"""What a reply plans to search."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from jobs.replies import (
    arrays,
    first_object_with,
    parse_failure,
    reply_content,
    wellformed,
)
from jobs.review_benchmark.answered import SearchPlan
from jobs.review_benchmark.search.query import Query, expression
from runner.job import guarded
from runner.messages import ParseFailure, Reply

_PHRASE = re.compile(r'"([^"]+)"|(\S+)')


@guarded
def parse_plan(reply: Reply, most: int) -> SearchPlan | ParseFailure:
    """The search plan in a reply.

    Either the object that was asked for, or a bare list of texts, each a query of its
    quoted phrases and words. Failures: `empty`, `refusal`, `truncated`, `no_queries`,
    `no_terms`.

    Args:
        reply: of the model.
        most: how many queries are kept.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    found = first_object_with("queries", text)
    rationale = ""
    if found is not None:
        given = found["queries"]
        rationale = _text(found.get("rationale"))
        queries = [_query(each) for each in given] if isinstance(given, list) else []
    else:
        queries = [_worded(each) for each in _listed(text)]
    if not queries:
        return parse_failure(reply, "no_queries")
    usable = [each for each in queries if each is not None and expression(each)]
    if not usable:
        return ParseFailure(reason="no_terms")
    return SearchPlan(
        queries=tuple(usable[:most]),
        rationale=rationale,
        dropped=len(queries) - min(len(usable), most),
    )


def _listed(text: str) -> Sequence[str]:
    """The first list of nothing but texts."""
    for found in arrays(text):
        if found and all(isinstance(each, str) for each in found):
            return found
    return ()


def _query(value: object) -> Query | None:
    if isinstance(value, str):
        return _worded(value)
    if not isinstance(value, dict):
        return None
    groups = value.get("all_of")
    if not isinstance(groups, list):
        return None
    return Query(
        label=_text(value.get("label")),
        all_of=tuple(_terms(group) for group in groups),
        none_of=_terms(value.get("none_of")),
    )


def _worded(text: str) -> Query:
    """A query in one text: every quoted phrase and every word must occur."""
    phrases = (wellformed(one or other) for one, other in _PHRASE.findall(text))
    return Query(label="", all_of=tuple((phrase,) for phrase in phrases))


def _terms(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - whatever the reply holds
    """The texts of a group; a text alone is a group of one."""
    if isinstance(value, str):
        return (wellformed(value),)
    given: Iterable[object] = value if isinstance(value, list) else ()
    return tuple(wellformed(each) for each in given if isinstance(each, str))


def _text(value: object) -> str:
    return wellformed(value).strip() if isinstance(value, str) else ""
