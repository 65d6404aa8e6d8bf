"""Verdicts in CSV files as the answers of a run that verifies names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from jobs.property_extraction.aliases.verdicts import HEURISTIC, Verdict
from jobs.property_extraction.asking.keys import pair_key
from jobs.property_extraction.gathering.verdicts import STAGE
from jobs.property_extraction.inputs.named import mapped
from jobs.property_extraction.inputs.verdicts import read_verdicts
from jobs.property_extraction.settings import Settings
from runner.errors import DatasetError, UsageError
from runner.job import ImportedAnswer, TaskSpec


def verdict_answers(settings: Settings, model: str | None) -> Iterator[ImportedAnswer]:
    """An answer for each verdict; of several on a pair each is a replicate.

    Names that are equal need none: whoever has the pairs knows it.

    Args:
        settings: of the run; they name the files.
        model: name of the model where no column says it.

    Raises:
        DatasetError: a row is off, or nobody says whose verdict it is.
        UsageError: no file is named.
    """
    if not settings.verdicts:
        raise UsageError("Name the verdicts: --verdicts FILE.")
    seen: Counter[tuple[str, str]] = Counter()
    columns = mapped(settings, settings.verdicts)
    for verdict in chain.from_iterable(
        read_verdicts(path, columns) for path in settings.verdicts
    ):
        if verdict.model == HEURISTIC:
            continue
        key = pair_key(verdict.pred_name, verdict.gt_name)
        name = _model(verdict, model)
        seen[key, name] += 1
        yield ImportedAnswer(
            spec=TaskSpec(stage=STAGE, key=key),
            model=name,
            replicate=seen[key, name],
            text=_text(verdict),
        )
    if not seen:
        raise DatasetError("The files hold no verdict of a model (add rows).")


def _model(verdict: Verdict, model: str | None) -> str:
    name = verdict.model or model
    if not name:
        raise DatasetError(
            f"The verdict on {verdict.pred_name!r} names no model (add a column model, "
            "or name it with --model)."
        )
    return name


def _text(verdict: Verdict) -> str:
    """The reply that says this; nothing for one that nobody could read."""
    if verdict.is_match is None:
        return ""
    said = {"is_match": verdict.is_match, "reason": verdict.reason}
    return json.dumps(said, ensure_ascii=False)
