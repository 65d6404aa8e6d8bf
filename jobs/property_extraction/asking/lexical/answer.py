"""The reply to a prompt, whichever stage it is of.

It is the floor of every experiment and the first run without key or network. It sees
the prompt only, costs nothing, and always gives the same answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from jobs.chat import read_blocks
from jobs.property_extraction.asking.lexical.names import chosen, verified
from jobs.property_extraction.asking.lexical.quotes import requoted
from jobs.property_extraction.asking.lexical.values import extracted
from jobs.property_extraction.parsing.extraction import OTHER
from runner.messages import ChatRequest


def baseline(request: ChatRequest) -> str:
    """The reply to a prompt, by what it shows."""
    asked = "".join(each.text for each in request.messages if each.role == "user")
    told = dict(read_blocks(asked))
    answer = next(answer for name, answer in _ANSWERS.items() if name in told)
    return json.dumps(answer(told), ensure_ascii=False)


def _extracted(told: Mapping[str, str]) -> dict[str, Any]:
    return extracted(told["paper"])


def _listed(told: Mapping[str, str]) -> dict[str, Any]:
    return extracted(told["paper"], [each["name"] for each in _lines(told["names"])])


def _wanted(told: Mapping[str, str]) -> dict[str, Any]:
    found = extracted(told["paper"], [each["name"] for each in _lines(told["wanted"])])
    rows = [each for each in found["properties"] if each["property"] != OTHER]
    return {"properties": rows}


def _requoted(told: Mapping[str, str]) -> dict[str, Any]:
    return requoted(told["paper"], _lines(told["rows"]))


def _verified(told: Mapping[str, str]) -> dict[str, Any]:
    return verified(_name(told), _lines(told["target"])[0]["name"])


def _chosen(told: Mapping[str, str]) -> dict[str, Any]:
    targets = {each["letter"]: each["name"] for each in _lines(told["targets"])}
    return chosen(_name(told), targets)


def _name(told: Mapping[str, str]) -> str:
    return next(each["name"] for each in _lines(told["predicted"]) if "name" in each)


def _lines(block: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in block.split("\n") if line]


_ANSWERS: Final[Mapping[str, Callable[[Mapping[str, str]], dict[str, Any]]]] = {
    "rows": _requoted,
    "target": _verified,
    "targets": _chosen,
    "names": _listed,
    "wanted": _wanted,
    "paper": _extracted,
}
"""By a block of the prompt; the first one that it shows counts."""
