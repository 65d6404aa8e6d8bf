"""The JSON schemas that replies should follow, one per kind of request.

Strict in the sense of the endpoints that enforce them: every property is required and
no other is allowed. Properties stand in the order in which they are to be answered,
which endpoints and models follow. An endpoint may put its schema before the messages,
so each one costs a prompt prefix of its own; there are four and no more.
"""

from __future__ import annotations

import json
from typing import Any

from runner.messages import Schema


def _closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _schema(name: str, body: dict[str, Any]) -> Schema:
    return Schema(name=name, json=json.dumps(body, separators=(",", ":")))


_TEXT = {"type": "string"}
_LETTER = {"type": "string", "enum": ["a", "b", "c", "d"]}
_SIGNIFICANCE = {"type": "string", "enum": ["yes", "no", "not stated", "not found"]}
_NUMBER = {"type": "integer"}

VARIANTS = _schema("variants", _closed(variants={"type": "array", "items": _TEXT}))
CHOICE = _schema("choice", _closed(answer=_LETTER))
STUDY = _schema("study_parameters", _closed(p_value=_TEXT, significance=_SIGNIFICANCE))
BATCH = _schema(
    "answers",
    _closed(
        answers={
            "type": "array",
            "items": {
                "anyOf": [
                    _closed(n=_NUMBER, answer=_LETTER),
                    _closed(n=_NUMBER, p_value=_TEXT, significance=_SIGNIFICANCE),
                ]
            },
        }
    ),
)
