"""Parses replies by siftlog's rules: variant lists, letters, study answers, batches.

A rule for letters takes the cleaned reply and the cleaned texts of the options (empty
if they are unknown) and returns a letter or None. `LETTER_RULES` lists them in the
order in which they are tried; the first letter wins, and its rule's name is recorded.

The article "a" needs care: "the answer is a combination" selects no option. Within
prose, an unbracketed a counts only if the text after it shows a choice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from jobs.kit.replies import Object, arrays, last_object, objects
from jobs.paper_investigation.data import LETTERS
from runner.messages import ParseFailure, Reply, wellformed


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantList:
    """Variants in an extraction reply."""

    entries: tuple[str, ...]  #: as spelled, with repeats; may be empty
    dropped: int  #: entries of the list without a variant
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """The option selected in a multiple-choice reply."""

    letter: str  #: "a" to "d"
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAnswer:
    """The p-value and the significance in a study-parameter reply.

    The rules of profile `clinpgx-qa` set a missing field to "parse_error".
    """

    p_value: str
    significance: str
    rule: str


def unread(reply: Reply, reason: str) -> ParseFailure:
    """Return the failure to parse *reply*: truncated or empty take precedence."""
    if reply.is_truncated:
        return ParseFailure(reason="truncated")
    return ParseFailure(reason=reason if reply.text.strip() else "empty_reply")


#: Keys of an object that may have its variant; the first with text wins.
_NAME_KEYS = ("variant", "name", "id")


def read_list(reply: Reply) -> VariantList | ParseFailure:
    """Parse the first JSON array that is empty or has at least one variant.

    Arrays of numbers are citations and are skipped. A truncated array is never
    repaired: a list of unknown length would look like a complete one.
    """
    has_other_array = False
    for array in arrays(reply.text):
        names = [name for entry in array if (name := _name(entry)) is not None]
        if names or not array:
            return VariantList(
                entries=tuple(names), dropped=len(array) - len(names), rule="array"
            )
        has_other_array = has_other_array or not all(map(_is_number, array))
    if has_other_array:
        return ParseFailure(reason="no_strings")
    return unread(reply, "no_list")


def _name(entry: object) -> str | None:
    candidates: list[Any] = [entry]
    if isinstance(entry, dict):
        candidates = [entry.get(key) for key in _NAME_KEYS]
    for text in candidates:
        if isinstance(text, str) and text.strip():
            return wellformed(text)
    return None


def _is_number(entry: object) -> bool:
    return isinstance(entry, int | float) and not isinstance(entry, bool)


Options: TypeAlias = tuple[str, ...]
Rule: TypeAlias = Callable[[str, Options], str | None]

#: A reply shorter than this may select an option by merely naming a letter.
_SHORT = 40

# A tag of one character would be an answer, not a language.
_FENCE = re.compile(r"^[ \t]*```(?:\w{2,})?[ \t]*$", re.MULTILINE)
_MARKUP = re.compile(r"[*_`]")

_BARE = re.compile(r"(?:\(([a-d])\)|\[([a-d])\]|([a-d]))[.):]?", re.IGNORECASE)

# A hyphen or an apostrophe makes the letter part of a word: "c-reactive", "HLA-B".
_ALONE = re.compile(r"(?<![\w'’-])[a-d](?!['’-]?\w)", re.IGNORECASE)

# "answer:" may precede the next line; "option:" at a line's end precedes a list of
# options.
_STATED = re.compile(
    r"\b(?:answer\b[\s:=]*(?:is\b[\s:=]*)?"
    r"|(?:option|choice)\b[ \t:=]*(?:is\b[ \t:=]*)?)"
    r"(?P<bracket>[(\[]?)(?P<letter>[a-d])(?!['’-]?\w)",
    re.IGNORECASE,
)
_CHOSEN = re.compile(
    r"[ \t]*(?:[.,;:!?)\]]|$|(?:is|because|since|as)\b)", re.IGNORECASE | re.MULTILINE
)

_OPENERS = " \t([\"'“-–—"  #: may be between a letter and its option's text

_LEAD = re.compile(
    r"""
    [(\[]?([a-d])
    (?: [.):\]]+\s                                  # a. text, a) text, [a] text
      | \s+[-–—]\s                                  # a - text
      | \s+(?:is|because|since)\b
      | \s*\( (?:[^()\n] | \([^()\n]*\))* \) [.]?[ \t]*$      # a (gloss)
      | \s*\[ [^\[\]\n]* \] [.]?[ \t]*$
    )
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)


def read_letter(reply: Reply, options: Options | None) -> Letter | ParseFailure:
    """Return the letter that the first matching rule of `LETTER_RULES` finds.

    A JSON object with a text under "answer" replaces the whole reply. *options* are the
    texts of a to d, or None if they are unknown.
    """
    answer_object = last_object(
        reply.text, lambda value: isinstance(value.get("answer"), str)
    )
    origin = "" if answer_object is None else "json."
    text = _clean(reply.text if answer_object is None else answer_object["answer"])
    texts = tuple(_clean(option) for option in options or ())
    for name, rule in LETTER_RULES:
        if letter := rule(text, texts):
            return Letter(letter=letter.lower(), rule=origin + name)
    return unread(reply, "no_letter")


