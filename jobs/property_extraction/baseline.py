"""Answers prompts offline from their words: the model baseline/lexical.

It is the floor of every experiment and the first run without key or network. It sees
only the prompt, costs nothing, and always gives the same answer.

Values are numbers with a unit, named by the nearest words before them; if names are
listed, the one that shares most words with the sentence is chosen. A quote is the
sentence that has the value and most words. Two names mean one property by their words:
abbreviations and Greek letters are written out first, and names with different
qualifiers (onset and zero resistance, a and c, 4.2 K and 300 K) are different, however
many words they share.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jobs.kit.chat import read_blocks
from jobs.kit.lexical import Bm25, tokens
from jobs.property_extraction.parsing import OTHER
from jobs.property_extraction.prompts import QUOTE_CHARS
from jobs.property_extraction.values.units import UNITS
from runner.messages import ChatRequest

_BETWEEN: Final = re.compile(
    r"(?<=[.!?])(?<!\bet al\.)(?<!\bFig\.)(?<!\bRef\.)\s+(?=[A-Z(\[\"])|\n\s*\n\s*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSentence:
    """A sentence of a text, unchanged, with its position."""

    text: str
    start: int  #: in the whole text


def sentences(text: str) -> Iterator[TextSentence]:
    """Yield the sentences of a text, in order; headings too."""
    start = 0
    for between in _BETWEEN.finditer(text):
        yield from _sentence(text, start, between.start())
        start = between.end()
    yield from _sentence(text, start, len(text))


def _sentence(text: str, start: int, end: int) -> Iterator[TextSentence]:
    raw = text[start:end]
    stripped = raw.strip()
    if stripped:
        yield TextSentence(text=stripped, start=start + len(raw) - len(raw.lstrip()))


def shorten_quote(sentence: str, position: int) -> str:
    """Return at most 300 characters of a sentence around a position, between words."""
    if len(sentence) <= QUOTE_CHARS:
        return sentence
    start = max(0, min(position - QUOTE_CHARS // 2, len(sentence) - QUOTE_CHARS))
    end = start + QUOTE_CHARS
    first = sentence.find(" ", start, position) + 1 if start else 0
    last = sentence.rfind(" ", position, end) if end < len(sentence) else -1
    return sentence[max(first, start) : last if last > position else end].strip()


# in prose these are words, or parts of formulas, more often than units
_UNIT_WORDS: Final = frozenset(
    {"A", "n", "k", "h", "min", "s", "g", "m", "deg", "atom"}
)

_NAME: Final = "|".join(
    sorted(map(re.escape, UNITS - _UNIT_WORDS), key=lambda name: (-len(name), name))
)
_POWER: Final = r"(?:\^?[-\u2212\u2013]?[0-9](?![0-9])|[\u207b\u00b9\u00b2\u00b3]+)?"
_UNIT: Final = (
    rf"(?:{_NAME}){_POWER}(?:[ \u00b7./]\(?(?:{_NAME}|m|g|s|f\.u\.){_POWER}\)?)*"
)
_NUMBER: Final = (
    r"(?<![\w.\-/])[-+\u2212]?[0-9]+(?:[.,][0-9]+)*(?:\([0-9]+\))?"
    r"(?:\s?\u00b1\s?[0-9]+(?:\.[0-9]+)?)?"
    r"(?:\s?[\u00d7x]\s?10\s?\^?[-\u2212]?(?:[0-9]+|[\u207b\u2070\u00b9\u00b2\u00b3"
    r"\u2074-\u2079]+))?"
)
_VALUE: Final = re.compile(rf"(?P<value>{_NUMBER})\s?(?P<unit>{_UNIT})(?![A-Za-z0-9])")

_ABOUT: Final = r"(?:\s+(?:about|approximately|around|nearly|found to be|to be|only))*"
_PHRASE_BEFORE: Final = re.compile(
    r"(?P<phrase>[^,;:()]*?)\s*(?:=|\u2248|\u2243|~|\b(?:of|is|was|are|were|below|near"
    rf"|at|reaches|equals)\b){_ABOUT}\s*$"
)
_BORDER: Final = re.compile(
    r"\b(?:that|which|with|and|we|gives?|yields?|has|have|shows?|from|by|where|to|the"
    r"|an?|its|it|this|these|for|in|on)\b|^\s*of\b",
    re.IGNORECASE,
)
_AT: Final = re.compile(r"\bat\s+(?:about\s+)?$", re.IGNORECASE)
_FIELD: Final = re.compile(
    r"\bfor\s+[HB]\s*(?://|\u2225|\|\||\u22a5|along|parallel to)\s*[^\s,;.]+"
)
_FORMULA: Final = re.compile(r"\b(?:[A-Z][a-z]?(?:[0-9]+(?:\.[0-9]+)?)?){2,}\b")

_MOST_WORDS: Final = 8
"""Most words of a name."""

_NEARBY: Final = 200
"""Characters around a value to search for its context: some sentences are whole
tables."""


def extract_values(text: str, names: Sequence[str] = ()) -> dict[str, Any]:
    """Extract the values of a text.

    Args:
        text: of a paper.
        names: names to choose from; none: the words of the text are used.
    """
    pool = Bm25(names) if names else None
    return {"properties": list(_values(text, names, pool))}


def _values(
    text: str, names: Sequence[str], pool: Bm25 | None
) -> Iterator[dict[str, Any]]:
    for sentence in sentences(text):
        sentence_text = sentence.text
        matches = list(_VALUE.finditer(sentence_text))
        condition_matches = [
            match for match in matches if _AT.search(_before(sentence_text, match))
        ]
        # a value after "at", such as "at 4 K", is a condition unless it is the only
        # value
        stated = [
            match for match in matches if match not in condition_matches
        ] or condition_matches
        nearest_name = (
            _nearest_name(sentence_text, names, pool) if pool and stated else ""
        )
        for match in stated:
            label = _phrase(_before(sentence_text, match))
            name = nearest_name or label
            if not name:
                continue
            yield {
                "property": name,
                **({"label": label or None} if name == OTHER else {}),
                "material": _material(sentence_text),
                "condition": _condition(sentence_text, match, condition_matches),
                "quote": shorten_quote(sentence_text, match.start()),
                "value": match["value"],
                "unit": match["unit"],
            }


def _before(sentence: str, match: re.Match[str]) -> str:
    return sentence[max(match.start() - _NEARBY, 0) : match.start()]


def _phrase(before: str) -> str:
    """Return the nearest words before a number that may name it."""
    match = _PHRASE_BEFORE.search(before)
    if match is None:
        return ""
    phrase, _, _ = match["phrase"].partition(" at ")
    words = _BORDER.split(phrase)[-1].split()
    return " ".join(words[-_MOST_WORDS:])


def _nearest_name(sentence: str, names: Sequence[str], pool: Bm25) -> str:
    scores = pool.scores(sentence)
    best = max(scores)
    return names[scores.index(best)] if best > 0 else OTHER


def _material(sentence: str) -> str | None:
    formulas = (match[0] for match in _FORMULA.finditer(sentence))
    return next(
        (formula for formula in formulas if any(map(str.isdigit, formula))), None
    )


def _condition(
    sentence: str, value: re.Match[str], condition_matches: Sequence[re.Match[str]]
) -> str | None:
    """Return the conditions stated near a value."""
    first = max(value.start() - _NEARBY, 0)
    last = value.end() + _NEARBY
    conditions = [
        f"at {match[0]}"
        for match in condition_matches
        if match is not value and first <= match.start() < last
    ]
    conditions += [match[0] for match in _FIELD.finditer(sentence, first, last)]
    return "; ".join(conditions) or None


def find_quotes(text: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a quote for each row, or its withdrawal."""
    text_sentences = list(sentences(text))
    return {"rows": [_quote_row(text_sentences, row) for row in rows]}


