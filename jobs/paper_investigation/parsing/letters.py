r"""The option that a multiple-choice reply picks.

A rule takes the cleaned reply and the cleaned texts of the options (empty where they
are unknown) and returns a letter or None. `RULES` lists them in the order in which they
are tried; the first letter wins, and its rule's name is recorded.

The article "a" is the trap: "the answer is a combination" picks nothing. Wherever prose
may stand around it, an unbracketed a counts only if what follows it shows a choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from jobs.json_scan import last_object
from jobs.paper_investigation.parsing.values import LETTERS, Letter, unread
from runner.messages import ParseFailure, Reply

Options: TypeAlias = tuple[str, ...]
Rule: TypeAlias = Callable[[str, Options], str | None]

#: A reply shorter than this may pick by merely naming a letter.
_SHORT = 40

# A tag of one character would be an answer, not a language.
_FENCE = re.compile(r"^[ \t]*```(?:\w{2,})?[ \t]*$", re.MULTILINE)
_MARKUP = re.compile(r"[*_`]")

_BARE = re.compile(r"(?:\(([a-d])\)|\[([a-d])\]|([a-d]))[.):]?", re.IGNORECASE)

# A hyphen or an apostrophe makes the letter part of a word: "c-reactive", "HLA-B".
_ALONE = re.compile(r"(?<![\w'’-])[a-d](?!['’-]?\w)", re.IGNORECASE)

# "answer:" may head the next line; "option:" at a line's end heads a list of options.
_STATED = re.compile(
    r"\b(?:answer\b[\s:=]*(?:is\b[\s:=]*)?"
    r"|(?:option|choice)\b[ \t:=]*(?:is\b[ \t:=]*)?)"
    r"(?P<bracket>[(\[]?)(?P<letter>[a-d])(?!['’-]?\w)",
    re.IGNORECASE,
)
_CHOSEN = re.compile(
    r"[ \t]*(?:[.,;:!?)\]]|$|(?:is|because|since|as)\b)", re.IGNORECASE | re.MULTILINE
)

_OPENERS = " \t([\"'“-–—"  #: what may stand between a letter and its option's text

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
    """The letter that the first fitting rule of `RULES` finds.

    A JSON object with a text under "answer" stands for the whole reply. *options* are
    the texts of a to d, None where they are unknown.
    """
    found = last_object(reply.text, lambda value: isinstance(value.get("answer"), str))
    origin = "" if found is None else "json."
    text = _clean(reply.text if found is None else found["answer"])
    texts = tuple(_clean(option) for option in options or ())
    for name, rule in RULES:
        if letter := rule(text, texts):
            return Letter(letter=letter.lower(), rule=origin + name)
    return unread(reply, "no_letter")


def needs_options(read: Letter | ParseFailure) -> bool:
    """Whether a rule that knows the options' texts could have come before *read*."""
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
    wanted = _folded(text)
    fitting = [
        letter
        for letter, option in zip(LETTERS, options, strict=False)
        if wanted and _folded(option) == wanted
    ]
    return fitting[0] if len(fitting) == 1 else None


def _folded(text: str) -> str:
    return text.casefold().removesuffix(".")


def _is_choice(text: str, letter: str, end: int, options: Options) -> bool:
    """Whether a letter in prose that ends at *end* is meant as one; see the module."""
    if letter not in "aA" or _CHOSEN.match(text, end):
        return True
    own = _folded(options[0]) if options else ""
    return bool(own) and text[end:].lstrip(_OPENERS).casefold().startswith(own)


RULES: tuple[tuple[str, Rule], ...] = (
    ("whole", _whole),
    ("last_line", _last_line),
    ("stated", _stated),
    ("first_line", _first_line),
    ("lead", _lead),
    ("only_letter", _only_letter),
    ("option_text", _option_text),
)

#: Rules, and their like in JSON, before which none looks at the options.
_BLIND = frozenset(
    origin + name for origin in ("", "json.") for name in ("whole", "last_line")
)
