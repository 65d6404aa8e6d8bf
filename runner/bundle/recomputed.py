"""Computes the metrics of a redacted scorecard again, from the frame beside it.

Where the frame gives a metric, it gives its words too: they come from the code and from
names that stay. A text of a metric that is a token in the scorecard is filled in from
there, so that what is computed again has no gap that the reader could not close.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from runner.bundle.frame import decoded_frame
from runner.bundle.redaction import TOKEN
from runner.errors import RunnerError
from runner.job import Job
from runner.job_faults import calling
from runner.score.render import metrics_json
from runner.scorecard import Scorecard

_TOKEN: Final = re.compile(r"~[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputedScorecard:
    """A scorecard whose metrics are those that the frame gives."""

    content: bytes
    metrics: int  #: that came out the same
    different: tuple[tuple[str, str], ...]  #: model and path of each that did not


def metrics_of_frame(job: Job, content: bytes) -> dict[str, Any]:
    """Compute all metrics from a frame, as a scorecard has them.

    Raises:
        RunnerError: the job computes none, or the frame is of another version of it.
    """
    if job.evaluation is None:
        raise RunnerError(f"{job.name} computes no metric from a frame of numbers.")
    try:
        frame = decoded_frame(content, job.evaluation.frame)
    except ValueError as error:
        raise RunnerError(
            f"This {job.name} cannot read the frame ({error})."
        ) from error
    with calling(job, "evaluation"):
        models = job.evaluation.metrics(frame)
    return metrics_json(
        Scorecard(
            models={model: tuple(metrics) for model, metrics in models.items()},
            summary="",
        )
    )


def recomputed_scorecard(
    scorecard: Mapping[str, Any], metrics: Mapping[str, Any]
) -> RecomputedScorecard:
    """Put metrics in their places in a redacted scorecard.

    Args:
        scorecard: as the bundle has it.
        metrics: by model, computed from the frame.
    """
    models: dict[str, Any] = {}
    same, different = 0, []
    for model, reported in scorecard["models"].items():
        models[model] = {"metrics": {}}
        # a name that became a token has no mark in a frame
        computed = metrics.get(model) or metrics.get(model.removeprefix(TOKEN), {})
        pairs = _pairs(reported["metrics"], computed.get("metrics", {}))
        for path, metric, other_path, other in pairs:
            if other is None:
                models[model]["metrics"][path] = metric
            elif _agree(path, other_path) and _agree(metric, other):
                models[model]["metrics"][other_path] = other
                same += 1
            else:
                models[model]["metrics"][path] = metric
                different.append((model, path))
    return RecomputedScorecard(
        content=encoded_scorecard({**scorecard, "models": models}),
        metrics=same,
        different=tuple(different),
    )


def _pairs(
    reported: Mapping[str, Any], computed: Mapping[str, Any]
) -> Iterator[tuple[str, Any, str, Any]]:
    """Each metric of a scorecard with the one that was computed; None: there is none.

    A path may be a token, so that they are told by their places. Stages that were added
    to a run have metrics of their own; then they are told by their paths.
    """
    if len(reported) == len(computed):
        for (path, metric), other in zip(
            reported.items(), computed.items(), strict=True
        ):
            yield path, metric, *other
        return
    for path, metric in reported.items():
        yield path, metric, path, computed.get(path)


def _agree(visible: Any, computed: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether a value of the scorecard is the computed one, or a token of a text."""
    if isinstance(visible, dict) and isinstance(computed, dict):
        return visible.keys() == computed.keys() and all(
            _agree(value, computed[name]) for name, value in visible.items()
        )
    if isinstance(visible, str) and isinstance(computed, str):
        return visible == computed or bool(_TOKEN.fullmatch(visible))
    return type(visible) is type(computed) and bool(visible == computed)


def encoded_scorecard(scorecard: Mapping[str, Any]) -> bytes:
    """Encode a scorecard as `scorecard.json` is."""
    text = json.dumps(scorecard, ensure_ascii=False, indent=1, allow_nan=False)
    return text.encode() + b"\n"
