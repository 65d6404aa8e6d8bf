"""What compares conclusions: judges' answers, and vectors, by the present rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jobs.review_benchmark import reading
from jobs.review_benchmark.answered import Likeness, Vector
from jobs.review_benchmark.asking import comparing, keys
from jobs.review_benchmark.asking.request import carried_said
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.rebuilt import Concluded
from jobs.review_benchmark.review import Review
from runner.job import Answer
from runner.messages import ParseFailure, Reply, Vectors

STAGES = frozenset({"judge", "embed"})
"""The stages of other models than the agent's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A conclusion with all that compares it."""

    concluded: Concluded
    missing: int = 0  #: what was never asked
    stale: int = 0  #: replies about other conclusions, or by other rules


def compared(
    dataset: Dataset,
    review: Review,
    model: str,
    drawn: Concluded,
    family: Iterable[Answer],
) -> Compared:
    """A conclusion with the answers that compare it.

    Args:
        dataset: reviews and settings.
        review: what is concluded about.
        model: the subject model.
        drawn: its conclusion.
        family: all answers about the review.
    """
    answers = {own.task.key: own for own in family if own.task.stage in STAGES}
    specs = comparing.compared(dataset, review, drawn.text, model) if drawn.text else ()
    found = drawn
    missing = 0
    for spec in specs:
        answer = answers.pop(spec.key, None)
        truth = carried_said(spec.context).truth
        read = _read(dataset, answer)
        if isinstance(read, Likeness):
            found = replace(found, judged={**found.judged, truth: read})
        elif isinstance(read, str):
            # what a judge says of another review's authors is no verdict on this one
            if truth in {"", review.id}:
                found = replace(found, failure=spec.skip or read)
        else:
            found = replace(found, vector=read)
        missing += answer is None and spec.skip is None
    stale = sum(answer.reply is not None for answer in answers.values())
    return Compared(concluded=found, missing=missing, stale=stale)


@dataclass(slots=True, kw_only=True)
class Truths:
    """The vectors of what authors concluded, as families bring them."""

    dataset: Dataset
    replicates: int
    vectors: dict[str, Vector] = field(default_factory=dict)
    stale: int = 0
    missing: int = field(init=False)  #: how many were never asked for
    _due: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._due = {
            spec.key: keys.review_of_key(spec.key)
            for spec in comparing.truths(self.dataset)
            if spec.skip is None
        }
        self.missing = len(self._due) * self.replicates

    def add(self, family: Sequence[Answer]) -> None:
        """Take in a family; a further replicate would say the same again."""
        (answer,) = family
        review = self._due.get(answer.task.key)
        if review is None:
            self.stale += answer.reply is not None
            return
        self.missing -= 1
        read = _read(self.dataset, answer)
        if isinstance(read, tuple):
            self.vectors.setdefault(review, read)


def _read(dataset: Dataset, answer: Answer | None) -> Likeness | Vector | str:
    """What an answer says, or why it says nothing."""
    if answer is None:
        return "open"
    parsed: Likeness | Vector | ParseFailure
    match answer.reply:
        case Reply() as reply:
            parsed = reading.read_likeness(dataset, answer.task, reply)
        case Vectors() as reply:
            parsed = reading.read_vector(dataset, answer.task, reply)
        case _:
            return answer.error or answer.skip or "open"
    return parsed.reason if isinstance(parsed, ParseFailure) else parsed
