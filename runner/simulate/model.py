"""Simulates a model whose replies depend only on the seed and the request.

Words with a digit are the important ones in papers (rs9923231, CYP2C9*3, PMC123, 0.03),
so answers built from them are sometimes right. A list of lists of strings is a search
query with groups of synonyms: it is built from words of the question, so a search has
hits. Pure: depends on text, schema and chance only.

Vectors are a pure function of seed and texts. A word has a position and a sign in every
vector, so the cosine of two texts grows with the number of shared words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, assert_never

import msgspec

from runner.job import Job
from runner.messages import (
    ChatRequest,
    Content,
    EmbedRequest,
    RankedDocument,
    Ranking,
    Request,
    RerankRequest,
    Vectors,
)
from runner.simulate.options import Chance
from runner.simulate.requests import SimulatedRequest, chat_text

_DIGIT = re.compile(r"\d")
_ANSWER_WORD = re.compile(r"\w[\w*.:/-]*")
_LONGEST: Final = 40
"""Maximum characters of a word on either side of its first digit."""

_BLOCK = re.compile(r"<([a-z]+-[0-9a-f]+)>\n(.*?)\n</\1>", re.DOTALL)
"""Data between delimiters, as in the jobs' prompts."""

_LABEL = re.compile(r"^[A-Z][^:\n]*: ", re.MULTILINE)
_TOPIC = re.compile(r"[^\W\d_]{4,}")
_EMPTY: Final = frozenset(
    {
        *("does", "from", "have", "into", "more", "most", "other", "over", "such"),
        *("than", "that", "their", "them", "then", "there", "these", "they", "this"),
        *("those", "were", "what", "when", "where", "which", "while", "with", "would"),
    }
)
"""Words of four or more letters that are too common for a search."""

_GROUPS: Final = 2
"""Maximum groups of a query: each further group of random words excludes more."""

_DEEPEST: Final = 8
"""A schema may be recursive; below this depth only required fields are filled."""


def plain_text(text: str, chance: Chance) -> str:
    """Return an answer in prose."""
    words = [_word(text, chance) for _ in range(1 + chance.below(4))]
    return f"The text speaks of {', '.join(words)}."


def fitting(schema: Mapping[str, Any], text: str, chance: Chance) -> Any:  # noqa: ANN401 - JSON
    """Return a value that matches a JSON schema of the kind allowed in strict mode."""
    return _Filler(schema, text, chance).fill(schema, 0)


def _topics(text: str) -> list[str]:
    """Return the words of the first data block, or of the text, in order."""
    block = _BLOCK.search(text)
    data = _LABEL.sub("", text if block is None else block[2])
    words = (word.lower() for word in _TOPIC.findall(data))
    return list(dict.fromkeys(word for word in words if word not in _EMPTY))


