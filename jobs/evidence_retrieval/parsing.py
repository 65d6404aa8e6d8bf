"""Parses replies: never raises on model output, counts repairs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from jobs.kit.lexical import Floats
from jobs.kit.replies import (
    Object,
    arrays,
    first_object_with,
    parse_failure,
    whole_object,
)
from runner.job_faults import guarded
from runner.messages import FLOAT_BYTES, ParseFailure, Ranking, Reply, Vectors

_RATED = re.compile(r"([^()]*)\(([^()]*)\)")


def entries(value: object) -> Iterable[tuple[object, object]] | None:
    """Return the unparsed number and relevance of each listed sentence.

    None if the value is not a list. A relevance is None if it is missing.
    """
    if isinstance(value, list):
        return map(_entry, value)
    if isinstance(value, str):
        return line_entries(value)
    return None


def line_entries(line: str) -> Iterable[tuple[object, object]] | None:
    """Return the same for a line such as `3 (80), 5` or `none`."""
    stripped = line.strip(" \t\r*_.")
    if not stripped:
        return None
    return () if stripped.casefold() == "none" else _items(stripped)


def _items(line: str) -> Iterator[tuple[object, object]]:
    for item in re.split("[,;]", line):
        rated = _RATED.fullmatch(item.strip())
        yield (rated[1], rated[2]) if rated else (item, None)


def _entry(value: object) -> tuple[object, object]:
    if isinstance(value, dict):
        return value.get("n"), value.get("relevance")
    if isinstance(value, list) and len(value) == 1:
        return value[0], None
    return value, None


_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)


def first_object(text: str, name: str) -> Object | None:
    """Return the first object with a field: whole text, fenced block, or in prose.

    A block takes precedence over an earlier object, because models often repeat the
    format before their answer. Numbers are returned as text, unchanged.
    """
    stripped = text.lstrip("\ufeff").strip()
    for piece in (stripped, *_FENCED.findall(stripped)):
        value = whole_object(piece.strip())
        if value is not None and name in value:
            return value
    return first_object_with(name, stripped)


# four exponent digits exceed any double, and fit in a decimal
_DECIMAL = r"\d+(?:[.,]\d+)?(?:[eE][+-]?\d{1,4})?"
_PROBABILITY = re.compile(rf"({_DECIMAL})\s*(%?)")
_RELEVANCE = re.compile(rf"(-?{_DECIMAL})\s*%?")

# more digits cannot be a sentence number, and Python refuses to parse thousands
_ONE_RUN = re.compile(r"\D*(\d{1,9})\D*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probability:
    """A probability, and whether its scale was inferred from the number."""

    value: float  #: 0 to 1
    is_guessed: bool = False


def read_probability(value: object) -> Probability | ParseFailure:
    """Parse a probability in percent, or, if unambiguous, as a fraction.

    "85", "85%" and "85.5" are percent, and so is "1". "0.85" and "1.0" are fractions:
    one percent is not written with a decimal place.
    """
    if value is None or value == "":
        return ParseFailure(reason="no_probability")
    match = _PROBABILITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return _OUT_OF_RANGE
    text, percent = match.groups()
    number = Decimal(text.replace(",", "."))
    is_guessed = not percent and not text.isdigit() and 0 < number <= 1
    share = number if is_guessed else number / 100
    if share > 1:
        return _OUT_OF_RANGE
    return Probability(value=float(share), is_guessed=is_guessed)


def read_index(value: object, n: int) -> int | None:
    """Parse a number from 1 to *n* to an index from 0: 3, "[3]" or "S3"."""
    match = _ONE_RUN.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[0].lstrip().startswith("-"):
        return None
    number = int(match[1])
    return number - 1 if 1 <= number <= n else None


def read_relevance(value: object) -> tuple[int, bool] | None:
    """Parse a relevance of 0 to 100, and return whether it was clipped."""
    match = _RELEVANCE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    number = Decimal(match[1].replace(",", "."))
    within = min(max(number, Decimal(0)), Decimal(100))
    return int(within.to_integral_value(ROUND_HALF_UP)), within != number


_OUT_OF_RANGE = ParseFailure(
    reason="probability_out_of_range",
    detail="evidence_probability must be an integer from 0 to 100",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The assessment of one criterion in one post: probability and sentences."""

    probability: float  #: 0 to 1
    relevance: Mapping[int, int]  #: of the listed sentences, by index from 0: 0 to 100
    noted: Mapping[str, int] = field(default_factory=dict)  #: repairs, counted by kind


