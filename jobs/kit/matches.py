"""Scores answers that are right or wrong: the accuracy of each model.

A job whose replies are read as one value, and whose data hold the right value of each
item, needs no scoring of its own:

    >>> from jobs.kit.testing import MemoryAnswers
    >>> from runner.job import Answer, Stage, Task
    >>> from runner.messages import Reply
    >>> stage = Stage(name="count", parse=lambda data, task, reply: int(reply.text))
    >>> replies = {"T1": "3", "T2": "4"}
    >>> answers = MemoryAnswers.of(
    ...     (
    ...         Answer(
    ...             task=Task(number=n, stage="count", key=key, model="m", replicate=1),
    ...             reply=Reply(text=text),
    ...         ),
    ...     )
    ...     for n, (key, text) in enumerate(replies.items(), start=1)
    ... )
    >>> card = score_matches(stage, None, answers, {"T1": 3, "T2": 5})
    >>> print(card.summary)
    m: accuracy 0.500 (1 of 2 answers)

The scorecard has a verdict for each answer and values for each item, so `siftlog diff`,
the monitor and `siftlog compare` work too. It is not for partial credit or for items
that depend on each other; `jobs.kit.metrics` has intervals by document.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from jobs.kit.metrics import ratio, wilson
from jobs.kit.text_format import UNDEFINED
from runner.job import Answer, Answers, Dataset, Stage
from runner.job_faults import read_reply
from runner.messages import ParseFailure
from runner.scorecard import ItemValues, Metric, Scorecard, Verdict

ACCURACY = "accuracy"
DEFINITION = "accuracy@1; Wilson's interval, answers as independent"


def score_matches(
    stage: Stage, dataset: Dataset, answers: Answers, expected: Mapping[str, object]
) -> Scorecard:
    """Compares what a stage's parser reads with what is expected.

    Args:
        stage: the stage whose answers are scored; its parser reads them.
        dataset: passed to the parser.
        answers: all answers of a run. Failed ones are left out, unreadable ones are
            wrong.
        expected: the right value of each item, by its key. Other items are left out.
    """
    verdicts = [
        _verdict(stage, dataset, answer, expected[answer.task.key])
        for family in answers.families()
        for answer in family
        if answer.task.stage == stage.name
        and answer.task.key in expected
        and answer.reply is not None
    ]
    by_model: dict[str, list[Verdict]] = {model: [] for model in answers.models}
    for verdict in verdicts:
        by_model[verdict.model].append(verdict)
    return Scorecard(
        models={model: (_accuracy(rows),) for model, rows in by_model.items()},
        summary="\n".join(_sentence(model, rows) for model, rows in by_model.items()),
        headline=ACCURACY,
        comparable={
            model: {ACCURACY: _by_item(rows)} for model, rows in by_model.items()
        },
        details=verdicts,
    )


def _verdict(
    stage: Stage, dataset: Dataset, answer: Answer, expected: object
) -> Verdict:
    read = read_reply(stage, dataset, answer.task, answer.reply)
    is_readable = not isinstance(read, ParseFailure)
    return Verdict(
        task=answer.task.number,
        model=answer.task.model,
        stage=stage.name,
        key=answer.task.key,
        value=str(read) if is_readable else "",
        expected=str(expected),
        correct=is_readable and read == expected,
        rule=read.reason if isinstance(read, ParseFailure) else "equal",
    )


def _accuracy(verdicts: Sequence[Verdict]) -> Metric:
    right = sum(verdict.correct is True for verdict in verdicts)
    ends = wilson(right, len(verdicts))
    return Metric(
        path=ACCURACY,
        value=ratio(right, len(verdicts)),
        n=len(verdicts),
        lo=ends.lo,
        hi=ends.hi,
        definition=DEFINITION,
        name="Accuracy",
        meaning="Share of answers that equal the expected value.",
        direction="higher",
        is_headline=True,
    )


def _sentence(model: str, verdicts: Sequence[Verdict]) -> str:
    accuracy = _accuracy(verdicts).value
    right = sum(verdict.correct is True for verdict in verdicts)
    number = UNDEFINED if accuracy is None else f"{accuracy:.3f}"
    return f"{model}: accuracy {number} ({right} of {len(verdicts)} answers)"


def _by_item(verdicts: Sequence[Verdict]) -> Callable[[], ItemValues]:
    """The share of right answers of each item, over its replicates."""

    def values() -> ItemValues:
        by_key: defaultdict[str, list[bool]] = defaultdict(list)
        for verdict in verdicts:
            by_key[verdict.key].append(verdict.correct is True)
        return ItemValues(
            kind="mean",
            items=list(by_key),
            clusters=list(by_key),
            cluster="item",
            first=[sum(rights) / len(rights) for rights in by_key.values()],
            definition=DEFINITION,
        )

    return values
