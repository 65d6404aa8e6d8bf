"""Answers offline, from the prompt alone: numbers and keywords near a question's words.

The sentence of the text that BM25 ranks first for a question is the quote; the value is
what of the field's type stands in it, nearest to the question's words. Where no
sentence shares a word with the question, or none has such a value, the field is null.
It is a floor for comparison, not a model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from jobs.kit.chat import read_blocks, text_outside_blocks
from jobs.kit.fields.parsing import REASONING
from jobs.kit.lexical import Bm25, content_words, tokens
from runner.messages import ChatRequest

_LINE: Final = re.compile(
    r"^(?P<indent> *)- (?P<name>[a-z][a-z0-9_]*) "
    r"\((?P<type>[^\n]*?)(?P<quote>, with quote)?\): (?P<ask>.*)$",
    re.MULTILINE,
)
_PARAGRAPH: Final = re.compile(r"\n\s*\n|\n(?=#)|(?<=[.!?:])\n")
_SENTENCE: Final = re.compile(r"[^.!?]+(?:[.!?](?!\s|$)[^.!?]*)*[.!?]?")
_NUMBER: Final = re.compile(
    r"(?<![\w.])-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.])-?\d+(?:\.\d+)?"
)
_INTEGRAL: Final = re.compile(r"(?<=\d)\.0\b")
"""The end of a float that is a whole number, which a text writes without it."""

_DATE: Final = re.compile(r"\b(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?\b")
_NEGATION: Final = re.compile(
    r"\b(?:no|not|without|neither|nor|un\w+ed)\b", re.IGNORECASE
)
_PROPER: Final = re.compile(r"\b(?:[A-Z][\w-]+|\w*\d\w*)(?: (?:[A-Z][\w-]+|\d\w*))*")

BEST_SENTENCES: Final = 5
"""Sentences that are searched for a value, best first."""


SHORTEST: Final = 4
"""Words of a sentence; fewer are a heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptField:
    """A field as a prompt describes it."""

    name: str
    type: str
    ask: str
    has_quote: bool
    parts: tuple[PromptField, ...] = ()


def fields_of(prompt: str) -> list[PromptField]:
    """Return the fields that a prompt lists."""
    fields: list[PromptField] = []
    for match in _LINE.finditer(prompt):
        line = PromptField(
            name=match["name"],
            type=match["type"],
            ask=match["ask"],
            has_quote=match["quote"] is not None,
        )
        if match["indent"] and fields:
            last = fields.pop()
            fields.append(
                PromptField(
                    name=last.name,
                    type=last.type,
                    ask=last.ask,
                    has_quote=last.has_quote,
                    parts=(*last.parts, line),
                )
            )
        else:
            fields.append(line)
    return fields


def baseline(request: ChatRequest) -> str:
    """Answer a request of any stage as JSON."""
    prompt = request.messages[0].text
    blocks = dict(read_blocks(request.messages[-1].text))
    if "values" in blocks:
        return _verdicts(blocks["values"])
    sentences = [
        match[0].strip()
        for paragraph in _PARAGRAPH.split(blocks.get("text", ""))
        for match in _SENTENCE.finditer(paragraph)
        if len(match[0].split()) >= SHORTEST
    ]
    pool = Bm25(sentences)
    outside = text_outside_blocks(prompt)
    reply: dict[str, Any] = {}
    if f'"{REASONING}"' in outside:
        reply[REASONING] = "Values from the sentences nearest to each question."
    for field in fields_of(outside):
        reply[field.name] = _answer(field, sentences, pool)
    return json.dumps(reply, ensure_ascii=False)


