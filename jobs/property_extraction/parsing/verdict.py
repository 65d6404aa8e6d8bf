"""What a reply decides about a pair of names, or about a name and its targets.

A reply that says both, or nothing, is a failure and never a no: it is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from jobs.property_extraction.answered import Choice, Verdict
from jobs.property_extraction.parsing.fields import text_of
from jobs.replies import Object, objects, parse_failure, reply_content
from runner.job import guarded
from runner.messages import ParseFailure, Reply

WORDS: Final[Mapping[str, bool]] = {
    "true": True,
    "yes": True,
    "false": False,
    "no": False,
}

NONE: Final = "none"
"""The letter of no target at all."""

_WORD: Final = re.compile(r"\b(true|yes|false|no)\b", re.IGNORECASE)
# "no difference" says what there is not, "not true" what is not so: they decide nothing
_LACK: Final = re.compile(
    r"\bno\s+\w|(?:\bnot|n['\u2019]t)\s+(?:true|false|yes)\b", re.IGNORECASE
)
_EDGES: Final = " \t\r\n.,:;()[]\"'*_`"


@guarded
def parse_verdict(reply: Reply) -> Verdict | ParseFailure:
    """The verdict in a reply: of its objects, else of its words.

    Failures: `empty`, `refusal`, `truncated`, `bad_verdict`, `ambiguous`, `no_verdict`.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    found = list(objects(text, lambda each: "is_match" in each))
    if found:
        said = {WORDS.get(_word(each["is_match"])) for each in found}
    else:
        said = {WORDS[word.lower()] for word in _WORD.findall(_LACK.sub("", text))}
    if len(said) > 1:
        return ParseFailure(reason="ambiguous")
    if not said:
        return parse_failure(reply, "no_verdict")
    (is_match,) = said
    if is_match is None:
        return ParseFailure(reason="bad_verdict")
    return Verdict(is_match=is_match, reason=_reason(found))


@guarded
def parse_choice(reply: Reply, targets: Sequence[str]) -> Choice | ParseFailure:
    """The choice in a reply: a letter, the target's own name, or none.

    Failures: `empty`, `refusal`, `truncated`, `bad_target`, `ambiguous`, `no_target`.

    Args:
        reply: of the model.
        targets: names that were offered, in the order of their letters.
    """
    text = reply_content(reply)
    if isinstance(text, ParseFailure):
        return text
    found = list(objects(text, lambda each: "target" in each))
    if not found and "{" in text:
        return parse_failure(reply, "no_target")
    meant = _meanings(targets)
    given = [each["target"] for each in found] or [text]
    said = {
        None if each is None else meant.get(_word(each), len(targets)) for each in given
    }
    if len(said) > 1:
        return ParseFailure(reason="ambiguous")
    (target,) = said
    if target == len(targets):
        return parse_failure(reply, "bad_target" if found else "no_target")
    return Choice(target=target, reason=_reason(found))


def letter(place: int) -> str:
    """The letter of a target: A to Z, then AA, AB, ..., as a spreadsheet's columns."""
    before, own = divmod(place, 26)
    return (letter(before - 1) if before else "") + chr(ord("A") + own)


def _meanings(targets: Sequence[str]) -> dict[str, int | None]:
    """What each word means; a letter before a name that happens to be one."""
    letters = {letter(place).casefold(): place for place in range(len(targets))}
    names = {_word(name): place for place, name in enumerate(targets)}
    return {**names, NONE: None, **letters}


def _word(value: object) -> str:
    return text_of(value).strip(_EDGES).casefold()


def _reason(found: Sequence[Object]) -> str:
    return text_of(found[-1].get("reason")) if found else ""