def _quote_row(
    text_sentences: Sequence[TextSentence], row: Mapping[str, Any]
) -> dict[str, Any]:
    value = re.compile(rf"(?<![\w.]){re.escape(row['value'])}(?![\w]|\.[0-9])")
    words = set(tokens(f"{row['property']} {row['unit']}"))
    matches = [
        (sentence, match)
        for sentence in text_sentences
        if (match := value.search(sentence.text))
    ]
    if not matches:
        return {"id": row["id"], "quote": None, "withdraw": True}
    best, match = max(matches, key=lambda pair: len(words & set(tokens(pair[0].text))))
    quote = shorten_quote(best.text, match.start())
    return {"id": row["id"], "quote": quote, "withdraw": False}


LEAST_SHARE: Final = 0.5
"""Least share of common words, of all words of both."""

_WRITTEN_OUT: Final = (
    (r"\bh_?c1\b", "lower critical field"),
    (r"\bh_?c2\b", "upper critical field"),
    (r"\bt_?c\b", "critical temperature"),
    (r"\bsuperconducting transition temperature\b", "critical temperature"),
    (r"\brt\b|\b300 ?k\b", "room temperature"),
    (r"\bspecific heat\b", "heat capacity"),
    (r"\blattice parameter\b", "lattice constant"),
    (r"\btemp\.", "temperature"),
    (r"\bnorm[ar]+[a-z]*ized\b", "normalized"),
    (r"\bparallel to\b|//|\u2225|\|\|", " along "),
    ("\u03b1", " alpha "),
    ("\u03b3", " gamma "),
    ("\u03b4|\u2206", " delta "),
    (r"\u03b8_?d\b|\u03b8", " theta "),
    ("\u03ba", " kappa "),
    ("\u03bb", " lambda "),
    ("\u03be", " xi "),
    ("\u03c1", " rho "),
)
"""Patterns of folded names, and their replacements."""