@dataclass(frozen=True, slots=True, kw_only=True)
class PostAssessment:
    """Assessments of all criteria of a post, from one request."""

    criteria: Mapping[str, Assessment | ParseFailure]
    noted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """Candidates of one rerank call, best first, as indices into its list."""

    indices: tuple[int, ...]  #: a permutation
    noted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostVectors:
    """Vectors of all criteria and of a post's sentences."""

    criteria: Floats  #: (criteria, dimensions)
    sentences: Floats  #: (sentences, dimensions)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointScores:
    """A rerank endpoint's scores of a pool; None for missing ones."""

    scores: tuple[float | None, ...]
    noted: Mapping[str, int] = field(default_factory=dict)


MOST = 100
"""The highest relevance."""

LIKELY = 0.5
"""Probability from which a reply should list evidence; below it, none."""

_LINE = r"^[ \t*_#>-]*(?:{})[ \t*_]*:(.*)$"
_FLAGS = re.IGNORECASE | re.MULTILINE
_PROBABILITY_LINE = re.compile(_LINE.format("probability"), _FLAGS)
_SENTENCES_LINE = re.compile(_LINE.format("sentences|evidence"), _FLAGS)


@guarded
def parse_assess(reply: Reply, n: int) -> Assessment | ParseFailure:
    """Parse a reply about one criterion in a post of *n* sentences.

    Failures: `truncated`, `no_json`, `no_probability`, `probability_out_of_range`.
    """
    payload = first_object(reply.text, "evidence_probability")
    if payload is not None:
        return _assessment(payload, n)
    if reply.is_truncated:
        return parse_failure(reply, "no_json")
    if first_object(reply.text, "sentences") is not None:
        return ParseFailure(reason="no_probability")
    stated = _stated(reply.text)
    return parse_failure(reply, "no_json") if stated is None else _assessment(stated, n)


@guarded
def parse_assessments(
    reply: Reply, n: int, criteria: Collection[str]
) -> PostAssessment | ParseFailure:
    """Parse a reply about each of *criteria*; missing ones are failures.

    Failures: `truncated`, `no_json`, `no_criteria`.
    """
    payload = first_object(reply.text, "criteria")
    if payload is None:
        return parse_failure(reply, "no_json")
    assessments = payload["criteria"]
    if not isinstance(assessments, list):
        return ParseFailure(reason="no_criteria")
    noted: Counter[str] = Counter()
    read: dict[str, Assessment | ParseFailure] = {}
    for entry in assessments:
        name = entry.get("id") if isinstance(entry, dict) else None
        criterion = name.strip() if isinstance(name, str) else ""
        if criterion not in criteria:
            noted["unknown_criterion"] += 1
        elif criterion in read:
            noted["repeated_criterion"] += 1
        else:
            read[criterion] = _assessment(entry, n)
    return PostAssessment(criteria=read, noted=dict(noted))


def _stated(text: str) -> Object | None:
    """Parse a line with the probability and one with the sentences to an object."""
    probability = _PROBABILITY_LINE.search(text)
    sentences = _SENTENCES_LINE.search(text)
    if probability is None or sentences is None or entries(sentences[1]) is None:
        return None
    return {
        "evidence_probability": probability[1].strip(" \t\r*_."),
        "sentences": sentences[1],
    }


def _assessment(value: Object, n: int) -> Assessment | ParseFailure:
    probability = read_probability(value.get("evidence_probability"))
    if isinstance(probability, ParseFailure):
        return probability
    noted: Counter[str] = Counter()
    if probability.is_guessed:
        noted["scale_guessed"] += 1
    relevance = _relevance(value.get("sentences"), n, noted)
    if (probability.value >= LIKELY) != any(relevance.values()):
        noted["inconsistent"] += 1
    return Assessment(
        probability=probability.value, relevance=relevance, noted=dict(noted)
    )


def _relevance(value: object, n: int, noted: Counter[str]) -> dict[int, int]:
    """Return relevance by index; a missing one is one below its predecessor."""
    pairs = entries(value)
    if pairs is None:
        noted["no_list"] += 1
        return {}
    by_index: dict[int, int] = {}
    below = MOST
    for number, stated in pairs:
        rated = read_relevance(stated)
        if rated is None and stated is not None:
            noted["relevance_unread"] += 1
        relevance, is_clipped = rated or (below, False)
        below = max(relevance - 1, 1)
        if is_clipped:
            noted["relevance_clipped"] += 1
        index = read_index(number, n)
        if index is None:
            noted["unknown_sentence"] += 1
        else:
            by_index[index] = max(relevance, by_index.get(index, 0))
    return by_index


