"""Declares how the metrics of a job follow from numbers, without any text.

A job that scores cuts its work in two. What comes before the cut reads texts: it parses
replies and matches them with the truth. Its result is a frame, a dataclass of numbers,
arrays, choices and names. What comes after the cut is a pure function of the frame, and
gives every metric with its interval. A redacted bundle holds the frame, with tokens in
place of names, and anyone with the bundle and the job computes the metrics again:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class AnsweredQuestions:
        papers: tuple[str, ...]  # become tokens, which sort like the names
        kinds: tuple[str, ...] = field(metadata=STAYS)
        is_right: npt.NDArray[np.bool_]

    evaluation = Evaluation(AnsweredQuestions, metrics_of)

A text stays in a redacted bundle where the field says so: names that are part of a
metric's path, and choices that the code compares with. Nothing else of a text may be
looked at after the cut but whether it is equal to another one, and which one is first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar

from runner.scorecard import Metric

STAYS: Final[Mapping[str, bool]] = {"stays": True}
"""Metadata of a frame's field whose texts stay in a redacted bundle."""

KEYS_STAY: Final[Mapping[str, bool]] = {"keys_stay": True}
"""Metadata of a mapping whose keys stay, and whose values become tokens."""

Frame = TypeVar("Frame")


@dataclass(frozen=True, slots=True)
class Evaluation(Generic[Frame]):
    """The second half of a scoring."""

    frame: type[Frame]
    """A dataclass, of fields that are numbers, texts, numpy arrays, pydantic settings,
    dataclasses, or sequences and mappings of them."""
    metrics: Callable[[Frame], Mapping[str, Sequence[Metric]]]
    """Computes all metrics by model, in the order of the scorecard."""


AnyEvaluation: TypeAlias = Evaluation[Any]
"""Evaluation of any job."""
