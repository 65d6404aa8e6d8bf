"""A frame comes out of a bundle as it was, but for names, which are told apart."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from pydantic import BaseModel

from runner.bundle.commitments import RedactionSecret, SaltedCommitter
from runner.bundle.frame import decoded_frame, encoded_frame, frame_commitments
from runner.bundle.recomputed import recomputed_scorecard
from runner.bundle.redaction import Redactor
from runner.evaluation import KEYS_STAY, STAYS


class _Level(enum.StrEnum):
    HIGH = "high"


class _Settings(BaseModel):
    level: float = 0.9
    rule: str = "strict"
    file: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    settings: _Settings
    papers: Sequence[str]
    kinds: tuple[str, ...] = field(metadata=STAYS)
    is_right: npt.NDArray[np.bool_]
    state: npt.NDArray[np.int8]
    p: npt.NDArray[np.float64]
    lists: Mapping[str, Sequence[str]] = field(metadata=KEYS_STAY)
    named: frozenset[tuple[str, str]]
    counted: Counter[tuple[int, float]]
    level: _Level
    of: float | None


FRAME = _Frame(
    settings=_Settings(level=0.5, rule="loose", file="/home/somebody"),
    papers=("zinc paper", "apple paper", "", "apple paper"),
    kinds=("random", "near-miss"),
    is_right=np.array([True, False]),
    state=np.array([32, -1], dtype=np.int8),
    p=np.array([0.25, np.nan]),
    lists={"reranked": ["zinc paper"]},
    named=frozenset({("apple paper", "a name")}),
    counted=Counter({(2, 0.5): 3}),
    level=_Level.HIGH,
    of=None,
)


def _redactor(hidden: frozenset[str] = frozenset()) -> Redactor:
    secret = RedactionSecret(run="r", scoring=1, key=bytes(32))
    return Redactor(
        commit=SaltedCommitter(secret, bytes(32)),
        part=lambda sha256: sha256,
        choices=frozenset(),
        hidden=hidden,
    )


def _encoded(hidden: frozenset[str] = frozenset()) -> bytes:
    return encoded_frame(FRAME, _redactor(hidden), {"level", "rule"})


def test_numbers_and_choices_stay_and_names_are_told_apart() -> None:
    frame = decoded_frame(_encoded(), _Frame)
    zinc, apple, blank, again = frame.papers
    assert apple == again < zinc
    assert (apple[0], blank) == ("~", "")
    assert frame.kinds == FRAME.kinds
    assert frame.lists == {"reranked": [zinc]}
    ((first, second),) = frame.named
    assert first == apple > second
    assert frame.counted == FRAME.counted
    assert (frame.level, frame.of) == (_Level.HIGH, None)
    assert (frame.settings.level, frame.settings.rule) == (0.5, "loose")
    assert frame.settings.file == "none"
    for name in ("is_right", "state", "p"):
        before, after = getattr(FRAME, name), getattr(frame, name)
        assert before.dtype == after.dtype
        assert np.array_equal(before, after, equal_nan=name == "p")


def test_a_frame_holds_no_name_and_commits_to_each() -> None:
    content = _encoded()
    for name in (b"zinc", b"apple", b"a name", b"somebody"):
        assert name not in content
    assert len({*frame_commitments(content)}) == 3
    # eight bytes of a number hold a zero: a row of them is no row of blanks
    assert b"  " not in content


def test_a_text_that_may_not_stay_after_all_is_a_token() -> None:
    frame = decoded_frame(_encoded(frozenset({"near-miss"})), _Frame)
    assert frame.kinds[0] == "random"
    # the mark of a token would begin the form of a metric in a path
    assert frame.kinds[1] == _redactor().shared("name", "near-miss").removeprefix("~")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93",
        msgspec.msgpack.encode([b"", {"papers": 3}]),
        msgspec.msgpack.encode([b"", msgspec.msgpack.Ext(7, b"x")]),
    ],
)
def test_what_is_no_frame_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decoded_frame(content, _Frame)


def _metric(value: float | None, name: str = "Recall") -> dict[str, Any]:
    return {"name": name, "value": value, "n": 3}


TOKEN = "~" + "0f" * 32


def test_texts_of_metrics_are_filled_in_and_other_numbers_are_found() -> None:
    shown = {"a": _metric(0.5, TOKEN), TOKEN: _metric(None), "c": _metric(1.0)}
    computed = {"a": _metric(0.5), "b": _metric(None), "c": _metric(1)}
    card = {"job": "x", "models": {"m": {"metrics": shown}}}
    again = recomputed_scorecard(card, {"m": {"metrics": computed}})
    assert again.metrics == 2
    assert again.different == (("m", "c"),)  # 1.0 is not written like 1
    assert b"~" not in again.content


def test_metrics_of_added_stages_stay_as_they_are() -> None:
    shown = {"a": _metric(0.5), "stage.b": _metric(0.25)}
    card = {"job": "x", "models": {"m": {"metrics": shown}}}
    again = recomputed_scorecard(card, {"m": {"metrics": {"a": _metric(0.5)}}})
    assert (again.metrics, again.different) == (1, ())
    assert b"stage.b" in again.content
