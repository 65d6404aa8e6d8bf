"""Parses the replies of each stage; never raises on the text of a model.

An unreadable reply is a `ParseFailure`, counted by its reason. A score is never
rescaled and never clipped: one outside the scale is a failure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, get_args

import msgspec

from jobs.kit.inputs.rows import InputFindings
from jobs.kit.replies import (
    Object,
    arrays,
    first_object_with,
    objects,
    parse_failure,
    reply_content,
)
from jobs.review_benchmark.data import (
    RATIONALE,
    Agreement,
    Certainty,
    Conclusion,
    Direction,
    JudgedSimilarity,
    Relevance,
    SearchPlan,
    SearchQuery,
    Vector,
    expression,
    word_of,
)
from jobs.review_benchmark.extraction import parsing
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.result_files import AgentResult, result_of
from jobs.review_benchmark.settings import ENDS
from runner.errors import DatasetError
from runner.job import Stage, Task
from runner.job_faults import guarded
from runner.messages import ParseFailure, Reply, Vectors, wellformed

_Reply = TypeVar("_Reply", Reply, Vectors)
_Parsed = TypeVar("_Parsed")

_PHRASE = re.compile(r'"([^"]+)"|(\S+)')


@guarded
def parse_plan(reply: Reply, most: int) -> SearchPlan | ParseFailure:
    """Parse the search plan in a reply.

    It is either the requested object, or a bare list of texts, each a query of its
    quoted phrases and words. Failures: `empty`, `refusal`, `truncated`, `no_queries`,
    `no_terms`.

    Args:
        reply: of the model.
        most: largest number of queries.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    fields = first_object_with("queries", text)
    entries = _text_list(text) if fields is None else fields["queries"]
    queries = [*map(_query, entries)] if isinstance(entries, list) else []
    if not queries:
        return parse_failure(reply, "no_queries")
    usable = [query for query in queries if query is not None and expression(query)]
    if not usable:
        return ParseFailure(reason="no_terms")
    return SearchPlan(
        queries=tuple(usable[:most]),
        rationale="" if fields is None else _text(fields.get("rationale")),
        dropped=len(queries) - min(len(usable), most),
    )


def _text_list(text: str) -> list[str]:
    """Return the first list that contains only texts."""
    for array in arrays(text):
        if array and all(isinstance(entry, str) for entry in array):
            return array
    return []


def _query(value: object) -> SearchQuery | None:
    if isinstance(value, str):
        return _worded(value)
    if not isinstance(value, dict):
        return None
    groups = value.get("all_of")
    if not isinstance(groups, list):
        return None
    return SearchQuery(
        label=_text(value.get("label")),
        all_of=tuple(_terms(group) for group in groups),
        none_of=_terms(value.get("none_of")),
    )


def _worded(text: str) -> SearchQuery:
    """Return a query from a text: every quoted phrase and every word must occur."""
    phrases = (wellformed(quoted or other) for quoted, other in _PHRASE.findall(text))
    return SearchQuery(label="", all_of=tuple((phrase,) for phrase in phrases))


def _terms(value: object) -> tuple[str, ...]:
    """Return the texts of a group; a single text is a group of one."""
    terms = value if isinstance(value, list) else [value]
    return tuple(wellformed(term) for term in terms if isinstance(term, str))


def _text(value: object) -> str:
    return wellformed(value).strip() if isinstance(value, str) else ""


_NUMBER = r"[+-]?[0-9]+(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]{1,3})?"
_SCORE = rf"({_NUMBER})(?:\s*(?:/|out\s+of)\s*([0-9]+(?:\.[0-9]+)?))?"
_ALONE = re.compile(rf"\W*?{_SCORE}\W*", re.IGNORECASE)
# a dash right before the number is its sign
_LINE = re.compile(
    rf"\W*(?:relevance\s+)?score\W*?(?::|=|-(?=\s)|is)\W*?{_SCORE}\W*", re.IGNORECASE
)
_VALUE = re.compile(rf"\s*{_SCORE}\s*", re.IGNORECASE)


@guarded
def parse_score(reply: Reply, ends: tuple[float, float]) -> Relevance | ParseFailure:
    """Parse the score in a reply.

    Failures: `empty`, `refusal`, `truncated`, `no_score`, `bad_score`, `ambiguous`.

    Args:
        reply: of the model.
        ends: least and highest score of the scale, both inclusive.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    scored_objects = list(objects(text, lambda value: "score" in value))
    if scored_objects:
        return _agreed(
            [_stated(scored["score"], ends) for scored in scored_objects],
            "json",
            _text(scored_objects[-1].get("rationale"))[:RATIONALE],
        )
    # the text before a cut may be the beginning of another number
    whole = text.splitlines()[:-1] if reply.is_truncated else text.splitlines()
    lines = [match for line in whole if (match := _LINE.fullmatch(line))]
    if lines:
        return _agreed([_read(match, ends) for match in lines], "line")
    alone = None if reply.is_truncated else _ALONE.fullmatch(text)
    if alone is not None:
        return _agreed([_read(alone, ends)], "number")
    return parse_failure(reply, "no_score")


def _agreed(
    scores: list[float | None], rule: str, rationale: str = ""
) -> Relevance | ParseFailure:
    if len(set(scores)) > 1:
        return ParseFailure(reason="ambiguous")
    score = scores[-1]
    if score is None:
        return ParseFailure(reason="bad_score")
    return Relevance(score=score, rationale=rationale, rule=rule)


def _stated(value: object, ends: tuple[float, float]) -> float | None:
    """Read a score from JSON, whose numbers are passed as the texts of the reply."""
    match = _VALUE.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else _read(match, ends)


def _read(match: re.Match[str], ends: tuple[float, float]) -> float | None:
    """Return a score; None if it, or its stated maximum, does not fit the scale."""
    number, top = match[1], match[2]
    if top is not None and float(top) != ends[1]:
        return None
    score = float(number.replace(",", "."))
    return score if ends[0] <= score <= ends[1] else None


MOST = 100.0
"""Largest similarity in a reply; the least is 0."""

_SIMILARITY = re.compile(
    r"\s*\+?([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?)\s*(?:%|/\s*100)?\s*"
)


@guarded
def parse_conclusion(reply: Reply) -> Conclusion | ParseFailure:
    """Parse the conclusion in a reply; prose without any object is one too.

    Failures: `empty`, `refusal`, `truncated`, `no_conclusion`.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    fields = first_object_with("conclusion", text)
    if fields is None:
        if "{" in text or reply.is_truncated:
            return parse_failure(reply, "no_conclusion")
        return Conclusion(text=wellformed(text))
    concluded = fields["conclusion"]
    if not isinstance(concluded, str) or not concluded.strip():
        return ParseFailure(reason="no_conclusion")
    return Conclusion(
        text=wellformed(concluded).strip(),
        direction=word_of(fields.get("direction"), get_args(Direction)),
        certainty=word_of(fields.get("certainty"), get_args(Certainty)),
    )