_QUALIFIERS: Final = (
    (r"\bonset\b", r"\bzero\b", r"\bmid(?:point|dle)?\b"),
    (r"\bconstant a\b", r"\bconstant b\b", r"\bconstant c\b"),
    (r"\bab[- ]?plane\b|\ba-axis\b", r"\bc-axis\b"),
    (r"\bpoly ?(?:crystal\w*)?\b|\bpolycrystal\w*", r"\bsingle\b"),
    (r"\blower critical field\b", r"\bupper critical field\b"),
)
"""Groups of words that exclude each other in a name."""

_TEMPERATURE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?k\b")
_METHOD: Final = re.compile(r"\bmethod of\b")
_WORD: Final = re.compile(r"[^\W_]+")
_STOP: Final = frozenset({"the", "of", "a", "an", "at", "for", "in", "this", "from"})


def verify_names(name: str, target: str) -> dict[str, Any]:
    """Return the verdict on a pair of names."""
    share = _share(name, target)
    reason = "A qualifier differs." if share is None else _share_text(share)
    return {"reason": reason, "is_match": share is not None and share >= LEAST_SHARE}


def choose_target(name: str, targets: Mapping[str, str]) -> dict[str, Any]:
    """Return the letter of the target with most common words, or none."""
    shares = {letter: _share(name, target) or 0.0 for letter, target in targets.items()}
    best = max(shares, key=shares.__getitem__)
    is_any = shares[best] >= LEAST_SHARE
    return {"reason": _share_text(shares[best]), "target": best if is_any else "none"}


def _share_text(share: float) -> str:
    return f"{round(100 * share)}% of the words are common."


def _share(name: str, target: str) -> float | None:
    """Return the share of common words; 1 if one contains the other, or None."""
    first, second = _folded(name), _folded(target)
    if _differ(first, second):
        return None
    words, others = _words(first), _words(second)
    if not words or not others:
        return 0.0
    if words <= others or others <= words:
        return 1.0
    return len(words & others) / len(words | others)


def _differ(first: str, second: str) -> bool:
    if bool(_METHOD.search(first)) != bool(_METHOD.search(second)):
        return True
    if _unequal(_temperatures(first), _temperatures(second)):
        return True
    return any(
        _unequal(*(_kinds(kinds, name) for name in (first, second)))
        for kinds in _QUALIFIERS
    )


def _unequal(first: frozenset[object], second: frozenset[object]) -> bool:
    """Return whether both names have qualifiers, and different ones."""
    return bool(first and second and first != second)


def _kinds(kinds: tuple[str, ...], name: str) -> frozenset[object]:
    return frozenset(kind for kind in kinds if re.search(kind, name))


def _temperatures(name: str) -> frozenset[object]:
    room = {300.0} if "room temperature" in name else set()
    return frozenset({*map(float, _TEMPERATURE.findall(name)), *room})


def _folded(name: str) -> str:
    text = unicodedata.normalize("NFKC", name).lower()
    for pattern, plain in _WRITTEN_OUT:
        text = re.sub(pattern, plain, text)
    return text


def _words(name: str) -> set[str]:
    return {word for word in _WORD.findall(name) if word not in _STOP}


def baseline(request: ChatRequest) -> str:
    """Return the reply to a prompt, by its blocks."""
    prompt = "".join(
        message.text for message in request.messages if message.role == "user"
    )
    blocks = dict(read_blocks(prompt))
    answer = next(answer for name, answer in _ANSWERS.items() if name in blocks)
    return json.dumps(answer(blocks), ensure_ascii=False)


def _wanted_reply(blocks: Mapping[str, str]) -> dict[str, Any]:
    extracted = extract_values(blocks["paper"], _names(blocks["wanted"]))
    rows = [row for row in extracted["properties"] if row["property"] != OTHER]
    return {"properties": rows}


def _choice_reply(blocks: Mapping[str, str]) -> dict[str, Any]:
    targets = {line["letter"]: line["name"] for line in _lines(blocks["targets"])}
    return choose_target(_names(blocks["predicted"])[0], targets)


def _names(block: str) -> list[str]:
    return [line["name"] for line in _lines(block) if "name" in line]


def _lines(block: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in block.split("\n") if line]


_ANSWERS: Final[Mapping[str, Callable[[Mapping[str, str]], dict[str, Any]]]] = {
    "rows": lambda blocks: find_quotes(blocks["paper"], _lines(blocks["rows"])),
    "target": lambda blocks: verify_names(
        _names(blocks["predicted"])[0], _names(blocks["target"])[0]
    ),
    "targets": _choice_reply,
    "names": lambda blocks: extract_values(blocks["paper"], _names(blocks["names"])),
    "wanted": _wanted_reply,
    "paper": lambda blocks: extract_values(blocks["paper"]),
}
"""Answers by block of the prompt; the first block in it counts."""