_CHAIN = re.compile(r"\[?\d{1,9}\]?(?:\s*>\s*\[?\d{1,9}\]?)+")


@guarded
def parse_rerank(reply: Reply, n: int) -> Ordering | ParseFailure:
    """Parse the order of *n* candidates, completed to a permutation.

    Failures: `truncated`, `no_json`, `no_ranking`, and `incomplete_ranking` if fewer
    than half of the candidates are named.
    """
    payload = first_object(reply.text, "ranking")
    if payload is not None:
        numbers = _ranked_numbers(payload["ranking"])
    elif reply.is_truncated:
        return parse_failure(reply, "no_json")
    else:
        numbers = _ranked_numbers(reply.text) or _first_array(reply.text)
        if numbers is None:
            return parse_failure(reply, "no_json")
    if numbers is None:
        return ParseFailure(reason="no_ranking")
    return _ordering(numbers, n)


def _ranked_numbers(value: object) -> Iterable[object] | None:
    """Return the numbers in a list or a text such as `3 > 1 > 2`, unparsed."""
    if isinstance(value, str):
        chain = _CHAIN.search(value)
        return chain[0].split(">") if chain else None
    pairs = entries(value)
    return None if pairs is None else (number for number, _ in pairs)


def _first_array(text: str) -> Iterable[object] | None:
    array = next(arrays(text), None)
    if array is None:
        return None
    return [str(item) if type(item) is int else item for item in array]


def _ordering(numbers: Iterable[object], n: int) -> Ordering | ParseFailure:
    noted: Counter[str] = Counter()
    order: dict[int, None] = {}
    for number in numbers:
        index = read_index(number, n)
        if index is None:
            noted["unknown_candidate"] += 1
        elif index in order:
            noted["repeated_candidate"] += 1
        else:
            order[index] = None
    if 2 * len(order) < n:
        return ParseFailure(
            reason="incomplete_ranking",
            detail=f"{len(order)} of {n} candidates are named",
        )
    missing = [index for index in range(n) if index not in order]
    if missing:
        noted["missing_candidate"] += len(missing)
    return Ordering(indices=(*order, *missing), noted=dict(noted))


BAD = ParseFailure(reason="bad_vectors")


@guarded
def parse_vectors(
    reply: Vectors, *, criteria: int, sentences: int
) -> PostVectors | ParseFailure:
    """Parse the vectors in the order of the request: *criteria*, then *sentences*.

    The only failure is `bad_vectors`: a wrong number of vectors, unequal lengths, an
    entry that is not a number, or empty vectors.
    """
    lengths = {len(packed) for packed in reply.packed}
    if len(reply.packed) != criteria + sentences or len(lengths) != 1:
        return BAD
    (length,) = lengths
    if length == 0 or length % FLOAT_BYTES:
        return BAD
    rows = np.frombuffer(b"".join(reply.packed), "<f4").reshape(len(reply.packed), -1)
    if not np.isfinite(rows).all() or not rows.any(axis=1).all():
        return BAD
    numbers = rows.astype(np.float64)
    return PostVectors(criteria=numbers[:criteria], sentences=numbers[criteria:])


@guarded
def parse_scores(reply: Ranking, n: int) -> EndpointScores | ParseFailure:
    """Parse the scores of *n* sentences; None for those that the endpoint omitted.

    Failures: `bad_indices`, for one that is repeated or out of range, `bad_scores` for
    one that is not finite, and `no_scores` if there are none.
    """
    by_index = {document.index: document.score for document in reply.results}
    if len(by_index) != len(reply.results) or not by_index.keys() <= set(range(n)):
        return ParseFailure(reason="bad_indices")
    if not all(map(math.isfinite, by_index.values())):
        return ParseFailure(reason="bad_scores")
    if not by_index:
        return ParseFailure(reason="no_scores")
    missing = n - len(by_index)
    return EndpointScores(
        scores=tuple(by_index.get(index) for index in range(n)),
        noted={"missing_score": missing} if missing else {},
    )
