"""Leaves out what cannot be measured without a truth, the same way in every job.

A truth is optional. Without it, metrics that need one are absent from a scorecard: they
are not undefined values, and baselines and comparisons of them are absent too. Counts
and operational metrics, named by `Measures.operational`, are present, and models are
compared by the agreement of their labels. One finding says so and names the option
that gives a truth, to the run or to a later scoring of the same answers.
"""

from __future__ import annotations

from dataclasses import replace

from jobs.kit.measures import Measures
from jobs.kit.score import ModelScores
from runner.scorecard import LIMITS, NO_TRUTH, Finding


def no_truth(option: str, content: str = "") -> Finding:
    """Returns the finding of a scoring without a truth.

    >>> print(no_truth("--labels FILE", "the labels of records").message)
    No truth given: counts only, no metric that needs the labels of records. Add it \
without a call: siftlog score RUN --labels FILE

    Args:
        option: how to give a truth, such as `--labels FILE`.
        content: what a truth consists of, such as "the labels of records".
    """
    return Finding(
        code=NO_TRUTH,
        severity="info",
        where=LIMITS,
        message=f"No truth given: counts only, no metric that needs "
        f"{content or 'a truth'}. Add it without a call: siftlog score RUN {option}",
    )


def whole_sample(limit: int) -> str:
    """Returns the option that a later truth needs if a run has a sample of its items.

    A truth may decide which items a sample has. Without the limit, the items of the run
    are scored and the others have no answer.

    Args:
        limit: size of the sample; 0: there is none.
    """
    return " --limit 0" if limit else ""


def without_truth(scores: ModelScores, words: Measures) -> ModelScores:
    """Returns a model's scores without the parts that need a truth."""
    metrics = tuple(m for m in scores.metrics if words.is_operational(m.path))
    retained = {metric.path for metric in metrics}
    return replace(
        scores,
        metrics=metrics,
        comparable={
            path: values
            for path, values in scores.comparable.items()
            if path in retained
        },
        baselines=(),
    )