def _is_query(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema is a list of lists of strings, of any length."""
    inner = schema.get("items", {})
    return inner.get("items") == {"type": "string"} and not any(
        bound in subschema
        for subschema in (schema, inner)
        for bound in ("minItems", "maxItems")
    )


def _word(text: str, chance: Chance) -> str:
    """Return a salient word after a random position; wraps around once."""
    start = chance.below(len(text) + 1)
    digit = _DIGIT.search(text, start) or _DIGIT.search(text)
    if digit is None:
        word = _ANSWER_WORD.search(text)
        return word[0] if word else "nothing"
    first = max(0, digit.start() - _LONGEST)
    around = text[first : digit.start() + _LONGEST]
    return next(
        word[0].rstrip(".:/-")
        for word in _ANSWER_WORD.finditer(around)
        if first + word.end() > digit.start()
    )


class _Filler:
    def __init__(self, root: Mapping[str, Any], text: str, chance: Chance) -> None:
        self._root = root
        self._text = text
        self._chance = chance
        self._kinds: Mapping[str, Callable[[Mapping[str, Any], int], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._integer,
            "number": self._number,
            "boolean": lambda _schema, _depth: self._chance.unit() < 0.5,  # noqa: PLR2004
            "null": lambda _schema, _depth: None,
        }

    def fill(self, schema: Mapping[str, Any], depth: int) -> Any:  # noqa: ANN401 - JSON
        while "$ref" in schema:
            schema = self._definition(schema["$ref"])
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._chance.pick(schema["enum"])
        for union in ("anyOf", "oneOf"):
            if union in schema:
                return self.fill(self._branch(schema[union], depth), depth)
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = (
                "null"
                if depth > _DEEPEST and "null" in kind
                else self._chance.pick(kind)
            )
        return self._kinds[kind](schema, depth)

    def _definition(self, reference: str) -> Mapping[str, Any]:
        node: Any = self._root
        for name in reference.removeprefix("#").strip("/").split("/"):
            node = node[name] if name else node
        return node  # type: ignore[no-any-return]

    def _branch(
        self, branches: list[Mapping[str, Any]], depth: int
    ) -> Mapping[str, Any]:
        leaves = [branch for branch in branches if branch.get("type") == "null"]
        return self._chance.pick(leaves if depth > _DEEPEST and leaves else branches)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        if any(map(_is_query, properties.values())):
            # further lists are exclusions, which must not contain the search words
            lists = {
                name
                for name, subschema in properties.items()
                if "items" in subschema and not subschema.get("minItems")
            }
            return {
                name: self._query()
                if _is_query(inner)
                else []
                if name in lists
                else self.fill(inner, depth + 1)
                for name, inner in properties.items()
            }
        return {
            name: self.fill(inner, depth + 1)
            for name, inner in properties.items()
            if depth <= _DEEPEST or name in required
        }

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        if _is_query(schema):
            return self._query()
        items = schema.get("items", {"type": "string"})
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", max(least, 4))
        if most and self._holds_query(items):
            least = max(least, 1)
        spread = 0 if depth > _DEEPEST else self._chance.below(most - least + 1)
        return [self.fill(items, depth + 1) for _ in range(least + spread)]

    def _holds_query(self, schema: Mapping[str, Any]) -> bool:
        while "$ref" in schema:
            schema = self._definition(schema["$ref"])
        return any(map(_is_query, schema.get("properties", {}).values()))

    def _query(self) -> list[list[str]]:
        """Return one or two groups of two to four words of the question."""
        words = _topics(self._text) or [_word(self._text, self._chance)]
        return [
            list(
                dict.fromkeys(
                    self._chance.pick(words) for _ in range(2 + self._chance.below(3))
                )
            )
            for _ in range(1 + self._chance.below(_GROUPS))
        ]

    def _string(self, schema: Mapping[str, Any], _depth: int) -> str:
        word = _word(self._text, self._chance)
        least = schema.get("minLength", 0)
        return word.ljust(least, "x")[: schema.get("maxLength")]

    def _integer(self, schema: Mapping[str, Any], _depth: int) -> int:
        least = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
        most = schema.get("maximum", schema.get("exclusiveMaximum", least + 10) - 1)
        return int(least) + self._chance.below(max(1, int(most) - int(least) + 1))

    def _number(self, schema: Mapping[str, Any], _depth: int) -> float:
        least = float(schema.get("minimum", schema.get("exclusiveMinimum", 0.0)))
        most = float(schema.get("maximum", schema.get("exclusiveMaximum", least + 1.0)))
        # strictly between, so that exclusive bounds hold too
        return least + (most - least) * (0.25 + self._chance.unit() / 2)


DIMENSIONS: Final = 64
"""Default length of a vector: enough for tests, and small."""

_WORD = re.compile(r"\w+")


def vectors(request: EmbedRequest, seed: int) -> Vectors:
    """Return one unit vector per text."""
    width = request.dimensions or DIMENSIONS
    return Vectors.of(_vector(text, seed, width) for text in request.texts)


def ranking(request: RerankRequest, seed: int) -> Ranking:
    """Rank documents by the share of the query's words in them, best first."""
    query_words = _words(request.query)
    scores = [
        len(query_words & _words(text)) / max(1, len(query_words)) * 0.9
        # random tie-break: equal scores are rare in practice
        + 0.1 * Chance("score", seed, request.query, text).unit()
        for text in request.documents
    ]
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    return Ranking(
        results=tuple(
            RankedDocument(index=index, score=scores[index])
            for index in order[: request.top_n or None]
        )
    )


def _vector(text: str, seed: int, width: int) -> list[float]:
    sums = [0.0] * width
    # the text itself counts as a word, so no vector is zero and no two are equal
    for word in (*sorted(_words(text)), f" {text}"):
        chance = Chance("word", seed, word)
        sums[chance.below(width)] += 1.0 if chance.unit() < 0.5 else -1.0  # noqa: PLR2004
    length = math.sqrt(math.fsum(value * value for value in sums))
    return [value / length for value in sums] if length else [1.0, *sums[1:]]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


WORST_SHARE: Final = 0.4
"""With a job, up to this share of a model's answers is wrong, drawn by its name, so
that models differ as real ones do."""


class SimulatedModel:
    """Answers requests, from a job's baseline if there is one."""

    def __init__(self, seed: int, job: Job | None) -> None:
        self._seed = seed
        self._job = job

    def answer(
        self, incoming: SimulatedRequest, digest: str, choice: int = 0
    ) -> Content:
        """Return the content of the reply to *incoming*, whose body has hash *digest*.

        Like a job's baseline, it is a text, vectors or scores, as requested.

        Args:
            incoming: the request.
            digest: seeds the randomness.
            choice: index of several answers to the same request, from 0.
        """
        chance = Chance("answer", self._seed, digest, *([choice] if choice else ()))
        if self._job is not None:
            share = WORST_SHARE * Chance("share", self._seed, incoming.model).unit()
            if chance.unit() >= share:
                baseline = _baseline(self._job, incoming.request)
                if baseline is not None:
                    return baseline
        match incoming.request:
            case ChatRequest():
                return _text(incoming.request, chance)
            case EmbedRequest():
                return vectors(incoming.request, self._seed)
            case RerankRequest():
                return ranking(incoming.request, self._seed)
            case _:
                assert_never(incoming.request)


def _baseline(job: Job, request: Request) -> Content | None:
    """Return the job's baseline answer; None: the request is not of this job."""
    try:
        answer = job.baseline(request)
    except Exception:  # noqa: BLE001 - may raise anything on foreign requests
        return None
    is_chat = isinstance(request, ChatRequest)
    return answer if isinstance(answer, str) is is_chat else None


def _text(request: ChatRequest, chance: Chance) -> str:
    """Return a text that matches the request's schema, if there is one."""
    if request.schema is None:
        return plain_text(chat_text(request), chance)
    schema = msgspec.json.decode(request.schema.json)
    return msgspec.json.encode(fitting(schema, chat_text(request), chance)).decode()


def malformed(body: bytes, shape: float) -> bytes:
    """Return an invalid body; *shape* in [0, 1) selects the kind."""
    kinds = (
        b"",
        b"<html><body>502 Bad Gateway</body></html>",
        body[: len(body) // 2],
        b'{"object":"chat.completion","choices":[]}',
        b'{"error":{"message":"upstream failure"}}',
    )
    return kinds[int(shape * len(kinds))]