@guarded
def parse_similarity(reply: Reply) -> JudgedSimilarity | ParseFailure:
    """Parse a judge's similarity of two conclusions.

    Failures: `empty`, `refusal`, `truncated`, `no_similarity`, `bad_similarity`,
    `ambiguous`. A number is never rescaled and never clipped.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    likenesses = [
        _similarity(stated)
        for stated in objects(text, lambda value: "similarity" in value)
    ]
    if not likenesses:
        return parse_failure(reply, "no_similarity")
    distinct = {
        None if judged is None else (judged.similarity, judged.direction)
        for judged in likenesses
    }
    if len(distinct) > 1:
        return ParseFailure(reason="ambiguous")
    return likenesses[-1] or ParseFailure(reason="bad_similarity")


def _similarity(stated: Object) -> JudgedSimilarity | None:
    """Return the statement of an object; None if its number is not 0 to `MOST`."""
    written = stated["similarity"]
    match = _SIMILARITY.fullmatch(written) if isinstance(written, str) else None
    if match is None or not (similarity := float(match[1])) <= MOST:
        return None
    return JudgedSimilarity(
        similarity=similarity / MOST,
        direction=word_of(stated.get("direction"), get_args(Agreement)) or "unclear",
        rationale=_text(stated.get("rationale")),
    )


@guarded
def parse_vector(reply: Vectors) -> Vector | ParseFailure:
    """Parse the single vector in a reply.

    One failure, `bad_vector`: not exactly one vector, an entry that is not finite, or
    a vector of zeros.
    """
    rows = reply.numbers()
    if len(rows) != 1 or not any(rows[0]) or not all(map(math.isfinite, rows[0])):
        return ParseFailure(reason="bad_vector")
    return rows[0]


@guarded
def parse_result(reply: Reply, where: str) -> AgentResult | ParseFailure:
    """Parse the result in a reply; failures: `bad_result`.

    Args:
        reply: the file's text.
        where: the review and the agent, as findings name them.
    """
    findings = InputFindings()
    try:
        result = result_of(msgspec.json.decode(reply.text), where, findings)
    except (msgspec.DecodeError, DatasetError) as error:
        return ParseFailure(reason="bad_result", detail=str(error))
    return replace(result, findings=findings.findings())


def read_plan(
    dataset: ReviewDataset, task: Task, reply: Reply
) -> SearchPlan | ParseFailure:
    """Parse the search plan of a review."""
    if dataset.find(task.key) is None:
        return ParseFailure(reason="unknown_review")
    return parse_plan(reply, dataset.settings.queries)


def read_score(
    dataset: ReviewDataset, task: Task, reply: Reply
) -> Relevance | ParseFailure:
    """Parse the score of a paper."""
    del task
    return parse_score(reply, ENDS[dataset.settings.scale])


def read_result(
    dataset: ReviewDataset, task: Task, reply: Reply
) -> AgentResult | ParseFailure:
    """Parse an agent's imported result."""
    if dataset.find(task.key) is None:
        return ParseFailure(reason="unknown_review")
    return parse_result(reply, f"{task.key} of {task.model}")


def _alone(
    parse: Callable[[_Reply], _Parsed | ParseFailure],
) -> Callable[[object, Task, _Reply], _Parsed | ParseFailure]:
    """Return the parser of a stage whose replies need neither data nor task."""
    return lambda dataset, task, reply: parse(reply)  # noqa: ARG005 - shared signature


STAGES = (
    Stage(name="plan", parse=read_plan),
    Stage(name="score", parse=read_score, gathers=True),
    Stage(name="conclude", parse=_alone(parse_conclusion)),
    Stage(name="judge", parse=_alone(parse_similarity), role="judge", follows=False),
    Stage(name="embed", parse=_alone(parse_vector), role="embed", follows=False),
    Stage(name="result", parse=read_result, follows=False),
    Stage(name="x.places", parse=_alone(parsing.parse_places)),
    Stage(name="x.meta", parse=_alone(parsing.parse_meta), follows=False),
    Stage(name="x.refs", parse=_alone(parsing.parse_references), follows=False),
    Stage(name="x.excluded", parse=_alone(parsing.parse_references), follows=False),
)
"""Stages; candidates are gathered: a conclusion waits for all, failed ones included.

`result` is for imports only, and `x.` for runs that extract from a review's text.
"""