def letter_needs_options(read: Letter | ParseFailure) -> bool:
    """Return whether a rule that uses the options could have preceded *read*."""
    return isinstance(read, ParseFailure) or read.rule not in _BLIND


def _clean(text: str) -> str:
    return _MARKUP.sub("", _FENCE.sub("", text)).strip()


def _bare(text: str) -> str | None:
    match = _BARE.fullmatch(text.strip())
    return match and match[match.lastindex or 0]


def _whole(text: str, _: Options) -> str | None:
    return _bare(text)


def _last_line(text: str, _: Options) -> str | None:
    return _bare(text.splitlines()[-1]) if text else None


def _stated(text: str, options: Options) -> str | None:
    picks = [
        match["letter"]
        for match in _STATED.finditer(text)
        if match["bracket"] or _is_choice(text, match["letter"], match.end(), options)
    ]
    return picks[-1] if picks else None


def _first_line(text: str, _: Options) -> str | None:
    return _bare(text.splitlines()[0]) if text else None


def _lead(text: str, _: Options) -> str | None:
    match = _LEAD.match(text)
    return match and match[1]


def _only_letter(text: str, options: Options) -> str | None:
    matches = list(_ALONE.finditer(text)) if len(text) < _SHORT else []
    if len({match[0].lower() for match in matches}) != 1:
        return None
    picked = any(_is_choice(text, match[0], match.end(), options) for match in matches)
    return matches[0][0] if picked else None


def _option_text(text: str, options: Options) -> str | None:
    target = _folded(text)
    fitting = [
        letter
        for letter, option in zip(LETTERS, options, strict=False)
        if target and _folded(option) == target
    ]
    return fitting[0] if len(fitting) == 1 else None


def _folded(text: str) -> str:
    return text.casefold().removesuffix(".")


def _is_choice(text: str, letter: str, end: int, options: Options) -> bool:
    """Return whether a letter in prose that ends at *end* is a choice."""
    if letter not in "aA" or _CHOSEN.match(text, end):
        return True
    first_option = _folded(options[0]) if options else ""
    return bool(first_option) and text[end:].lstrip(_OPENERS).casefold().startswith(
        first_option
    )


LETTER_RULES: tuple[tuple[str, Rule], ...] = (
    ("whole", _whole),
    ("last_line", _last_line),
    ("stated", _stated),
    ("first_line", _first_line),
    ("lead", _lead),
    ("only_letter", _only_letter),
    ("option_text", _option_text),
)

#: Rules, also in JSON, that precede all rules with options.
_BLIND = frozenset(
    origin + name for origin in ("", "json.") for name in ("whole", "last_line")
)


_YES_NO = {True: "yes", False: "no"}


def read_study(reply: Reply) -> StudyAnswer | ParseFailure:
    """Parse the last JSON object that has both fields; a null counts as ""."""
    answer_object = last_object(reply.text, _has_both)
    if answer_object is None:
        return unread(reply, "no_object")
    significance = answer_object["significance"]
    if isinstance(significance, bool):
        significance = _YES_NO[significance]
    return StudyAnswer(
        p_value=_text(answer_object["p_value"]).strip(),
        significance=_text(significance).strip().lower(),
        rule="object",
    )


def _has_both(value: Object) -> bool:
    return "p_value" in value and "significance" in value


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):  # such as a list of several p-values: unchanged
        value = json.dumps(value, ensure_ascii=False)
    return wellformed(value)


# More digits cannot be a question number, and Python refuses to parse thousands of
# them.
_NUMBER = re.compile(r"\d{1,9}")

# A digit after the dot makes it a decimal that happens to start a line.
_NUMBERED_LINE = re.compile(rf"^[ \t*_]*({_NUMBER.pattern})[.):](?!\d)", re.MULTILINE)


BatchedAnswers: TypeAlias = tuple[Reply | None, ...]
"""The answer to each question of a batch; None: the reply has none with its number."""


def number_answers(numbered: Iterable[tuple[int, Reply]], count: int) -> BatchedAnswers:
    """Sort answers to the *count* questions; the last of equal numbers counts."""
    answers = dict(numbered)
    return tuple(answers.get(number) for number in range(1, count + 1))


def split_batch(reply: Reply, count: int) -> BatchedAnswers:
    """Split a reply into JSON answers by their `n`, else into numbered blocks."""
    batch = number_answers(_json_answers(reply), count)
    return batch if any(batch) else number_answers(_blocks(reply), count)


def _json_answers(reply: Reply) -> Iterable[tuple[int, Reply]]:
    for answer in objects(reply.text, _is_numbered):
        yield int(answer["n"]), Reply(text=json.dumps(answer, ensure_ascii=False))


def _is_numbered(value: Object) -> bool:
    number = value.get("n")
    return (
        isinstance(number, str)
        and _NUMBER.fullmatch(number) is not None
        and ("answer" in value or "p_value" in value)
    )


def _blocks(reply: Reply) -> Iterable[tuple[int, Reply]]:
    """Yield the text from each numbered line to the next, to allow multi-line JSON.

    Only the last block can be truncated.
    """
    lines = list(_NUMBERED_LINE.finditer(reply.text))
    ends = [line.start() for line in lines[1:]]
    for line, end in zip(lines, [*ends, None], strict=False):
        text = reply.text[line.end() : end]
        finish_reason = "stop" if end else reply.finish_reason
        yield int(line[1]), Reply(text=text, finish_reason=finish_reason)