def _answer(field: PromptField, sentences: list[str], pool: Bm25) -> object:
    is_list = field.type.startswith("list of ")
    kind = field.type.removeprefix("list of ")
    value: object = None
    sentence: str | None = None
    query = " ".join((field.ask, *_listed(kind)))
    for candidate in _ranked(query, sentences, pool):
        if field.parts:
            value = _parts(field, candidate)
        else:
            value = next(_values(kind, field.ask, candidate), None)
        if value is not None:
            sentence = candidate
            break
    unit = kind.partition(" in ")[2] if kind.startswith(("number", "integer")) else ""
    if is_list and value is None:
        return []
    wrapped: object = value
    if field.has_quote or unit:
        wrapped = {
            **({"quote": sentence} if field.has_quote else {}),
            "value": value,
            **({"unit": unit if value is not None else None} if unit else {}),
        }
    return [wrapped] if is_list else wrapped


def _ranked(ask: str, sentences: list[str], pool: Bm25) -> list[str]:
    """Return the sentences that share words with a question, the best first."""
    query = " ".join(content_words(ask)) or ask
    scores = pool.scores(f"{ask} {query}")
    order = sorted(range(len(sentences)), key=lambda i: (-scores[i], i))
    shared = set(content_words(ask))
    return [
        sentences[i]
        for i in order[:BEST_SENTENCES]
        if scores[i] > 0 and (not shared or shared & set(content_words(sentences[i])))
    ]


def _parts(field: PromptField, sentence: str) -> dict[str, object] | None:
    values = {
        part.name: next(_values(part.type, part.ask, sentence), None)
        for part in field.parts
    }
    return values if any(v is not None for v in values.values()) else None


def _values(kind: str, ask: str, sentence: str) -> Iterator[object]:
    """Yield the values of a type in a sentence, the best guess first."""
    if kind.startswith("one of "):
        yield from _options(kind, sentence)
    elif kind.startswith(("integer", "number")):
        yield from _numbers(kind, ask, sentence)
    elif kind == "boolean":
        yield _NEGATION.search(sentence) is None
    elif kind.startswith("date"):
        yield from (match[0] for match in _DATE.finditer(sentence))
    else:
        known = set(tokens(ask))
        names = [m[0] for m in _PROPER.finditer(sentence) if m.start() > 0]
        yield from (n for n in names if content_words(n) and n.lower() not in known)
        yield sentence


def _listed(kind: str) -> list[str]:
    """Return the options of a one-of."""
    return re.findall(r'"((?:[^"\\]|\\.)*)"', kind)


def _options(kind: str, sentence: str) -> Iterator[str]:
    words = set(tokens(sentence))
    for option in _listed(kind):
        if set(tokens(option)) <= words:
            yield option


def _numbers(kind: str, ask: str, sentence: str) -> Iterator[int | float]:
    """Yield the numbers of a sentence, nearest to a word of the question first."""
    unit = kind.partition(" in ")[2].casefold()
    near = [
        match.start()
        for match in re.finditer(r"\w+", sentence)
        if set(content_words(match[0])) & set(content_words(ask))
    ]

    def distance(match: re.Match[str]) -> tuple[bool, bool, int, int]:
        after = sentence[match.end() :].lstrip().casefold()
        has_unit = bool(unit) and after.startswith(unit)
        is_share = after.startswith("%") and unit != "%"
        is_year = _DATE.fullmatch(match[0]) is not None
        steps = min((abs(match.start() - place) for place in near), default=0)
        return not has_unit or is_share, is_year, steps, match.start()

    for match in sorted(_NUMBER.finditer(sentence), key=distance):
        value = float(match[0].replace(",", ""))
        if not kind.startswith("integer"):
            yield value
        elif value.is_integer():
            yield int(value)


def _verdicts(lines: str) -> str:
    """Support a value if its words or digits are in its quote."""
    verdicts = {}
    for line in lines.splitlines():
        entry = json.loads(line)
        quote = " ".join(entry["quote"]).replace(",", "")
        value = json.dumps(entry["value"], ensure_ascii=False)
        words = set(tokens(_INTEGRAL.sub("", value)))
        is_there = words <= set(tokens(quote)) or isinstance(entry["value"], bool)
        verdicts[entry["field"]] = {
            "reason": "The quote has its words." if is_there else "Words are missing.",
            "verdict": "supported" if is_there else "not_supported",
        }
    return json.dumps(verdicts)
